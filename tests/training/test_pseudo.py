"""Pseudo-labels: what a teacher is sure of, bad teachers, distant supervision, and exact resuming in every stage."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import set_seed

from core.models.tagger import Tagger
from core.models.taggers import new_tagger
from core.reporter import Reporter, Silent
from core.text.names import Dictionary
from core.text.sentence import Entity, Partial, Sentence
from core.training import pseudo
from core.training.finetune import Epochs, finetune
from core.training.pseudo import Stages, matched, self_train, train_distant
from tests.conftest import sentence
from tests.reporters import Recorder
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES, Killed, labelled, largest_difference

TEXT = [Sentence(id=row.id, tokens=row.tokens, text=row.text) for row in labelled(24, 5)]
NAMES = Dictionary({("pxx",): "PER", ("l",): "LOC", ("lyy",): "LOC", ("p",): "PER"})


def network() -> Tagger:
    set_seed(1)
    tagger = new_tagger("tiny", TYPES, precision="fp32", max_length=64)
    tagger.level_chains()
    return tagger


def made(weights: Mapping[str, Tensor] | None) -> tuple[Tagger, Any]:
    tagger = network()
    if weights:
        tagger.load_state_dict(weights)
    return tagger, lambda: None


def stages(folder: Path, report: Reporter | None = None) -> Stages:
    return Stages(
        made=made,
        dev=DEV,
        types=TYPES,
        seed=1,
        folder=folder,
        report=report or Silent(),
        options={"checkpoint_seconds": 0.0},
    )


def own_training(folder: Path, report: Reporter | None = None) -> tuple[Tagger, Epochs]:
    """Train the tagger of L_C: 12 steps."""
    tagger = network()
    options: dict[str, Any] = {"types": TYPES, "checkpoint_seconds": 0.0}
    return tagger, finetune(tagger, TRAIN, DEV, SETTINGS, seed=1, folder=folder, report=report or Silent(), **options)


def self_trained(folder: Path, report: Reporter | None = None) -> tuple[Tagger, Epochs]:
    tagger, epochs = own_training(folder, report)
    given = {"train": TRAIN, "unlabelled": TEXT, "settings": SETTINGS}
    return tagger, self_train(stages(folder, report), tagger, epochs, **given)  # type: ignore[arg-type]


def test_probability_of_being_in_an_entity_equals_enumeration() -> None:
    torch.manual_seed(0)
    tagger = new_tagger("tiny", ["A"], precision="fp32", constrained=False).eval()
    row = sentence("Acme Ltd pays", [])
    with torch.inference_mode():
        emissions = tagger.emissions(tagger.features([row]), (1, 3)).double()[0]
    begin, follow, end = (part.detach().double() for part in tagger.crf._learnt())
    total, inside = 0.0, [0.0] * 3
    for path in product(range(len(tagger.tags)), repeat=3):
        points = begin[path[0]] + sum(emissions[i, tag] for i, tag in enumerate(path)) + end[path[-1]]
        weight = math.exp(points + follow[path[0], path[1]] + follow[path[1], path[2]])
        total += weight
        inside = [share + weight * (tagger.tags[tag] != "O") for share, tag in zip(inside, path, strict=True)]
    shares, empty = tagger.named([row, sentence("x", [])])
    assert shares == pytest.approx([share / total for share in inside], rel=1e-5)
    assert empty.shape == (1,)


def test_teacher_labels_what_it_is_sure_of_and_leaves_the_rest_open(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [sentence("Acme Ltd pays Bo in Rome today", []), sentence("Nothing here", [])]
    found = (Entity(start=0, end=2, type="PER"), Entity(start=3, end=4, type="PER"))
    tagger = network()
    tagger.crf.temperature = 3.0
    predictions = [
        type("P", (), {"entities": found, "confidence": (0.9, 0.89)}),
        type("P", (), {"entities": (), "confidence": ()}),
    ]
    shares = [torch.tensor([0.99, 0.99, 0.1, 0.95, 0.29, 0.3, 0.0]).double().numpy(), torch.zeros(2).numpy()]
    monkeypatch.setattr(tagger, "predict", lambda *_: predictions)
    monkeypatch.setattr(tagger, "named", lambda *_: shares)
    first, second = stages(Path("unused")).label(tagger, rows)
    assert tagger.crf.temperature == 1.0
    assert isinstance(first, Partial)
    assert first.entities == found[:1]
    assert first.unknown == {3, 5}
    assert isinstance(second, Partial)
    assert not second.entities
    assert not second.unknown


def test_names_are_matched_and_name_like_words_left_open() -> None:
    names = Dictionary({("acme", "ltd"): "ORG"})
    rows = [sentence("Yesterday ACME Ltd paid Bo iPhone money", []), sentence("Bo paid", [])]
    [row] = matched(names, rows)
    assert isinstance(row, Partial)
    assert row.entities == (Entity(start=1, end=3, type="ORG"),)
    assert row.unknown == {4, 5}  # not the first word, whose capital says nothing


def test_self_training_uses_a_student_only_if_dev_f1_rises(tmp_path: Path) -> None:
    report = Recorder()
    tagger, _ = self_trained(tmp_path, report)
    alone, _ = own_training(tmp_path / "alone")
    f1 = stages(tmp_path).f1
    helped = "They help." in " ".join(report.notes)
    assert (f1(tagger) > f1(alone)) == helped
    assert helped or largest_difference(tagger, alone) == 0.0
    assert {"student1_dev_f1@1", "student2_dev_f1@1"} <= {name for name, _, _ in report.metrics}
    assert [step for name, _, step in report.metrics if name == "student1_dev_f1@1"] == [3, 6]  # half of four epochs


def test_second_round_is_compared_with_the_labels_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger, epochs = own_training(tmp_path)
    weights, f1s, report = dict(tagger.state_dict()), iter((20.0, 60.0, 50.0)), Recorder()
    monkeypatch.setattr(Stages, "f1", lambda *_: 40.0)
    monkeypatch.setattr(Stages, "label", lambda *_: TRAIN)
    monkeypatch.setattr(Stages, "train", lambda *_, **__: pseudo.Stage(weights=weights, epochs=epochs, f1=next(f1s)))
    self_train(stages(tmp_path, report), tagger, epochs, train=TRAIN, unlabelled=TEXT, settings=SETTINGS)
    first, second = report.notes
    assert "dev F1 is 40.0 without them and 60.0 with them. They help." in first
    assert "dev F1 is 60.0 with those of the first round and 50.0 with them. They do not help" in second


def test_bad_teacher_is_said_to_hurt_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated teacher is sure that every word is a place."""

    def wrong(self: Stages, tagger: Tagger, rows: Sequence[Sentence]) -> list[Sentence]:
        places = [tuple(Entity(start=i, end=i + 1, type="LOC") for i in range(len(row.tokens))) for row in rows]
        return [Partial.of(row, entities, ()) for row, entities in zip(rows, places, strict=True)]

    monkeypatch.setattr(Stages, "label", wrong)
    monkeypatch.setattr(pseudo, "WEIGHTS", (1.0,))
    report, folder = Recorder(), tmp_path / "alone"
    tagger, epochs = self_trained(tmp_path, report)
    alone, own = own_training(folder)
    assert largest_difference(tagger, alone) == 0.0
    assert epochs.dev_f1 == own.dev_f1
    [note] = report.notes
    assert note.endswith("They do not help and are not used.")


