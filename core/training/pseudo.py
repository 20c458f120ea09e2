"""Train taggers also on unlabelled sentences, with pseudo-labels (SOURCES.md, Pseudo-labels).

A teacher labels the sentences, and students are trained on its confident labels. The loss accepts any tag for the other
tokens that may belong to an entity (`text.sentence.Partial`). In self-training the first teacher was trained on L_C. In
distant supervision it was trained on sentences that contain names from the user's lists. A student replaces its teacher
only if the student's dev F1 is higher than the teacher's. The folder of a seed has

NAME/               checkpoints of a stage; removed when the stage has ended
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

from core.errors import Cancelled
from core.files import write_atomic
from core.models.tagger import Tagger
from core.reporter import Reporter
from core.text.names import Dictionary
from core.text.sentence import Entity, Partial, Sentence
from core.training.finetune import MOST, Epochs, Options, StageReporter, finetune, score
from core.training.first import First
from core.training.rows import judges
from core.training.settings import MATCHED, RELABELLED, ROUNDS, WEIGHTS, Settings

# SURE: minimum posterior of an entity that becomes a pseudo-label. POSSIBLE: any other token has an unknown tag instead
# of O if it is in an entity with at least this probability.
SURE, POSSIBLE = 0.9, 0.3
Stopped = Callable[[Tagger], None]
Made = Callable[[Mapping[str, Tensor] | None], tuple[Tagger, Callable[[], None]]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """The result of a stage. weights: state of the tagger, on the CPU. f1: dev F1 on at most `MOST` sentences."""

    weights: Mapping[str, Tensor]
    epochs: Epochs
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stages:
    """Trains the stages of one seed.

    made: function of the weights to start from (None: the encoder's weights). It returns a tagger, and a function to
    call after the training (`tagging.network.save_memory`). dev, types: dev set and entity types of L_C. folder: the
    seed's folder. options: options of `finetune`.
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
        stopped: Stopped | None = None,
        **options: Unpack[Options],
    ) -> Stage:
        """Return the result of a stage: read it if the stage was finished before, else train the tagger.

        If the training is interrupted, the next call continues it, with the same result. name: name of the stage's
        folder, and prefix of its metrics. begin: weights to start from; None: the encoder's weights. stopped: called
        with the tagger if the user cancels after at least one epoch. Errors: Cancelled, ResourceError.
        """
        if (done := self.folder / f"{name}.safetensors").exists():
            return _read(done)
        tagger, merge = self.made(begin)
        given: Options = {"types": self.types, **self.options, **options}

        def keep(_: Epochs) -> None:
            merge()
            if stopped:
                stopped(tagger)

        epochs = finetune(
            tagger,
            sentences,
            self.dev,
            settings,
            seed=self.seed,
            folder=self.folder / name,
            report=StageReporter(self.report, name),
            stopped=keep,
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
        """Return the sentences labelled with the entities of which `tagger`, the teacher, is confident.

        An entity is labelled if its posterior is at least `SURE`. Any other token has an unknown tag if the probability
        that it is in an entity is at least `POSSIBLE`, and the tag O otherwise.
        """
        # With a temperature fitted on dev, a tagger trained on few labels would give hardly any confident entity.
        tagger.crf.temperature = 1.0
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
    weights: Sequence[float] | None = None,
) -> Epochs:
    """Improve a tagger of L_C by pseudo-labels of `unlabelled` sentences. Return the record of the kept training.

    If a student is better, `tagger` gets the student's weights. Each student starts from the encoder. Each step has a
    batch of `train` and a batch of pseudo-labelled sentences. The student is trained for half as many epochs as a
    tagger of L_C alone. epochs: record of the tagger's training on L_C. weights: factor of the loss of each sentence of
    `train`, by default 1. Errors: Cancelled, ResourceError.
    """
    settings = settings.planned(len(train))
    settings = replace(settings, epochs=-(-settings.epochs // 2), max_steps=0)
    best, kept, seconds, number = stages.f1(tagger), epochs, epochs.seconds, 0
    factors: tuple[float, ...] = WEIGHTS
    before = "without them"
    for _ in range(ROUNDS):
        labelled = stages.label(tagger, unlabelled)
        n = sum(len(sentence.entities or ()) for sentence in labelled)
        if not n:
            stages.report.note(
                f"seed {stages.seed}: no entity has a confidence of {SURE:g} or more, so there are no pseudo-labels."
            )
            break
        students = dict[float, Stage]()
        for factor in factors:
            number += 1
            students[factor] = stages.train(
                f"student{number}", train, settings, weights=weights, assisting=labelled, assisting_weight=factor
            )
        seconds += sum(student.epochs.seconds for student in students.values())
        factor, student = max(students.items(), key=lambda item: item[1].f1)
        better = student.f1 > best
        stages.report.note(
            f"seed {stages.seed}: {n:,} entities have pseudo-labels. With loss weight {factor:g}, dev F1 is {best:.1f} "
            f"{before} and {student.f1:.1f} with them. They {'help' if better else 'do not help and are not used'}."
        )
        if not better:
            break
        tagger.load_state_dict(student.weights)
        best, kept, factors, before = student.f1, student.epochs, (factor,), "with those of the first round"
    return replace(kept, seconds=seconds)


def train_distant(
    stages: Stages,
    types: Sequence[str],
    dictionary: Dictionary,
    unlabelled: Sequence[Sentence],
    settings: Settings,
    *,
    stopped: Stopped | None = None,
) -> First:
    """Return a tagger trained on the dictionary's names in `unlabelled` sentences, then on its own pseudo-labels.

    As in BOND (Liang et al. 2020), there are two stages, and dev F1 decides when each ends. There are two differences.
    Only tokens of which the teacher is confident have labels, and these are hard instead of soft. In the first stage,
    name-like tokens that match no name have an unknown tag. types: types of the tagger. settings: settings for a
    training set as large as `unlabelled`. stopped: called with the best tagger so far if the user cancels after at
    least one epoch. Errors: Cancelled, ResourceError.
    """
    stage = stages.train("distant", matched(dictionary, unlabelled), _early(settings, MATCHED), stopped=stopped)
    seconds = stage.epochs.seconds
    for number in range(1, ROUNDS + 1):
        try:
            teacher, _ = stages.made(stage.weights)
            labelled = stages.label(teacher, unlabelled)
            student = stages.train(f"student{number}", labelled, _early(settings, RELABELLED), stage.weights)
        except Cancelled:
            if stopped:
                teacher, merge = stages.made(stage.weights)
                merge()
                stopped(teacher)
            raise
        seconds += student.epochs.seconds
        stages.report.note(
            f"seed {stages.seed}: dev F1 is {stage.f1:.1f} "
            f"{'after one round' if number > 1 else 'with the names alone'} and {student.f1:.1f} after training on the "
            "pseudo-labels of this tagger."
        )
        if student.f1 <= stage.f1:
            break
        stage = student
    return First(types=types, weights=dict(stage.weights), seconds=seconds)


def matched(dictionary: Dictionary, sentences: Iterable[Sentence]) -> list[Sentence]:
    """Return the sentences that contain names of the dictionary, labelled with these names.

    Other name-like tokens may be names that the dictionary lacks, so their tag is unknown.
    """
    found = [(sentence, tuple(match.entity for match in dictionary.find(sentence.tokens))) for sentence in sentences]
    return [
        Partial.of(sentence, names, {*_name_like(sentence.tokens)} - _places(names))
        for sentence, names in found
        if names
    ]


def _name_like(tokens: Sequence[str]) -> Iterator[int]:
    """Yield the indices of tokens with a capital letter, other than the first letter of the sentence."""
    for place, token in enumerate(tokens):
        if any(letter.isupper() for letter in (token if place else token[1:])):
            yield place


def _places(entities: Iterable[Entity]) -> set[int]:
    return {place for entity in entities for place in range(entity.start, entity.end)}


def _early(settings: Settings, epochs: int) -> Settings:
    """Return the settings with `epochs` epochs, of which the best on dev is kept."""
    return replace(settings.brief(epochs), last=False)


def _read(path: Path) -> Stage:
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return Stage(weights=weights, epochs=Epochs(**json.loads(about["epochs"])), f1=json.loads(about["f1"]))
