"""`rank`: which encoder fits L_C, asked of its frozen states before anything is trained (SOURCES.md, Ranking encoders).

Within train it also asks which layer a tagger should read; dev is never asked that, for the F1 on it is reported.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import field_validator

from core.config import Config, option
from core.encoders.rank_result import (
    EncoderRank,
    LayerScores,
    NotRanked,
    Proposal,
    RankResult,
    read_encoder,
    write_encoder,
)
from core.errors import ConfigError, CorpusError, ModelError, memory_ran_out
from core.kind import About, Job, Kind
from core.models.encoder_options import EncoderOptions
from core.models.fingerprint import fingerprint
from core.results import Evaluation, FloatArray
from core.runs.parts import Parts
from core.runs.store import is_run_id
from core.tagging.finetune import model_folder
from core.tagging.scores import labelled, types_of
from core.text.sentence import Sentence
from core.training.on_device import on_device

if TYPE_CHECKING:
    from core.models.word_states import States

TRAIN, DEV = 10_000, 5_000  # words: more would take longer and change no order
FOLDS = 3
LEVEL = 0.95  # of all layers together
WHOLE = EncoderOptions().max_length  # pieces of the longest sentence that is read whole, in pre-training too


class RankConfig(Config):
    """Options: the encoders, and the labels."""

    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set: the score (F1) of a probe on it is reported.", corpus=True)
    encoders: tuple[str, ...] = option(
        ("minilm",), "Hugging Face names or folders on this machine, minilm (bundled), or ids of pretrain runs."
    )

    weights: tuple[str, ...] = option((), "Hashes of the encoders.", hidden=True)

    def settled(self) -> Self:
        """Options with the encoders' hashes, "" for a run's id, which is enough, and for an encoder that is broken.

        Errors: ModelError if none can be read; a broken one among others is listed by the run.
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
            raise ConfigError("encoders: name at least one, and each once; for example minilm.")
        return encoders


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labels that every encoder reads. types: of train, which a probe can learn; all_types: of dev too, which count."""

    train: list[Sentence]
    dev: list[Sentence]
    types: tuple[str, ...]
    all_types: tuple[str, ...]

    @property
    def n_words(self) -> int:
        """Words of train."""
        return sum(len(sentence.tokens) for sentence in self.train)


def run(config: RankConfig, job: Job) -> RankResult:
    """Artifacts: what `artifacts.rank` lists."""
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
                rank = _rank(name, sample, job)
            except ModelError as error:
                errors[name] = error
                job.context.note(f"not ranked: {error}")
                continue
            write_encoder(job.context.run, place, rank)
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
    """The same sentences for every encoder, in their order, of at most so many words; those without a word left out."""
    spoken = [sentence for sentence in sentences if sentence.tokens]
    order = np.random.default_rng(0).permutation(len(spoken))
    words = np.cumsum([len(spoken[row].tokens) for row in order])
    # One at least, though it alone has more words.
    n = max(int(np.searchsorted(words, most, side="right")), 1)
    return [spoken[row] for row in sorted(order[:n].tolist())]


def _rank(name: str, sample: Labelled, job: Job) -> EncoderRank:
    """Errors: ModelError for whatever is wrong with the encoder."""
    try:
        return _read_and_scored(name, sample, job)
    except (IndexError, ValueError, RuntimeError, KeyError, TypeError) as error:
        if memory_ran_out(error):
            raise
        raise ModelError(
            f"{name}: the sentences cannot be read with it ({type(error).__name__}); save it again, or leave it out."
        ) from error


def _read_and_scored(name: str, sample: Labelled, job: Job) -> EncoderRank:
    from core.models import hub
    from core.models.vocabulary_fit import remarks, vocabulary_fit
    from core.models.word_states import word_states

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
        scores.append(_scores(layer, of_layer, sample))
    return EncoderRank(
        encoder=name,
        mean=scores[0],
        layers=scores[1:],
        proposal=_proposal(states[:, : sample.n_words], sample, job),
        fit=fit,
        remarks=remarks(name, fit),
        seconds=round(time.monotonic() - begun, 1),
    )


def _scores(layer: int, states: FloatArray, sample: Labelled) -> LayerScores:
    from core.encoders.probe import probed, tag_codes
    from core.encoders.transfer import h_score, log_me
    from core.stats.scoring import evaluate

    codes, n = tag_codes([*sample.train, *sample.dev], sample.all_types), sample.n_words
    predictions = probed(states[:n], sample.train, states[n:], sample.dev, sample.types)
    f1 = evaluate(sample.dev, predictions, sample.all_types).f1()
    return LayerScores(layer=layer, h_score=h_score(states, codes), log_me=log_me(states, codes), f1=f1)


def _proposal(states: "States", sample: Labelled, job: Job) -> Proposal:
    """The topmost layer that a probe within train reads better than the last one, by an interval; else the last.

    The topmost, not the best: training moves all layers and closes most of such a gap, and what is cut off is lost.
    """
    from core.encoders.probe import probe_gain, within

    job.context.stage("asking within train which layer to read")
    top = len(states)
    if top < 2 or len(sample.train) < 2 * FOLDS:
        return Proposal(layers="last", why="Too few layers or training sentences to compare layers.")
    level = 1 - (1 - LEVEL) / (top - 1)  # so that one of so many seldom wins by luck
    tables: dict[int, Evaluation] = {}
    for layer in range(top, 0, -1):
        job.context.check()
        job.context.progress(top - layer, top, "layers")
        tables[layer] = within(states[layer - 1].astype(np.float32), sample.train, sample.types, FOLDS)
        last, by = tables[top].f1(), probe_gain(tables[layer], tables[top], level)
        if by.lo > 0:  # The layers below are not asked: the probes are most of what ranking takes.
            why = (
                f"Within train a linear probe scores {tables[layer].f1():.1f} from layer {layer} and {last:.1f} "
                f"from the last of {top} ({by.delta:+.1f}, {by.lo:+.1f} to {by.hi:+.1f}). Training closes most of such "
                "a gap, so compare both on the dev set."
            )
            return Proposal(layers=str(layer), why=why)
    best = max(range(1, top), key=lambda layer: tables[layer].f1())
    why = (
        f"Within train no layer is surely ahead of the last, from which a linear probe scores {last:.1f}; the best "
        f"below it is layer {best} ({tables[best].f1():.1f})."
    )
    return Proposal(layers="last", why=why)


def _title(run: About) -> str:
    encoders = " and ".join(map(run.encoder, run.config["encoders"]))
    return f"Rank {encoders} on {run.corpus(run.config['train'])}"


def _outcome(result: RankResult, run: About) -> str:
    best = result.encoders[0]
    return f"{run.encoder(best.encoder)} fits best: a linear probe scores {best.mean.f1:.1f} (F1) from its layers' mean"


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
