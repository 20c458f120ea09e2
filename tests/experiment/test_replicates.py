"""Replicates with their own labels: swapped halves, and multipliers by random text and nested labels."""

import json
from collections import Counter
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import Cancelled, ConfigError
from core.experiment import deliver, results
from core.experiment import leaderboard as leaderboard_module
from core.experiment import result as leaderboard
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.result import HalvesResult, Multipliers
from core.kind import Job
from core.projects import removals, runs
from core.projects.home import store
from core.results import Evaluation
from core.runs.events import Event
from core.runs.result import read
from core.runs.store import Run, RunStore, is_run_id
from core.selection.result import SelectResult
from core.stats.bootstrap import compare
from core.stats.draws import dealt
from core.stats.multipliers import Worth
from core.stats.verdict import Answer
from core.tagging import evaluations
from core.tagging.config import FinetuneConfig
from core.tagging.evaluations import FinetuneResult
from core.text.sentence import Prediction
from tests.experiment.test_experiment import OPTIONS, fill, labelled
from tests.finished import ARM_ROW, fine_tuned, html_report, pretrained
from tests.homes import Homes
from tests.pages.drawing import opened, texts
from tests.planted import contracts
from tests.untrained import without_training

CROSS = {key: value for key, value in OPTIONS.items() if key != "task"} | {
    "repeat": "pipeline",
    "cross": True,
    "domain": "leaky",
    "arms": ("none", "ngram-perplexity"),
    "finetune": {"epochs": 1, "head_learning_rate": 0.1},
}


def leaky(home: Path, made: dict[str, Corpus]) -> None:
    """Seal a D_C that also contains every labelled sentence."""
    parts = (made[name] for name in ("domain", "train", "dev", "test"))
    sentences = (replace(one, entities=None) for part in parts for batch in part.batches() for one in batch)
    Library(home).seal(sentences, name="leaky", origin={})


def crossed(home: Path) -> dict[str, str]:
    """Finish an experiment that was cancelled at the first step of every kind."""
    seen: set[str] = set()

    def stop(event: Event) -> None:
        number, _, step = str(event.data.get("name", "")).partition(": ")
        if event.kind == "stage" and number.startswith("[") and (work := step.partition(" on ")[0]) not in seen:
            seen.add(work)
            runs.cancel(runs.listed("experiment")[0].id)

    leaky(home, fill(home))
    with without_training():
        for _ in range(4):
            with pytest.raises(Cancelled):
                runs.execute("experiment", CROSS, stop)
        assert seen == {"splitting the labelled sentences", "selecting", "pre-training", "fine-tuning"}
        return {"experiment": runs.execute("experiment", CROSS, stop).id}


@pytest.fixture
def finished(homes: Homes, home: Path) -> Run:
    return runs.get(homes.copy(crossed, home)["experiment"])


def ids(reference: str) -> set[int]:
    return set(Library(store().home).find(reference).ids().tolist())


def test_every_labelled_sentence_is_tested_but_not_read_by_its_replicate(finished: Run) -> None:
    kinds = Counter(run.manifest.kind for run in runs.listed(state="succeeded"))
    assert kinds["experiment"] == kinds["halves"] == 1  # although the experiment was cancelled four times
    assert (kinds["select"], kinds["pretrain"], kinds["finetune"]) == (4, 4, 6)
    (split,) = runs.listed("halves")
    result = read(split, HalvesResult)
    pool = ids(result.pool)
    assert pool == ids("train") | ids("dev") | ids("test")
    first, second = result.halves
    assert ids(first.test) | ids(second.test) == pool
    assert not ids(first.test) & ids(second.test)
    for half, other in ((first, second), (second, first)):
        assert ids(half.task) == ids(other.test)
        assert ids(half.train) | ids(half.dev) <= ids(half.task)
        assert not ids(half.train) & ids(half.dev)
    assert {run.manifest.config["test"][0] for run in runs.listed("finetune")} == {first.test, second.test}
    for run in runs.listed("pretrain"):
        test = result.halves[run.manifest.config["seed"] - 1].test
        assert not ids(test) & {i for corpus in run.manifest.config["corpora"] for i in ids(corpus)}
    for run in runs.listed("select"):  # no selection has a sentence of the pool, in either half
        assert not ids(run.result()["corpus"]) & pool


