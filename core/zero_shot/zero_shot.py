"""`zero-shot`: tag test sets with a ready model, and score what it finds. Nothing is trained.

The result shows how well a model that others trained works without labels of the user (SOURCES.md, Ready models). With
a dev set, each type gets its own minimum confidence. Artifacts: as for `evaluate`, one split per test set.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import field_validator, model_validator

from core.assisting.skl import parse_map
from core.config import Config, option
from core.errors import ConfigError, ModelError
from core.kind import About, Job, Kind
from core.models.fingerprint import fingerprint
from core.models.unconnected import without_connections
from core.shown import listed
from core.tagging.evaluations import OverSeeds, labelled, name_of_test_set, score_found, types_of
from core.text.sentence import Prediction, Sentence
from core.training.on_device import on_device
from core.zero_shot.folders import folder_of, label_names
from core.zero_shot.labels import Labels, known, mapping
from core.zero_shot.thresholds import best_thresholds, renamed, surer_than


class ZeroShotConfig(Config):
    """Options: the ready model, the test sets, its types, and the minimum confidence."""

    model: str = option(
        ...,
        "Folder of a ready token classifier (config.json, model.safetensors, tokenizer.json). The model is not "
        "fetched; download one by hand, for example dslim/bert-base-NER.",
    )
    test: tuple[str, ...] = option(..., "Test sets: labelled sentences.", corpus=True, min_length=1)
    dev: str = option("", "Dev set, on which each type's minimum confidence is chosen by F1.", corpus=True)
    type_map: tuple[str, ...] = option(
        (),
        "OLD=NEW uses the model's type OLD as your type NEW (PER=person); OLD= drops it. Any other type of the model "
        "is used if you have a type of the same name, ignoring case.",
    )
    skip_unknown: bool = option(False, "Ignore entries of the type map for types that the model does not have.")
    threshold: float = option(
        0.5,
        "Minimum confidence of entities whose type is not in the dev set. Without a dev set, it is used for all "
        "entities.",
        ge=0,
        le=1,
    )
    max_length: int = option(
        512, "Maximum pieces per window; longer sentences are split into windows.", unit="pieces", ge=16
    )
    weights: str = option("", "Hash of the model, so that a changed model gets a new run.", hidden=True)

    @field_validator("type_map")
    @classmethod
    def _type_map(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        """Return the pairs in a standard spelling and order. Errors: ConfigError."""
        return tuple(sorted(f"{old}={new}" for old, new in parse_map(pairs).items()))

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.dev and self.dev in self.test:
            raise ConfigError(
                "dev: is also a test set, so thresholds would be chosen on the test set; give another dev set."
            )
        return self

    def settled(self) -> Self:
        """Return the options with the model's absolute path and hash.

        Errors: those of `folder_of` and `fingerprint`.
        """
        folder = str(folder_of(self.model))
        return self.model_copy(update={"model": folder, "weights": fingerprint(folder)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShotResult:
    """Result of a `zero-shot` run.

    types: {type of the model: type of the user}. dropped: types of the model that are not in `types`, and labels that
    are not entity tags. unknown: types of the test and dev sets to which no type of the model is mapped. thresholds:
    {type of the user: minimum confidence}. chosen: types whose threshold was chosen on the dev set. tests: scores on
    each test set. seconds: time to tag all test sets.
    """

    types: Mapping[str, str]
    dropped: Sequence[str]
    unknown: Sequence[str]
    thresholds: Mapping[str, float]
    chosen: Sequence[str]
    tests: Sequence[OverSeeds]
    seconds: float


def check(config: ZeroShotConfig, job: Job) -> None:
    """Check the model's labels and the type map before anything is computed. Errors: those of `_read`."""
    marks = (*config.test, *filter(None, [config.dev]))
    _read(config, {type for mark in marks for type in job.corpus(mark).types})


def _read(config: ZeroShotConfig, own: Collection[str]) -> tuple[Labels, dict[str, str]]:
    """Return the labels of the model, and the map {type of the model: type of the user, or ""}. own: the user's types.

    Errors: PathError, ModelError; ConfigError if no type of the model is used.
    """
    labels = Labels.read(config.model, label_names(config.model, folder_of(config.model)))
    pairs = parse_map(config.type_map)
    return labels, mapping(labels.types, own, known(labels.types, pairs) if config.skip_unknown else pairs)


