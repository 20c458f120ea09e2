"""`difficulty`: what names and what contexts tell of the types of a labelled corpus (Ma et al. 2023, 2).

A mention is judged by models that trained on other sentences; every such training is kept as it ends
(`difficulty_folds`), so that a run which is killed goes on with the next.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, Self

import numpy as np

from core.bias.difficulty_folds import Questions, answers, constant_answers
from core.bias.folds import folds
from core.bias.instances import VIEWS, View, groups, instances, sampled
from core.bias.mentions import BINS, Mention, bin_of
from core.bias.pvi import entropy, interval
from core.bias.result import BinBits, Bits, DifficultyResult, Intervals, TypeDifficulty, write
from core.config import Config, option
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.kind import About, Job, Kind
from core.models.fingerprint import fingerprint
from core.results import FloatArray
from core.shown import count


class DifficultyOptions(Config):
    """Options of how carefully PVI is measured, whosever labels."""

    preset: Literal["quick", "paper", "custom"] = option(
        "quick",
        "quick: few epochs; paper: Ma et al. 2023, Table 7; custom: as quick, but for what is said here.",
    )
    folds: int = option(5, "A mention is judged by models that did not train on its fold.", ge=2, le=50)
    repeats: int | None = option(
        None, "Cross-validations whose pointwise V-information (PVI) is averaged; None: quick 1, paper 3.", ge=1, le=20
    )
    null: Literal["closed", "trained"] = option(
        "closed", "The model without input: the share of each type, or a classifier trained on nothing."
    )
    calibrate: Literal["auto", "yes", "no"] = option(
        "auto", "Take the certainty out of a model that the other folds show to be too sure; auto: quick yes, paper no."
    )
    mentions: int = option(0, "A sample of whole sentences with about so many; 0: all.", unit="mentions", ge=0)
    group: Literal["", "sentence", "document"] = option(
        "", "What is never on both sides of a fold; empty: documents where they are known."
    )
    seed: int = option(1, "Folds, sample, training and resampling follow from it.", ge=0)
    draws: int = option(2000, "Resamples of sentences behind an interval.", ge=100, le=100_000)
    context_epochs: int | None = option(None, "None: as the preset says, here and below.", ge=1, le=1000)
    entity_epochs: int | None = option(None, "Of the models that see names alone.", ge=1, le=1000)
    batch_size: int | None = option(None, "An optimizer step.", unit="mentions", ge=1, le=4096)
    learning_rate: float | None = option(None, "Of the encoder.", gt=0, le=1)
    head_learning_rate: float | None = option(None, "Of the last layer.", gt=0, le=1)
    max_length: int = option(128, "A longer sentence is cut around the mention.", unit="pieces", ge=16, le=8192)
    precision: Literal["auto", "bf16", "fp32"] = option("auto", "auto takes bf16 where the device has it.")

    @property
    def calibrates(self) -> bool:
        return self.calibrate == "yes" or (self.calibrate == "auto" and self.preset != "paper")


class DifficultyConfig(DifficultyOptions):
    """Whose labels, under which encoder, and how carefully."""

    train: str = option(..., "The labelled corpus to judge, a training split.", corpus=True)
    encoder: str = option(
        "minilm",
        "A Hugging Face name, a folder, or minilm (bundled): the pointwise V-information (PVI) is this encoder's.",
    )
    allow_download: bool = option(False, "Fetch the encoder from the Hugging Face hub if it is not here yet.")

    weights: str = option("", "Hash of the encoder.", hidden=True)

    def settled(self) -> Self:
        """These options with the encoder's hash. Errors: ModelError if the encoder is not here."""
        if self.allow_download:
            return self
        return self.model_copy(update={"weights": fingerprint(self.encoder)})


def run(config: DifficultyConfig, job: Job) -> DifficultyResult:
    """Artifact: `mentions.parquet` (see `difficulty.mentions`)."""
    corpus = job.corpus(config.train)
    job.context.stage("reading the mentions")
    questions, notes = _questions(config, corpus)
    results = answers(config, questions, job) if len(questions.types) > 1 else constant_answers(questions)
    notes += _window_notes(results.cut, results.window)
    for note in notes:
        job.context.note(note)
    repeats = np.stack([results.pvi[view] for view in VIEWS], axis=-1)  # (repeats, n, 2)
    mentions = _mentions(questions, repeats.mean(0))
    write(job.context, mentions)
    how = Trained(
        repeats=[Bits(entity=entity, context=context) for entity, context in np.round(repeats.mean(1), 4).tolist()],
        folds=len(set(questions.folds[0].tolist())),
        grouped_by=questions.grouped_by,
        strength={view: round(float(np.mean(each)), 3) for view, each in results.strengths.items() if each},
        settings=results.settings,
        notes=notes,
        corpus=corpus.fingerprint,
        seconds=results.seconds,
    )
    return summary(mentions, config.draws, config.seed, how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Settings that mentions were judged by; see `DifficultyResult`."""

    repeats: Sequence[Bits] = ()
    folds: int = 0
    grouped_by: str = "sentence"
    strength: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, int | float | str | bool]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    corpus: str = ""
    seconds: float = 0.0


def summary(mentions: Sequence[Mention], draws: int, seed: int, how: Trained) -> DifficultyResult:
    """Result of a data set's mentions together; nothing is trained for it."""
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
            kind: _of_type([one for one in mentions if one.type == kind], len(mentions))
            for kind, _ in kinds.most_common()
        },
        ceim={name: bins[name] for name in BINS},
        mean_pvi={name: _in_bin(values[[m.bin == name for m in mentions]]) for name in BINS},
        repeats=how.repeats,
        folds=how.folds,
        grouped_by=how.grouped_by,
        strength=how.strength,
        settings=how.settings,
        notes=how.notes,
        corpus=how.corpus,
        seconds=how.seconds,
    )


