"""Phases of a join (`corpora.phases`) as chunks of a run, which any process may make and a resumed run finds again."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from core import cards
from core.corpora.phases import Array, Phase, Phases
from core.reporter import Reporter
from core.runs.chunks import About, Opened
from core.runs.context import RunContext
from core.runs.executors import spread


@dataclass(kw_only=True)
class PhaseWork:
    """One phase, which reads where the corpus is and computes wherever."""

    phase: Phase
    card: bool = False
    exact: bool = True

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "phase": replace(self.phase, read=_elsewhere)}

    @property
    def stage(self) -> str:
        return self.phase.stage

    def read(self, start: int, stop: int, about: About) -> object:
        return self.phase.read(start, stop)

    def open(self, report: Reporter) -> Opened:
        return Opened(compute=self.phase.compute)

    def device(self) -> tuple[str, str]:
        return "processors", cards.processor()


def phases(context: RunContext) -> Phases:
    """Have phases made as the chunks of a run; a process that helps with it goes on to the next phase."""

    def computed(phase: Phase) -> Iterator[Array]:
        if not phase.n:
            return
        paths, _ = spread(
            context,
            phase.n,
            phase.size,
            PhaseWork(phase=phase),
            phase.name,
            device=nullcontext,
            unit=phase.unit,
            sent=phase.sent,
            last=False,
        )
        yield from (np.load(path, mmap_mode="r") for path in paths)

    return computed


def _elsewhere(start: int, stop: int) -> object:
    raise AssertionError(f"items {start} to {stop} are read where the corpus is")
