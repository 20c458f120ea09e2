"""The seeds of one fine-tuning: one after the other, or dealt to the processes that torchrun starts, a card each."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.files import sync_all
from core.runs.context import RunContext
from core.runs.executors.share import CLAIMS
from core.runs.lock import locked
from core.runs.run import Run
from core.tagging import evaluations
from core.tagging.evaluations import SeedOutcome
from core.training import saved_models as models
from core.training.ranks import announce, rank

if TYPE_CHECKING:
    from core.models.tagger import Tagger

_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_POLL = 0.5  # seconds
_PATIENCE = 3600.0  # seconds in which another process has written its tagger, however large


@dataclass(frozen=True, slots=True)
class Seeds:
    """Seeds of a run by process. numbers: of all processes. place: of this one among `of`, from 0."""

    run: Run
    numbers: Sequence[int]
    place: int
    of: int

    @property
    def own(self) -> Sequence[int]:
        """The seeds that this process trains."""
        return self.numbers[self.place :: self.of]

    def finished(self) -> dict[int, SeedOutcome]:
        """Outcomes of the seeds that are finished, whoever trained them."""
        outcomes = ((seed, evaluations.read_outcome(self.run, seed)) for seed in self.numbers)
        return {seed: outcome for seed, outcome in outcomes if outcome}

    def left(self) -> list[int]:
        """The seeds that this process has still to train."""
        finished = self.finished()
        return [seed for seed in self.own if seed not in finished]

    def leads(self, seed: int, dev_f1: float) -> bool:
        """Whether this seed is the best on dev of those that are finished; of equals the first in the list is."""
        score = dev_f1, -self.numbers.index(seed)
        others = self.finished().items()
        return all(score > (other.dev.micro_f1, -self.numbers.index(at)) for at, other in others)

    def settling(self) -> AbstractContextManager[None]:
        """Around keeping a tagger and the outcome that says so: of two processes one after the other does that."""
        return locked(self.run.path / CLAIMS / "tagger", patience=_PATIENCE) if self.of > 1 else nullcontext()

    def keep(self, tagger: "Tagger") -> None:
        """Have the run's model be `tagger`, in place of what it was."""
        folder = models.folder(self.run)
        draft = folder.with_name(f".{folder.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        tagger.write(draft)
        sync_all(draft)
        shutil.rmtree(folder, ignore_errors=True)  # killed here, the seed has no outcome yet and is trained again
        draft.rename(folder)

    def wait(self, context: RunContext) -> list[SeedOutcome]:
        """Outcomes of the seeds, in their order, once all are finished."""
        finished = self.finished()
        if len(finished) < len(self.numbers):
            context.stage("waiting for the seeds of the other processes")
        while len(finished) < len(self.numbers):
            context.check()  # torchrun ends this process where another fails
            time.sleep(_POLL)
            finished = self.finished()
        return [finished[seed] for seed in self.numbers]


@contextmanager
def dealt(run: Run, numbers: Sequence[int]) -> Iterator[Seeds]:
    """Deal seeds to the processes of torchrun, or all to the only one; the first tells the others of the run.

    Within, torch and transformers know nothing of torchrun: no batch is shared, and each process takes a free card as
    any command does. `rank` is 0 there: `Seeds.place` says which process it is.
    """
    announce(run.id)
    seeds = Seeds(run=run, numbers=numbers, place=rank(), of=int(os.environ.get("WORLD_SIZE", "1")))
    hidden = {name: os.environ.pop(name) for name in _TORCHRUN if name in os.environ}
    try:
        yield seeds
    finally:
        os.environ.update(hidden)
