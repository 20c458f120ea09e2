"""Train taggers on sentences without labels too, by pseudo-labels (SOURCES.md, Pseudo-labels).

A teacher labels the sentences. Students are trained on what it is sure of; tokens of which it is not sure may have any
tag (`text.sentence.Partial`). In self-training the first teacher was trained on L_C. In distant supervision it was
trained on the names of lists that were found in the sentences. A student whose dev F1 is not above its teacher's is not
used. The folder of a seed has

NAME/               checkpoints of a stage; removed when it has ended
NAME.safetensors    weights of the stage's tagger, whose presence shows that the stage has ended
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from core.files import write_atomic
from core.models.tagger import Tagger
from core.reporter import Reporter
from core.text.names import Dictionary
from core.text.sentence import Entity, Partial, Sentence
from core.training.finetune import MOST, Epochs, Options, StageReporter, finetune, score
from core.training.first import First
from core.training.rows import judges
from core.training.settings import MATCHED, RELABELLED, ROUNDS, WEIGHTS, Settings

SURE, POSSIBLE = 0.9, 0.3  # least posterior of an entity to count; of a token in any entity for its tag to be unknown
Made = Callable[[Mapping[str, Tensor] | None], tuple[Tagger, Callable[[], None]]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """A finished training. weights: state of the tagger, on the CPU. f1: on up to `MOST` dev sentences, percent."""

    weights: Mapping[str, Tensor]
    epochs: Epochs
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stages:
    """Trains the stages of one seed.

    made: makes a tagger from a stage's weights, or from the encoder if they are None, and a function to call after its
    training (`tagging.network.save_memory`). dev, types: those of L_C. folder: the seed's folder. options: as for
    `finetune`.
    """

    made: Made
    dev: Sequence[Sentence]
    types: Sequence[str]
    seed: int
    folder: Path
    report: Reporter
    options: Options

    def train(
        self,
        name: str,
        sentences: Sequence[Sentence],
        settings: Settings,
        begin: Mapping[str, Tensor] | None = None,
        **options: Unpack[Options],
    ) -> Stage:
        """Train a stage, or read it if it has ended. Its curves begin with its name.

        If the training is interrupted, the next call continues it, with the same result. begin: weights to start from.
        Errors: Cancelled, ResourceError.
        """
        if (done := self.folder / f"{name}.safetensors").exists():
            return _read(done)
        tagger, merge = self.made(begin)
        given: Options = {"types": self.types, **self.options, **options}
        epochs = finetune(
            tagger,
            sentences,
            self.dev,
            settings,
            seed=self.seed,
            folder=self.folder / name,
            report=StageReporter(self.report, name),
            **given,
        )
        merge()
        weights = {key: tensor.detach().cpu().contiguous() for key, tensor in tagger.state_dict().items()}
        stage = Stage(weights=weights, epochs=epochs, f1=self.f1(tagger))
        about = {"epochs": json.dumps(asdict(epochs)), "f1": json.dumps(stage.f1)}
        write_atomic(done, save(weights, metadata=about))
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return stage

    def f1(self, tagger: Tagger) -> float:
        """Return the dev F1 of a tagger, percent."""
        return score(tagger, judges(self.dev, MOST), self.types, self.report).f1()

    def label(self, tagger: Tagger, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Return the sentences with the labels of which a teacher is sure.

        Entities count from a posterior of `SURE` on. The tag of any other token that is in an entity with a probability
        of `POSSIBLE` or more is unknown.
        """
        tagger.crf.temperature = 1.0  # calibrated on dev, the tagger of few labels is sure of almost nothing
        predictions, named = tagger.predict(sentences, self.report), tagger.named(sentences, self.report)
        found: list[Sentence] = []
        for sentence, prediction, shares in zip(sentences, predictions, named, strict=True):
            pairs = zip(prediction.entities, prediction.confidence, strict=True)
            sure = tuple(entity for entity, confidence in pairs if confidence >= SURE)
            found.append(Partial.of(sentence, sure, {*np.flatnonzero(shares >= POSSIBLE).tolist()} - _places(sure)))
        return found


