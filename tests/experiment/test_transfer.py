"""Variants `transfer:CORPUS`: the labels of another corpus first. Options of each stage, errors, cost, and a whole run."""

from pathlib import Path
from typing import Any

import pytest

from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import arms, results
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.cost import Seconds
from core.experiment.steps import CHECK, Stages, in_order, lines
from core.experiment.words import name_of
from core.kind import Job
from core.kinds import KINDS
from core.projects import runs
from core.reporter import Silent
from core.tagging.config import FinetuneConfig
from tests.conftest import sentence
from tests.experiment.test_arms import SPLITS, corpora, made, planned
from tests.finished import TIMED
from tests.planted import contracts

__all__ = ["corpora"]  # a fixture
ARMS = ("none", "transfer:theirs", "transfer:news")
TRANSFER = {"arms": ARMS, "transfer": ("theirs", "news")}


def reports(n: int) -> list[str]:
    """Return sentences that are near duplicates of no other sentence."""
    return [f"Firm{i} hired chief{i} near town{i} after {i} days" for i in range(n)]


@pytest.fixture
def others(corpora: Library) -> Library:
    """Add a corpus with other types, of which one sentence is in the test set, and one in a further test set."""
    texts = contracts(150, seed=1)
    rows = [sentence(text, [(0, 1, "FIRM"), (1, 2, "ROLE")]) for text in [*reports(30), texts[55], texts[75]]]
    corpora.seal(rows, name="news", origin={}, labelled=True)
    return corpora


class Working(Job):
    """A job that does the work of child runs at once, without a parent run."""

    def child(self, kind: str, **options: object) -> Any:
        return runs.execute(kind, options)


def tuned(home: Path, **options: Any) -> dict[str, FinetuneConfig]:
    """Return {line and part: options of its fine-tuning}, without training anything."""
    config, _ = planned(home, **{**TRANSFER, **options})
    stages = Stages(config, Working(home, Silent(), KINDS))  # type: ignore[arg-type]
    return {
        f"{cell} {part[0] or ''}".strip(): stages.finetune(cell, replicate, part, select=None, pretrain=None, labels=())
        for cell in config.cells
        for replicate in config.replicates(cell)[:1]
        for part in stages.parts(cell, replicate)
    }


def test_other_labels_come_first_and_held_out_sentences_are_left_out(others: Library, home: Path) -> None:
    found = tuned(home, type_map=("FIRM=PARTY",), transfer_epochs=3)
    assert list(found) == list(ARMS)
    assert (found["none"].first, found["none"].first_epochs, found["none"].type_map) == ("", 2, ())
    news = others.find(found["transfer:news"].first)
    assert (len(news), news.name) == (30, "news without held-out sentences")
    held_out = {mark for name in ("dev", "test", "hard") for mark in others.find(name).ids().tolist()}
    assert not held_out & set(news.ids().tolist())
    assert set(others.find(found["transfer:theirs"].first).ids().tolist()) <= set(others.find("theirs").ids().tolist())
    for name in ARMS[1:]:
        assert (found[name].first_epochs, found[name].type_map) == (3, ("FIRM=PARTY",))
        assert found[name].train == found["none"].train
    further = tuned(home, holdout=("theirs",), arms=ARMS[:1] + ARMS[2:])
    assert further["transfer:news"].first == news.fingerprint


def test_parts_of_labels_and_other_encoders_have_the_same_first_corpus(others: Library, home: Path) -> None:
    found = tuned(home, train_sizes=(10,), draws=1, axis=("encoder:minilm",))
    names = [name for name in found if name.startswith("transfer:news")]
    assert names == [f"transfer:news{axis}{n}" for axis in ("", " encoder:minilm") for n in ("", " 10")]
    assert len({found[name].first for name in names}) == 1
    assert len({found[name].train for name in names}) == 2
    assert [found[name].init for name in names] == ["tiny", "tiny", "minilm", "minilm"]


