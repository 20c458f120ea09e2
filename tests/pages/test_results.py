"""The page Results in its states, without a browser, on runs that were finished by hand."""

import csv
import io
import re
import shutil
import zipfile
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from core.artifacts.evaluations import TrainInTest
from core.artifacts.predictions import PredictResult
from core.artifacts.taggers import by_novelty
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError
from core.facade import corpora, deliver, figures, preferences, results, reviews, runs
from core.facade.home import home
from core.recipes.base import register
from core.runs import RunContext
from core.runs.store import RunStore
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import entities_of
from tests.pages.test_pages import commands_on, opened, texts

PAGE = "pages/6_Results.py"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with a finished experiment of seven lines, and its id."""
    home = tmp_path_factory.mktemp("finished") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        return home, finished.experiment(home, finished.corpora(home), finished.LINES).id


@pytest.fixture
def run_id(prepared: tuple[Path, str], home: Path) -> str:
    """The experiment in a copy of that home."""
    shutil.copytree(prepared[0], home)
    return prepared[1]


def arm(run_id: str, name: str, budget: str = "") -> str:
    """The `finetune` run of a line."""
    rows = results.board(run_id).leaderboard
    return next(row.finetune_run for row in rows if (row.arm, row.budget) == (name, budget))


def tab(app: AppTest, name: str) -> AppTest:
    """The page with another tab open, which only a browser can click."""
    app.session_state["results.tab"] = name
    return app.run()


def test_what_was_learnt_from_and_tested_too_is_said_in_short_and_whole_below(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = replace(results.board(run_id), train_in_test=TrainInTest(exact=2, near=1))
    monkeypatch.setattr(results, "board", lambda run: board)
    app = opened(PAGE)
    [warning] = [unescape(each.value) for each in app.warning if "learnt from" in each.value]
    assert warning.startswith("3 of the sentences learnt from stand, word for word or nearly")
    assert plain(board.overlap_words) in [each.value for each in app.markdown]


def test_without_runs_it_says_where_to_make_one(home: Path) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert "no finished run yet" in texts(app)
    assert "Open the legal sample" in [button.label for button in app.button]
    finished.corpora(home)
    app = opened(PAGE)
    assert app.main.get("page_link")[0].proto.page == "Training"


def test_the_leaderboard_tells_verdict_and_cost(run_id: str) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    said = texts(app)
    assert "read once a variant" in said
    verdict = results.finding(run_id)
    assert unescape(app.subheader[0].value).replace("\u2060", "") == verdict.what
    assert verdict.what.startswith("Yes, choosing paid")
    assert all(part in unescape(said).replace("\u2060", "") for part in verdict.parts)
    assert all(escape(part) in finished.html_report(run_id) for part in verdict.parts)
    for row in results.board(run_id).leaderboard:
        assert f"{row.mean:.2f} ± {row.sd:.2f}" in said
    assert "▲ yes" in said
    assert "against a random choice of as many tokens" in said
    assert [chart.proto.alt[:7] for chart in app.get("plotly_chart")] == ["Test sc", "Score l"]
    assert "of computing** in all" in said


def test_harder_test_sets_stand_beside_the_first(run_id: str) -> None:
    assert "harder sets" not in texts(opened(PAGE))  # an experiment from before there were any
    told = runs.get(run_id).result()
    for n, row in enumerate(told["leaderboard"]):
        row["also"] = [
            {
                "test": "<b>oov</b>",
                "micro_f1": [],
                "mean": 31.25 + n,
                "sd": 0.5,
                "delta": -4.25 - n,
                "interval": [-9.0, 1.0],
            }
        ]
    finished.returned(runs.get(run_id), told)
    app = opened(PAGE)
    assert not app.exception
    said = texts(app)
    assert "<b>oov" not in said
    for n, row in enumerate(told["leaderboard"]):
        assert f"{31.25 + n:.2f} ± 0.50" in said
        if row["verdict"] != "baseline":
            assert f"({-4.25 - n:+.2f} [-9.00, +1.00])" in said
    page = finished.html_report(run_id)
    assert "&lt;b&gt;oov&lt;/b&gt;" in page
    assert "31.25" in page


def test_a_price_becomes_a_column(run_id: str) -> None:
    app = opened(PAGE)
    price = app.number_input(key="results.price")
    assert price.value is None
    assert "in your currency" in price.label
    assert "Price, in your currency</th>" not in texts(app)
    price.set_value(1000.0).run()
    assert "Price, in your currency</th>" in texts(app)


def test_a_rate_stands_nowhere_without_its_interval(run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.plots.results.MINUTE", 0.0)  # these trainings took no time
    [row] = [row for row in results.board(run_id).leaderboard if (row.arm, row.budget) == ("classifier", "10")]
    assert row.delta is not None
    assert row.f1_per_hour is not None
    hours = row.delta / row.f1_per_hour
    words = figures.rate_words(row)
    low, high = words.split("[")[1].rstrip("]").replace(",", "").split()
    assert float(low) == pytest.approx(row.interval[0] / hours, rel=0.01)
    assert float(high) == pytest.approx(row.interval[1] / hours, rel=0.01)
    assert words in texts(opened(PAGE))
    assert words in finished.html_report(run_id)
    table = list(csv.DictReader(io.StringIO(deliver.board_csv(run_id).decode("utf-8-sig"))))
    [line] = [line for line in table if (line["arm"], line["budget"]) == ("classifier", "10")]
    assert float(line["low_per_hour"]) == pytest.approx(row.interval[0] / hours)
    assert float(line["high_per_hour"]) == pytest.approx(row.interval[1] / hours)


def test_a_type_that_no_arm_finds_is_told_beside_the_answer_and_in_the_report(home: Path) -> None:
    made = finished.corpora(home)
    run = finished.experiment(home, made, finished.LINES[:2], never="<b>COURT</b>")
    app = opened(PAGE)
    assert not app.exception
    [said] = [unescape(warning.value) for warning in app.warning if "in every variant" in warning.value]
    n, labelled = made["test"].types["<b>COURT</b>"], made["train"].types["<b>COURT</b>"]
    assert (
        f"The score is 0.00 in every variant for <b>COURT</b> ({n} in the test set, {labelled} to learn from)" in said
    )
    page = finished.html_report(run.id)
    assert f"every variant for &lt;b&gt;COURT&lt;/b&gt; ({n} in the test set" in page
    assert "<b>COURT" not in page


def test_types_that_one_arm_finds_are_not_told_so(run_id: str) -> None:
    assert results.unfound_types(run_id) == []
    assert not [warning for warning in opened(PAGE).warning if "in every variant" in warning.value]


def test_a_mean_is_rounded_once_and_the_same_on_every_tab(run_id: str) -> None:
    """Older runs hold a mean of three digits, which rounds to another second digit than the seeds' own mean."""
    name = arm(run_id, "none")
    for run, rows_of in ((name, lambda told: [told["test"]]), (run_id, lambda told: told["leaderboard"])):
        told = runs.get(run).result()
        for row in rows_of(told):
            if run == name or row["finetune_run"] == name:
                row |= {"micro_f1": [64.274, 64.275, 64.2755], "sd": 0.001}
                row["mean"] = 64.275 if run == name else sum(row["micro_f1"]) / 3
        finished.returned(runs.get(run), told)
    page = finished.html_report(run_id)
    assert "64.27 ± 0.00" in page
    assert "64.28" not in page
    assert "64.27 ± 0.00" in texts(opened(PAGE))
    said = texts(tab(opened(PAGE), "All trainings"))
    assert "64.27 ± 0.00" in said
    assert "64.28" not in said


