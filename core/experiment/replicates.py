"""What is made anew for every seed of an experiment: the tagger alone, or all from the draw of S_C on.

An arm that has one S_C and one pre-training is one lot: taggers on it, however many, say how far taggers differ, not
what another draw and another pre-training would have come to (SOURCES.md, Replicates).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from core.errors import ConfigError
from core.experiment.arms import Cell

if TYPE_CHECKING:
    from core.experiment.config import ExperimentConfig

Repeat = Literal["tagger", "pipeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """draw: seed of S_C's draw, of MLM and of a rebuilt L_C. seeds: of the taggers that follow. number: from 1; 0 where
    there is one."""

    draw: int
    seeds: tuple[int, ...]
    number: int = 0

    def in_words(self) -> str:
        """Nothing where there is one."""
        return f"replicate {self.number}" if self.number else ""


def replicates(
    cell: Cell, repeat: Repeat, seeds: Sequence[int], draw: int, *, own_labels: bool = False
) -> tuple[Replicate, ...]:
    """Replicates of a line. Where nothing but its tagger has a seed, as for `none`, one run trains them all.

    draw: the seed of what is not made anew. own_labels: each has some of its own, in every line.
    """
    drawn = cell.arm.control and cell.arm.assisting  # costs no more, so a quick look has several draws too
    if not drawn and (repeat == "tagger" or not (own_labels or cell.arm.pretrains or cell.arm.rebuild)):
        return (Replicate(draw=draw, seeds=tuple(seeds)),)
    return tuple(Replicate(draw=seed, seeds=(seed,), number=i) for i, seed in enumerate(seeds, 1))


def check_looks(config: "ExperimentConfig") -> None:
    """Errors: ConfigError where there are looks and they are not at replicates of the claim."""
    if not config.looks:
        return
    if config.looks[-1] != len(config.seeds):
        raise ConfigError(f"looks: the last, {config.looks[-1]}, must be the number of seeds, {len(config.seeds)}.")
    if not config.claimed or not config.replicates(config.claimed)[0].number:
        raise ConfigError(
            "looks: only an experiment that repeats its pipeline for each seed can end early; give repeat pipeline "
            "and a variant that reads or rebuilds, or leave the looks out."
        )
