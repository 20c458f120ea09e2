"""Measures of similarity between a source and a target, by name."""

from collections.abc import Mapping
from typing import Literal

from core.similarity.base import Measure, Sample
from core.similarity.ppl import Ppl
from core.similarity.tvc import Tvc
from core.similarity.tvcc import Tvcc
from core.similarity.wvv import Wvv

MeasureName = Literal["ppl", "wvv", "tvc", "tvcc"]  # the choices of command line and page, in their order
MEASURES: Mapping[str, type[Measure]] = {measure.name: measure for measure in (Ppl, Wvv, Tvc, Tvcc)}


def make_measure(name: str, options: Mapping[str, object], *, seed: int, vocabulary_size: int) -> Measure:
    """A measure ready to fit. options: those of every measure; each takes its own."""
    kind = MEASURES[name]
    own = {key: value for key, value in options.items() if key in kind.Options.model_fields}
    return kind(kind.Options.parse(own), seed=seed, vocabulary_size=vocabulary_size)


def title(name: str) -> str:
    """The plain word for a measure; any other name stays as it is."""
    return MEASURES[name].term.word if name in MEASURES else name


def symbol(name: str) -> str:
    """The papers' symbol of a measure; any other name stays as it is."""
    return MEASURES[name].term.symbol if name in MEASURES else name


__all__ = ["MEASURES", "Measure", "MeasureName", "Sample", "make_measure", "symbol", "title"]
