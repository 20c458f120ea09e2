"""The contract of a similarity measure: one number about a source and a target, which end of it means "closer", and how
it came about (Dai et al. 2019, 4).

Learning a source is apart from comparing it with a target, because the first is what takes its time and serves
every target. Signs are turned in one place, `Grid.closeness`; everybody else carries `prefer`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from core.config import Config
from core.reporter import Reporter
from core.results import Measurement, Prefer
from core.terms import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Tokenised sentences drawn from one or several corpora; none is empty.

    seed: of the draw. whole: nothing was left out.
    """

    name: str
    sentences: Sequence[Sequence[str]]
    n_tokens: int
    seed: int
    whole: bool


class Measure(Protocol):
    """A way to say how close a source is to a target.

    term: what it is called, and what that means. columns: the other readings in `Measurement.columns` and what they
    are. summary: what it looks at, for a page. looks_at: the same in a word or two, for sentences about why two
    measures differ.
    """

    name: ClassVar[str]
    term: ClassVar[Term]
    unit: ClassVar[str]
    prefer: ClassVar[Prefer]
    summary: ClassVar[str]
    looks_at: ClassVar[str]
    columns: ClassVar[Mapping[str, str]]
    Options: ClassVar[type[Config]]

    def __init__(self, options: Any, *, seed: int, vocabulary_size: int) -> None:
        """options: an instance of its `Options`. vocabulary_size: different tokens of all sources and targets."""

    def fit(self, source: Sample, report: Reporter) -> Any:
        """A model of the source for `compare`. Errors: CorpusError where the source is too small."""

    def compare(self, learnt: Any, target: Sample, report: Reporter) -> Measurement:
        """One number.

        learnt: what `fit` gave; it is not changed. Errors: CorpusError where there is nothing to compare.
        """


def measurement(measure: Measure, value: float, *, convention: str, columns: Mapping[str, float | None]) -> Measurement:
    """A `Measurement` in the measure's own unit and direction."""
    return Measurement(
        name=measure.name,
        unit=measure.unit,
        prefer=measure.prefer,
        value=value,
        convention=convention,
        columns=dict(columns),
    )
