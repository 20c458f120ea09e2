"""Halves swapped: every labelled sentence is tested, and no test text is in T_C or in S_C."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import Cancelled, ConfigError
from core.experiment import deliver, results
from core.experiment import result as leaderboard
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.result import HalvesResult
from core.projects import removals, runs
from core.projects.home import store
from core.runs.events import Event
from core.runs.result import read
from core.runs.store import Run
from core.stats.bootstrap import compare
from core.stats.draws import dealt
from tests.finished import html_report
from tests.homes import Homes
from tests.pages.test_pages import opened, texts
from tests.planted import contracts
from tests.recipes.test_experiment import OPTIONS, fill, labelled
from tests.untrained import without_training

CROSS = {key: value for key, value in OPTIONS.items() if key != "task"} | {
    "repeat": "pipeline",
    "cross": True,
    "domain": "leaky",
    "arms": ("none", "ngram-perplexity"),
    "finetune": {"epochs": 1, "head_learning_rate": 0.1},
}


def leaky(home: Path, made: dict[str, Corpus]) -> None:
    """A D_C that holds every labelled sentence too."""
    parts = (made[name] for name in ("domain", "train", "dev", "test"))
    sentences = (replace(one, entities=None) for part in parts for batch in part.batches() for one in batch)
    Library(home).seal(sentences, name="leaky", origin={})


def crossed(home: Path) -> dict[str, str]:
    """Finish an experiment that is cancelled at the first step of every kind."""
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


def test_every_labelled_sentence_is_tested_and_none_that_is_tested_is_read(finished: Run) -> None:
    kinds = Counter(run.manifest.kind for run in runs.listed(state="succeeded"))
    assert kinds["experiment"] == kinds["halves"] == 1  # although it was stopped four times
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
    for run in runs.listed("select"):  # none of the pool, whichever half it is
        assert not ids(run.result()["corpus"]) & pool


def test_arms_are_compared_replicate_by_replicate_on_halves_that_they_share(finished: Run) -> None:
    rows = {row.arm: row for row in results.board(finished.id).leaderboard}
    assert len(rows["none"].finetunes) == len(rows["none"].micro_f1) == 2  # its labels differ by replicate too
    assert rows["none"].halves_runs == rows["random"].halves_runs == rows["ngram-perplexity"].halves_runs
    tables = {name: leaderboard.tables(row, store()) for name, row in rows.items()}
    (split,) = runs.listed("halves")
    n = read(split, HalvesResult).sentences
    for name, (first, second) in tables.items():
        assert first.tested is not None
        assert second.tested is not None
        assert len(first.tested) == n
        assert (first.tested ^ second.tested).all()  # all, each once
        assert [first.f1(), second.f1()] == rows[name].micro_f1
    gap = compare(tables["ngram-perplexity"], tables["random"])
    assert rows["ngram-perplexity"].delta_random == pytest.approx(gap.delta)
    assert rows["ngram-perplexity"].interval_random == pytest.approx((gap.lo, gap.hi))
    report = html_report(finished.id)
    assert "Halves were swapped" in report
    assert "None</" not in report
    assert "Halves were swapped" in deliver.board_markdown(finished.id)


def test_results_set_taggers_of_the_same_half_side_by_side(finished: Run) -> None:
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


def test_a_plan_prices_what_is_made_and_a_longer_one_reuses_it(finished: Run) -> None:
    assert experiments.cost(CROSS).seconds == 0
    longer = {**CROSS, "seeds": (1, 2, 3, 4), "looks": (2, 4)}
    left = Counter(step.kind for step in experiments.cost(longer).steps if not step.finished)
    assert left == {"halves": 1, "select": 4, "pretrain": 4, "finetune": 6}
    told = experiments.foresight(longer)
    assert told.spread.swapped
    assert "all 56 labelled sentences are tested, half by half" in told.in_words()
    assert [plan.looks for plan in told.plans] == [(2, 4), (2, 4, 6), (4, 8, 12)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "task"}, "task: with cross each half's own text is the task corpus"),
        ({"repeat": "tagger"}, "give repeat pipeline"),
        ({"seeds": (1, 2, 3)}, "give 2, 4 or 6"),
        ({"seeds": (1, 2, 3, 4), "looks": (3, 4)}, "look at 2,4,6"),
        ({"cross": False, "task": "task", "cross_train": 5}, "give cross, or leave them out"),
    ],
)
def test_what_cannot_be_swapped_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ExperimentConfig.parse({**CROSS, **options})


def test_a_copy_is_in_the_half_of_its_original_and_the_seed_decides_which(home: Path) -> None:
    library = Library(home)
    texts = contracts(40, seed=3)
    copies = [text.upper() for text in texts[:6]]  # of the training sentences, in the test split
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
    words = "30 sentences to learn from and 9 to decide by are more than a half of 46 has"
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
