"""`rank`: rank encoders by how well their frozen states fit L_C, before any training (SOURCES.md, Ranking encoders).

It also proposes which layer a tagger should read. Only the training set is used for this, because dev is used for the
reported F1.

artifacts/  encoder-<i>.json   result of one encoder; a resumed run does not compute it again
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import TypeAdapter, field_validator

from core.config import Config, option
from core.errors import ConfigError, CorpusError, ModelError, memory_ran_out
from core.files import read_json, write_atomic
from core.kind import About, Job, Kind
from core.models.encoder import EncoderOptions
from core.models.fingerprint import fingerprint
from core.models.vocabulary_fit import VocabularyFit
from core.results import Evaluation, FloatArray
from core.runs.context import Parts
from core.runs.run import Run
from core.runs.store import is_run_id
from core.tagging.evaluations import labelled, types_of
from core.tagging.finetune import model_folder
from core.text.sentence import Sentence
from core.training.on_device import on_device

if TYPE_CHECKING:
    from core.encoders.transfer import States

# Maximum number of words to read. More words take longer and do not change the order of the encoders.
TRAIN, DEV = 10_000, 5_000
FOLDS = 3
# Confidence level of the comparison of all layers together.
LEVEL = 0.95
# Window size in pieces. Longer sentences are cut into windows, as in pre-training.
WHOLE = EncoderOptions().max_length


class RankConfig(Config):
    """Options of a `rank` run: the encoders and the labelled data."""

    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set, on which the F1 of a linear probe is measured.", corpus=True)
    encoders: tuple[str, ...] = option(
        ("minilm",), "Encoders on this machine: Hugging Face names, folders, minilm (bundled) or ids of pretrain runs."
    )

    weights: tuple[str, ...] = option((), "Hashes of the encoders.", hidden=True)

    def settled(self) -> Self:
        """Return the options with the encoders' hashes; "" for run ids and for encoders that cannot be read.

        Errors: ModelError if no encoder can be read. If only some cannot be read, the run lists them as not ranked.
        """
        hashes, broken = list[str](), list[ModelError]()
        for name in self.encoders:
            try:
                hashes.append("" if is_run_id(name) else fingerprint(name))
            except ModelError as error:
                hashes.append("")
                broken.append(error)
        if len(broken) == len(self.encoders):
            raise broken[0]
        return self.model_copy(update={"weights": tuple(hashes)})

    @field_validator("encoders")
    @classmethod
    def _encoders(cls, encoders: tuple[str, ...]) -> tuple[str, ...]:
        if not all(encoders) or not encoders or len(set(encoders)) < len(encoders):
            raise ConfigError("encoders: give one or more names, each only once; for example minilm.")
        return encoders


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerScores:
    """Scores for the fit of one layer's states, or of their mean over all layers, to the labels.

    layer: number from 1; 0 for the mean. h_score, log_me: higher is better. f1: dev F1 of a linear probe trained on the
    training set.
    """

    layer: int
    h_score: float
    log_me: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A value of the option `layers` to try when training a tagger. why: the reason, a sentence."""

    layers: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRank:
    """Result of one encoder. layers: scores of each layer. remarks: see `vocabulary_fit`. seconds: duration."""

    encoder: str
    mean: LayerScores
    layers: Sequence[LayerScores]
    proposal: Proposal
    fit: VocabularyFit
    remarks: Sequence[str]
    seconds: float

    @property
    def last(self) -> LayerScores:
        """Scores of the last layer, which a tagger reads by default."""
        return self.layers[-1]

    @property
    def best(self) -> LayerScores:
        """Scores of the layer with the best probe F1."""
        return max(self.layers, key=lambda scores: scores.f1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRanked:
    """An encoder that could not be ranked. reason: a sentence."""

    encoder: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankResult:
    """Result of a `rank` run.

    train, dev: number of sentences in each set. words: number of words in the training set. encoders: best first, by
    the H-score of the layers' mean.
    """

    train: int
    dev: int
    words: int
    encoders: Sequence[EncoderRank]
    not_ranked: Sequence[NotRanked] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The labelled data for scoring all encoders. types: types in `train`. all_types: types in `train` or `dev`."""

    train: list[Sentence]
    dev: list[Sentence]
    types: tuple[str, ...]
    all_types: tuple[str, ...]

    @property
    def n_words(self) -> int:
        """Number of words in `train`."""
        return sum(len(sentence.tokens) for sentence in self.train)


def run(config: RankConfig, job: Job) -> RankResult:
    """Rank the encoders, and list those that cannot be read.

    Errors: CorpusError if train has no entity or dev has no word; ModelError if no encoder could be ranked.
    """
    job.context.stage("reading the labelled sentences")
    train, dev = (labelled(job.corpus(name)) for name in (config.train, config.dev))
    seen = types_of(train)
    if not seen or not any(sentence.tokens for sentence in dev):
        raise CorpusError(
            "rank: no entity in the training set, or no word in the dev set; give labelled sentences with entities."
        )
    sample = Labelled(
        train=_sample(train, TRAIN),
        dev=_sample(dev, DEV),
        types=tuple(sorted(seen)),
        all_types=tuple(sorted(seen | types_of(dev))),
    )
    parts, ranks = Parts(job.context, [1.0] * len(config.encoders)), list[EncoderRank]()
    errors = dict[str, ModelError]()
    for place, name in enumerate(config.encoders):
        rank = read_encoder(job.context.run, place)
        if rank is None:
            parts.next(place, name)
            try:
                rank = _rank_one(name, sample, job)
            except ModelError as error:
                errors[name] = error
                job.context.note(f"not ranked: {error}")
                continue
            _write_encoder(job.context.run, place, rank)
        ranks.append(rank)
    if not ranks:
        raise next(iter(errors.values()))
    return RankResult(
        train=len(sample.train),
        dev=len(sample.dev),
        words=sample.n_words,
        encoders=sorted(ranks, key=lambda rank: -rank.mean.h_score),
        not_ranked=[NotRanked(encoder=name, reason=str(error)) for name, error in errors.items()],
    )


def _sample(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    """Return random sentences with at most `most` words in total, in corpus order.

    Every run draws the same sentences.
    """
    spoken = [sentence for sentence in sentences if sentence.tokens]
    order = np.random.default_rng(0).permutation(len(spoken))
    words = np.cumsum([len(spoken[row].tokens) for row in order])
    # Take at least one sentence, even if it has more than `most` words.
    n = max(int(np.searchsorted(words, most, side="right")), 1)
    return [spoken[row] for row in sorted(order[:n].tolist())]


def _rank_one(name: str, sample: Labelled, job: Job) -> EncoderRank:
    """Return the result of one encoder. Errors: ModelError if the encoder cannot read the sentences."""
    try:
        return _score_layers(name, sample, job)
    except (IndexError, ValueError, RuntimeError, KeyError, TypeError) as error:
        if memory_ran_out(error):
            raise
        raise ModelError(
            f"{name}: cannot read the sentences ({type(error).__name__}); save the encoder again, or leave it out."
        ) from error


def _score_layers(name: str, sample: Labelled, job: Job) -> EncoderRank:
    from core.encoders.transfer import word_states
    from core.models import hub
    from core.models.vocabulary_fit import remarks, vocabulary_fit

    begun, folder = time.monotonic(), model_folder(name, job)
    job.context.stage(f"reading with {name}")
    fit = vocabulary_fit(hub.load_tokenizer(folder), [*sample.train, *sample.dev], WHOLE)
    with on_device(job, alone=False):
        states = word_states(folder, [*sample.train, *sample.dev], job.context)
    job.context.stage(f"scoring the layers of {name}")
    scores = []
    for layer in range(len(states) + 1):
        job.context.check()
        job.context.progress(layer, len(states) + 1, "layers")
        of_layer = states.mean(axis=0, dtype=np.float32) if layer == 0 else states[layer - 1].astype(np.float32)
        scores.append(_score_layer(layer, of_layer, sample))
    return EncoderRank(
        encoder=name,
        mean=scores[0],
        layers=scores[1:],
        proposal=_proposal(states[:, : sample.n_words], sample, job),
        fit=fit,
        remarks=remarks(name, fit),
        seconds=round(time.monotonic() - begun, 1),
    )


def _score_layer(layer: int, states: FloatArray, sample: Labelled) -> LayerScores:
    from core.encoders.transfer import h_score, log_me, probed, tag_codes
    from core.stats.scoring import evaluate

    codes, n = tag_codes([*sample.train, *sample.dev], sample.all_types), sample.n_words
    predictions = probed(states[:n], sample.train, states[n:], sample.dev, sample.types)
    f1 = evaluate(sample.dev, predictions, sample.all_types).f1()
    return LayerScores(layer=layer, h_score=h_score(states, codes), log_me=log_me(states, codes), f1=f1)


def _proposal(states: "States", sample: Labelled, job: Job) -> Proposal:
    """Return the topmost layer whose probe is reliably better than the probe on the last layer; else the last layer.

    Probes are compared by cross-validation within the training set. A lower layer may have an even better probe. But
    training closes most of the gap, and a tagger that reads a lower layer loses all layers above it.
    """
    from core.encoders.transfer import probe_gain, within

    job.context.stage("comparing layers within the training set")
    top = len(states)
    if top < 2 or len(sample.train) < 2 * FOLDS:
        return Proposal(
            layers="last", why="The layers were not compared, because there are too few layers or training sentences."
        )
    level = 1 - (1 - LEVEL) / (top - 1)  # Bonferroni correction for `top - 1` comparisons
    tables: dict[int, Evaluation] = {}
    for layer in range(top, 0, -1):
        job.context.check()
        job.context.progress(top - layer, top, "layers")
        tables[layer] = within(states[layer - 1].astype(np.float32), sample.train, sample.types, FOLDS)
        last, by = tables[top].f1(), probe_gain(tables[layer], tables[top], level)
        if by.lo > 0:  # Skip lower layers, because probes take most of the time.
            why = (
                f"On held-out training sentences a linear probe scores {tables[layer].f1():.1f} from layer {layer} and "
                f"{last:.1f} from layer {top}, the last (difference {by.delta:+.1f}, confidence interval "
                f"{by.lo:+.1f} to {by.hi:+.1f}). Training closes most of this gap, so compare both on the dev set."
            )
            return Proposal(layers=str(layer), why=why)
    best = max(range(1, top), key=lambda layer: tables[layer].f1())
    why = (
        f"No layer is reliably better than the last one. On held-out training sentences a linear probe scores "
        f"{last:.1f} from the last layer and {tables[best].f1():.1f} from layer {best}, the best of the others."
    )
    return Proposal(layers="last", why=why)


def _write_encoder(run: Run, place: int, rank: EncoderRank) -> None:
    """Write the result of one encoder. place: its index in the run's options."""
    write_atomic(_file(run, place), json.dumps(asdict(rank)).encode())


def read_encoder(run: Run, place: int) -> EncoderRank | None:
    """Return the result of one encoder; None if it is not finished. place: its index in the run's options."""
    path = _file(run, place)
    return TypeAdapter(EncoderRank).validate_python(read_json(path)) if path.exists() else None


def _file(run: Run, place: int) -> Path:
    return run.artifacts / f"encoder-{place}.json"


def _title(run: About) -> str:
    encoders = " and ".join(map(run.encoder, run.config["encoders"]))
    return f"Rank {encoders} on {run.corpus(run.config['train'])}"


def _outcome(result: RankResult, run: About) -> str:
    best = result.encoders[0]
    return (
        f"{run.encoder(best.encoder)} fits best: a linear probe on the mean of its layers reaches F1 {best.mean.f1:.1f}"
    )


KIND = Kind(
    "rank",
    RankConfig,
    run,
    RankResult,
    title=_title,
    outcome=_outcome,
    page="Training",
    command=("encoders", "rank"),
    here=True,
)
