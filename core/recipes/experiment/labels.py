"""The labels of an experiment's arms: parts of L_C, sentences borrowed from elsewhere, L_C rebuilt."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from core.artifacts.drift import Assisted, check_assisting, mapped
from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.measures.skl import parse_map
from core.recipes.base import Job
from core.recipes.experiment.arms import Cell
from core.recipes.parts.learnable import learnable
from core.recipes.skl import check_trainable
from core.runs.run import Run

if TYPE_CHECKING:
    from core.recipes.experiment.config import ExperimentConfig

Tell = Callable[[str, Cell, str], None]  # (kind, cell, for what): this child run comes next


class Labels:
    """Makes the runs behind an arm's labels through `job.child`; a `job` that only looks makes a plan of it."""

    def __init__(self, config: "ExperimentConfig", job: Job, tell: Tell) -> None:
        self.config, self.job, self.tell = config, job, tell

    def made(self, cell: Cell, size: int, draw: int) -> tuple[Run, ...]:
        """The runs that say what a line learns from beside, or instead of, one part of L_C; none where that is all."""
        if cell.arm.assisting:
            found = (self.skl(cell, size, draw),) if cell.arm.assisting < math.inf else ()
            self.lent(cell, found, size, draw)  # what cannot be trained on is told now, not after hours
            return found
        if not cell.arm.rebuild:
            return ()
        measured = (self.difficulty(cell, size, draw),) if cell.arm.measures else ()
        return (*measured, self.rebuild(cell, measured, size, draw))

    def skl(self, cell: Cell, size: int, draw: int) -> Run:
        """Every sentence of the assisting corpus, scored by how far its entities drift from that part of L_C."""
        config = self.config
        self.tell("skl", cell, part_in_words(size, draw))
        given = {"primary": self.part(size, draw), "assisting": self.assisting.fingerprint, **config.skl}
        return self.job.child("skl", **given, type_map=config.type_map)

    def difficulty(self, cell: Cell, size: int, draw: int) -> Run:
        """PVI of the mentions of that part of L_C, the same for every way to rebuild it; its encoder may be another."""
        config = self.config
        self.tell("difficulty", cell, part_in_words(size, draw))
        given: dict[str, Any] = {"preset": config.preset, "seed": config.draw_seed, **config.difficulty}
        given |= {"encoder": config.difficulty_encoder or config.encoder, "allow_download": config.allow_download}
        return self.job.child("difficulty", train=self.part(size, draw), **given)

    def rebuild(self, cell: Cell, measured: Sequence[Run], size: int, draw: int) -> Run:
        """That part of L_C rebuilt, without text that is held out."""
        config, arm = self.config, cell.arm
        self.tell("rebuild", cell, part_in_words(size, draw))
        given: dict[str, Any] = {"seed": config.draw_seed, **config.rebuild, "method": arm.rebuild}
        given |= {"rate": arm.rate, "difficulty": measured[0].id} if measured else {"encoder": config.encoder}
        held_out = (*config.held_out, config.dev)
        return self.job.child("rebuild", train=self.part(size, draw), holdout=held_out, **given)

    def train(self, cell: Cell, made: Sequence[Run], size: int, draw: int) -> str:
        """Fingerprint of the sentences that a line is trained on. made: see `made`."""
        return str(made[-1].result()["corpus"]) if cell.arm.rebuild else self.part(size, draw)

    @cached_property
    def assisting(self) -> Corpus:
        """What may be borrowed from: nothing that is held out. Errors: ConfigError for a map of L_C's own types."""
        config = self.config
        check_trainable(self.job.corpus(config.train), parse_map(config.type_map))
        return learnable(config.assisting, (*config.held_out, config.dev), self.job)

    def lent(self, cell: Cell, made: Sequence[Run], size: int, draw: int) -> dict[str, Any]:
        """The options of fine-tuning by which a line learns from assisting sentences too. made: see `made`.

        Errors: ConfigError, CorpusError where no sentence is left to borrow or the network cannot learn from them.
        """
        config, library = self.config, self.job.library
        if made:
            return Assisted.read(made[-1], library).lent(cell.arm.assisting, config.network, library)
        primary = self.job.corpus(self.part(size, draw))
        every = mapped(self.assisting, primary, parse_map(config.type_map), library)
        check_assisting(config.network, every, primary.types)
        return {"assisting": every.fingerprint}

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(sentences of L_C, draw) that every arm is fine-tuned on; (0, 0) is the whole of it."""
        config = self.config
        return [(0, 0), *((size, draw) for draw in range(config.draws) for size in config.train_sizes)]

    def part(self, size: int, draw: int) -> str:
        """The L_C of that size and draw, sealed: sizes of one draw are nested, being prefixes of one order."""
        config = self.config
        if not size:
            return config.train
        train = self.job.corpus(config.train)
        if size > len(train):
            raise ConfigError(f"train_sizes: {size:,} sentences are more than {train.name} has ({len(train):,}).")
        order = np.random.default_rng([config.draw_seed, draw]).permutation(len(train))
        name = f"{train.name} {size} draw {draw + 1}"
        origin = {"from": train.fingerprint}
        return self.job.library.subset(train, order[:size], name=name, origin=origin).fingerprint


def part_in_words(size: int, draw: int) -> str:
    """Nothing for the whole of L_C."""
    return f"{size:,} labelled sentences, draw {draw + 1}" if size else ""
