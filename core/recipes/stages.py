"""The stages of an experiment's arms: which child runs they are, made now or found finished."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.recipes.arms import CONTROL, WHOLE, Cell
from core.recipes.base import Job
from core.recipes.learnable import learnable
from core.recipes.pretrain import PRESETS, PretrainConfig
from core.runs.store import Run
from core.selection import STRATEGIES

if TYPE_CHECKING:
    from core.recipes.experiment_config import ExperimentConfig

GENERAL = 500  # sentences
Options = dict[str, Any]
Tell = Callable[[str, Cell, str], None]  # (kind, cell, for what): this child run comes next


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The finished runs behind one line of the leaderboard.

    tuned: by size of L_C and draw; (0, 0) is the whole of it.
    """

    cell: Cell
    select: Run | None
    pretrain: Run | None
    tuned: Mapping[tuple[int, int], Run]

    @property
    def finetune(self) -> Run:
        return self.tuned[0, 0]

    @property
    def runs(self) -> list[Run]:
        """What the line with the whole of L_C rests on."""
        return [run for run in (self.select, self.pretrain, self.finetune) if run]


class Stages:
    """Makes an experiment's runs through `job.child`; a `job` that only looks makes a plan of it."""

    def __init__(self, config: "ExperimentConfig", job: Job, tell: Tell) -> None:
        self.config, self.job, self.tell = config, job, tell

    @cached_property
    def task(self) -> Corpus:
        """T_C as it may be learnt from."""
        config = self.config
        held_out = {"none": (*self.held_out, config.dev), "dev": self.held_out, "all": ()}[config.transductive]
        return learnable(config.task, held_out, self.job)

    @cached_property
    def general(self) -> Corpus:
        """Random sentences of D_C that no arm trains on: what each forgets is told on the same text (SPEC C17)."""
        domain = self.job.corpus(self.config.domain)
        n = min(GENERAL, -(-len(domain) // 20))
        rows = np.random.default_rng(self.config.draw_seed).choice(len(domain), n, replace=False)
        origin = {"from": domain.fingerprint}
        return self.job.library.subset(domain, np.sort(rows), name=f"{domain.name} general sample", origin=origin)

    @property
    def held_out(self) -> tuple[str, ...]:
        """The corpora whose sentences are leaks, beside dev."""
        return tuple(dict.fromkeys((self.config.test, *self.config.holdout)))

    def select(self, cell: Cell) -> Run | None:
        """S_C of a line. Leaks of D_C, those of dev among them, are never selected."""
        config, arm = self.config, cell.arm
        if not arm.strategy:
            return None
        self.tell("select", cell, "")
        given = {key: getattr(config, key) for key in ("domain", "train", "dev", "encoder", "allow_download")}
        # As on 3_Selection where it may be, so that their scores are one run; else T_C comes with its leaks removed.
        plain = config.transductive == "none"
        given |= {"task": config.task if plain else self.task.fingerprint, "transductive": not plain}
        given |= {"holdout": self.held_out, "strategy": arm.strategy, "options": self._own(arm.strategy)}
        given["seed"] = config.draw_seed
        budget = str(len(self.task)) if arm.name == CONTROL else cell.budget
        return self.job.child("select", **given, budget=budget, **config.select)

    def _own(self, strategy: str) -> Options:
        """A strategy's own options; those that train a model take the experiment's preset."""
        options = self.config.strategies.get(strategy, {})
        trains = "preset" in STRATEGIES[strategy].Options.model_fields
        return {"preset": self.config.preset, **options} if trains else options

    def pretrain(self, cell: Cell, select: Run | None, amount: Options) -> Run | None:
        """The encoder of a line. amount: what every arm gets alike; empty: the preset's epochs."""
        config, arm = self.config, cell.arm
        if not arm.pretrains:
            return None
        self.tell("pretrain", cell, "")
        options: Options = {"preset": config.preset, "seed": config.draw_seed, **config.pretrain, **amount}
        options |= {"allow_download": config.allow_download}
        if config.transductive == "none":
            options.setdefault("heldout_task", config.dev)
        if config.domain:
            options.setdefault("general", self.general.fingerprint)
        return self.job.child("pretrain", corpora=self.read(cell, select), init=config.encoder, **options)

    def amount(self, selects: Mapping[Cell, Run | None], pieces: float) -> Options:
        """What `fixed` gives every arm alike. pieces: a token."""
        kind, config = self.config.fixed, self.config
        if kind == "none":
            return {}
        cells = [cell for cell in selects if cell.arm.pretrains]
        some = [cell for cell in cells if cell.arm.budget != WHOLE] or cells
        read = [[self.job.corpus(ref) for ref in self.read(cell, selects[cell])] for cell in some]
        chosen = PretrainConfig.parse({"corpora": ("?",), "preset": config.preset, **config.pretrain})
        if kind == "steps":
            most = max((sum(map(len, corpora)) for corpora in read), default=0)
            return {"max_steps": epochs_of(chosen) * -(-most // chosen.batch_size)}
        tokens = max((sum(corpus.n_tokens for corpus in corpora) for corpora in read), default=0)
        return {"max_pieces": round(epochs_of(chosen) * tokens * pieces)}

    def read(self, cell: Cell, select: Run | None) -> tuple[str, ...]:
        """The corpora that a line's MLM reads."""
        task = (self.task.fingerprint,) if cell.arm.task else ()
        return (*task, *((select.result()["corpus"],) if select else ()))

    def finetune(self, cell: Cell, pretrain: Run | None, size: int, draw: int) -> Run:
        """The taggers of a line on one part of L_C, one a seed."""
        config, train = self.config, self.part(size, draw)
        self.tell("finetune", cell, part_in_words(size, draw))
        options = {"preset": config.preset, "allow_download": config.allow_download, **config.finetune}
        init = pretrain.id if pretrain else config.encoder
        given = {"train": train, "dev": config.dev, "test": (config.test,), "seeds": config.seeds}
        return self.job.child("finetune", init=init, **given, **options)

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


def epochs_of(config: PretrainConfig) -> int:
    """As said, else as the preset says."""
    return config.epochs or int(PRESETS[config.preset]["epochs"])
