"""The labels of an experiment's arms: parts of L_C, sentences borrowed from elsewhere, L_C rebuilt."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from core.assisting.drift import Assisted, check_assisting, mapped, random_part
from core.assisting.score import check_trainable
from core.assisting.skl import parse_map
from core.bias.rebuilt import RebuildResult, read_edits
from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.experiment.arms import SHARE, Cell
from core.experiment.replicates import Replicate
from core.importing.learnable import learnable
from core.kind import Job, Options
from core.runs.result import read
from core.runs.run import Run

if TYPE_CHECKING:
    from core.experiment.config import ExperimentConfig

Part = tuple[int, int]  # of L_C: sentences, draw; (0, 0) is the whole of it


class Labels:
    """Options of the runs behind an arm's labels; `job` makes or finds what they rest on."""

    def __init__(self, config: "ExperimentConfig", job: Job, barred: Sequence[str] = ()) -> None:
        """barred: the corpora of which nothing may be borrowed."""
        self.config, self.job, self.barred = config, job, barred

    def skl(self, part: Part) -> Options:
        """Options of scoring the assisting sentences by how far their entities drift from that part of L_C."""
        config = self.config
        given = {"primary": self.part(part), "assisting": self.assisting.fingerprint, **config.skl}
        return {**given, "type_map": config.type_map}

    def difficulty(self, part: Part) -> Options:
        """Options of measuring that part's PVI, the same for every way to rebuild it; its encoder may be another."""
        config = self.config
        given: Options = {"preset": config.preset, "seed": config.draw_seed, **config.difficulty}
        given |= {"encoder": config.difficulty_encoder or config.encoder, "allow_download": config.allow_download}
        return {"train": self.part(part), **given}

    def rebuild(self, cell: Cell, replicate: Replicate, measured: Sequence[Run], part: Part) -> Options:
        """Options of rebuilding that part of L_C, without text that is held out."""
        config, arm = self.config, cell.arm
        given: Options = {"seed": replicate.draw, **config.rebuild, "method": arm.rebuild}
        given |= {"rate": arm.rate, "difficulty": measured[0].id} if measured else {"encoder": config.encoder}
        given |= {"size": arm.size, "add_bin": arm.bin} if arm.rebuild == SHARE else {}
        return {"train": self.part(part), "holdout": (*config.held_out, config.dev), **given}

    def train(self, cell: Cell, runs: Sequence[Run], part: Part) -> str:
        """Fingerprint of the sentences that a line is trained on. runs: those behind its labels."""
        if not cell.arm.rebuild:
            return self.part(part)
        return self._copied(runs[-1], part) if cell.arm.copies else read(runs[-1], RebuildResult).corpus

    def _copied(self, rebuild: Run, part: Part) -> str:
        """That part of L_C with the sentences once more of which a rebuilt one has changed copies."""
        train = self.job.corpus(self.part(part))
        again = sorted({edit.copy_of for edit in read_edits(rebuild) if edit.copy_of is not None})
        rows, name = [*range(len(train)), *again], f"{train.name} with {len(again):,} unchanged copies"
        origin = {"from": train.fingerprint}
        return self.job.library.subset(train, np.array(rows), name=name, origin=origin).fingerprint

    @cached_property
    def assisting(self) -> Corpus:
        """Sentences to borrow from: none that is held out. Errors: ConfigError for a map of L_C's own types."""
        config = self.config
        check_trainable(self.job.corpus(config.train), parse_map(config.type_map))
        return learnable(config.assisting, self.barred, self.job)

    def assisting_options(self, cell: Cell, replicate: Replicate, runs: Sequence[Run], part: Part) -> Options:
        """The options of fine-tuning by which a line learns from assisting sentences too. runs: its `skl` run, if any.

        Errors: ConfigError, CorpusError where no sentence is left to borrow or the network cannot learn from them.
        """
        config, library, shared = self.config, self.job.library, None
        if runs:
            shared = Assisted.read(runs[-1], library).shared_labels(cell.arm.assisting, config.network, library)
        if shared and not cell.arm.control:
            return shared.options
        primary = self.job.corpus(self.part(part))
        whole = mapped(self.assisting, primary, parse_map(config.type_map), library)
        check_assisting(config.network, whole, primary.types)
        if shared:
            n = len(self.job.corpus(shared.assisting))
            return random_part(whole, n, replicate.draw, config.network, library).options
        return {"assisting": whole.fingerprint}

    @property
    def sizes(self) -> list[Part]:
        """Parts of L_C that every arm is fine-tuned on."""
        config = self.config
        return [(0, 0), *((size, draw) for draw in range(config.draws) for size in config.train_sizes)]

    def part(self, part: Part) -> str:
        """The L_C of that size and draw, sealed: sizes of one draw are nested, being prefixes of one order."""
        config, (size, draw) = self.config, part
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