def test_curves_and_advice(run_id: str) -> None:
    app = tab(opened(PAGE), "Curves")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 2
    said = texts(app)
    assert "Twice as many" in said
    assert "Labels it spares" in said
    assert "bound unknown" in said  # one pre-training a size
    app.number_input(key="results.worth").set_value(1e9).run()
    assert "cannot be told from one pre-training a size" in texts(app)
    assert "not worth it" not in texts(app)


def test_shares_of_low_ceim_are_drawn_and_compared_with_their_base(run_id: str) -> None:
    told = runs.get(run_id).result()
    arms = iter(["base:1000", "low-share:0%", "low-share:30%"])
    for row in told["leaderboard"]:
        row["also"] = [{"test": "oov", "micro_f1": [], "mean": 1.0, "sd": 0.5, "delta": 0.0, "interval": [-1.0, 1.0]}]
        if row["arm"] != "none" and (name := next(arms, "")):
            row |= {"arm": name, "budget": ""}
    finished.returned(runs.get(run_id), told)
    app = opened(PAGE)
    assert not app.exception
    words = "none (sets of one size: base:1000)"
    said = texts(app)
    assert f"Against {words}" in said
    assert f"the difference to {words}" in said
    page = finished.html_report(run_id)
    assert page.count(words) >= 3
    app = tab(app, "Curves")
    assert not app.exception
    assert [chart.proto.alt for chart in app.get("plotly_chart")][1].startswith(
        "Score by share of names that their context tells"
    )
    for row in told["leaderboard"][-2:]:  # as though what they read were a source's, in two sizes
        row |= {"arm": "lm:a", "source": "f00d", "budget": f"{row['sentences'] or 7}tokens"}
    finished.returned(runs.get(run_id), told)
    app = tab(opened(PAGE), "Curves")
    assert [chart.proto.alt for chart in app.get("plotly_chart")][2].startswith("Score by tokens read of the source")


