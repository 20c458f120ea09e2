"""`difficulty`: information of names and of contexts about entity types (Ma et al. 2023, section 2).

Classifiers that trained on other folds predict the type of each mention. A run trains one model per repeat, fold and
view (name or context). After each training it stores the predictions, so that a killed run can resume with the next
training:

chunks/r0-f2-context.npz   model (n_held, k): log2 probabilities of the k types for the mentions of fold 2, from a model
                           that trained on the other folds; null (k,): log2 probabilities of its null model, which sees
                           no input; seconds: training time
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from core.bias.pvi import (
    VIEWS,
    Instance,
    View,
    calibrated,
    entropy,
    folds,
    groups,
    instances,
    interval,
    log2_prior,
    pvi,
    sampled,
)
from core.bias.result import (
    BINS,
    BinBits,
    Bits,
    DifficultyResult,
    Intervals,
    Mention,
    TypeDifficulty,
    bin_of,
    mentions_file,
    write_mentions,
)
from core.config import Config, option
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.files import TEMPORARY, replacing
from core.kind import About, Job, Kind
from core.models.fingerprint import fingerprint
from core.reporter import Reporter, Silent
from core.results import BoolArray, FloatArray, IntArray
from core.runs.chunks import Part
from core.runs.context import Parts
from core.runs.curves import MetricName
from core.shown import count
from core.training.on_device import on_device
from core.training.settings import ClassifySettings, classify_preset

if TYPE_CHECKING:
    from core.models.classifier import Classifier
    from core.models.pieces import Ids

_ALONE: Mapping[View, str] = {"context": "contexts alone", "entity": "names alone"}


class DifficultyOptions(Config):
    """Options of the measurement, except the corpus and the encoder."""

    preset: Literal["quick", "paper", "custom"] = option(
        "quick",
        "quick: few epochs; paper: Ma et al. 2023, Table 7; custom: as quick, with the options below.",
    )
    folds: int = option(
        5, "Number of folds. A model that trained on the other folds predicts the mentions of a fold.", ge=2, le=50
    )
    repeats: int | None = option(
        None,
        "Number of cross-validations; pointwise V-information (PVI) is averaged over them. None: quick 1, paper 3.",
        ge=1,
        le=20,
    )
    null: Literal["closed", "trained"] = option(
        "closed", "Null model without input. closed: share of each type; trained: a classifier trained on empty input."
    )
    calibrate: Literal["auto", "yes", "no"] = option(
        "auto",
        "Correct the probabilities of overconfident models. auto: yes, except with the preset paper.",
    )
    mentions: int = option(0, "Sample whole sentences with about this many mentions; 0: all.", unit="mentions", ge=0)
    group: Literal["", "sentence", "document"] = option(
        "", "Unit that is never split between folds. Empty: document if all documents are known, else sentence."
    )
    seed: int = option(1, "Seed of the folds, the sample, the training and the resamples.", ge=0)
    draws: int = option(2000, "Bootstrap resamples for each confidence interval.", ge=100, le=100_000)
    context_epochs: int | None = option(
        None, "Epochs of the context classifier; None: as in the preset.", ge=1, le=1000
    )
    entity_epochs: int | None = option(None, "Epochs of the name classifier; None: as in the preset.", ge=1, le=1000)
    batch_size: int | None = option(
        None, "Mentions per optimizer step; None: as in the preset.", unit="mentions", ge=1, le=4096
    )
    learning_rate: float | None = option(None, "Learning rate of the encoder; None: as in the preset.", gt=0, le=1)
    head_learning_rate: float | None = option(
        None, "Learning rate of the last layer; None: as in the preset.", gt=0, le=1
    )
    max_length: int = option(
        128, "Longest input; a longer sentence is cut around the mention.", unit="pieces", ge=16, le=8192
    )
    precision: Literal["auto", "bf16", "fp32"] = option("auto", "auto: bf16 if the device supports it.")

    @property
    def calibrates(self) -> bool:
        return self.calibrate == "yes" or (self.calibrate == "auto" and self.preset != "paper")


class DifficultyConfig(DifficultyOptions):
    """Options of a `difficulty` run: corpus, encoder and measurement."""

    train: str = option(..., "Labelled corpus to measure, a training set.", corpus=True)
    encoder: str = option(
        "minilm",
        "Encoder: a Hugging Face name, a folder, or minilm (bundled). Pointwise V-information (PVI) depends on it.",
    )
    allow_download: bool = option(False, "Download the encoder from the Hugging Face hub if it is missing.")

    weights: str = option("", "Hash of the encoder.", hidden=True)

    def settled(self) -> Self:
        """Return these options with the encoder's hash. Errors: ModelError if the encoder is not on this computer."""
        if self.allow_download:
            return self
        return self.model_copy(update={"weights": fingerprint(self.encoder)})


