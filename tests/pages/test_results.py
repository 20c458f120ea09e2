"""The page Results, with results written by hand."""

import csv
import io
import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from math import inf
from pathlib import Path

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from core import charts, project_list
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError
from core.experiment import deliver, plot, results, tables
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.paths import home
from core.project_list import INVENTED
from core.projects import preferences, runs
from core.runs.events import EventLog
from core.runs.store import RunStore
from core.stats import mistakes
from core.tagging.evaluations import TrainInTest
from core.tagging.result import Novelty, by_novelty, failed_seeds
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import entities_of
from tests.homes import project_in
from tests.pages.drawing import codes, opened, press, seen, texts

PAGE = "pages/6_Results.py"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Prepare a home with a finished experiment of seven variants; return the home and the experiment's id."""
    home = project_in(tmp_path_factory.mktemp("finished"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        return home, finished.experiment(home, finished.corpora(home), finished.LINES).id


@pytest.fixture
def run_id(prepared: tuple[Path, str], home: Path) -> str:
    """Copy the prepared home; return the experiment's id."""
    shutil.copytree(prepared[0], home)
    return prepared[1]


def arm(run_id: str, name: str, budget: str = "") -> str:
    """Return the `finetune` run of a variant."""
    rows = results.board(run_id).leaderboard
    return next(row.finetune_run for row in rows if (row.arm, row.budget) == (name, budget))


def tab(app: AppTest, name: str) -> AppTest:
    """Draw the page with another tab open, because only a browser can click a tab."""
    app.session_state["results.tab"] = name
    return app.run()


def on_tab(name: str) -> AppTest:
    """Draw the page once, with a tab open."""
    return opened(PAGE, {"results.tab": name})


def test_page_report_and_table_show_the_same_verdict_scores_and_rates(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.experiment.tables.MINUTE", 0.0)  # the trainings of this test take no time
    monkeypatch.setattr("core.experiment.tables.SCALE", inf)
    overruled = "Started although the data check says: The dev set has 40 entities."
    (runs.get(run_id).path / "run-anyway.txt").write_text(overruled)
    finished.returned(runs.get(run_id), {**runs.get(run_id).result(), "hours": {"finetune": 0.0001}})
    app = opened(PAGE)
    assert not app.error
    page_text, page, found = seen(app), finished.html_report(run_id), results.finding(run_id)
    assert [head.value for head in app.header] == [f":green[{found.word}]"]
    assert f"##### {found.sentence}" in page_text
    assert found.what.startswith("Helped, ")
    assert overruled in page_text
    assert overruled in page
    for part in (found.sentence, found.sure, found.next):
        assert part in page_text
        assert escape(part) in page
    assert results.weakest_type(run_id) in page_text
    assert results.weakest_type(run_id) in page
    assert "1 s of computing" in page_text
    assert "1 s of computing" in page
    board = results.board(run_id).leaderboard
    for row in board:
        assert f"{row.mean:.2f} ± {row.sd:.2f}" in page_text
        assert f"{row.mean:.2f} ± {row.sd:.2f}" in page
        if row.verdict != "baseline":
            assert f"{row.delta:+.2f} [{row.interval[0]:+.2f}, {row.interval[1]:+.2f}]" in texts(app)
    assert len(app.get("plotly_chart")) == 3
    assert results.unfound_types(run_id) == []
    [row] = [row for row in board if (row.arm, row.budget) == ("classifier", "10")]
    assert row.delta is not None
    assert row.f1_per_hour is not None
    hours = row.delta / row.f1_per_hour
    words = tables.rate_words(row)  # a rate is never shown without its interval
    low, high = words.split("[")[1].rstrip("]").replace(",", "").split()
    assert (float(low), float(high)) == pytest.approx([end / hours for end in row.interval], rel=0.01)
    assert words in texts(app)
    assert words in page
    table = list(csv.DictReader(io.StringIO(deliver.board_csv(run_id).decode("utf-8-sig"))))
    [line] = [line for line in table if (line["arm"], line["budget"]) == ("classifier", "10")]
    assert [float(line[f"{end}_per_hour"]) for end in ("low", "high")] == pytest.approx(
        [end / hours for end in row.interval]
    )
    assert len(table) == 7
    for value in [value for line in table for value in line.values() if value and value[0] in "=+-@"]:
        float(value)  # a number, not a formula
    columns = page_text.count("</th>")
    app.number_input(key="results.price").set_value(1000.0).run()
    assert seen(app).count("</th>") == columns + 1


def test_overlap_of_training_and_test_set_and_harder_sets_are_shown(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = runs.get(run_id).result()
    for n, row in enumerate(stored["leaderboard"]):
        also = {"test": "<b>oov</b>", "micro_f1": [], "mean": 31.25 + n, "sd": 0.5, "delta": -4.25 - n}
        row["also"] = [{**also, "interval": [-9.0, 1.0]}]
    finished.returned(runs.get(run_id), stored)
    board = replace(results.board(run_id), train_in_test=TrainInTest(exact=2, near=1))
    monkeypatch.setattr(results, "board", lambda run: board)
    app = opened(PAGE)
    assert ["3 training sentences" in unescape(warning.value) for warning in app.warning] == [True]
    assert plain(board.overlap_words) in [each.value for each in app.markdown]
    page_text = texts(app)
    assert "<b>oov" not in page_text
    for n, row in enumerate(stored["leaderboard"]):
        assert f"{31.25 + n:.2f} ± 0.50" in page_text
        if row["verdict"] != "baseline":
            assert f"({-4.25 - n:+.2f} [-9.00, +1.00])" in page_text
    page = finished.html_report(run_id)
    assert "&lt;b&gt;oov&lt;/b&gt;" in page
    assert "31.25" in page


def test_unfound_types_are_named_and_comparisons_start_with_the_claim(home: Path) -> None:
    made = finished.corpora(home)
    lines = [("none", "", 0), ("random", "10", 300), ("classifier", "10", 60)]  # random is first by dev F1
    run_id = finished.experiment(home, made, lines, never="<b>COURT</b>").id
    assert results.board(run_id).leaderboard[0].arm == "random"
    app = on_tab("By type")
    first, second = (next(box for box in app.selectbox if box.label == side) for side in "AB")
    assert (first.value, second.value) == (arm(run_id, "classifier", "10"), arm(run_id, "none"))
    n, labelled = made["test"].types["<b>COURT</b>"], made["train"].types["<b>COURT</b>"]
    app = opened(PAGE)
    assert [f"<b>COURT</b> ({n} in the test set, {labelled} " in unescape(each.value) for each in app.warning] == [True]
    page = finished.html_report(run_id)
    assert f"&lt;b&gt;COURT&lt;/b&gt; ({n} in the test set" in page
    assert "<b>COURT" not in page


def test_mean_is_rounded_once_and_equal_on_every_tab(run_id: str) -> None:
    name = arm(run_id, "none")
    for run, rows_of in ((name, lambda stored: [stored["test"]]), (run_id, lambda stored: stored["leaderboard"])):
        stored = runs.get(run).result()
        for row in rows_of(stored):
            if run == name or row["finetune_run"] == name:
                row |= {"micro_f1": [64.274, 64.275, 64.2755], "sd": 0.001}
                row["mean"] = sum(row["micro_f1"]) / 3
        finished.returned(runs.get(run), stored)
    trainings = on_tab("All trainings")
    for page_text in (finished.html_report(run_id), texts(opened(PAGE)), texts(trainings)):
        assert "64.27 ± 0.00" in page_text
        assert "64.28" not in page_text
    assert texts(trainings).count("<tr>") >= 1 + 7  # every training of the experiment
    for row in results.tagger_rows():
        assert f">{', '.join(map(str, row.best_epoch))}</td>" in texts(trainings)  # one epoch per seed


def test_more_text_is_judged_only_if_pre_training_was_repeated(run_id: str) -> None:
    app = on_tab("Curves")
    assert len(app.get("plotly_chart")) == 2
    app.number_input(key="results.worth").set_value(1e9).run()
    assert "not worth it" not in texts(app)
    stored = runs.get(run_id).result()
    for row in stored["leaderboard"]:
        row["finetune_runs"] = [row["finetune_run"]] * 3
    finished.returned(runs.get(run_id), stored)
    assert "not worth it" in texts(app.run())


def test_shares_of_low_ceim_and_sources_have_curves_and_their_own_baseline(run_id: str) -> None:
    stored = runs.get(run_id).result()
    arms = iter(["base:1000", "low-share:0%", "low-share:30%"])
    for row in stored["leaderboard"]:
        if row["arm"] != "none" and (name := next(arms, "")):
            row |= {"arm": name, "budget": ""}
    for row in stored["leaderboard"][-2:]:  # pretend that they were trained on two sizes of one source
        row |= {"arm": "lm:a", "source": "f00d", "budget": f"{row['sentences'] or 7}tokens"}
    finished.returned(runs.get(run_id), stored)
    words = "none (sets of one size: base:1000)"
    app = opened(PAGE)
    assert words in texts(app)
    assert words in finished.html_report(run_id)
    app = on_tab("Curves")
    assert {"results.shares", "results.sources"} <= {chart.key for chart in app.get("plotly_chart")}


def test_curves_of_several_trainings_share_one_chart(run_id: str) -> None:
    app = on_tab("Training curves")
    assert not app.warning  # arms of one experiment
    arms = app.multiselect(key="results.overlay.runs")
    assert len(arms.value) == 6
    arms.set_value([arm(run_id, "none")]).run()
    [chart] = app.get("vega_lite_chart")
    table = pa.ipc.open_stream(chart.proto.datasets[0].data.data).read_all().to_pylist()
    assert {(row["line"], row["part"], row["step"]) for row in table} == {
        ("none", f"seed {seed}", step) for seed in finished.SEEDS for step in (10, 20)
    }


def test_variants_that_share_a_tagger_are_all_named(run_id: str) -> None:
    """A variant that changed nothing has the tagger of `none`. This must not take the name of `none` away."""
    stored = runs.get(run_id).result()
    none = next(row for row in stored["leaderboard"] if row["arm"] == "none")
    changed = next(row for row in stored["leaderboard"] if row["arm"] == "random")
    changed |= {"arm": "dataaug", "budget": "", "finetune_run": none["finetune_run"], "finetune_runs": []}
    finished.returned(runs.get(run_id), stored)
    app = on_tab("By type")
    a, b = (box for box in app.selectbox if box.label in "AB")
    assert len(a.options) == len(stored["leaderboard"]) - 1
    assert [name for name in a.options if "none" in name] == ["none, also dataaug"]
    assert b.value == none["finetune_run"]  # the default comparison is still that with `none`


def test_variants_that_share_one_of_their_replicates_keep_their_own_scores(run_id: str) -> None:
    """The mean over the replicates of one variant must not be shown under the name of the other."""
    stored = runs.get(run_id).result()
    rows = {row["arm"]: row for row in stored["leaderboard"]}
    none, shared, own = (rows[arm]["finetune_run"] for arm in ("none", "random", "classifier"))
    rows["random"] |= {"finetune_runs": [shared, none]}
    rows["classifier"] |= {"finetune_run": shared, "finetune_runs": [shared, own]}
    finished.returned(runs.get(run_id), stored)
    assert results.replicates(run_id) == {}
    names = next(box for box in on_tab("By type").selectbox if box.label == "A").options
    assert "classifier 20, replicate 1, also random 10, replicate 1" in names


def test_two_variants_are_compared_by_type_and_for_experts_by_decoding(run_id: str) -> None:
    for n, row in enumerate(results.board(run_id).leaderboard):
        for finetune in row.finetunes:
            run = runs.get(finetune)
            result = run.result()
            result["test"]["decodings"] = {"viterbi": [50.25 + n] * 3, "constrained": [60.5, 61.5, 62.5 + 3 * n]}
            finished.returned(run, result)
    app = on_tab("By type")
    assert not app.warning  # arms of one experiment
    page_text = texts(app)
    assert "&lt;b&gt;COURT&lt;/b&gt;" in page_text
    assert "<b>COURT" not in page_text
    assert "<td>50.25</td>" not in page_text
    a, b = (str(app.selectbox(key=f"results.types.{side}.{next(iter(rows(run_id)))}").value) for side in "ab")
    assert b == arm(run_id, "none")
    assert "A (3 seeds)" in page_text
    for score in results.type_scores((a,), (b,)):
        low, high = score.interval_a or (0.0, 0.0)
        assert 0 <= low < score.a < high <= 100
        for part in (f"{score.a:.2f}", f"{score.difference:+.2f}", f"[{low:.1f}, {high:.1f}]"):
            assert part in page_text
    assert f"{results.macro_f1((a,)):.2f}" in page_text
    preferences.set_expert(True)
    page_text = texts(app.run())
    for n in range(len(results.board(run_id).leaderboard)):
        assert f"<td>{50.25 + n:.2f}</td>" in page_text
        assert f"<td>{61.5 + n:.2f}</td>" in page_text


def test_names_seen_in_training_are_counted_for_both_taggers(run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    none = (arm(run_id, "none"),)
    monkeypatch.setattr(
        results,
        "novelty_scores",
        lambda line: [Novelty(surfaces="seen", mentions=1190 if line == none else 1210, f1=50.0)],
    )
    assert ">1,210 / 1,190</td>" in texts(on_tab("By type"))


def rows(run_id: str) -> list[str]:
    return [row.finetune_run for row in results.board(run_id).leaderboard]


def test_predictions_of_two_variants_are_shown_with_counted_mistakes(run_id: str) -> None:
    app = on_tab("Sentences")
    a, b = (str(app.selectbox(key=f"results.beside.{side}.{rows(run_id)[0]}").value) for side in "ab")
    every = results.side_by_side(a, 1, b, 1)
    assert f"{sum(row.differs for row in every):,} of 150" in texts(app)
    app.selectbox(key="results.beside.show").select("a").run()
    gold_a = sum(set(r.a) == set(entities_of(r.sentence)) != set(r.b) for r in every)
    assert f"{gold_a} of 150" in texts(app)
    app.selectbox(key="results.beside.show").select("all").run()
    page_text = texts(app)
    assert "150 of 150" in page_text
    for colour in (plot.GOLD, plot.ARM_A, plot.ARM_B):
        assert f"--c:{charts.css_colour(colour)}" in page_text
    for raw in (finished.NASTY, "<b>COURT"):
        assert raw not in page_text
    assert "&lt;img src=x" in page_text
    assert "test1.pdf, page 1<" in page_text
    for kind in mistakes.KINDS:
        n, m = (sum(one.kind == kind for row in every for one in getattr(row, side)) for side in ("wrong_a", "wrong_b"))
        assert re.search(f'>{kind}</td><td>[^<]*</td><td class="w-number">{n}</td><td class="w-number">{m}<', page_text)
    for css in ("w-missed", "w-wrong-type"):
        assert re.search(f'<mark class="w-entity {css}"[^>]*>[^<]* <small>', page_text)
    of_a, of_b = (
        {row.type: row for row in mistakes.by_type((row.sentence.entities or (), getattr(row, side)) for row in every)}
        for side in ("wrong_a", "wrong_b")
    )
    for name in finished.TYPES:
        cells = [f"{of_a[name].right:,} / {of_b[name].right:,}"]
        cells += [f"{of_a[name].kinds[kind]:,} / {of_b[name].kinds[kind]:,}" for kind in mistakes.KINDS]
        assert re.search("</td>[^\n]*?".join(re.escape(cell) for cell in cells), page_text), name
    app.multiselect(key="results.beside.kinds").select("wrong type")
    app.multiselect(key="results.beside.types").select("DATE").run()
    fewer = [
        row
        for row in every
        if any(one.kind == "wrong type" and "DATE" in one.types for one in (*row.wrong_a, *row.wrong_b))
    ]
    page_text = texts(app)
    assert f"{len(fewer)} of 150" in page_text
    n = sum(one.kind == "missed" and one.types == {"DATE"} for row in every for one in row.wrong_a)
    assert re.search(f'>missed</td><td>[^<]*</td><td class="w-number">{n}</td>', page_text)


def test_every_format_can_be_downloaded_and_a_failed_copy_hides_nothing(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object, **more: object) -> Path:
        raise ConfigError("exports: there is no room; free some.")

    app = opened(PAGE, {"results.tab": "Download", "results.command": True})
    ends = [re.sub(r".*\((\.\w+)\)", r"\1", button.proto.label) for button in app.get("download_button")]
    assert ends == [".pdf", ".docx", ".html", ".csv", ".md", ".zip"]
    with monkeypatch.context() as patch:
        patch.setattr(deliver, "export_model", full)
        press(app, "results.take.copy")
    assert [error.value for error in app.error] == [plain("exports: there is no room; free some.")]
    assert len(app.get("download_button")) == 6
    press(app, "results.take.copy")
    assert (Path([code.value for code in app.code][-1]) / "config.json").exists()
    assert any("core experiment" in command for command in codes(app))
    with zipfile.ZipFile(io.BytesIO(deliver.zip_model(rows(run_id)[0]))) as file:
        assert "config.json" in file.namelist()


class Tags(HTMLParser):
    """Collect every tag of a page with its attributes, and check that each is closed."""

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


def test_report_is_one_valid_page_that_fetches_nothing(run_id: str) -> None:
    corpora.rename(corpora.roles()["task"], '<script>alert("x")</script>')
    page = finished.html_report(run_id)
    parser = Tags()
    parser.feed(page)
    assert parser.open == []
    assert not {name for name, _ in parser.tags} & {"script", "link", "img", "iframe", "object"}
    assert not any({"src", "href", "onload", "onclick"} & set(attributes) for _, attributes in parser.tags)
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    assert "&lt;script&gt;alert" in page
    assert page.count("<h2>") >= 5
    assert "python -m core experiment" in page


def test_experiment_with_missing_runs_or_corpora_names_them(run_id: str) -> None:
    shutil.rmtree(runs.get(arm(run_id, "none")).artifacts / "model")
    assert results.missing(run_id) == []  # the command trains a tagger again
    RunStore(home()).remove(arm(run_id, "random", "10"))
    corpora.remove(corpora.roles()["dev"])
    assert "the taggers of random 10" in results.missing(run_id)
    app = opened(PAGE)
    for page_text in (seen(app), unescape(finished.html_report(run_id))):
        assert "the taggers of random 10" in page_text


def test_single_training_is_compared_only_between_its_seeds(home: Path) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6, seed_effects=(0, 0, -0.55))
    assert failed_seeds(run) == [3]
    assert run.result()["test"]["mean"] == pytest.approx(
        sum(run.result()["test"]["micro_f1"]) / 3
    )  # the failed seed counts too
    app = opened(PAGE)
    assert not app.error
    assert {"A", "B"}.isdisjoint(box.label for box in app.selectbox)
    assert not app.get("plotly_chart")
    assert f"{results.type_scores((run.id,), (run.id,))[0].a:.2f}" in texts(app)
    app = on_tab("Sentences")
    page_text = texts(app)
    wrong = [row for row in results.side_by_side(run.id, 1, run.id, 1) if row.wrong_a]
    assert f"{len(wrong)} of 150" in page_text
    assert "<strong>B</strong>" not in page_text
    app.selectbox(key=f"results.beside.seed.b.{run.id}").select(2).run()
    assert "<strong>B</strong>" in texts(app)
    other = finished.tuned(home, {**made, "test": made["dev"]}, "tiny", 0.6)
    with pytest.raises(CorpusError, match="different corpora"):
        results.side_by_side(run.id, 1, other.id, 1)


def test_trainings_with_different_options_get_a_warning_naming_them(home: Path) -> None:
    made = finished.corpora(home)
    finished.tuned(home, made, "tiny", 0.5)
    other = {**made, "train": made["dev"], "dev": made["train"]}
    finished.tuned(home, other, "tiny", 0.6, epochs=6, preset="custom")
    [warning_text] = [unescape(warning.value) for warning in opened(PAGE).warning]
    for part in ("epochs (6 against", "preset (custom against quick)", "train (my dev against my train)"):
        assert part in warning_text
    assert "init" not in warning_text
    finished.tuned(home, made, "tiny", 0.55, learning_rate=0.2, epochs=7)
    finished.tuned(home, made, "minilm", 0.6)
    app = opened(PAGE)
    assert not app.warning  # the first two have the same options
    assert on_tab("Training curves").warning
    kind = KINDS["experiment"]
    with EventLog(
        register(kind, kind.config.parse({**marks(made), "encoder": "tiny"}), RunStore(home)).events_file
    ) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
        log.append("cancelled", {})
    app = opened(PAGE)  # two trainings of an unfinished experiment are not shown as its answer
    assert app.tabs[0].label == "All trainings"
    assert "Finished parts are kept, and Resume continues from there. A verdict needs all parts." in texts(
        app
    )  # as on Training


def marks(made: Mapping[str, Corpus]) -> dict[str, str]:
    return {name: corpus.fingerprint for name, corpus in made.items()}


def test_unseen_names_ignore_case(home: Path) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6)
    known = {
        " ".join(s.tokens[e.start : e.end]).lower() for s in made["train"].take(range(60)) for e in s.entities or ()
    }
    test = made["test"].take(range(150))
    seen = sum(" ".join(s.tokens[e.start : e.end]).lower() in known for s in test for e in s.entities or ())
    rows_by_novelty = {row.surfaces: row for row in by_novelty(run, Library(home))}
    assert rows_by_novelty["seen"].mentions == seen > 0
    assert rows_by_novelty["unseen"].mentions == 300 - seen
    assert 0 < rows_by_novelty["unseen"].f1 < 100


def test_dictionaries_on_the_same_test_set_stand_below_the_leaderboard(run_id: str) -> None:
    config = RunStore(home()).get(run_id).manifest.config
    assert results.beside(run_id) == []
    assert "Without training" not in texts(opened(PAGE))
    options = {"names": (config["test"],), "test": (config["dev"], config["test"])}
    run = runs.execute("dictionary", options)
    runs.execute("dictionary", {"names": (config["train"],), "test": (config["dev"],)})  # another test set
    [line] = results.beside(run_id)
    assert line.f1 == pytest.approx(run.result()["tests"][1]["mean"])
    none = next(row for row in results.board(run_id).leaderboard if row.arm == "none")
    assert line.difference.delta == pytest.approx(line.f1 - none.mean, abs=1e-6)
    assert line.difference.lo < line.difference.delta < line.difference.hi
    assert line.f1 > 50
    shown = texts(opened(PAGE))
    assert "Without training" in shown
    assert escape(f"{line.difference.delta:+z.2f} [{line.difference.lo:+z.2f}") in shown

    other = runs.execute("dictionary", {**options, "names": (config["train"], config["test"])})
    assert len(results.beside(run_id)) == 2
    (other.artifacts / "evaluation-test1.npz").write_bytes(b"PK")
    assert results.beside(run_id) == [line]
    app = opened(PAGE)  # the damaged run does not hide the results of the experiment and of the other run
    assert f"The scores of these runs on the same test set are damaged: {plain(other.id)}." in texts(app)
    assert "Without training" in texts(app)


@pytest.mark.usefixtures("run_id")
def test_the_address_opens_the_tab_download_and_a_sample_is_called_invented(home: Path) -> None:
    app = opened(PAGE, None, open="download")
    assert app.session_state["results.tab"] == "Download"
    assert INVENTED not in texts(app)
    project_list.write(home, "Mine", sample=True)
    assert INVENTED in texts(opened(PAGE))
