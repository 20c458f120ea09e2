"""A study on the page Results: the answers, the forest plots and their table, the report."""

import csv
import json
from dataclasses import replace
from html import unescape
from pathlib import Path

from core.experiment import deliver, plot, results, tables, words
from core.experiment.words import NOTHING
from pages.ui.widgets import plain
from tests import finished
from tests.pages.drawing import opened, opened_on, seen, texts

PAGE = "pages/6_Results.py"


def test_study_page_and_report_show_the_same_answers_plots_and_table(home: Path) -> None:
    run = finished.study(home, (0.2, 2.0, 0.8))
    found = results.finding(run.id)
    assert found.what.startswith("Helped: ")
    app = opened_on(PAGE, run.id)
    assert not app.error
    assert app.header[0].value == f":green[{found.word}]"
    page_text, page = seen(app), finished.html_report(run.id)
    for part in (found.sentence, found.sure, found.next):
        assert part in page_text
        assert part in page
    shown_as = {element.value for element in app.markdown}
    assert {plain(sentence) for sentence in words.study_answer(results.study_board(run.id))} <= shown_as
    alts = [chart.proto.alt for chart in app.get("plotly_chart")]
    assert len(alts) == 2  # selection, pre-training
    assert "+1.00" in alts[0]
    for shown in ("on average: +1.00 [", "on average: +5.00", "yes: +1.00 [", "no evidence: +1.00 [", "p = "):
        assert shown in page_text
    for shown in (texts(app), page):
        assert finished.NASTY not in shown
    assert page.count("<svg") == 2
    assert "python -m core study" in page
    assert len(deliver.board_csv(run.id).decode("utf-8-sig").splitlines()) == 1 + 3 + 2
    assert "on average" in deliver.board_markdown(run.id)
    assert found.what.partition(":")[2].split(".")[0][:30] in seen(opened("home.py"))


def test_a_task_named_like_a_formula_is_escaped_in_every_table(home: Path) -> None:
    run = finished.study(home, (0.2, 2.0))
    result = results.study_board(run.id)
    table = tables.as_csv(replace(result, tasks=[replace(result.tasks[0], name="=1+1"), *result.tasks[1:]]))
    first = next(csv.DictReader(table.splitlines()))
    assert (first["task"], float(first["f1"])) == ("'=1+1", result.tasks[0].f1)


def test_study_of_one_task_claims_nothing_about_other_tasks(home: Path) -> None:
    run = finished.study(home, (0.2,), choosing=False, replicates=2)
    app = opened_on(PAGE, run.id)
    assert "similar tasks" in seen(app)
    for tab in ("Download", "All trainings"):
        opened_on(PAGE, run.id, {"results.tab.study": tab})
    assert len(app.get("plotly_chart")) == 1
    assert finished.html_report(run.id).count("<svg") == 1


def test_selection_is_compared_with_its_control_without_a_planned_test_too(home: Path) -> None:
    """A single replicate allows no test."""
    run = finished.study(home, (0.2, 2.0), replicates=1)
    result = results.study_board(run.id)
    assert result.planned is None
    assert [words.over(result, of) for of in words.asked(result)] == ["random 10%", "none"]
    assert "points of F1 over random 10%" in words.study_answer(result)[0]
    assert "Difference to random 10%" in unescape(finished.html_report(run.id))


def test_study_answers_nothing_if_no_tagger_learnt_anything(home: Path) -> None:
    run = finished.study(home, (1.2, 1.0, 1.1), idle=(0, 1, 2))
    result = results.study_board(run.id)
    assert result.planned is None
    assert result.choosing
    questions = (result.choosing, result.reading)
    assert [(one.these.answer, one.others and one.others.answer, one.lacking) for one in questions] == [
        (None, None, "")
    ] * 2
    table = deliver.board_markdown(run.id)
    assert table.split("\n")[0] == NOTHING
    assert "no evidence" not in table
    assert "level" not in table
    lines = list(csv.DictReader(deliver.board_csv(run.id).decode("utf-8-sig").splitlines()))
    assert [(line["helped"], line["chose"]) for line in lines] == [("", "")] * 5
    page = unescape(finished.html_report(run.id))
    assert "No tagger learnt anything" in page
    assert "p = " not in page
    app = opened_on(PAGE, run.id)
    shown = seen(app)
    assert "No tagger learnt anything" in shown
    assert "no evidence: " not in shown
    assert "p = " not in shown


def test_interval_much_wider_than_the_others_is_cut(home: Path) -> None:
    result = results.study_board(finished.study(home, (0.2, 2.0)).id)
    figure = json.loads(plot.forest(result, "choosing").to_json())
    low, high = figure["layout"]["xaxis"]["range"]
    assert result.choosing
    assert result.choosing.others
    assert result.choosing.others.interval[0] < low  # with two tasks, the interval is ±11 points wide
    assert all(low <= x <= high for trace in figure["data"] for x in trace["x"])
    marks = [trace["marker"]["symbol"] for trace in figure["data"] if trace["mode"] == "lines+markers"]
    assert ["triangle-left", "triangle-right"] in marks
    assert figure["layout"]["yaxis"]["categoryarray"][-1].startswith("&lt;img src=x")


def test_study_states_first_that_no_tagger_learnt_anything(home: Path) -> None:
    """Two variants that learnt nothing must not be called equal."""
    result = results.study_board(finished.study(home, (0.0, 0.0)).id)
    first, second = (replace(task, learnt=False) for task in result.tasks)
    assert words.study_answer(replace(result, tasks=[first, second]))[0].startswith("No tagger learnt anything")
    some = words.study_answer(replace(result, tasks=[result.tasks[0], second]))
    assert some[-1] == "No tagger learnt anything on task 1; the mean includes every task."
    assert len(some) == 3
