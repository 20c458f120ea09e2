"""The page Bias: its forms, a measurement, rebuilt training sets and harder test sets."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.bias import plot
from core.bias import view as bias
from core.bias.result import read_mentions, write_mentions
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.files import sum_up
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.projects import runs as facade_runs
from core.runs.context import RunContext
from core.runs.events import EventLog
from core.runs.store import RunStore
from core.shown import duration
from core.tagging import evaluations
from core.tagging import view as training
from core.tagging.evaluations import FinetuneResult
from tests.conftest import sentence
from tests.finished import NASTY, SEEDS, TIMED, as_running, fine_tuned, finish, random_predictions, tuned
from tests.finished import corpora as finished_corpora
from tests.finished_bias import contracts, measured
from tests.pages.drawing import codes, keys, opened, opened_on, texts

PAGE = "pages/7_Bias.py"


@pytest.fixture
def corpus(home: Path) -> Corpus:
    made = contracts(home)
    corpora.set_role("train", made.fingerprint)
    return made


@pytest.fixture
def run(home: Path, corpus: Corpus) -> str:
    return measured(home, corpus).id


def bodies(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html")]


def raw_html(app: AppTest) -> str:
    return " ".join(bodies(app))


@pytest.mark.usefixtures("expert")
def test_measurement_form_has_every_option_and_an_estimate(home: Path, corpus: Corpus) -> None:
    finish(home, "calibrate", {"task": corpus.fingerprint, "train": corpus.fingerprint}, lambda context: TIMED)
    options = {"train": corpus.fingerprint}
    least, seconds, most = (
        training.difficulty_estimate({**options, **more}) for more in ({"mentions": 40}, {}, {"repeats": 3})
    )
    assert least is not None
    assert seconds is not None
    assert most is not None
    assert least < seconds < most
    app = opened(PAGE)
    assert f"About {duration(seconds)} for 123 mentions" in texts(app)
    assert app.number_input(key="bias.mentions").value is None
    assert not app.code  # a command is drawn only when it is opened, because its colours need 1.5 MB of script
    app = opened(PAGE, {"bias.command": True, "bias.preset": "custom", "bias.folds": 2, "bias.mentions": 50})
    shown = {"train", "preset", "weights"}  # chosen above; `weights` is filled in automatically
    for name in KINDS["difficulty"].config.model_fields.keys() - shown:
        assert app.get_by_key(f"bias.{name}"), name
    app.selectbox(key="bias.calibrate").select("no").run()
    [command] = [code.value for code in app.code]
    for part in (
        "core difficulty",
        "--train 'my labels'",
        "--preset custom",
        "--folds 2",
        "--mentions 50",
        "--calibrate no",
    ):
        assert part in command


def test_running_measurement_shows_its_losses_and_a_cancel_button(home: Path, corpus: Corpus) -> None:
    config = KINDS["difficulty"].config.parse({"train": corpus.fingerprint, "encoder": "tiny"})
    with as_running(register(KINDS["difficulty"], config, RunStore(home))) as run:
        with EventLog(run.events_file) as log:
            log.append("stage", {"name": "entity, training 2 of 10"})
            log.append("metric", {"name": "loss/entity", "value": 1.5, "step": 3})
        app = opened(PAGE)
    assert "bias.run.cancel" in keys(app)
    assert len(app.get("vega_lite_chart")) == 1


def test_measurement_is_shown_in_numbers_bars_and_sentences(run: str) -> None:
    assert bias.difficulty_result(run).ceim == {"low": 60, "near_zero": 3, "high": 60}
    found = bias.measured(run)
    bars = sorted(set(found.bars.tolist()))
    assert [{int(found.bars[number]) for number in bias.in_bar(run, bar)} for bar in bars] == [{bar} for bar in bars]
    assert sum(len(bias.in_bar(run, bar)) for bar in bars) == len(found)
    drawn = {
        int(point[1]): int(height)
        for trace in plot.ceim_histogram(bias.panels(run, False)).data
        for point, height in zip(trace.customdata, trace.y, strict=True)
    }
    assert drawn == {bar: len(bias.in_bar(run, bar)) for bar in bars}  # a bar is as high as its list is long
    numbers = bias.in_box(run, (0.5, 2), (-1, 0.5)).tolist()
    inside = [i for i in range(len(found)) if 0.5 <= found.context[i] <= 2 and -1 <= found.entity[i] <= 0.5]
    assert sorted(numbers) == inside != []
    app = opened(PAGE)
    assert not app.error
    assert (
        app.subheader[0].value == "No clear difference between names and contexts: their confidence intervals overlap"
    )
    assert len(app.get("plotly_chart")) == 3
    picker = app.selectbox(key=f"bias.bar.{run}.False")
    assert len(picker.options) == len(bars)
    picker.select(("", int(found.bars[0])))
    app.slider(key=f"bias.x.{run}").set_range(0.5, 1.0).run()
    assert set(app.dataframe[0].value["type"]) == {"PARTY"}
    html = raw_html(app)
    for raw in (NASTY, "<b>RARE"):
        assert raw not in html
    assert "&lt;img src=x" in html
    assert re.search(r"labels\.pdf, page \d+</small><br>", html)
    app.segmented_control(key="bias.by_type").set_value(True).run()
    app.selectbox(key=f"bias.bar.{run}.True").select(("DATE", int(found.bars[-1]))).run()
    listed = next(part for part in bodies(app) if "Sentences with the mention highlighted" in part)
    assert "DATE</small>" in listed
    assert "PARTY</small>" not in listed


def test_types_with_fewer_mentions_than_folds_are_too_few_to_judge(home: Path) -> None:
    rows = [sentence(f"Acme{i} pays .", [(0, 1, "LAW" if i < 25 else "PARTY")]) for i in range(60)]
    two = Library(home).seal(rows, name="two types", origin={}, labelled=True)
    few = [bias.measured(measured(home, two, folds=n).id).weak for n in (5, 30)]
    assert few == [{}, {"LAW": "too few to judge"}]


@pytest.mark.parametrize(
    ("types", "bits", "heading"),
    [
        (("<b>PARTY</b>",), (0.0, 0.0), "only one type"),  # with a single type, nothing is trained
        (("PARTY", "DATE"), (0.0, 2e-16), "No evidence"),  # a difference within rounding
        (("PARTY", "DATE"), (-0.001, -0.5), "Names are more informative"),  # a rounded zero has no sign
        (("PARTY", "DATE"), (1.0, -1.0), "Names are more informative"),
    ],
)
def test_the_heading_says_which_of_the_two_is_more_informative(
    types: tuple[str, ...], bits: tuple[float, float], heading: str, home: Path
) -> None:
    rows = [sentence(f"Acme{i} pays .", [(0, 1, types[i % len(types)])]) for i in range(30)]
    corpus = Library(home).seal(rows, name="labels", origin={}, labelled=True)
    measured(home, corpus, lambda row, kind: bits, ["<b>PARTY</b>: is the only type."] if len(types) == 1 else [])
    app = opened(PAGE)
    assert heading in app.subheader[0].value
    page_text = texts(app) + raw_html(app)
    assert "<b>PARTY" not in page_text
    assert "−0.00" not in page_text


def test_rebuilt_set_shows_its_changes_and_an_earlier_one_can_be_chosen(run: str, corpus: Corpus) -> None:
    path = facade_runs.get(run).artifacts / "mentions.parquet"
    some = read_mentions(path)[::2]
    path.unlink()
    write_mentions(some, path)
    sum_up(facade_runs.get(run).path)
    options = {"train": corpus.fingerprint, "difficulty": run, "method": "random2low"}
    older, newer = (facade_runs.execute("rebuild", {**options, "rate": rate}) for rate in (0.1, 0.2))
    assert newer.result()["changed"] > older.result()["changed"] > 0
    app = opened(PAGE, {"bias.rebuilt.command": True})
    assert not app.error
    assert "62 of 123 mentions" in texts(app)  # measured
    assert "25 of 123 mentions" in texts(app)  # to be changed
    app.slider(key="bias.rate.highc2low").set_value(90).run()
    assert bias.preview({**options, "method": "highc2low", "rate": 0.9}).reached == "0%"
    assert "lowered to the 0% quantile of their type" in texts(app)
    html = raw_html(app)
    assert "before</strong>" in html
    assert re.search(r"labels\.pdf, page \d+</small></li>", html)
    assert NASTY not in html
    app.selectbox(key=f"bias.which.{newer.id}").set_value(older.id).run()
    assert "run" not in app.query_params  # this choice is not part of the address
    assert app.selectbox(key=f"bias.which.{older.id}").value == older.id
    assert "--rate 0.1" in " ".join(codes(app))


def test_a_rebuild_that_changes_nothing_promises_no_new_corpus(run: str, corpus: Corpus) -> None:
    options = {"train": corpus.fingerprint, "difficulty": run, "method": "random2low", "rate": 0}
    assert facade_runs.execute("rebuild", options).result()["corpus"] == corpus.fingerprint
    page_text = texts(opened(PAGE))
    assert "Nothing was changed in my labels, so no new corpus was made." in page_text
    assert "The new corpus" not in page_text


def test_low_share_cannot_start_without_enough_sentences_or_a_test_set(run: str) -> None:
    app = opened(PAGE, {"bias.rebuild.method": "low-share"})
    assert app.button(key="bias.rebuild.start").disabled
    app.number_input(key="bias.rebuild.low-share.size").set_value(3)
    app.slider(key="bias.rate.low-share").set_value(90).run()  # every sentence of this corpus has a low-CEIM mention
    assert app.button(key="bias.rebuild.start").disabled
    [none] = [box for box in app.checkbox if (box.key or "").startswith("bias.holdout")]
    none.check().run()
    assert not app.button(key="bias.rebuild.start").disabled
    preview = bias.preview({"train": "my labels", "difficulty": run, "method": "low-share", "size": 3, "rate": 0.9})
    assert f"{preview.drawn} measured mentions" in texts(app)


def test_rebuild_holds_out_the_dev_and_test_sets_of_the_measured_corpus(home: Path) -> None:
    mine = contracts(home, name="legal-train")
    run = measured(home, mine)
    other = {role: labels(home, f"music-{role}", n) for n, role in enumerate(("train", "dev", "test"), 3)}
    for role, corpus in other.items():
        corpora.set_role(role, corpus.fingerprint)
    app = opened_on(PAGE, run.id)
    assert bias.splits_of(mine.fingerprint)[0] == []  # unknown, so the page asks
    assert app.button(key="bias.rebuild.start").disabled
    named = [labels(home, f"legal-{part}", n) for n, part in enumerate(("dev", "test"), 8)]
    assert set(bias.splits_of(mine.fingerprint)[0]) == {corpus.fingerprint for corpus in named}
    trained = {"train": mine, "dev": labels(home, "choices", 12), "test": labels(home, "final", 13)}
    tuned(home, trained, "tiny", 0.5)
    held = [trained[part].fingerprint for part in ("dev", "test")]
    assert sorted(bias.splits_of(mine.fingerprint)[0]) == sorted(held)
    rows = next(other["train"].batches())[:2]
    half = Library(home).seal(rows, name="half", origin={"from": other["train"].fingerprint}, labelled=True)
    assert bias.splits_of(half.fingerprint)[0] == [other[part].fingerprint for part in ("dev", "test")]
    app = opened_on(PAGE, run.id)
    [field] = [field for field in app.multiselect if (field.key or "").startswith("bias.holdout")]
    assert sorted(field.value) == sorted(held)
    assert not app.button(key="bias.rebuild.start").disabled
    tuned(home, {**trained, "train": other["train"], "test": other["dev"]}, "tiny", 0.5)
    # The test set of Corpora is held out too, although no run was tested on it.
    held = [trained["dev"].fingerprint, other["dev"].fingerprint, other["test"].fingerprint]
    assert sorted(bias.splits_of(other["train"].fingerprint)[0]) == sorted(held)


def labels(home: Path, name: str, n: int) -> Corpus:
    """Return a labelled corpus of `n` sentences; they contain `name`, so other corpora differ."""
    rows = [sentence(f"{name} pays Acme{i}", [(2, 3, "PARTY")]) for i in range(n)]
    return Library(home).seal(rows, name=name, origin={}, labelled=True)


def tuned_on_both(home: Path, made: Mapping[str, Corpus], hard: Corpus, init: str, skill: float) -> str:
    """Finish a `finetune` run that was tested on the plain test set and, with lower scores, on `hard`."""
    tests = [list(next(corpus.batches())) for corpus in (made["test"], hard)]

    def work(context: RunContext) -> FinetuneResult:
        for index, (sentences, lost) in enumerate(zip(tests, (0, 0.2), strict=True)):
            for seed in SEEDS:
                read = random_predictions(sentences, skill - lost, seed)
                part = evaluations.file_suffix(evaluations.name_of_test_set(index), seed)
                evaluations.write_predictions(context.run, part, read)
        return fine_tuned([50.0])

    options = {"init": init, "seeds": SEEDS, "train": made["train"].fingerprint, "dev": made["dev"].fingerprint}
    return finish(home, "finetune", {**options, "test": (made["test"].fingerprint, hard.fingerprint)}, work).id


def test_harder_test_sets_are_shown_with_their_edits_and_a_frontier_of_taggers(home: Path) -> None:
    made = finished_corpora(home)
    bare = [sentence("Acme1 Oslo1", [(0, 1, "PARTY"), (1, 2, "DATE")]), sentence("x", [(0, 1, "DATE")])]
    of = {"typos": Library(home).seal(bare, name="bare", origin={}, labelled=True), "oov": made["test"]}
    train = {"typos": contracts(home), "oov": made["train"]}
    typos, oov = (
        facade_runs.execute(
            "robustness", {"test": of[kind].fingerprint, "train": train[kind].fingerprint, "kind": kind}
        )
        for kind in of
    )
    (diff,) = bias.changed(typos.id)
    assert diff.unsure == {edit.start for edit in diff.edits} == {0, 1}
    hard = Library(home).find(oov.result()["corpus"])
    runs = [tuned_on_both(home, made, hard, init, skill) for init, skill in (("tiny", 0.4), ("minilm", 0.6))]
    (group,) = bias.tested_alike()
    assert group.tests == (made["test"].fingerprint, hard.fingerprint)
    assert sorted(group.runs) == sorted(runs)
    points = bias.frontier_points(
        bias.standings(group.runs), hard.fingerprint, training.names(group.runs), certain=False
    )
    alone = "on my train, no further pre-training"
    assert {one.name: one.best for one in points} == {f"Tagger (tiny) {alone}": False, f"Tagger {alone}": True}
    app = opened(PAGE)
    html = raw_html(app)
    assert "my test, oov, certain names" in html
    assert NASTY not in html
    assert len({key for button in app.get("download_button") if (key := button.key or "").startswith("bias.")}) >= 3
    Library(home).rename(hard.fingerprint, "harder")
    app.toggle(key="bias.certain").set_value(True).run()
    assert "harder, certain names" in raw_html(app)
