"""What a `rank` run says of encoders, before any of them is trained.

artifacts/  encoder-<i>.json   what came of the encoder of that place: a resumed run does not read it again
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from core.files import read_json, write_atomic
from core.models.vocabulary_fit import VocabularyFit
from core.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerScores:
    """Fit of the states after one layer, or of their mean over all, to the labels.

    layer: from 1 on; 0: the mean. h_score, log_me: more is better. f1: of a linear probe, learnt on train, on dev.
    """

    layer: int
    h_score: float
    log_me: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The `layers` that a tagger's training should be tried with, and why, in a sentence."""

    layers: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRank:
    """Result of one encoder. layers: from the first to the last. remarks: of `vocabulary_fit`. seconds: it took."""

    encoder: str
    mean: LayerScores
    layers: Sequence[LayerScores]
    proposal: Proposal
    fit: VocabularyFit
    remarks: Sequence[str]
    seconds: float

    @property
    def last(self) -> LayerScores:
        """Scores of the layer that a tagger reads unless told otherwise."""
        return self.layers[-1]

    @property
    def best(self) -> LayerScores:
        """Scores of the layer that the probe reads best."""
        return max(self.layers, key=lambda scores: scores.f1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRanked:
    """An encoder that could not be read, and why, in a sentence."""

    encoder: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankResult:
    """Result of a `rank` run. train, dev: number of sentences. encoders: best first, by the H-score of the layers'
    mean. not_ranked: those that could not be read."""

    train: int
    dev: int
    words: int
    encoders: Sequence[EncoderRank]
    not_ranked: Sequence[NotRanked] = ()


def write_encoder(run: Run, place: int, rank: EncoderRank) -> None:
    """Write what came of the encoder of that place, when all of it is known."""
    write_atomic(_file(run, place), json.dumps(asdict(rank)).encode())


def read_encoder(run: Run, place: int) -> EncoderRank | None:
    """Read what `write_encoder` wrote; None where that encoder was not finished."""
    path = _file(run, place)
    return TypeAdapter(EncoderRank).validate_python(read_json(path)) if path.exists() else None


def _file(run: Run, place: int) -> Path:
    return run.artifacts / f"encoder-{place}.json"