def run(config: DifficultyConfig, job: Job) -> DifficultyResult:
    """Measure the PVI of every mention. Artifact: `mentions.parquet` (`core.bias.result`)."""
    corpus = job.corpus(config.train)
    job.context.stage("reading the mentions")
    questions, notes = _questions(config, corpus)
    answers = _answers(config, questions, job) if len(questions.types) > 1 else _no_information(questions)
    notes += _window_notes(answers.cut, answers.window)
    for note in notes:
        job.context.note(note)
    repeats = np.stack([answers.pvi[view] for view in VIEWS], axis=-1)  # shape (repeats, n, 2)
    mentions = [
        Mention(
            row=instance.row,
            sentence=instance.sentence.id,
            start=instance.start,
            end=instance.end,
            type=instance.type,
            surface=" ".join(instance.name),
            pvi_entity=of_name,
            pvi_context=of_context,
            ceim=of_name - of_context,
            bin=bin_of(of_name - of_context),
            fold=fold,
        )
        for instance, (of_name, of_context), fold in zip(
            questions.instances, repeats.mean(0).tolist(), questions.folds[0].tolist(), strict=True
        )
    ]
    write_mentions(mentions, path := mentions_file(job.context.run))
    job.context.artifact("mentions", path)
    trained = Trained(
        repeats=[Bits(entity=entity, context=context) for entity, context in np.round(repeats.mean(1), 4).tolist()],
        folds=len(set(questions.folds[0].tolist())),
        grouped_by=questions.grouped_by,
        strength={view: round(float(np.mean(each)), 3) for view, each in answers.strengths.items() if each},
        settings=answers.settings,
        notes=notes,
        corpus=corpus.fingerprint,
        seconds=answers.seconds,
    )
    return summary(mentions, config.draws, config.seed, trained)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Fields of `DifficultyResult` that describe the training."""

    repeats: Sequence[Bits] = ()
    folds: int = 0
    grouped_by: str = "sentence"
    strength: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, int | float | str | bool]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    corpus: str = ""
    seconds: float = 0.0


def summary(mentions: Sequence[Mention], draws: int, seed: int, trained: Trained) -> DifficultyResult:
    """Return the result of a run: means, intervals and counts of its measured mentions.

    draws: number of bootstrap resamples; each draws whole sentences. seed: seed of the resamples.
    """
    values = np.array([[mention.pvi_entity, mention.pvi_context] for mention in mentions])
    low, high = interval(values, np.array([mention.row for mention in mentions]), draws=draws, seed=seed)
    kinds = Counter(mention.type for mention in mentions)
    bins = Counter(mention.bin for mention in mentions)
    return DifficultyResult(
        mentions=len(mentions),
        sentences=len({mention.row for mention in mentions}),
        v_information=_means(values),
        intervals=Intervals(entity=(_bits(low[0]), _bits(high[0])), context=(_bits(low[1]), _bits(high[1]))),
        entropy=_bits(entropy(np.repeat(np.arange(len(kinds)), list(kinds.values())))),
        by_type={
            kind: _of_type([mention for mention in mentions if mention.type == kind], len(mentions))
            for kind, _ in kinds.most_common()
        },
        ceim={name: bins[name] for name in BINS},
        mean_pvi={name: _of_bin(values[[mention.bin == name for mention in mentions]]) for name in BINS},
        **{each.name: getattr(trained, each.name) for each in fields(trained)},
    )


def _of_bin(values: FloatArray) -> BinBits:
    if not len(values):
        return BinBits(entity=None, context=None)
    means = _means(values)
    return BinBits(entity=means.entity, context=means.context)


def _of_type(mentions: Sequence[Mention], n: int) -> TypeDifficulty:
    """Return the means and counts of the mentions of one type. n: number of mentions of all types."""
    bins = Counter(mention.bin for mention in mentions)
    means = _means(np.array([[mention.pvi_entity, mention.pvi_context] for mention in mentions]))
    return TypeDifficulty(
        mentions=len(mentions),
        entity=means.entity,
        context=means.context,
        ceim=_bits(float(np.mean([mention.ceim for mention in mentions]))),
        prior=_bits(-float(np.log2(len(mentions) / n))),
        bins={name: bins[name] for name in BINS},
    )


def _means(values: FloatArray) -> Bits:
    """Return the mean PVI of names (column 0 of `values`, `(k, 2)`) and of contexts (column 1)."""
    return Bits(entity=_bits(values[:, 0].mean()), context=_bits(values[:, 1].mean()))


def _bits(value: float) -> float:
    return round(float(value), 4) + 0.0  # adding 0.0 turns -0.0 into 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The n mentions to measure, with their types and folds.

    labels: `(n,)` indices into `types`. folds: one array `(n,)` per repeat, with the fold of each mention.
    """

    instances: Sequence[Instance]
    types: tuple[str, ...]
    labels: IntArray
    folds: Sequence[IntArray]
    grouped_by: str


