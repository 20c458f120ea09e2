"""The stages of an experiment's arms: with which options their runs are made, or found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.experiment import halves, multipliers
from core.experiment.arms import CONTROL, WHOLE, Arm, Cell
from core.experiment.caps import tokens_read
from core.experiment.halves_result import HalvesResult
from core.experiment.imported_vectors import imported
from core.experiment.labels import Labels, Part
from core.experiment.replicates import Replicate
from core.importing.learnable import learnable
from core.kind import Job, Options
from core.runs.result import read
from core.runs.store import Run
from core.selection import STRATEGIES
from core.selection.result import SelectResult
from core.selection.strategies.gazetteer import Gazetteer
from core.similarity.sample import capped

if TYPE_CHECKING:
    from core.experiment.config import ExperimentConfig

GENERAL = 500  # sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedChain:
    """The finished runs of one replicate of a line.

    tuned: by size of L_C and draw; (0, 0) is the whole of it. labels: what the whole L_C was changed or joined by.
    halves: what it has L_C from, where halves are swapped.
    """

    replicate: Replicate
    select: Run | None
    pretrain: Run | None
    tuned: Mapping[Part, Run]
    labels: tuple[Run, ...] = ()
    halves: Run | None = None

    @property
    def finetune(self) -> Run:
        return self.tuned[0, 0]

    @property
    def added(self) -> list[Run]:
        """All but the taggers: what `none` does not need."""
        return [run for run in (self.select, self.pretrain, *self.labels) if run]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedLine:
    """The finished runs behind one line of the leaderboard. source: fingerprint of what its word vectors or states come
    from."""

    cell: Cell
    chains: tuple[FinishedChain, ...]
    source: str | None = None

    @property
    def finetunes(self) -> list[Run]:
        """Fine-tunings on the whole of L_C, a run a replicate."""
        return [chain.finetune for chain in self.chains]

    @property
    def halves(self) -> list[Run]:
        """Runs that its replicates have their labels from, one a replicate; nothing where all have the same."""
        return [chain.halves for chain in self.chains if chain.halves]

    @property
    def runs(self) -> list[Run]:
        """Runs that the line with the whole of L_C rests on."""
        return [*self.added, *self.finetunes]

    @property
    def added(self) -> list[Run]:
        """The same without the taggers: what `none` does not need."""
        return [run for chain in self.chains for run in chain.added]


class Stages:
    """Options of an experiment's runs; `job` makes what they rest on, or only looks for it, when it is a plan."""

    def __init__(self, config: "ExperimentConfig", job: Job, pool: str = "") -> None:
        """pool: of what the labels are a half, which is kept out of all that is read beside T_C."""
        self.config, self.job, self.pool = config, job, pool
        held_out = (*config.held_out, config.dev)
        self.barred = (pool, *config.also_test, *config.holdout) if pool else held_out
        self.labels = Labels(config, job, self.barred)
        self._on_half: dict[tuple[str, int], Stages] = {}
        learns = [cell.arm for cell in config.cells if cell.arm.source and not self.imported(cell.arm)]
        self.named = {arm.source: self._named(arm) for arm in learns}

    def halves(self, number: int) -> Options:
        """Options of splitting L_C's sentences for the replicate of that number."""
        return halves.options(self.config, number, self._split_sizes)

    @property
    def _split_sizes(self) -> dict[str, int]:
        """Sentences of the splits, each corpus once."""
        names = dict.fromkeys(getattr(self.config, split) for split in halves.SPLITS)
        sizes = {name: len(self.job.corpus(name)) for name in names}
        return {"train": sizes.pop(self.config.train), **sizes}

    @cached_property
    def label_sizes(self) -> tuple[int, ...]:
        """Labelled sentences that lines are trained on to tell what choosing is worth, rising; the last are all."""
        sizes = self._split_sizes
        whole = halves.labelled(self.config, sizes) if self.config.cross else sizes
        return multipliers.nested(self.config.train_sizes, whole["train"])

    def parts(self, cell: Cell, replicate: Replicate) -> list[Part]:
        """Parts of L_C that a replicate of a line is fine-tuned on."""
        claim = self.config.claimed
        if not self.config.multipliers or claim is None:
            return self.labels.sizes
        return multipliers.parts(cell, claim, self.label_sizes, replicate)

    def on_half(self, run: Run, number: int) -> "Stages":
        """The same stages for the replicate of that number. run: that split L_C's sentences."""
        if (known := self._on_half.get((run.id, halves.side(number)))) is None:
            split = read(run, HalvesResult)
            config = halves.on_half(self.config, split.halves[halves.side(number)])
            known = self._on_half[run.id, halves.side(number)] = Stages(config, self.job, split.pool)
        return known

    def imported(self, arm: Arm) -> str:
        """The run of the imported vectors that an arm's words begin with; "" where it has none."""
        return "" if arm.states else imported(self.config).get(arm.source, "")

    def _named(self, arm: Arm) -> Corpus:
        """The source that an arm is called after. Errors: ConfigError."""
        sources = [self.job.corpus(reference) for reference in self.config.sources]
        matches = [corpus for corpus in sources if arm.source in (corpus.name, *corpus.names)]
        matches = matches or [corpus for corpus in sources if corpus.fingerprint.startswith(arm.source)]
        if len(matches) != 1:
            names = [*(corpus.name for corpus in sources), *(() if arm.states else self.config.imported_vectors)]
            raise ConfigError(
                f"arms: {arm.name} names {len(matches) or 'none'} of the sources; choose among {', '.join(names)}, or "
                "write the fingerprint."
            )
        return matches[0]

    @cached_property
    def task(self) -> Corpus:
        """T_C as it may be learnt from."""
        config = self.config
        held_out = {"none": (*config.held_out, config.dev), "dev": config.held_out, "all": ()}[config.transductive]
        return learnable(config.task, held_out, self.job)

    @cached_property
    def general(self) -> Corpus:
        """Random sentences of D_C that no arm trains on: what each forgets is told on them (SOURCES.md, Forgetting)."""
        domain = self.job.corpus(self.config.domain)
        # A twentieth at most: what is kept for this is lost to every arm.
        n = min(GENERAL, -(-len(domain) // 20))
        rows = np.random.default_rng(self.config.draw_seed).choice(len(domain), n, replace=False)
        origin = {"from": domain.fingerprint}
        return self.job.library.subset(domain, np.sort(rows), name=f"{domain.name} general sample", origin=origin)

    @cached_property
    def sources(self) -> dict[tuple[str, str], Corpus]:
        """Text that is read of each source, by its fingerprint and a line's budget: as many tokens of all, nothing that
        is held out. A smaller size is a part of a larger one."""
        config = self.config
        whole = {self.job.corpus(ref).fingerprint: learnable(ref, self.barred, self.job) for ref in config.sources}
        small = min(whole.values(), key=lambda corpus: corpus.n_tokens)
        if max(config.cap_tokens, default=0) > small.n_tokens:
            raise ConfigError(
                f"cap_tokens: {small.name} has only {small.n_tokens:,} tokens, and all sources are read alike; give at "
                "most that, or leave that source out."
            )
        budgets = {cell.budget for cell in config.cells if cell.arm.source}
        caps = {budget: tokens_read(budget, config.cap_tokens, small.n_tokens) for budget in budgets}
        return {(mark, at): self._capped(corpus, cap) for mark, corpus in whole.items() for at, cap in caps.items()}

    def source(self, cell: Cell) -> Corpus | None:
        """Text that a line reads of its source; None where it has none."""
        learns = cell.arm.source and not self.imported(cell.arm)
        return self.sources[self.named[cell.arm.source].fingerprint, cell.budget] if learns else None

    def _capped(self, corpus: Corpus, cap: int) -> Corpus:
        rows = capped(corpus.lengths(), cap, self.config.draw_seed)
        if len(rows) == len(corpus):
            return corpus
        origin = {"from": corpus.fingerprint}
        return self.job.library.subset(corpus, rows, name=f"{corpus.name} {cap:,} tokens", origin=origin)

    def select(self, cell: Cell, replicate: Replicate, alike: Run | None = None, times: float = 1) -> Options:
        """Options of choosing S_C of a line. Leaks of D_C, those of dev among them, are never selected.

        alike: the run that chose the text which this line has as many tokens of, or `times` as many; None: as its
        budget says. The sentence that would pass that number is left out.
        """
        config, arm = self.config, cell.arm
        given = {key: getattr(config, key) for key in ("domain", "train", "dev", "encoder", "allow_download")}
        # As on 3_Selection where it may be, so that their scores are one run; else T_C comes with its leaks removed.
        plain = config.transductive == "none" and not self.pool
        given |= {"task": config.task if plain else self.task.fingerprint, "transductive": not plain}
        given |= {"holdout": config.held_out, "strategy": arm.strategy, "options": self._own(arm.strategy)}
        if self.pool:  # the same for all replicates, which then share what was found in D_C
            given |= {"holdout": self.barred, "dev": config.dev if "ner" in STRATEGIES[arm.strategy].models else ""}
        if arm.strategy == Gazetteer.name and config.gazetteer:
            given["train"] = config.gazetteer
        given["seed"] = replicate.draw
        budget = f"{self.task.n_tokens}tokens" if arm.plain_name == CONTROL else cell.budget
        if alike:
            tokens = round(times * read(alike, SelectResult).tokens)
            # A multiple may be more than D_C has.
            budget = f"{min(tokens, self.job.corpus(config.domain).n_tokens)}tokens"
        return {**given, "budget": budget, **config.select}

    def _own(self, strategy: str) -> Options:
        """A strategy's own options; those that train a model take the experiment's preset."""
        options = self.config.strategies.get(strategy, {})
        trains = "preset" in STRATEGIES[strategy].Options.model_fields
        return {"preset": self.config.preset, **options} if trains else options

    def pretrain(self, cell: Cell, replicate: Replicate, selects: Mapping[Cell, Run], pieces: float) -> Options:
        """Options of a line's pre-training. selects: the runs that chose its text, under `fixed` all others'."""
        config = self.config
        options: Options = {"preset": config.preset, "seed": replicate.draw, **config.pretrain}
        options |= {**self.amount(selects, pieces), "allow_download": config.allow_download}
        if config.transductive == "none":
            options.setdefault("heldout_task", config.dev)
        if config.domain:
            options.setdefault("general", self.general.fingerprint)
        return {"corpora": self.read(cell, selects.get(cell)), "init": cell.arm.encoder or config.encoder, **options}

    def amount(self, selects: Mapping[Cell, Run], pieces: float) -> Options:
        """Options `fixed` gives every arm alike; nothing where each has the preset's epochs. pieces: a token has."""
        kind, config = self.config.fixed, self.config
        if kind == "none":
            return {}
        cells = [cell for cell in config.cells if cell.arm.pretrains]
        # Lines that read all of D_C set no measure: the others would read their own text many times over.
        some = [cell for cell in cells if cell.arm.budget != WHOLE] or cells
        read = [[self.job.corpus(ref) for ref in self.read(cell, selects.get(cell))] for cell in some]
        settings = config.mlm_settings
        if kind == "steps":
            most = max((sum(map(len, corpora)) for corpora in read), default=0)
            return {"max_steps": settings.full_steps(most)}
        tokens = max((sum(corpus.n_tokens for corpus in corpora) for corpora in read), default=0)
        return {"max_pieces": round(settings.n_epochs * tokens * pieces)}

    def read(self, cell: Cell, select: Run | None) -> tuple[str, ...]:
        """The corpora that a line's MLM reads."""
        if source := self.source(cell):
            return (source.fingerprint,)
        task = (self.task.fingerprint,) if cell.arm.task else ()
        return (*task, *((read(select, SelectResult).corpus,) if select else ()))

    def finetune(
        self, cell: Cell, replicate: Replicate, part: Part, *, pretrain: Run | None, labels: Sequence[Run]
    ) -> Options:
        """Options of a line's taggers on one part of L_C, one a seed. labels: the runs behind what it learns from."""
        config = self.config
        options = {"preset": config.tagger_preset, "allow_download": config.allow_download, **config.finetune}
        options |= {**config.tagger, **self._borrowed(cell, pretrain)}
        if cell.arm.assisting:
            options |= self.labels.assisting_options(cell, replicate, labels, part)
        init = pretrain.id if pretrain and cell.arm.adapts else cell.arm.encoder or config.encoder
        train, tests = self.labels.train(cell, labels, part), (config.test, *config.also_test)
        given = {"train": train, "dev": config.dev, "test": tests, "seeds": replicate.seeds}
        return {"init": init, **given, **options}

    def _borrowed(self, cell: Cell, pretrain: Run | None) -> Options:
        """The options of fine-tuning in which a line differs from `none`, but for labels."""
        arm = cell.arm
        options: Options = {}
        if size := self.config.vectors.get("dimension"):  # else random words would be shorter than those with vectors
            options["skipgram"] = {"dimension": size}
        if arm.states:
            options["states"] = pretrain.id if pretrain else self.config.encoder
        elif run := self.imported(arm):
            options["imported_vectors"] = run
        elif source := self.source(cell):
            options |= {"vectors": source.fingerprint, "skipgram": self.config.vectors}
        if arm.lpft:
            options["stages"] = "lpft"
        return {**options, **arm.tagger}