def test_teacher_that_is_sure_of_nothing_has_no_students(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stages, "label", lambda self, tagger, rows: [Partial.of(row, (), ()) for row in rows])
    report = Recorder()
    self_trained(tmp_path, report)
    assert report.notes == ["seed 1: no entity has a confidence of 0.9 or more, so there are no pseudo-labels."]
    assert not list(tmp_path.glob("student*"))


def test_distant_supervision_learns_the_names_without_a_label(tmp_path: Path) -> None:
    report = Recorder()
    first = train_distant(stages(tmp_path, report), TYPES, NAMES, TEXT, SETTINGS)
    assert first.types == TYPES
    assert {"distant_dev_f1@1", "student1_dev_f1@1"} <= {name for name, _, _ in report.metrics}
    tagger, _ = made(first.weights)
    f1 = stages(tmp_path).f1
    assert f1(tagger) > f1(network())
    assert "with the names alone" in report.notes[0]
    assert first.seconds > 0


class Stop(Recorder):
    """Raise after `after` steps, counted over all stages."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after, self.steps = after, list[int]()

    def progress(self, done: int, total: int | None, unit: str) -> None:
        if done and unit == "steps" and (not self.steps or self.steps[-1] != done):
            self.steps.append(done)

    def check(self) -> None:
        if len(self.steps) >= self.after:
            raise Killed


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tagger, Mapping[str, Tensor]]:
    folder = tmp_path_factory.mktemp("calm")
    first = train_distant(stages(folder / "distant"), TYPES, NAMES, TEXT, SETTINGS)
    return self_trained(folder)[0], first.weights


@pytest.mark.parametrize("after", [5, 14, 17, 20])
def test_self_training_resumes_exactly_in_every_stage(
    undisturbed: tuple[Tagger, Mapping[str, Tensor]], tmp_path: Path, after: int
) -> None:
    with pytest.raises(Killed):
        self_trained(tmp_path, Stop(after))
    assert (tmp_path / "student1.safetensors").exists() == (after > 18)
    tagger, _ = self_trained(tmp_path)
    assert largest_difference(tagger, undisturbed[0]) == 0.0


@pytest.mark.parametrize("after", [2, 8])
def test_distant_supervision_resumes_exactly_in_every_stage(
    undisturbed: tuple[Tagger, Mapping[str, Tensor]], tmp_path: Path, after: int
) -> None:
    with pytest.raises(Killed):
        train_distant(stages(tmp_path, Stop(after)), TYPES, NAMES, TEXT, SETTINGS)
    first = train_distant(stages(tmp_path), TYPES, NAMES, TEXT, SETTINGS)
    assert all(torch.equal(first.weights[name], tensor) for name, tensor in undisturbed[1].items())