def _questions(config: DifficultyConfig, corpus: Corpus) -> tuple[Questions, list[str]]:
    """Return the mentions to measure, and notes for the user. Errors: CorpusError if no mention can be measured."""
    if not corpus.labelled:
        raise CorpusError(f"{corpus.name}: is not labelled; give a corpus with entities, for example a CoNLL file.")
    chosen = sampled(instances(chain.from_iterable(corpus.batches())), config.mentions, config.seed)
    if not chosen:
        raise CorpusError(
            f"{corpus.name}: no sentence has an entity, so there is no name or context to measure; give a corpus"
            " with entities."
        )
    number, grouped_by = groups(chosen, config.group, config.folds)
    counts = Counter(instance.type for instance in chosen)
    n_groups, types = int(number.max()) + 1, tuple(sorted(counts))
    if n_groups == 1 and len(types) > 1:
        raise CorpusError(
            f"{corpus.name}: all its entities are in one {grouped_by}, so no model can be tested on unseen text;"
            f" give more {grouped_by}s{', or group by sentence' if grouped_by == 'document' else ''}."
        )
    n = min(config.folds, n_groups)  # each fold needs at least one whole group
    labels = np.array([types.index(instance.type) for instance in chosen], dtype=np.int64)
    repeats = config.repeats or (3 if config.preset == "paper" else 1)
    questions = Questions(
        instances=chosen,
        types=types,
        labels=labels,
        grouped_by=grouped_by,
        # The repeats' seeds are 1000 apart, so that runs with neighbouring seeds never use the same folds.
        folds=[folds(number, labels, n, config.seed + 1000 * repeat) for repeat in range(repeats)],
    )
    if len(counts) == 1:
        return questions, [
            f"{types[0]}: is the only type, so names and contexts give no information about it. Pointwise"
            " V-information (PVI) of every mention is 0 bits, and nothing was trained."
        ]
    notes = []
    if n < config.folds:
        notes.append(f"Only {n} {grouped_by}s have an entity, so there are {n} folds, not {config.folds}.")
    if rare := sorted(kind for kind, mentions in counts.items() if mentions < n):
        notes.append(
            f"{', '.join(f'{kind} ({counts[kind]})' for kind in rare)}: fewer mentions than the {n} folds, so models"
            " could not learn these types. Do not rely on their pointwise V-information (PVI). Other types are not"
            " affected."
        )
    # Each model predicts the groups that it was not trained on. If a type is in one group only, its model never saw it.
    alone = [kind for i, kind in enumerate(types) if counts[kind] >= n and len(set(number[labels == i].tolist())) == 1]
    if alone:
        where = "one document" if grouped_by == "document" else "one sentence and its copies"
        notes.append(
            f"{', '.join(f'{kind} ({counts[kind]})' for kind in alone)}: all mentions are in {where}, so the models"
            " that predict them never saw the type. Do not rely on their pointwise V-information (PVI). Other types"
            " are not affected."
        )
    return questions, notes