def _of_type(mentions: Sequence[Mention], n: int) -> TypeDifficulty:
    """n: mentions of all types."""
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
    """values: `(k, 2)` PVI of names and contexts."""
    return Bits(entity=_bits(values[:, 0].mean()), context=_bits(values[:, 1].mean()))


def _in_bin(values: FloatArray) -> BinBits:
    if not len(values):
        return BinBits(entity=None, context=None)
    means = _means(values)
    return BinBits(entity=means.entity, context=means.context)


def _bits(value: float) -> float:
    return round(float(value), 4) + 0.0  # no -0.0


def _questions(config: DifficultyConfig, corpus: Corpus) -> tuple[Questions, list[str]]:
    """And what a reader of the result should know. Errors: CorpusError where nothing can be judged, or by nobody."""
    if not corpus.labelled:
        raise CorpusError(f"{corpus.name}: is not labelled; give a corpus with entities, for example a CoNLL file.")
    chosen = sampled(instances(chain.from_iterable(corpus.batches())), config.mentions, config.seed)
    if not chosen:
        raise CorpusError(
            f"{corpus.name}: no sentence holds an entity, so there is neither a name nor a context to judge; give a"
            " corpus with entities."
        )
    number, grouped_by = groups(chosen, config.group, config.folds)
    counts = Counter(instance.type for instance in chosen)
    n_groups, types = int(number.max()) + 1, tuple(sorted(counts))
    if n_groups == 1 and len(types) > 1:
        raise CorpusError(
            f"{corpus.name}: all its entities are in one {grouped_by}, so no model can judge what it has not seen;"
            f" give more {grouped_by}s{', or group by sentence' if grouped_by == 'document' else ''}."
        )
    # A group is judged as one, so there are no more folds than groups.
    n = min(config.folds, n_groups)
    labels = np.array([types.index(instance.type) for instance in chosen], dtype=np.int64)
    repeats = config.repeats or (3 if config.preset == "paper" else 1)
    questions = Questions(
        instances=chosen,
        types=types,
        labels=labels,
        grouped_by=grouped_by,
        # A thousand apart, so that runs under neighbouring seeds share no repeat.
        folds=[folds(number, labels, n, config.seed + 1000 * repeat) for repeat in range(repeats)],
    )
    return questions, _notes(counts, n, config.folds, grouped_by)


def _notes(counts: Mapping[str, int], n: int, wanted: int, grouped_by: str) -> list[str]:
    if len(counts) == 1:
        return [
            f"{next(iter(counts))}: is the only type, so neither name nor context has anything to tell and the "
            "pointwise V-information (PVI) of every mention is 0 bits; nothing was trained."
        ]
    notes = []
    if n < wanted:
        notes.append(f"Only {n} {grouped_by}s hold an entity, so there are {n} folds, not {wanted}.")
    if rare := sorted(kind for kind, count in counts.items() if count < n):
        names = ", ".join(f"{kind} ({counts[kind]})" for kind in rare)
        notes.append(
            f"{names}: fewer mentions than the {n} folds, so the models that judge them have seen next to none; do not"
            " lean on their pointwise V-information (PVI). The other types are judged as ever."
        )
    return notes


def _window_notes(cut: Mapping[View, int], window: int) -> list[str]:
    """cut: inputs that are longer than the window of so many pieces."""
    of_names, of_contexts = cut["entity"], cut["context"]
    longer = f"longer than the window of {window} pieces"
    notes = []
    if of_names:
        notes.append(f"{of_names:,} {'name is' if of_names == 1 else 'names are'} {longer}: the beginning was read.")
    if of_contexts:
        notes.append(
            f"{of_contexts:,} {'context is' if of_contexts == 1 else 'contexts are'} {longer}: what lies nearest to the"
            " mention was read."
        )
    return notes


def _mentions(questions: Questions, pvi: FloatArray) -> list[Mention]:
    """pvi: `(n, 2)`, the mean over repeats of what name and context tell."""
    return [
        Mention(
            row=one.row,
            sentence=one.sentence.id,
            start=one.start,
            end=one.end,
            type=one.type,
            surface=" ".join(one.name),
            pvi_entity=entity,
            pvi_context=context,
            ceim=entity - context,
            bin=bin_of(entity - context),
            fold=fold,
        )
        for one, (entity, context), fold in zip(
            questions.instances, pvi.tolist(), questions.folds[0].tolist(), strict=True
        )
    ]


def _outcome(result: DifficultyResult, _: About) -> str:
    bits = result.v_information
    return f"Names tell {bits.entity:.2f} bits, contexts {bits.context:.2f}, over {count(result.mentions, 'mention')}"


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