def test_more_text_is_not_worth_it_where_pre_trainings_were_repeated(run_id: str) -> None:
    told = runs.get(run_id).result()
    for row in told["leaderboard"]:
        row["finetune_runs"] = [row["finetune_run"]] * 3
    finished.returned(runs.get(run_id), told)
    app = tab(opened(PAGE), "Curves")
    assert "hardly over" in texts(app)
    app.number_input(key="results.worth").set_value(1e9).run()
    assert "not worth it" in texts(app)


def test_the_course_of_several_trainings_in_one_chart(run_id: str) -> None:
    app = tab(opened(PAGE), "While training")
    assert not app.exception
    arms = app.multiselect(key="results.overlay.runs")
    assert len(arms.value) == 6
    assert len(app.get("vega_lite_chart")) == 1
    arms.set_value([arm(run_id, "none")]).run()
    drawn = app.get("vega_lite_chart")[0].proto.datasets[0].data.data
    table = pa.ipc.open_stream(drawn).read_all().to_pylist()
    assert {(row["line"], row["part"], row["step"]) for row in table} == {
        ("none", f"seed {seed}", step) for seed in finished.SEEDS for step in (10, 20)
    }
    app.selectbox(key="results.overlay.what").set_value("loss").run()
    assert "left no such curve" in texts(app)


def test_types_of_two_arms_and_new_names(run_id: str) -> None:
    app = tab(opened(PAGE), "By type")
    assert not app.exception
    said = texts(app)
    assert "&lt;b&gt;COURT&lt;/b&gt;" in said
    assert "<b>COURT" not in said
    a, b = (str(app.selectbox(key=f"results.types.{side}.{next(iter(rows(run_id)))}").value) for side in "ab")
    assert b == arm(run_id, "none")
    for row in results.type_scores(a, b):
        assert f"{row.a:.2f}" in said
        assert f"{row.difference:+.2f}" in said
    assert "whose words are not" in said
    assert f"{results.macro_f1(a):.2f}" in said
    assert "Macro: the mean over types" in said


def test_comparisons_open_on_the_claimed_arm_beside_none(home: Path) -> None:
    lines = [("none", "", 0), ("random", "10", 300), ("classifier", "10", 60)]  # random is first by dev F1
    run_id = finished.experiment(home, finished.corpora(home), lines).id
    assert results.board(run_id).leaderboard[0].arm == "random"
    app = tab(opened(PAGE), "By type")
    first, second = (next(box for box in app.selectbox if box.label == side) for side in "AB")
    assert (first.value, second.value) == (arm(run_id, "classifier", "10"), arm(run_id, "none"))