def _window_notes(cut: Mapping[View, int], window: int) -> list[str]:
    """Return notes that tell the user how many names and contexts were too long and therefore truncated.

    cut: {view: number of truncated inputs}. window: maximum length of an input, in sub-word pieces.
    """
    notes = []
    rest: Mapping[View, str] = {
        "entity": "only the beginning was used",
        "context": "only the words nearest to the mention were used",
    }
    for view, word in zip(VIEWS, ("name", "context"), strict=True):
        if n := cut[view]:
            inputs = f"{word} is" if n == 1 else f"{word}s are"
            notes.append(f"{n:,} {inputs} longer than the window of {window} pieces: {rest[view]}.")
    return notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Results of all trainings.

    pvi: {view: PVI in bits, `(repeats, n)`}. strengths: {view: calibration strength of each model}, empty without
    calibration. settings: {view: training settings}. cut: {view: number of inputs longer than `window` pieces}.
    seconds: total training time.
    """

    pvi: Mapping[View, FloatArray]
    strengths: Mapping[View, Sequence[float]]
    settings: Mapping[str, Mapping[str, int | float | str | bool]]
    cut: Mapping[View, int]
    window: int
    seconds: float


def _no_information(questions: Questions) -> Answers:
    """Return a PVI of 0 bits for every mention. With a single type there is nothing to predict."""
    zeros = np.zeros((len(questions.folds), len(questions.instances)))
    return Answers(
        pvi=dict.fromkeys(VIEWS, zeros), strengths={}, settings={}, cut=dict.fromkeys(VIEWS, 0), window=0, seconds=0.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    """One classifier to train.

    held: `(n,)` mask of the mentions to predict; the model trains on all others. pieces: number of sub-word pieces to
    train on, over all epochs. earlier: number of optimizer steps in earlier trainings of this view.
    """

    seed: tuple[int, ...]
    repeat: int
    view: View
    settings: ClassifySettings
    null: ClassifySettings
    held: BoolArray
    pieces: int
    earlier: int
    path: Path


def _answers(config: DifficultyConfig, questions: Questions, job: Job) -> Answers:
    """Train the models whose predictions are missing, and return the results of all models.

    The device is locked during the training. Errors: Cancelled, ModelError.
    """
    from core.models.classifier import new_classifier
    from core.models.devices import release_memory

    # This classifier only tokenises the inputs.
    reader = new_classifier(config.encoder, 1, device="cpu", **_encoder_options(config))
    chosen = questions.instances
    inputs: dict[View, list[Ids]] = {
        "entity": [reader.name(one.name) for one in chosen],
        "context": [reader.context(*one.sides) for one in chosen],
    }
    cut: dict[View, int] = {
        "entity": sum(not reader.holds(one.name) for one in chosen),
        "context": sum(not reader.holds((*one.sides[0], *one.sides[1]), more=1) for one in chosen),
    }
    settings = {view: settings_of(config, view, len(chosen), reader.last_layer.in_features) for view in VIEWS}
    chunks = job.context.run.chunks
    trainings = _trainings(config, questions, inputs, settings, chunks)
    for leftover in chunks.glob(TEMPORARY):
        leftover.unlink()
    with on_device(job, config.precision):
        done, total = sum(one.pieces for one in trainings if one.path.exists()), sum(one.pieces for one in trainings)
        parts = Parts(job.context, [one.pieces for one in trainings], judged=len(VIEWS))
        # Both views are one stage of the run, so that the time left is estimated from the speeds of both.
        job.context.stage("training the classifiers")
        for i, one in enumerate(trainings):
            if not one.path.exists():
                parts.next(i, _ALONE[one.view])
                _train(config, questions, inputs[one.view], one, Part(job.context, done, total, "pieces"))
                release_memory()
                done += one.pieces
    bits, strengths, seconds = _read(config, questions, trainings)
    return Answers(
        pvi=bits,
        strengths=strengths,
        settings={view: asdict(each) for view, each in settings.items()},
        cut=cut,
        window=reader.pieces.max_length,
        seconds=round(seconds, 1),
    )


def _encoder_options(config: DifficultyConfig) -> dict[str, Any]:
    return config.model_dump(include={"max_length", "precision", "allow_download"})


def settings_of(config: DifficultyConfig, view: View, n: int, width: int) -> ClassifySettings:
    """Return the training settings of the preset for `n` mentions. Options that the user gave override them."""
    own = config.model_dump(include={each.name for each in fields(ClassifySettings)}, exclude_none=True)
    if epochs := getattr(config, f"{view}_epochs"):
        own["epochs"] = epochs
    return replace(classify_preset(config.preset, view, n, width), **own)


def _trainings(
    config: DifficultyConfig,
    questions: Questions,
    inputs: Mapping[View, Sequence["Ids"]],
    settings: Mapping[View, ClassifySettings],
    chunks: Path,
) -> list[_Training]:
    trainings: list[_Training] = []
    steps = dict.fromkeys(VIEWS, 0)
    n_folds = int(questions.folds[0].max()) + 1
    for repeat, fold, view in product(range(len(questions.folds)), range(n_folds), VIEWS):
        held, how = questions.folds[repeat] == fold, settings[view]
        lengths = [len(row) for row, out in zip(inputs[view], held.tolist(), strict=True) if not out]
        trainings.append(
            _Training(
                seed=(config.seed, repeat, fold, VIEWS.index(view)),
                repeat=repeat,
                view=view,
                settings=how,
                null=replace(settings["entity"], epochs=1),
                held=held,
                pieces=how.epochs * sum(lengths),
                earlier=steps[view],
                path=chunks / f"r{repeat}-f{fold}-{view}.npz",
            )
        )
        steps[view] += how.epochs * -(-len(lengths) // how.batch_size)
    return trainings


def _train(
    config: DifficultyConfig, questions: Questions, inputs: Sequence["Ids"], one: _Training, report: Reporter
) -> None:
    """Train one model and store its predictions for the held-out fold."""
    from core.training.classify import log2_probabilities, train

    began, seed = time.monotonic(), _number(one.seed)
    seen, held = np.flatnonzero(~one.held), np.flatnonzero(one.held)
    model = _new_model(config, questions, one, seed)
    train(
        model,
        [inputs[i] for i in seen.tolist()],
        questions.labels[seen],
        one.settings,
        seed=seed,
        report=report,
        log=lambda bits, step: report.metric(str(MetricName("loss", one.view)), bits, one.earlier + step),
    )
    log2s = log2_probabilities(model, [inputs[i] for i in held.tolist()], report)
    null = _null(config, questions, one, report)
    with replacing(one.path) as file:
        np.savez(file, model=log2s, null=null, seconds=time.monotonic() - began)


def _number(seed: tuple[int, ...]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def _new_model(config: DifficultyConfig, questions: Questions, one: _Training, seed: int) -> "Classifier":
    import torch

    from core.models.classifier import new_classifier

    torch.manual_seed(seed)
    pooling = one.settings.pooling
    return new_classifier(config.encoder, len(questions.types), pooling=pooling, **_encoder_options(config))


def _null(config: DifficultyConfig, questions: Questions, one: _Training, report: Reporter) -> FloatArray:
    """Return the null model: log2 probabilities `(k,)` of the types without any input.

    The probabilities are the type frequencies, or the predictions of a classifier that trained one epoch on empty
    inputs. Both views of a fold use the same null model, so that it cancels out in CEIM.
    """
    labels = questions.labels[~one.held]
    if config.null == "closed":
        return log2_prior(labels, len(questions.types))
    from core.training.classify import log2_probabilities, train

    seed = _number((*one.seed[:-1], len(VIEWS)))
    model = _new_model(config, questions, one, seed)
    inputs = [model.nothing()] * len(labels)
    train(model, inputs, labels, one.null, seed=seed, report=_Stoppable(report), log=lambda bits, step: None)
    return log2_probabilities(model, inputs[:1], report)[0]  # type: ignore[no-any-return]


class _Stoppable(Silent):
    """Reporter that reports nothing, but still lets the user cancel the run."""

    def __init__(self, report: Reporter) -> None:
        self.check = report.check  # type: ignore[method-assign]


def _read(
    config: DifficultyConfig, questions: Questions, trainings: Sequence[_Training]
) -> tuple[dict[View, FloatArray], dict[View, list[float]], float]:
    """Return PVI `(repeats, n)` and calibration strengths per view, and the total training time in seconds."""
    n, seconds = len(questions.instances), 0.0
    bits: dict[View, FloatArray] = {view: np.zeros((len(questions.folds), n)) for view in VIEWS}
    strengths: dict[View, list[float]] = {view: [] for view in VIEWS}
    truth = (np.arange(n), questions.labels)
    for view, repeat in product(VIEWS, range(len(questions.folds))):
        model, null = np.zeros((2, n, len(questions.types)))
        for one in trainings:
            if (one.view, one.repeat) == (view, repeat):
                with np.load(one.path) as file:
                    model[one.held], null[one.held] = file["model"], file["null"]
                    seconds += float(file["seconds"])
        log2s: FloatArray = model
        if config.calibrates:
            log2s, chosen = calibrated(model, null, questions.labels, questions.folds[repeat])
            strengths[view] += chosen
        bits[view][repeat] = pvi(log2s[truth], null[truth])
    return bits, strengths, seconds


def _outcome(result: DifficultyResult, _: About) -> str:
    bits = result.v_information
    n = count(result.mentions, "mention")
    return f"Information about the type: names {bits.entity:.2f} bits, contexts {bits.context:.2f} (mean of {n})"


KIND = Kind(
    "difficulty",
    DifficultyConfig,
    run,
    DifficultyResult,
    title=lambda run: f"Measure names and contexts of {run.corpus(run.config['train'])}",
    outcome=_outcome,
    page="Bias",
    opens=True,
    here=True,
)