def run(config: ZeroShotConfig, job: Job) -> ZeroShotResult:
    """Load the model without network access, choose thresholds on the dev set, and score the test sets."""
    from core.zero_shot import ready

    tests = [labelled(job.corpus(mark)) for mark in config.test]
    dev = labelled(job.corpus(config.dev)) if config.dev else []
    own = types_of(dev, *tests)
    labels, types = _read(config, own)
    used = sorted({new for new in types.values() if new})
    with on_device(job, "fp32", alone=False) as device, without_connections(config.model):
        job.context.stage("loading the model")
        tagger = ready.load(config.model, labels, max_length=config.max_length, device=device)

        def found(sentences: Sequence[Sentence], name: str) -> list[Prediction]:
            job.context.stage(f"finding entities in {name}")
            return [renamed(each, types) for each in tagger.predict(sentences, job.context)]

        chosen = best_thresholds(dev, found(dev, "dev"), used) if dev else {}
        thresholds = {type: chosen.get(type, config.threshold) for type in used}
        began = time.monotonic()
        kept = [
            [surer_than(each, thresholds) for each in found(gold, name_of_test_set(number))]
            for number, gold in enumerate(tests)
        ]
        seconds = time.monotonic() - began
    result = ZeroShotResult(
        types={old: new for old, new in types.items() if new},
        dropped=[*(old for old, new in types.items() if not new), *labels.special],
        unknown=sorted(own - set(used)),
        thresholds=thresholds,
        chosen=sorted(chosen),
        tests=[
            score_found(job.context.run, gold, predictions, name_of_test_set(number))
            for number, (gold, predictions) in enumerate(zip(tests, kept, strict=True))
        ],
        seconds=round(seconds, 2),
    )
    for words in _notes(config, result):
        job.context.note(words)
    return result


def find(config: ZeroShotConfig, result: ZeroShotResult, sentences: Sequence[Sentence], job: Job) -> list[Prediction]:
    """Return the entities that a finished run's model finds in sentences, with the run's types and thresholds.

    The model is loaded without network access. Errors: PathError; ModelError if the model was changed after the run, or
    if it cannot be used.
    """
    from core.zero_shot import ready

    if fingerprint(str(folder := folder_of(config.model))) != config.weights:
        raise ModelError(f"{config.model}: was changed after the run that tested it; run `zero-shot` again.")
    labels = Labels.read(config.model, label_names(config.model, folder))
    types = {type: result.types.get(type, "") for type in labels.types}
    with on_device(job, "fp32", alone=False) as device, without_connections(config.model):
        job.context.stage("loading the model")
        tagger = ready.load(config.model, labels, max_length=config.max_length, device=device)
        job.context.stage("finding entities")
        found = tagger.predict(sentences, job.context)
    return [surer_than(renamed(each, types), result.thresholds) for each in found]


def _notes(config: ZeroShotConfig, result: ZeroShotResult) -> list[str]:
    """Return notes on types that are left out, and on types whose threshold was not chosen on the dev set."""
    notes = []
    if result.dropped:
        notes.append(
            f"Types of the model that are left out: {listed(result.dropped)}. Map the types that you need (--type-map)."
        )
    if result.unknown:
        notes.append(f"Your types that the model does not find: {listed(result.unknown)}.")
    rest = [type for type in result.thresholds if type not in result.chosen]
    if not config.dev:
        notes.append(f"There is no dev set, so the minimum confidence of every type is {config.threshold:g}.")
    elif rest:
        notes.append(
            f"Types that the dev set lacks: {listed(rest)}. The minimum confidence of each is {config.threshold:g}."
        )
    return notes


def _outcome(result: ZeroShotResult, _: About) -> str:
    return f"Score (F1) {result.tests[0].mean:.1f} with a ready model, without training"


KIND = Kind(
    "zero-shot",
    ZeroShotConfig,
    run,
    ZeroShotResult,
    title=lambda run: f"Tag {run.corpora(run.config['test'])} with {run.tagger(run.config['model'])}, without training",
    outcome=_outcome,
    page="Training",
    opens=True,
    here=True,
)