def test_every_line_has_its_score_under_every_decoding_for_experts(run_id: str) -> None:
    assert "How tags are decoded" not in texts(tab(opened(PAGE), "By type"))  # results of an older version
    for n, row in enumerate(results.board(run_id).leaderboard):
        for finetune in row.finetunes:
            run = runs.get(finetune)
            result = run.result()
            result["test"]["decodings"] = {"viterbi": [50.25 + n] * 3, "constrained": [60.5, 61.5, 62.5 + 3 * n]}
            finished.returned(run, result)
    assert "How tags are decoded" not in texts(tab(opened(PAGE), "By type"))
    preferences.set_expert(True)
    app = tab(opened(PAGE), "By type")
    assert not app.exception
    said = texts(app)
    assert "Test score of every variant by how tags are decoded" in said
    for n in range(len(results.board(run_id).leaderboard)):
        assert f"<td>{50.25 + n:.2f}</td>" in said
        assert f"<td>{61.5 + n:.2f}</td>" in said
    assert "Argmax" not in said
    assert "Low scores outside “Constrained” are expected here." in said


def test_a_type_stands_with_its_interval(run_id: str) -> None:
    row = results.type_scores(*(arm(run_id, name, "10" if name == "random" else "") for name in ("none", "random")))[0]
    low, high = row.interval_a or (0.0, 0.0)
    assert 0 <= low < row.a < high <= 100
    said = texts(tab(opened(PAGE), "By type"))
    assert f"[{low:.1f}, {high:.1f}]" in said


def rows(run_id: str) -> list[str]:
    return [row.finetune_run for row in results.board(run_id).leaderboard]


def test_sentences_side_by_side_and_where_they_differ(run_id: str) -> None:
    app = tab(opened(PAGE), "Sentences")
    assert not app.exception
    said = texts(app)
    assert finished.NASTY not in said
    for colour in (figures.GOLD, figures.ARM_A, figures.ARM_B):
        assert f"--c:{figures.css_colour(colour)}" in said
    a, b = (str(app.selectbox(key=f"results.beside.{side}.{rows(run_id)[0]}").value) for side in "ab")
    every = results.side_by_side(a, 1, b, 1)
    assert f"{sum(row.differs for row in every):,} of 150 test sentences" in said
    app.selectbox(key="results.beside.show").select("all").run()
    assert "150 of 150" in texts(app)
    assert "&lt;img src=x" in texts(app)
    app.selectbox(key="results.beside.show").select("a").run()
    gold_a = sum(set(r.a) == set(entities_of(r.sentence)) != set(r.b) for r in every)
    assert f"{gold_a} of 150" in texts(app)


def test_mistakes_are_told_apart_counted_and_filtered(run_id: str) -> None:
    app = tab(opened(PAGE), "Sentences")
    app.selectbox(key="results.beside.show").select("all").run()
    a, b = (str(app.selectbox(key=f"results.beside.{side}.{rows(run_id)[0]}").value) for side in "ab")
    every = results.side_by_side(a, 1, b, 1)
    said = texts(app)
    assert "test1.pdf, page 1<" in said
    for kind in reviews.KINDS:
        n, m = (sum(one.kind == kind for row in every for one in getattr(row, side)) for side in ("wrong_a", "wrong_b"))
        assert re.search(f'>{kind}</td><td>[^<]*</td><td class="w-number">{n}</td><td class="w-number">{m}<', said)
    assert re.search('<mark class="w-entity w-missed"[^>]*>[^<]* [^<]* <small>missed PARTY</small></mark>', said)
    assert re.search('<mark class="w-entity w-wrong-type"[^>]*>[^<]* <small>wrong type PARTY, not DATE</small>', said)
    assert "<b>COURT" not in said

    app.multiselect(key="results.beside.kinds").select("wrong type").run()
    some = [row for row in every if any(one.kind == "wrong type" for one in (*row.wrong_a, *row.wrong_b))]
    assert f"{len(some)} of 150" in texts(app)
    app.multiselect(key="results.beside.types").select("DATE").run()
    fewer = [
        row
        for row in some
        if any(one.kind == "wrong type" and "DATE" in one.types for one in (*row.wrong_a, *row.wrong_b))
    ]
    assert 0 < len(fewer) < len(some)
    said = texts(app)
    assert f"{len(fewer)} of 150" in said
    n = sum(one.kind == "missed" and one.types == {"DATE"} for row in every for one in row.wrong_a)
    assert re.search(f'>missed</td><td>[^<]*</td><td class="w-number">{n}</td>', said)