def test_variants_are_compared_per_replicate_on_shared_halves(finished: Run) -> None:
    rows = {row.arm: row for row in results.board(finished.id).leaderboard}
    # The labels of `none` differ by replicate too.
    assert len(rows["none"].finetunes) == len(rows["none"].micro_f1) == 2
    assert rows["none"].halves_runs == rows["random"].halves_runs == rows["ngram-perplexity"].halves_runs
    tables = {name: leaderboard.tables(row, store()) for name, row in rows.items()}
    (split,) = runs.listed("halves")
    n = read(split, HalvesResult).sentences
    for name, (first, second) in tables.items():
        assert first.tested is not None
        assert second.tested is not None
        assert len(first.tested) == n
        assert (first.tested ^ second.tested).all()  # every sentence is tested exactly once
        assert [first.f1(), second.f1()] == rows[name].micro_f1
    gap = compare(tables["ngram-perplexity"], tables["random"])
    assert rows["ngram-perplexity"].delta_random == pytest.approx(gap.delta)
    assert rows["ngram-perplexity"].interval_random == pytest.approx((gap.lo, gap.hi))
    report = html_report(finished.id)
    assert "Halves were swapped" in report
    assert "These are the scores of the first replicate" in report
    assert "None</" not in report
    assert "Halves were swapped" in deliver.board_markdown(finished.id)


def test_results_page_compares_taggers_of_the_same_half(finished: Run) -> None:
    app = opened("pages/6_Results.py")
    assert "Halves were swapped" in texts(app)
    for tab in ("By type", "Sentences"):
        app.session_state["results.tab"] = tab
        app.run()
        assert not app.exception
        first, second = (next(box for box in app.selectbox if box.label == name) for name in "AB")
        assert len(first.options) == 6
        assert len(second.options) == 3
        assert second.options == [name for name in first.options if name[-1] == first.format_func(first.value)[-1]]


def test_no_link_leads_from_a_dictionary_to_taggers_that_had_other_test_sets(finished: Run) -> None:
    run = runs.execute("dictionary", {"names": ("train",), "test": ("test",)})
    assert results.beside(finished.id) == []
    assert results.untrained(run.id).experiments == []


def test_finished_plan_costs_nothing_and_a_longer_one_reuses_its_runs(finished: Run) -> None:
    assert experiments.cost(CROSS).seconds == 0
    longer = {**CROSS, "seeds": (1, 2, 3, 4), "looks": (2, 4)}
    left = Counter(step.kind for step in experiments.cost(longer).steps if not step.finished)
    assert left == {"halves": 1, "select": 4, "pretrain": 4, "finetune": 6}
    forecast = experiments.foresight(longer)
    assert forecast.spread.swapped
    assert "all 56 labelled sentences are test sentences, one half after the other" in forecast.in_words()
    assert [plan.looks for plan in forecast.plans] == [(2, 4), (2, 4), (2, 4, 6), (4, 8, 12)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "task"}, "task: with cross, the task corpus is the text of each half"),
        ({"repeat": "tagger"}, "set repeat to pipeline"),
        ({"seeds": (1, 2, 3)}, "Give 2, 4 or 6"),
        ({"seeds": (1, 2, 3, 4), "looks": (3, 4)}, "give even numbers"),
        ({"cross": False, "task": "task", "cross_train": 5}, "give cross, or leave them out"),
    ],
)
def test_options_that_contradict_swapped_halves_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ExperimentConfig.parse({**CROSS, **options})


def test_near_duplicates_share_a_half_and_the_seed_decides_the_split(home: Path) -> None:
    library = Library(home)
    texts = contracts(40, seed=3)
    copies = [text.upper() for text in texts[:6]]  # copies of training sentences, in the test split
    lines = {"train": texts[:20], "dev": texts[20:30], "test": [*texts[30:], *copies]}
    for name, split in lines.items():
        library.seal(labelled(split), name=name, origin={}, labelled=True)

    def halves(**given: int) -> HalvesResult:
        options = {**{name: name for name in lines}, "train_sentences": 9, "dev_sentences": 4, "seed": 5, **given}
        run = runs.execute("halves", options)
        result = read(run, HalvesResult)
        removals.remove_run(run.id)
        return result

    first = halves()
    for half in first.halves:
        inside = set(library.find(half.task).column("text").to_pylist())
        assert all((text in inside) == (copy in inside) for text, copy in zip(texts, copies, strict=False))
    assert halves() == first
    assert halves(seed=6).halves != first.halves
    words = "30 training and 9 dev sentences are too many. The smaller half of the 46 sentences has"
    with pytest.raises(ConfigError, match=words):
        halves(train_sentences=30, dev_sentences=9)

    groups = np.array([0, 0, 0, 3, 4, 5, 6, 6, 8, 9])
    for seed in range(20):
        parts = dealt(groups, (1, 1), seed)
        assert sorted(np.concatenate(parts)) == list(range(10))
        assert [len(part) for part in parts] == [5, 5]
        assert not set(groups[parts[0]]) & set(groups[parts[1]])
    assert [len(part) for part in dealt(np.arange(100), (70, 10, 20), 1)] == [70, 10, 20]
    assert not np.array_equal(dealt(groups, (1, 1), 1)[0], dealt(groups, (1, 1), 2)[0])


