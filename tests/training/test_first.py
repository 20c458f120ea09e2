"""Training on another corpus first: which weights carry over, and exact resuming in either training."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import set_seed

from core.errors import Cancelled
from core.models.crf import bioes_tags
from core.models.tagger import PieceTagger
from core.models.taggers import EncoderTagger, new_span_tagger, new_tagger
from core.reporter import Reporter, Silent
from core.text.sentence import Sentence
from core.training.finetune import finetune
from core.training.first import FILE, First, train_first
from tests.conftest import sentence
from tests.reporters import Recorder
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES, Killed, labelled, largest_difference

OTHER = ("ANIMAL", "PER")  # types of the corpus that is trained on first; L_C has LOC and PER


def other(n: int = 20) -> list[Sentence]:
    """Return sentences in which words that begin with P are PER, as in L_C, and those with a are ANIMAL."""
    kinds = {"P": "PER", "a": "ANIMAL"}
    rows = [row.tokens for row in labelled(n, 7)]
    spans = [[(i, i + 1, kinds[word[0]]) for i, word in enumerate(row) if word[0] in kinds] for row in rows]
    return [sentence(" ".join(row), own) for row, own in zip(rows, spans, strict=True)]


def made(types: Sequence[str], seed: int = 1, **options: Any) -> EncoderTagger:
    set_seed(seed)
    tagger = new_tagger("tiny", types, precision="fp32", max_length=64, **options)
    tagger.level_chains()
    return tagger


def spans(types: Sequence[str], seed: int = 1) -> PieceTagger:
    set_seed(seed)
    return new_span_tagger("tiny", types, beta=0.01, gamma=0.001, precision="fp32", max_length=64)


def state(tagger: torch.nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tagger.state_dict().items()}


def scrambled(tagger: PieceTagger) -> dict[str, Tensor]:
    """Return weights of a tagger that all differ from each other."""
    start, weights = 0, dict[str, Tensor]()
    for name, tensor in tagger.state_dict().items():
        weights[name] = torch.arange(start, start + tensor.numel()).reshape(tensor.shape).to(tensor)
        start += tensor.numel()
    return weights


@pytest.mark.parametrize("layers", ["last", "mix"])
def test_encoder_and_output_scores_of_common_tags_carry_over(layers: str) -> None:
    tagger, theirs = made(TYPES, layers=layers), scrambled(made(OTHER, layers=layers))
    before = state(tagger)
    tagger.begin_from(theirs, OTHER)
    after, here, there = state(tagger), bioes_tags(TYPES), bioes_tags(OTHER)
    last = {"model.classifier.weight", "model.classifier.bias"}
    assert last < after.keys()
    by_tag = {*last, "crf.start_transitions", "crf.end_transitions", "crf.transitions"}
    for name in after.keys() - by_tag:
        assert torch.equal(after[name], theirs[name]), name
    for name in by_tag:
        for row, tag in enumerate(here):
            if name == "crf.transitions":
                for column, then in enumerate(here):
                    both = tag in there and then in there
                    expected = theirs[name][there.index(tag), there.index(then)] if both else before[name][row, column]
                    assert after[name][row, column] == expected
            else:
                expected = theirs[name][there.index(tag)] if tag in there else before[name][row]
                assert torch.equal(after[name][row], expected)
    assert [tag for tag in here if tag in there] == ["O", "B-PER", "I-PER", "E-PER", "S-PER"]


def test_classes_of_a_span_tagger_carry_over_by_type() -> None:
    tagger, theirs = spans(TYPES), scrambled(spans(OTHER))
    before = state(tagger)
    tagger.begin_from(theirs, OTHER)
    after = state(tagger)
    for part in ("weight", "bias"):  # classes: no entity, LOC, PER; of the other tagger: no entity, ANIMAL, PER
        name = f"span.classes.{part}"
        assert torch.equal(after[name][[0, 2]], theirs[name][[0, 2]])
        assert torch.equal(after[name][1], before[name][1])
    assert torch.equal(after["span.hidden.weight"], theirs["span.hidden.weight"])
    assert torch.equal(after["contrast.critic.score.0.weight"], theirs["contrast.critic.score.0.weight"])


def first(folder: Path, report: Reporter | None = None, make: Callable[[], PieceTagger] | None = None) -> First:
    """Train on the other corpus for two epochs of three steps."""
    return train_first(
        lambda: ((make or (lambda: made(OTHER)))(), lambda: None),
        other(),
        DEV,
        SETTINGS.brief(2),
        seed=1,
        folder=folder,
        report=report or Silent(),
        checkpoint_seconds=0.0,
    )


def both(folder: Path, report: Reporter | None = None) -> tuple[First, PieceTagger]:
    """Train on the other corpus first, then on L_C, as a run does."""
    begun = first(folder, report)
    tagger = made(TYPES)
    tagger.begin_from(begun.weights, begun.types)
    options: dict[str, Any] = {"folder": folder, "report": report or Silent(), "checkpoint_seconds": 0.0}
    finetune(tagger, TRAIN, DEV, SETTINGS, seed=1, types=TYPES, **options)
    return begun, tagger


class Stop(Recorder):
    """Raise after `after` steps, counted over both trainings: 6 steps, then 12."""

    def __init__(self, after: int = 1000, error: BaseException | None = None) -> None:
        super().__init__()
        self.after, self.error, self.steps = after, error, list[int]()

    def progress(self, done: int, total: int | None, unit: str) -> None:
        if done and (not self.steps or self.steps[-1] != done):
            self.steps.append(done)

    def check(self) -> None:
        if self.error and len(self.steps) >= self.after:
            raise self.error


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[First, PieceTagger, Stop]:
    listener = Stop()
    return (*both(tmp_path_factory.mktemp("calm"), listener), listener)


def test_first_training_learns_all_its_types_and_keeps_the_last_epoch(
    undisturbed: tuple[First, PieceTagger, Stop], tmp_path: Path
) -> None:
    begun, _, listener = undisturbed
    assert list(begun.types) == list(OTHER)
    curves = {name for name, _, _ in listener.metrics}
    assert {"first_loss@1", "first_dev_f1@1", "loss@1", "dev_f1@1"} <= curves
    assert [step for name, _, step in listener.metrics if name == "first_dev_f1@1"] == [3, 6]
    tagger = made(OTHER)
    settings = replace(SETTINGS, epochs=2, last=True)
    finetune(tagger, other(), DEV, settings, seed=1, folder=tmp_path, report=Silent(), types=("LOC", *OTHER))
    assert all(torch.equal(begun.weights[name], tensor) for name, tensor in tagger.state_dict().items())
    assert SETTINGS.brief(2) == replace(settings, patience=2)
    found = {entity.type for one in tagger.predict(other()) for entity in one.entities}
    assert found == set(OTHER)


@pytest.mark.parametrize("after", [2, 5, 9, 16])
def test_training_resumes_exactly_in_either_stage(
    undisturbed: tuple[First, PieceTagger, Stop], tmp_path: Path, after: int
) -> None:
    error = Killed() if after % 2 else Cancelled("stop")
    with pytest.raises(type(error)):
        both(tmp_path, Stop(after, error))
    assert (tmp_path / FILE).exists() == (after > 6)
    begun, tagger = both(tmp_path)
    assert begun.seconds > 0
    assert largest_difference(tagger, undisturbed[1]) == 0.0
    assert not (tmp_path / "first").exists()


def test_finished_first_training_is_not_repeated(tmp_path: Path) -> None:
    begun = first(tmp_path)

    def make() -> PieceTagger:
        raise AssertionError

    again = first(tmp_path, make=make)
    assert (again.types, again.seconds) == (list(begun.types), begun.seconds)
    assert all(torch.equal(again.weights[name], tensor) for name, tensor in begun.weights.items())
