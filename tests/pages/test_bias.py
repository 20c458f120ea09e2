"""The page Bias in its states: empty, at work, measured, reviewed, rebuilt, tested under other names, wrong input."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.artifacts import evaluations
from core.artifacts.evaluations import FinetuneResult
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.facade import bias, corpora, reviews, taggers, training
from core.facade import runs as facade_runs
from core.facade.errors import ConfigError, CorpusError
from core.facade.home import home
from core.facade.shown import duration
from core.recipes import RECIPES
from core.recipes.base import register
from core.runs.context import RunContext
from core.runs.events import EventLog
from core.runs.store import RunStore
from core.text.schemes import decode
from tests.conftest import sentence
from tests.finished import NASTY, SEEDS, TIMED, fine_tuned, finish, read_by_lot
from tests.finished import corpora as finished_corpora
from tests.finished_bias import contracts, measured
from tests.pages.test_pages import commands_on, opened, texts

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


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def test_an_empty_page_says_what_it_needs() -> None:
    app = opened(PAGE)
    assert not app.exception
    assert "needs a labelled corpus" in texts(app)
    assert "Open the legal sample" in [button.label for button in app.button]


@pytest.mark.usefixtures("expert")
def test_before_anything_is_measured_the_other_tabs_say_so(corpus: Corpus) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert texts(app).count("First measure a corpus") == 2
    assert "python -m core difficulty --train 'my labels'" in commands_on(app)[0]
    app.segmented_control(key="bias.preset").set_value("custom").run()
    assert not app.exception
    app.number_input(key="bias.folds").set_value(2).run()
    assert "--preset custom --folds 2" in commands_on(app)[0]


@pytest.mark.usefixtures("expert")
def test_custom_offers_every_option_of_a_measurement(corpus: Corpus) -> None:
    app = opened(PAGE)
    app.segmented_control(key="bias.preset").set_value("custom").run()
    shown = {"train", "preset", "weights"}  # picked above; fills itself in
    for name in facade_runs.RECIPES["difficulty"].config.model_fields.keys() - shown:
        assert app.get_by_key(f"bias.{name}"), name
    app.selectbox(key="bias.calibrate").select("no").run()
    app.selectbox(key="bias.precision").select("fp32").run()
    assert "--calibrate no --precision fp32" in commands_on(app)[0]


def test_a_run_at_work_shows_progress_its_losses_and_a_way_to_stop(
    home: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RECIPES["difficulty"].config.parse({"train": corpus.fingerprint, "encoder": "tiny"})
    run = register(RECIPES["difficulty"], config, RunStore(home))
    with EventLog(run.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
        log.append("stage", {"name": "entity, training 2 of 10"})
        log.append("metric", {"name": "loss/entity", "value": 1.5, "step": 3})
    assert run.lock.acquire()
    try:
        app = opened(PAGE)
    finally:
        run.lock.release()
    assert not app.exception
    assert "Running" in texts(app)
    assert "Cancel" in [button.label for button in app.button]
    assert "Training loss of the two classifiers" in texts(app)
    assert "First measure a corpus" in texts(app)


def test_what_labels_teach_is_said_in_words_and_numbers(run: str) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    said = texts(app)
    assert "how much surer" in said
    assert app.subheader[0].value == "Names and contexts tell about as much"
    rows = {row.bin: row.mentions for row in bias.bin_rows(run)}
    assert rows == {"low": 60, "near_zero": 3, "high": 60}
    assert "too few to judge" in said
    assert len(app.get("plotly_chart")) == 3
    assert "python -m core difficulty" in " ".join(commands_on(app))


def test_every_bar_lists_exactly_its_mentions(run: str) -> None:
    app = opened(PAGE)
    picker = app.selectbox(key=f"bias.bar.{run}.False")
    found = bias.measured(run)
    assert len(picker.options) == len(set(found.bars.tolist()))
    total = 0
    for bar in sorted(set(found.bars.tolist())):
        numbers = bias.in_bar(run, bar)
        assert {int(found.bars[number]) for number in numbers} == {bar}
        total += len(numbers)
    assert total == len(found)
    picker.select(("", int(found.bars[0]))).run()
    assert not app.exception
    assert NASTY not in raw_html(app)
    assert "&lt;img src=x" in raw_html(app)
    assert 'aria-label="Sentences with the mention highlighted"' in raw_html(app)
    assert re.search(r"labels\.pdf, page \d+</small><br>", raw_html(app))


def test_by_type_a_panel_a_type_and_its_own_bars(run: str) -> None:
    app = opened(PAGE)
    app.segmented_control(key="bias.by_type").set_value(True).run()
    assert not app.exception
    app.selectbox(key=f"bias.bar.{run}.True").select(("DATE", int(bias.measured(run).bars[-1]))).run()
    assert not app.exception
    assert "of type DATE" in texts(app)
    listed = next(html for html in bodies(app) if "Sentences with the mention highlighted" in html)
    assert "DATE</small>" in listed
    assert "PARTY</small>" not in listed


def test_a_box_takes_all_mentions_inside_it_drawn_or_not(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bias.measured(run)
    numbers = bias.in_box(run, (0.5, 2), (-1, 0.5)).tolist()
    inside = [i for i in range(len(found)) if 0.5 <= found.context[i] <= 2 and -1 <= found.entity[i] <= 0.5]
    assert sorted(numbers) == inside
    assert inside
    monkeypatch.setattr("core.facade.bias.MOST_DRAWN", 50)
    assert len(bias.drawn(run)) == 50
    app = opened(PAGE)
    assert f"A random 50 of {len(found)} are drawn; a box takes all" in texts(app)
    app.slider(key=f"bias.x.{run}").set_range(0.5, 1.0).run()
    assert not app.exception
    assert set(app.dataframe[0].value["type"]) == {"PARTY"}


def test_a_view_that_calibration_set_to_nothing_hides_no_suspicious_label(home: Path, corpus: Corpus) -> None:
    """Of every fifth sentence the context tells 0 bits but for rounding; a name alone against a label is enough."""

    def rule(row: int, kind: str) -> tuple[float, float]:
        against = {5: (-3.0, 2e-16), 10: (-4.0, 2e-16), 7: (-0.2, -0.1), 8: (-0.4, -0.1), 15: (2e-16, -2e-16)}
        return against.get(row, (1.0, 1.0)) if kind == "PARTY" else (-9.0, 0.3)

    run = measured(home, corpus, rule).id
    assert [bias.measured(run).mentions[number].row for number in reviews.suspicious(run)] == [8, 7, 10, 5]


def test_labels_that_are_too_few_to_judge_come_last_and_are_marked(home: Path, corpus: Corpus) -> None:
    run = measured(home, corpus, lambda row, kind: (-9, -9) if kind.startswith("<b>") or row == 30 else (1, 1)).id
    kinds = [bias.measured(run).mentions[number].type for number in reviews.suspicious(run)]
    assert kinds == ["PARTY", "DATE", *["<b>RARE</b>"] * 3]
    app = opened(PAGE)
    assert "neither makes this type likelier than it is on average" in texts(app)
    assert "labels are of this type" not in texts(app)
    press(app, "bias.accept")
    press(app, "bias.accept")
    assert "Only 3 labels are of this type: **too few to judge**" in texts(app)
    assert "<b>RARE" not in texts(app) + raw_html(app)


def test_as_many_mentions_as_folds_are_needed_to_judge_a_type(home: Path) -> None:
    rows = [sentence(f"Acme{i} pays .", [(0, 1, "LAW" if i < 25 else "PARTY")]) for i in range(60)]
    corpus = Library(home).seal(rows, name="two types", origin={}, labelled=True)
    few = [bias.measured(measured(home, corpus, folds=n).id).few for n in (5, 30)]
    assert few == [frozenset(), {"LAW"}]


def test_one_type_is_said_where_one_looks_and_gives_no_clean_bill(home: Path) -> None:
    rows = [sentence(f"Acme{i} pays .", [(0, 1, "<b>PARTY</b>")]) for i in range(30)]
    corpus = Library(home).seal(rows, name="one type", origin={}, labelled=True)
    note = "<b>PARTY</b>: is the only type, so nothing was trained."
    measured(home, corpus, lambda row, kind: (0.0, 0.0), (note,))
    app = opened(PAGE)
    assert not app.exception
    assert app.subheader[0].value == "There is only one type: nothing for names or contexts to tell"
    shown = [info.value for info in app.info if "is the only type" in info.value]
    assert len(shown) == 2  # above the views and in place of suspicious labels
    assert not any("<b>" in info for info in shown)
    assert not app.success


def test_where_nothing_was_told_no_label_gets_a_clean_bill(home: Path, corpus: Corpus) -> None:
    measured(home, corpus, lambda row, kind: (0.0, 2e-16))
    app = opened(PAGE)
    assert app.subheader[0].value == "Nothing shows that names or contexts tell the type"
    assert "nothing can be said of any label" in texts(app)
    assert not app.success
    measured(home, corpus, lambda row, kind: (1.0, -1.0), seed=2)
    assert "none looks wrong" in opened(PAGE).success[0].value


def test_what_is_nothing_but_for_rounding_has_no_sign(home: Path, corpus: Corpus) -> None:
    measured(home, corpus, lambda row, kind: (-0.001, -0.5))
    app = opened(PAGE)
    assert app.subheader[0].value == "Names tell more than contexts"
    assert "**0.00 bits** [0.00, 0.00] by its **name**" in texts(app)
    assert "**−0.50 bits** [−0.50, −0.50] by its **context**" in texts(app)
    assert "<td>0.00</td>" in raw_html(app)
    assert "−0.00" not in texts(app)


def test_skipped_labels_come_back_once_the_others_are_done(run: str) -> None:
    first, second, *others = reviews.suspicious(run).tolist()
    app = opened(PAGE)
    press(app, "bias.skip")
    press(app, "bias.skip")
    for _ in others:
        press(app, "bias.accept")
    assert reviews.read(run).latest.keys() == {first, second, *others}
    assert "4 of 6 reviewed, 0 changed, 2 skipped" in str(app.get("progress")[0].proto.text)
    assert "here they come again" in texts(app)
    press(app, "bias.skip")  # the first once more: the second's turn
    press(app, "bias.accept")
    assert reviews.read(run).latest[second].action == "accept"
    press(app, "bias.accept")
    assert reviews.read(run).latest[first].action == "accept"
    assert "6 of 6 reviewed, 0 changed" in str(app.get("progress")[0].proto.text)
    assert "All of them are reviewed" in app.success[0].value


def test_review_accept_fix_remove_skip_undo_export(run: str, home: Path, corpus: Corpus) -> None:
    numbers = reviews.suspicious(run).tolist()
    found = bias.measured(run)
    doubts = [max(found.entity[number], found.context[number]) for number in numbers]
    assert len(numbers) == 6
    assert doubts == sorted(doubts)
    app = opened(PAGE)
    press(app, "bias.accept")
    reviews.review(run, numbers[1], "skip")
    app.run()
    app.selectbox(key=f"bias.right.{run}.{numbers[2]}").select("DATE").run()
    press(app, "bias.fix")
    assert f"You said of {found.mentions[numbers[2]].surface}: should be DATE" in texts(app)
    reviews.review(run, numbers[3], "remove")
    app.run()
    assert "3 of 6 reviewed, 2 changed, 1 skipped" in str(app.get("progress")[0].proto.text)
    press(app, "bias.accept")
    press(app, "bias.undo")
    told = reviews.read(run)
    assert [one.action for one in told.history] == ["accept", "skip", "fix", "remove"]
    assert "3 of 6 reviewed" in str(opened(PAGE).get("progress")[0].proto.text)  # another day, another session

    path = home / "corrected.conll"
    reviews.export(run, path)
    blocks = [block.splitlines() for block in path.read_text(encoding="utf-8").strip().split("\n\n")]
    tags = [[line.rsplit("\t", 1)[1] for line in block] for block in blocks]
    for number, wanted in ((numbers[2], "DATE"), (numbers[3], None), (numbers[0], "PARTY")):
        mention = found.mentions[number]
        types = {entity.start: entity.type for entity in decode(tags[mention.row], "iob2")[0]}
        assert types.get(mention.start) == wanted
    log = reviews.review_log(run).decode("utf-8-sig").splitlines()
    assert [line.split(",")[1] for line in log[1:]] == ["accept", "skip", "fix", "remove"]
    press(app, "bias.seal")
    assert "2 labels corrected" in corpora.listed()[-1].name


def test_a_wrong_review_is_refused(run: str) -> None:
    number = int(reviews.suspicious(run)[0])
    for told in ((number, "fix", "PARTY"), (number, "fix", "nothing"), (10_000, "accept", "")):
        with pytest.raises(ConfigError):
            reviews.review(run, *told)
    assert not reviews.read(run).history


def test_how_many_mentions_are_measured_is_left_open_for_all(corpus: Corpus) -> None:
    app = opened(PAGE)
    field = app.number_input(key="bias.mentions")
    assert (field.label, field.value, field.proto.placeholder) == ("Mentions to measure, about", None, "all of them")
    assert "--mentions" not in commands_on(app)[0]
    app.number_input(key="bias.mentions").set_value(50).run()
    assert "--mentions 50" in commands_on(app)[0]


def test_rebuild_says_its_pools_then_shows_before_and_after(run: str, corpus: Corpus) -> None:
    app = opened(PAGE)
    assert "Mentions to draw from, by type" in raw_html(app)
    assert "of 123 mentions" in texts(app)
    options = {"train": corpus.fingerprint, "difficulty": run, "method": "random2low", "rate": 0.2}
    made = facade_runs.execute("rebuild", options).result()
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert "can be the training set of any training or experiment" in app.success[-1].value
    assert made["changed"] > 0
    assert "before</strong>" in raw_html(app)
    assert re.search(r"labels\.pdf, page \d+</small></li>", raw_html(app))
    assert NASTY not in raw_html(app)
    assert Library(home()).find(made["corpus"]).types["DATE"] > corpus.types["DATE"]


def test_a_test_split_is_refused_in_the_recipes_words(run: str, corpus: Corpus) -> None:
    mine = corpus.fingerprint
    options = {"train": mine, "difficulty": run, "method": "random2low", "holdout": (mine,)}
    with pytest.raises(CorpusError):
        facade_runs.execute("rebuild", options)
    app = opened(PAGE)
    assert not app.exception
    assert "only training data is rebuilt" in app.error[0].value


def test_harder_test_sets_are_listed_with_what_holds(home: Path) -> None:
    made = finished_corpora(home)
    options = {"test": made["test"].fingerprint, "train": made["train"].fingerprint}
    for kind in ("oov", "typos"):
        facade_runs.execute("robustness", {**options, "kind": kind})
    app = opened(PAGE)
    assert not app.exception
    assert "none of its words, apart from “of”, “the” and the like, occurs in the training set" in raw_html(app)
    assert "No finished tagger was tested on several test sets yet" in texts(app)
    assert NASTY not in raw_html(app)


def tuned_on_both(home: Path, made: Mapping[str, Corpus], hard: Corpus, init: str, skill: float) -> str:
    """A finished `finetune` run that was tested on the plain set and on `hard`, where it is worse."""
    tests = [list(next(corpus.batches())) for corpus in (made["test"], hard)]

    def work(context: RunContext) -> FinetuneResult:
        for index, (sentences, lost) in enumerate(zip(tests, (0, 0.2), strict=True)):
            for seed in SEEDS:
                read = read_by_lot(sentences, skill - lost, seed)
                part = evaluations.file_suffix(evaluations.name_of_test_set(index), seed)
                evaluations.write_predictions(context.run, part, read)
        return fine_tuned([50.0])

    options = {"init": init, "seeds": SEEDS, "train": made["train"].fingerprint, "dev": made["dev"].fingerprint}
    return finish(home, "finetune", {**options, "test": (made["test"].fingerprint, hard.fingerprint)}, work).id


def test_the_frontier_shows_every_set_and_the_average_beside_them(home: Path) -> None:
    made = finished_corpora(home)
    options = {"test": made["test"].fingerprint, "train": made["train"].fingerprint, "kind": "oov"}
    hard = Library(home).find(facade_runs.execute("robustness", options).result()["corpus"])
    runs = [tuned_on_both(home, made, hard, init, skill) for init, skill in (("tiny", 0.4), ("minilm", 0.6))]
    (group,) = taggers.tested_alike()
    assert group.tests == (made["test"].fingerprint, hard.fingerprint)
    assert sorted(group.runs) == sorted(runs)
    rows = taggers.standings(group.runs)
    points = taggers.frontier_points(rows, hard.fingerprint, taggers.names(group.runs), certain=False)
    best = {one.name: one.best for one in points}
    assert best == {"tiny on my train": False, "minilm on my train": True}
    app = opened(PAGE)
    assert not app.exception
    assert "Mean of all sets" in raw_html(app)
    assert "my test, oov, certain names" in raw_html(app)
    app.toggle(key="bias.certain").set_value(True).run()
    assert not app.exception


def test_how_long_a_measurement_takes_is_said_once_this_machine_was_timed(home: Path) -> None:
    corpus = contracts(home)
    corpora.set_role("train", corpus.fingerprint)
    app = opened(PAGE)
    assert "How long 123 mentions take on this machine is not known yet" in texts(app)
    assert app.button(key="bias.time")
    finish(home, "calibrate", {"task": corpus.fingerprint, "train": corpus.fingerprint}, lambda context: TIMED)
    options = {"train": corpus.fingerprint}
    seconds = training.difficulty_estimate(options)
    assert seconds is not None
    assert f"About {duration(seconds)} for 123 mentions" in texts(opened(PAGE))
    fewer, thrice = ({**options, **more} for more in ({"mentions": 40}, {"repeats": 3}))
    least, most = training.difficulty_estimate(fewer), training.difficulty_estimate(thrice)
    assert least is not None
    assert most is not None
    assert least < seconds < most


def test_what_another_window_says_of_a_label_is_neither_overruled_nor_taken_back_unseen(run: str) -> None:
    """Two windows look at one label; the second hears of it and the first's word stays."""
    first, second, *_ = reviews.suspicious(run).tolist()
    one, another = opened(PAGE), opened(PAGE)
    press(one, "bias.accept")
    press(another, "bias.skip")
    assert [(each.mention, each.action) for each in reviews.read(run).history] == [(first, "accept")]
    assert "was changed by another window of yours at" in another.warning[0].value
    press(another, "bias.accept")  # of the next one, which it shows now
    assert "window of yours" not in "".join(each.value for each in another.warning)
    press(one, "bias.undo")  # which spoke of the first
    assert "The last review" in one.warning[0].value
    assert [each.mention for each in reviews.read(run).history] == [first, second]
    press(one, "bias.undo")
    assert [each.mention for each in reviews.read(run).history] == [first]