def test_mistakes_are_counted_by_type(run_id: str) -> None:
    app = tab(opened(PAGE), "Sentences")
    a, b = (str(app.selectbox(key=f"results.beside.{side}.{rows(run_id)[0]}").value) for side in "ab")
    readings = results.side_by_side(a, 1, b, 1)
    of_a, of_b = (
        {
            row.type: row
            for row in reviews.by_type((row.sentence.entities or (), getattr(row, side)) for row in readings)
        }
        for side in ("wrong_a", "wrong_b")
    )
    said = texts(app)
    for name in finished.TYPES:
        cells = [f"{of_a[name].right:,} / {of_b[name].right:,}"]
        cells += [f"{of_a[name].kinds[kind]:,} / {of_b[name].kinds[kind]:,}" for kind in reviews.KINDS]
        assert f">{escape(name)}</td>" in said
        assert re.search("</td>[^\n]*?".join(re.escape(cell) for cell in cells), said), name
    assert "<b>COURT" not in said
    app.multiselect(key="results.beside.types").select("DATE").run()
    assert f"<td>{of_a['PARTY'].right:,} / {of_b['PARTY'].right:,}<" not in texts(app)


def test_all_trainings_and_what_sets_two_apart(run_id: str) -> None:
    app = tab(opened(PAGE), "All trainings")
    assert not app.exception
    said = texts(app)
    assert said.count(">succeeded</td>") == 7
    assert "3, 4, 3" in said
    base, best = (runs.get(arm(run_id, *line)).result()["test"]["mean"] for line in (("none",), ("classifier", "40")))
    assert f"{best - base:+.2f}" not in said  # no gain without its interval
    assert ">init<" in said


def test_everything_can_be_taken_away(run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object, **more: object) -> Path:
        raise ConfigError("exports: there is no room; free some.")

    app = tab(opened(PAGE), "Take away")
    assert not app.exception
    assert [button.proto.label for button in app.get("download_button")] == [
        "Report (.pdf)",
        "Report (.docx)",
        "Report (.html)",
        "Table (.csv)",
        "Table (.md)",
        "Model (.zip)",
    ]
    with monkeypatch.context() as patch:
        patch.setattr(deliver, "export_model", full)
        app.button(key="results.take.copy").click().run()
    assert [error.value for error in app.error] == [plain("exports: there is no room; free some.")]
    assert app.get("download_button")[-1].proto.label == "Model (.zip)"  # below it
    app.button(key="results.take.copy").click().run()
    copied = [code.value for code in app.code][-1]
    assert (Path(copied) / "config.json").exists()
    assert any("core experiment" in command for command in commands_on(app))
    with zipfile.ZipFile(io.BytesIO(deliver.zip_model(rows(run_id)[0]))) as file:
        assert "config.json" in file.namelist()


def test_no_cell_of_the_csv_is_a_formula(run_id: str) -> None:
    table = list(csv.DictReader(io.StringIO(deliver.board_csv(run_id).decode("utf-8-sig"))))
    assert len(table) == 7
    for row in table:
        for value in row.values():
            if value and value[0] in "=+-@":
                float(value)
    assert {row["verdict"] for row in table} >= {"improves", "baseline", "control"}


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "line", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "circle"):
            assert self.open.pop() == tag