ASKED = OPTIONS | {
    "repeat": "pipeline",
    "arms": ("none", "ngram-perplexity"),
    "budgets": ("8",),
    "seeds": (1, 2, 3, 4),
    "multipliers": True,
}
POINTS = 6.0  # F1 points gained with twice the text or twice the labels


def tuned(config: FinetuneConfig, job: Job) -> FinetuneResult:
    """Simulate a training: selection gains as much as twice the text, its pre-training as much as four times the
    labels.
    """
    (seed,), f1 = config.seeds, 60 + POINTS * np.log2(len(job.corpus(config.train)) / 24)
    if is_run_id(config.init):
        chosen = job.corpus(RunStore(job.home).get(config.init).manifest.config["corpora"][-1])
        f1 += POINTS * (np.log2(chosen.n_tokens / 100) + ("ngram" in chosen.name))
    else:
        f1 -= POINTS
    gold = np.full((len(job.corpus(config.test[0])), 1), 500, dtype=np.int32)
    rng, none = np.random.default_rng([seed, round(1000 * f1)]), Prediction(entities=(), confidence=())
    scores = {}
    for split in ("dev", "test"):
        right = rng.binomial(500, f1 / 100, size=gold.shape).astype(np.int32)
        table = Evaluation(types=("PARTY",), tp=right, predicted=gold, gold=gold)
        evaluations.write(job.context.run, evaluations.file_suffix(split, seed), table, [none] * len(gold))
        scores[split] = (table.f1(),)
    return fine_tuned(scores["test"], dev=scores["dev"])


def multiplied(home: Path) -> dict[str, str]:
    """Finish an experiment whose trainings are simulated."""
    fill(home)
    with without_training(pretrain=lambda config, job: pretrained(), finetune=tuned):
        return {"experiment": runs.execute("experiment", ASKED).id}


@pytest.fixture
def measured(homes: Homes, home: Path) -> Run:
    return runs.get(homes.copy(multiplied, home)["experiment"])


def test_random_reads_two_and_four_times_the_tokens_of_the_selection(measured: Run) -> None:
    board = results.board(measured.id)
    rows = {(row.arm, row.budget): row for row in board.leaderboard}
    assert set(rows) == {("none", ""), ("ngram-perplexity", "8"), *(("random", n) for n in ("8", "16", "32"))}
    assert {rows["random", n].verdict for n in ("8", "16", "32")} == {"control"}
    read_by = {named: row.select_run for named, row in rows.items() if row.select_run}
    tokens = {named: read(runs.get(run), SelectResult).tokens for named, run in read_by.items()}
    for times, budget in ((1, "8"), (2, "16"), (4, "32")):
        most = times * tokens["ngram-perplexity", "8"]
        assert 0.8 * most < tokens["random", budget] <= most
    # Each replicate draws its own nested labels, which all arms share.
    draws = Counter((point.arm, point.budget, point.train_sentences, point.draw) for point in board.curve)
    arms = (("none", ""), ("random", "8"), ("ngram-perplexity", "8"))
    assert draws == Counter((arm, budget, n, draw) for arm, budget in arms for n in (6, 12) for draw in range(4))
    trained = {(p.train_sentences, p.draw, runs.get(p.finetune_run).manifest.config["train"]) for p in board.curve}
    assert len(trained) == len({train for _, _, train in trained}) == 8
    assert {len(point.micro_f1) for point in board.curve} == {1}