def self_train(
    stages: Stages,
    tagger: Tagger,
    epochs: Epochs,
    *,
    train: Sequence[Sentence],
    unlabelled: Sequence[Sentence],
    settings: Settings,
) -> Epochs:
    """Improve a tagger of L_C by `unlabelled` sentences in place; return the epochs of the kept training.

    Each student starts from the encoder and is trained on a batch of `train` and one of pseudo-labels per step, for
    half as many epochs as L_C alone. epochs: of the tagger's own training. Errors: Cancelled, ResourceError.
    """
    settings = settings.planned(len(train))
    settings = replace(settings, epochs=-(-settings.epochs // 2), max_steps=0)
    best, kept, seconds, number = stages.f1(tagger), epochs, epochs.seconds, 0
    weights: tuple[float, ...] = WEIGHTS
    for _ in range(ROUNDS):
        labelled = stages.label(tagger, unlabelled)
        n = sum(len(sentence.entities or ()) for sentence in labelled)
        if not n:
            stages.report.note(f"seed {stages.seed}: the tagger is sure of no entity, so there are no pseudo-labels.")
            break
        students = dict[float, Stage]()
        for weight in weights:
            number += 1
            students[weight] = stages.train(
                f"student{number}", train, settings, assisting=labelled, assisting_weight=weight
            )
        seconds += sum(student.epochs.seconds for student in students.values())
        weight, student = max(students.items(), key=lambda item: item[1].f1)
        better = student.f1 > best
        stages.report.note(
            f"seed {stages.seed}: {n:,} pseudo-labels of entities, with weight {weight:g}: dev F1 {best:.1f} without "
            f"them, {student.f1:.1f} with them. {'They help.' if better else 'They hurt, and are not used.'}"
        )
        if not better:
            break
        tagger.load_state_dict(student.weights)
        best, kept, weights = student.f1, student.epochs, (weight,)
    return replace(kept, seconds=seconds)


def train_distant(
    stages: Stages, types: Sequence[str], dictionary: Dictionary, unlabelled: Sequence[Sentence], settings: Settings
) -> First:
    """Train a tagger on the names of a dictionary that `unlabelled` sentences contain, then on its own pseudo-labels.

    The two stages and the early end by dev F1 follow Liang et al. 2020 (BOND), with two differences: only tokens of
    which the teacher is sure have labels (hard, not soft), and name-like tokens that match no name have an unknown tag
    in the first stage. types: types of the tagger. settings: for that number of sentences. Errors: Cancelled,
    ResourceError.
    """
    stage = stages.train("distant", matched(dictionary, unlabelled), _early(settings, MATCHED))
    seconds = stage.epochs.seconds
    for number in range(1, ROUNDS + 1):
        teacher, _ = stages.made(stage.weights)
        labelled = stages.label(teacher, unlabelled)
        student = stages.train(f"student{number}", labelled, _early(settings, RELABELLED), stage.weights)
        seconds += student.epochs.seconds
        stages.report.note(
            f"seed {stages.seed}: dev F1 {stage.f1:.1f} {'after one round' if number > 1 else 'by the names alone'}, "
            f"{student.f1:.1f} after the pseudo-labels of that tagger."
        )
        if student.f1 <= stage.f1:
            break
        stage = student
    return First(types=types, weights=dict(stage.weights), seconds=seconds)


def matched(dictionary: Dictionary, sentences: Iterable[Sentence]) -> list[Sentence]:
    """Return the sentences in which a name is found, labelled with their names.

    Name-like tokens outside of these names, which lists may lack, have an unknown tag.
    """
    found = [(sentence, tuple(match.entity for match in dictionary.find(sentence.tokens))) for sentence in sentences]
    return [
        Partial.of(sentence, names, {*_name_like(sentence.tokens)} - _places(names))
        for sentence, names in found
        if names
    ]


def _name_like(tokens: Sequence[str]) -> Iterator[int]:
    """Yield the places of tokens with a capital, except one that begins the sentence."""
    for place, token in enumerate(tokens):
        if any(letter.isupper() for letter in (token if place else token[1:])):
            yield place


def _places(entities: Iterable[Entity]) -> set[int]:
    return {place for entity in entities for place in range(entity.start, entity.end)}


def _early(settings: Settings, epochs: int) -> Settings:
    """Return settings for `epochs` epochs, of which the best on dev is kept."""
    return replace(settings.brief(epochs), last=False)


def _read(path: Path) -> Stage:
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return Stage(weights=weights, epochs=Epochs(**json.loads(about["epochs"])), f1=json.loads(about["f1"]))