def test_the_report_is_one_whole_page_that_fetches_nothing(run_id: str) -> None:
    corpora.rename(corpora.roles()["task"], '<script>alert("x")</script>')
    page = finished.html_report(run_id)
    parser = Tags()
    parser.feed(page)
    assert parser.open == []
    names = {name for name, _ in parser.tags}
    assert not names & {"script", "link", "img", "iframe", "object"}
    assert not any({"src", "href", "onload", "onclick"} & set(attributes) for _, attributes in parser.tags)
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    assert "&lt;script&gt;alert" in page
    for heading in ("What was compared", "On what", "What came out", "How sure", "What it cost"):
        assert f"<h2>{heading}</h2>" in page
    for row in results.board(run_id).leaderboard:
        assert f"{row.mean:.2f} ± {row.sd:.2f}" in page
    assert "python -m core experiment" in page


def test_a_run_whose_parts_are_gone_is_said_to_be_not_reproducible(run_id: str) -> None:
    assert results.missing(run_id) == []
    shutil.rmtree(runs.get(arm(run_id, "none")).artifacts / "model")
    assert results.missing(run_id) == []  # the command trains a tagger again
    assert "cannot be repeated" not in texts(opened(PAGE)) + finished.html_report(run_id)
    RunStore(home()).remove(arm(run_id, "random", "10"))
    corpora.remove(corpora.roles()["dev"])
    said = results.missing(run_id)
    assert "the taggers of random 10" in said
    app = opened(PAGE)
    assert not app.exception
    assert "This run cannot be repeated exactly" in texts(app)
    assert "cannot be repeated exactly" in finished.html_report(run_id)


def test_a_seed_that_failed_is_flagged_and_counts(home: Path) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6, lucks=(0, 0, -0.55))
    assert results.failed_seeds(run.id) == [3]
    f1s = run.result()["test"]["micro_f1"]
    assert run.result()["test"]["mean"] == pytest.approx(sum(f1s) / 3)


def test_single_trainings_have_a_page_without_an_experiment(home: Path) -> None:
    made = finished.corpora(home)
    finished.tuned(home, made, "tiny", 0.6)
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert "Score by entity type" in texts(app)
    assert "succeeded" in texts(tab(app, "All trainings"))


def test_a_lone_training_is_not_laid_beside_itself(home: Path) -> None:
    run = finished.tuned(home, finished.corpora(home), "tiny", 0.6)
    app = opened(PAGE)
    assert not app.exception
    assert {"A", "B"}.isdisjoint(box.label for box in app.selectbox)
    assert "A less B" not in texts(app)
    assert not app.get("plotly_chart")
    assert f"{results.type_scores(run.id, run.id)[0].a:.2f}" in texts(app)
    app = tab(opened(PAGE), "Sentences")
    assert not app.exception
    said = texts(app)
    wrong = [row for row in results.side_by_side(run.id, 1, run.id, 1) if row.wrong_a]
    assert f"{len(wrong)} of 150 test sentences" in said
    assert "<strong>read</strong>" in said
    assert "<strong>B</strong>" not in said
    assert ">Times</th>" in said
    app.selectbox(key=f"results.beside.seed.b.{run.id}").select(2).run()  # two seeds of one training may be compared
    assert "<strong>B</strong>" in texts(app)


def test_trainings_of_other_settings_are_laid_side_by_side_with_a_line_that_names_them(home: Path) -> None:
    made = finished.corpora(home)
    finished.tuned(home, made, "tiny", 0.5)
    app = opened(PAGE)
    assert not app.warning
    other = {**made, "train": made["dev"], "dev": made["train"]}
    finished.tuned(home, other, "tiny", 0.6, epochs=6, preset="custom")
    app = opened(PAGE)
    [said] = [unescape(warning.value) for warning in app.warning]
    assert "**Not trained alike**: A and B differ in" in said
    for part in ("epochs (6 against as usual)", "preset (custom against quick)", "train (my dev against my train)"):
        assert part in said
    assert "init" not in said
    finished.tuned(home, made, "tiny", 0.55, learning_rate=0.2, epochs=7)
    finished.tuned(home, made, "minilm", 0.6)
    assert not opened(PAGE).warning  # two that were trained alike stand first
    app = tab(opened(PAGE), "While training")
    assert "these trainings differ in" in app.warning[0].value