def test_multipliers_are_on_the_page_in_report_table_and_json(measured: Run) -> None:
    found = results.board(measured.id).multipliers
    assert found is not None
    assert found.text is not None
    assert found.labels is not None
    assert found.labels_none is not None
    assert (found.labels.size, found.labels.most, found.labels.replicates) == (6, 4, 4)
    assert found.text.hi is not None
    assert found.text.hi < 3.5
    times = [found.text.most, found.text.times, found.labels.times, found.labels_none.times]
    assert times == pytest.approx([4, 2, 2, 4], rel=0.2)
    assert json.loads(json.dumps(measured.result()))["multipliers"]["text"]["replicates"] == 4
    assert found.words in deliver.board_markdown(measured.id)
    assert found.words in unescape(deliver.report(measured.id).decode())
    assert found.words in unescape(texts(opened("pages/6_Results.py")))


def test_cost_of_a_longer_plan_omits_finished_steps(measured: Run) -> None:
    assert experiments.cost(ASKED).seconds == 0
    longer = ASKED | {"seeds": (1, 2, 3, 4, 5)}
    left = Counter((step.kind, step.line) for step in experiments.cost(longer).steps if not step.finished)
    assert left["pretrain", "random 32"] == left["finetune", "random 32"] == 1
    assert left["finetune", "none"] == left["finetune", "random 8"] == left["finetune", "ngram-perplexity 8"] == 3
    plain = experiments.cost(longer | {"multipliers": False})
    assert 0 < plain.seconds < experiments.cost(longer).seconds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"repeat": "tagger"}, "set repeat to pipeline and give two seeds"),
        ({"seeds": (1,)}, "set repeat to pipeline and give two seeds"),
        ({"arms": ("none", "tapt")}, "name a strategy as the claim"),
        ({"budgets": ("30%",)}, "give a budget of 25% at most"),
    ],
)
def test_options_that_prevent_multipliers_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ExperimentConfig.parse({**ASKED, **options})


@pytest.mark.parametrize(
    ("helped", "chose", "surely"),
    [
        ("yes", "yes", (True, True, True)),
        ("yes", "no evidence", (False, False, True)),
        ("no evidence", "no evidence", (False, False, False)),
        ("no evidence", "yes", (True, True, False)),
    ],
)
def test_multipliers_have_a_lower_bound_only_if_the_claim_is_shown(
    helped: Answer, chose: Answer, surely: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ExperimentConfig.parse(ASKED)
    lines: Any = [SimpleNamespace(cell=cell) for cell in config.cells]
    for name, value in (("worth", ONE), ("_evaluations", []), ("_tokens", 1.0)):
        monkeypatch.setattr(leaderboard_module, name, lambda *_, value=value: value)
    assert config.claimed
    row = replace(ARM_ROW, arm=config.claimed.arm.name, budget="8", helped=helped, chose=chose)
    worths = leaderboard_module.multipliers(config, lines, [row], (6, 12, 24))
    assert worths
    assert tuple(one and one.lo == ONE.lo for one in (worths.text, worths.labels, worths.labels_none)) == surely
    assert ("(95% interval 8 to 55)" in worths.words.partition("Pre-training and")[0]) == surely[1]


ONE = Worth(size=25, times=2.1, lo=1.3, hi=3.2, most=4, replicates=6)


OPEN, ALL, NONE = (
    replace(ONE, lo=None, hi=None),
    replace(ONE, lo=4, hi=None, times=4),
    replace(ONE, lo=None, hi=1, times=1),
)


@pytest.mark.parametrize(
    ("text", "labels", "words"),
    [
        (
            ONE,
            ONE,
            "about 2.1 times as much random text (95% interval 1.3 to 3.2), and 28 more labelled sentences ",
        ),
        (replace(ONE, lo=None), None, "(95% interval less than 1 to 3.2)."),
        (replace(ONE, hi=None), replace(ONE, hi=None), "(95% interval 8 to more than 75)"),
        (OPEN, None, "an unknown amount of random text: 6 replicates are too few to estimate it"),
        (ALL, None, "more than 4 times as much random text (more than the experiment tried)"),
        (NONE, None, "worth less than the same amount of random text: the selection did not help"),
        (replace(ONE, lo=None, times=1), None, "worth less than 1 times as much random text (95%"),
        (None, NONE, "worth no more labelled sentences than 25 (less than 0)"),
        (None, ALL, "more than 75 more labelled sentences than 25 (more than the experiment tried)"),
        (None, OPEN, "an unknown number of more labelled sentences than 25: 6 replicates are too few"),
        (None, None, "was not measured: this needs at least two replicates"),
    ],
)
def test_multiplier_words_state_estimate_interval_and_limits(
    text: Worth | None, labels: Worth | None, words: str
) -> None:
    assert words in Multipliers(arm="knn", budget="10%", text=text, labels=labels, labels_none=None).words
