"""A study on the page Results: the answers, the forest plots and their table, the report."""

import csv
import json
from dataclasses import replace
from html import unescape
from pathlib import Path

from core.facade import deliver, figures, studies
from core.recipes.experiment.collapsed import NOTHING
from tests import finished
from tests.pages.test_pages import opened, opened_on, texts

PAGE = "pages/6_Results.py"


def test_a_study_tells_its_answers_with_a_forest_plot_and_a_table(home: Path) -> None:
    run = finished.study(home, (0.2, 2.0, 0.8))
    app = opened_on(PAGE, run.id)
    assert not app.exception
    assert not app.error
    said = texts(app)
    heading = unescape(app.subheader[0].value).replace("\u2060", "")
    assert heading == studies.finding(run.id).what
    assert heading == "Yes: choosing helped on these 3 tasks on average. On others like these that is not shown."
    below = unescape(said).replace("\u2060", "")
    assert "Choosing helped on these 3 tasks on average: +1.00 [" in below
    assert "Whether it would on others like these is not shown" in below
    assert "wide as there are only 3 tasks" in below
    assert "Reading helped on these 3 tasks on average: +5.00" in below
    alts = [chart.proto.alt for chart in app.get("plotly_chart")]
    assert [alt.partition(",")[0] for alt in alts] == [
        "Points of the score over random 10%",
        "Points of the score over none",
    ]
    assert "Others like these +1.00" in alts[0]
    assert "yes: +1.00 [" in said
    assert "no evidence: +1.00 [" in said
    assert "Lacking for others like them are task corpora" in unescape(said)
    assert "p = " in unescape(said)
    assert finished.NASTY not in said
    home_page = texts(opened("home.py"))
    assert "Study&#58" in home_page or "Study:" in unescape(home_page)
    assert "choosing helped on these 3 tasks" in unescape(texts(opened_on("pages/5_Training.py", run.id)))


def test_its_report_and_its_tables_hold_the_same(home: Path) -> None:
    run = finished.study(home, (0.2, 2.0, 0.8))
    page = finished.html_report(run.id)
    assert finished.NASTY not in page
    assert "Choosing helped on these 3 tasks on average" in page
    assert all(part in page for part in studies.finding(run.id).parts)
    assert "Others like these" in page
    assert page.count("<svg") == 2
    assert "python -m core study" in page
    rows = deliver.study_csv(run.id).decode("utf-8-sig").splitlines()
    assert len(rows) == 1 + 3 + 2
    assert "these, on average" in deliver.study_markdown(run.id)


def test_a_claim_without_a_control_and_one_replicate_are_said_as_they_are(home: Path) -> None:
    run = finished.study(home, (0.2,), choosing=False, replicates=2)
    app = opened_on(PAGE, run.id)
    assert not app.exception
    assert "One task says nothing of others like it" in unescape(texts(app))
    assert len(app.get("plotly_chart")) == 1
    assert page_has_one_question(run.id)


def test_choosing_is_over_its_control_where_no_test_was_planned_too(home: Path) -> None:
    """A single replicate, by which nothing is tested."""
    run = finished.study(home, (0.2, 2.0), replicates=1)
    result = studies.board(run.id)
    assert result.planned is None
    assert [figures.over(result, of) for of in figures.asked(result)] == ["random 10%", "none"]
    assert figures.over(replace(result, control=""), "choosing") == "its control"
    assert "points of score over random 10%" in figures.study_answer(result)[0]
    assert "Difference to random 10%" in unescape(finished.html_report(run.id))


def test_where_no_tagger_learnt_anything_nothing_is_answered(home: Path) -> None:
    run = finished.study(home, (1.2, 1.0, 1.1), idle=(0, 1, 2))
    result = studies.board(run.id)
    assert result.planned is None
    assert result.choosing
    asked = (result.choosing, result.reading)
    assert [(one.these.answer, one.others and one.others.answer, one.lacking) for one in asked] == [
        (None, None, "")
    ] * 2
    table = deliver.study_markdown(run.id)
    assert table.split("\n")[0] == NOTHING
    assert "no evidence" not in table
    assert "level" not in table
    lines = list(csv.DictReader(deliver.study_csv(run.id).decode("utf-8-sig").splitlines()))
    assert [(line["helped"], line["chose"]) for line in lines] == [("", "")] * 5
    page = unescape(finished.html_report(run.id))
    assert "No tagger learnt anything" in page
    assert "p = " not in page
    app = opened_on(PAGE, run.id)
    assert not app.exception
    shown = unescape(texts(app)).replace("\u2060", "")
    assert "No tagger learnt anything" in shown
    assert "no evidence: " not in shown
    assert "p = " not in shown


def test_a_task_on_which_nothing_was_learnt_is_named_in_the_report_too(home: Path) -> None:
    run = finished.study(home, (1.2, 1.0, 1.1), idle=(1,))
    assert "No tagger learnt anything on task 1, which counts all the same." in finished.html_report(run.id)


def page_has_one_question(run_id: str) -> bool:
    return "Did choosing help?" not in finished.html_report(run_id)


def test_an_interval_that_would_dwarf_the_others_is_cut_and_all_stay_in_the_figure(home: Path) -> None:
    result = studies.board(finished.study(home, (0.2, 2.0)).id)
    figure = json.loads(figures.forest(result, "choosing").to_json())
    low, high = figure["layout"]["xaxis"]["range"]
    assert result.choosing
    assert result.choosing.others
    assert result.choosing.others.interval[0] < low  # by two tasks it is +-11 points
    assert all(low <= x <= high for trace in figure["data"] for x in trace["x"])
    marks = [trace["marker"]["symbol"] for trace in figure["data"] if trace["mode"] == "lines+markers"]
    assert ["triangle-left", "triangle-right"] in marks
    assert figure["layout"]["yaxis"]["categoryarray"][-1].startswith("&lt;img src=x")


def test_where_no_tagger_learnt_anything_that_is_the_answer(home: Path) -> None:
    """Two that found nothing are not level."""
    result = studies.board(finished.study(home, (0.0, 0.0)).id)
    first, second = (replace(task, learnt=False) for task in result.tasks)
    assert figures.study_answer(replace(result, tasks=[first, second]))[0].startswith("No tagger learnt anything")
    some = figures.study_answer(replace(result, tasks=[result.tasks[0], second]))
    assert some[-1] == "No tagger learnt anything on task 1, which counts all the same."
    assert len(some) == 3