def test_what_an_experiment_compares_is_no_unlikeness(run_id: str) -> None:
    for name in ("By type", "Sentences", "While training"):
        assert "Not trained alike" not in texts(tab(opened(PAGE), name))


def test_while_an_experiment_is_at_work_no_two_trainings_stand_in_for_its_answer(home: Path) -> None:
    made = finished.corpora(home)
    finished.tuned(home, made, "tiny", 0.5)
    finished.tuned(home, made, "tiny", 0.6, epochs=6)
    assert "Score by entity type" in texts(opened(PAGE))
    recipe = runs.RECIPES["experiment"]
    options = {name: corpus.fingerprint for name, corpus in made.items()}
    register(recipe, recipe.config.parse({**options, "encoder": "tiny"}), RunStore(home))
    app = opened(PAGE)
    assert not app.exception
    said = texts(app)
    assert "Score by entity type" not in said
    assert "Every fine-tuning run, newest first" in said
    assert app.tabs[0].label == "All trainings"


def test_novelty_is_by_words_in_any_case(home: Path) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6)
    known = {
        " ".join(s.tokens[e.start : e.end]).lower() for s in made["train"].take(range(60)) for e in s.entities or ()
    }
    test = made["test"].take(range(150))
    seen = sum(" ".join(s.tokens[e.start : e.end]).lower() in known for s in test for e in s.entities or ())
    told = {row.surfaces: row for row in by_novelty(run, Library(home))}
    assert told["seen"].mentions == seen > 0
    assert told["unseen"].mentions == 300 - seen
    assert 0 < told["unseen"].f1 < 100


def test_runs_of_different_test_sets_are_not_laid_side_by_side(home: Path) -> None:
    made = finished.corpora(home)
    one = finished.tuned(home, made, "tiny", 0.6)
    other = finished.tuned(home, {**made, "test": made["dev"]}, "tiny", 0.6)
    with pytest.raises(CorpusError, match="different corpora"):
        results.side_by_side(one.id, 1, other.id, 1)


def test_a_try_is_a_run_that_leaves_no_corpus(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6)
    started: list[dict[str, str]] = []

    def start(kind: str, options: dict[str, str]) -> str:
        started.append({"kind": kind, **options})
        return "x"

    monkeypatch.setattr("core.facade.deliver.start", start)
    deliver.try_sentences(run.id, "Ada sues Bob .\n\n Bob pays . ")
    [told] = started
    assert (told["kind"], told["model"]) == ("predict", run.id)
    typed = corpora.find(told["corpus"])
    assert [s.text for s in typed.take(range(2))] == ["Ada sues Bob .", "Bob pays ."]
    lines = (
        '{"id": "a", "tokens": ["Ada", "sues"], "entities": [{"start": 0, "end": 1, "type": "P", "confidence": 1}]}\n'
    )

    def work(context: RunContext) -> PredictResult:
        (context.run.artifacts / "predictions.jsonl").write_text(lines)
        return PredictResult(sentences=1, entities=1, types={"P": 1})

    predict = finished.finish(home, "predict", {"model": run.id, "corpus": typed.fingerprint}, work)
    for _ in range(2):
        assert [(e.start, e.end, e.type) for s in deliver.tagged_sentences(predict.id) for e in s.entities or ()] == [
            (0, 1, "P")
        ]
    deliver.forget_try(predict.id)
    with pytest.raises(CorpusError):
        corpora.find(typed.fingerprint)
    assert len(corpora.listed()) == 5
    with pytest.raises(ConfigError, match="no sentence"):
        deliver.try_sentences(run.id, "  \n ")