def test_no_sentence_of_the_pool_comes_first_if_halves_are_swapped(others: Library, home: Path) -> None:
    """Also sentences of the training set are left out, because the other half may test them."""
    texts = [*reports(12), *contracts(40, seed=1)]  # the training set has the same contracts
    others.seal([sentence(text, [(0, 1, "FIRM")]) for text in texts], name="mixed", origin={}, labelled=True)
    swapped = {"cross": True, "repeat": "pipeline", "also_test": ()}
    config, _ = planned(home, arms=("transfer:mixed",), transfer=("mixed",), **swapped)
    stages = Stages(config, Working(home, Silent(), KINDS))  # type: ignore[arg-type]
    first, second = config.replicates(config.cells[0])
    split = runs.execute("halves", stages.halves(first).model_dump())
    for replicate in (first, second):
        half = stages.on_half(split, replicate)
        left = others.find(str(half.first(config.cells[1].arm)["first"]))
        assert {row.text for block in left.batches() for row in block} == set(reports(12))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"transfer": ()}, "arms: transfer:theirs trains on another labelled corpus first; give that corpus in transf"),
        ({"finetune": {"network": "bilstm"}}, "transfer:theirs needs the network encoder or span"),
        ({"arms": ("transfer",)}, "'transfer' is not known; choose among none.*transfer:CORPUS"),
        ({"transfer_epochs": 0}, "transfer_epochs"),
    ],
)
def test_a_variant_without_its_corpus_or_network_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ExperimentConfig.parse({**SPLITS, **TRANSFER, **options})


def test_an_unknown_corpus_is_named_in_the_error_before_anything_is_computed(others: Library) -> None:
    for timing in experiments.calibrations({**SPLITS, **TRANSFER}):
        runs.execute("calibrate", timing)
    with pytest.raises(
        ConfigError, match="arms: transfer:nws names none of the corpora in transfer; choose among thei"
    ):
        experiments.cost({**SPLITS, **TRANSFER, "arms": ("transfer:nws",)})
    mark = others.find("news").fingerprint
    assert experiments.cost({**SPLITS, **TRANSFER, "arms": (f"transfer:{mark[:12]}",)}).seconds > 0


def test_variant_is_compared_with_none_and_checked_before_the_first_training(others: Library, home: Path) -> None:
    config, stages = planned(home, **TRANSFER, repeat="pipeline")
    cells = {str(cell): cell for cell in config.cells}
    cell = cells["transfer:news"]
    assert cell.arm.judged
    assert config.claimed == cells["transfer:theirs"]
    assert str(arms.baseline(cell, config.cells)) == "none"
    assert arms.control(cell, config.cells) is None
    assert len(config.replicates(cell)) == 1  # only taggers have seeds
    steps = [step for block in in_order(lines(stages, 1.0)) for step in block]
    assert [(step.kind, str(step.cell)) for step in steps] == [
        (CHECK, "transfer:theirs"),
        (CHECK, "transfer:news"),
        *(("finetune", name) for name in ARMS),
    ]
    assert arms.of_bias(("highc2low:20%", "lpft"))
    assert not arms.of_bias(("highc2low:20%", "transfer:news"))


def test_cost_counts_the_tokens_and_epochs_of_the_first_training(others: Library, home: Path) -> None:
    here = {name: others.find(name) for name in ("train", "dev", "test")}

    def seconds(epochs: int) -> dict[str, float]:
        config, stages = planned(home, **TRANSFER, also_test=(), transfer_epochs=epochs)
        timed = Seconds(config, TIMED, here, firsts=stages.firsts)
        return {str(cell): timed.finetune(0, cell) for cell in config.cells}

    two, six = seconds(2), seconds(6)
    assert two["none"] == six["none"] < two["transfer:theirs"] < two["transfer:news"]
    (a, b), news, dev = TIMED.tagger, others.find("news"), others.find("dev")
    n, judged = news.n_tokens * TIMED.pieces["train"], dev.n_tokens * TIMED.pieces["train"] / 3
    # For each of two seeds, four more epochs: a step of 32 sentences or 16, and a forward pass over dev.
    steps = -(-len(news) // 16)
    assert six["transfer:news"] - two["transfer:news"] == pytest.approx(2 * 4 * (steps * a + (n + judged) * b))


def test_experiment_trains_on_other_labels_first(others: Library) -> None:
    run, rows = made(
        arms=("none", "transfer:news"),
        transfer=("news",),
        type_map=("FIRM=PARTY",),
        transfer_epochs=1,
        finetune={"epochs": 2},
    )
    assert set(rows) == {"none", "transfer:news"}
    tagger = runs.get(rows["transfer:news"]["finetune_run"])
    assert tagger.manifest.config["seeds"] == [1, 2]
    notes = " ".join(tagger.state().notes)
    assert "the output weights of PARTY are reused; ROLE only trains the encoder." in notes
    assert rows["transfer:news"]["why"].startswith("Against no other labels first")
    board = results.board(run.id).leaderboard
    assert name_of(next(row for row in board if row.arm != "none"), board) == "a first training on the labels of news"
