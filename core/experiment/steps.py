"""The stages of an experiment: options of the runs of each variant, from its selection to its taggers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from core.assisting.skl import Assisted, SklConfig, check_assisting, check_trainable, mapped, parse_map, random_part
from core.bias.difficulty import DifficultyConfig
from core.bias.rebuild import RebuildConfig
from core.bias.result import RebuildResult, read_edits
from core.config import Config
from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.experiment.arms import CONTROL, DISTANT, NONE, RANDOM, SHARE, WHOLE, Arm, Cell, as_much_as, times
from core.experiment.config import SPLITS, ExperimentConfig, HalvesConfig, Replicate, tokens_read
from core.experiment.reference import options_of as reference_options
from core.experiment.result import HalvesResult
from core.importing.audit import learnable
from core.kind import Job, Options
from core.pretraining.pretrain import PretrainConfig
from core.runs.result import read
from core.runs.store import Run
from core.selection import STRATEGIES, involved
from core.selection.result import SelectResult
from core.selection.select import LARGE, SelectConfig
from core.selection.strategies.gazetteer import Gazetteer
from core.similarity.base import capped
from core.stats import more_labels
from core.tagging.config import FinetuneConfig

GENERAL = 500  # sentences of D_C that are kept to measure forgetting
Part = tuple[int, int]  # (number of sentences, number of the draw) of a part of L_C; (0, 0) is all of L_C


class Labels:
    """Options of the runs that prepare an arm's labels: parts of L_C, assisting sentences, a rebuilt L_C.

    job: returns the corpora, and runs the audits that the options depend on; the job of a plan only finds finished
    audits.
    """

    def __init__(self, config: ExperimentConfig, job: Job, barred: Sequence[str] = ()) -> None:
        """barred: corpora whose sentences must not be used as assisting sentences."""
        self.config, self.job, self.barred = config, job, barred

    def skl(self, part: Part) -> SklConfig:
        """Return the options of scoring assisting sentences by the divergence of their tags from a part of L_C."""
        config = self.config
        options = {"primary": self.part(part), "assisting": self.assisting.fingerprint, **config.skl}
        return SklConfig.parse({**options, "type_map": config.type_map})

    def difficulty(self, part: Part) -> DifficultyConfig:
        """Return the options of measuring PVI on a part of L_C; all methods of rebuilding share the measurement."""
        config = self.config
        options: Options = {"preset": config.preset, "seed": config.draw_seed, **config.difficulty}
        options |= {"encoder": config.difficulty_encoder or config.encoder, "allow_download": config.allow_download}
        return DifficultyConfig.parse({"train": self.part(part), **options})

    def rebuild(self, cell: Cell, replicate: Replicate, measured: Sequence[Run], part: Part) -> RebuildConfig:
        """Return the options of rebuilding a part of L_C without held-out text. measured: [its PVI run], or []."""
        config, arm = self.config, cell.arm
        options: Options = {"seed": replicate.draw, **config.rebuild, "method": arm.rebuild}
        options |= {"rate": arm.rate, "difficulty": measured[0].id} if measured else {"encoder": config.encoder}
        options |= {"size": arm.size, "add_bin": arm.bin} if arm.rebuild == SHARE else {}
        return RebuildConfig.parse({"train": self.part(part), "holdout": (*config.held_out, config.dev), **options})

    def train(self, cell: Cell, runs: Sequence[Run], part: Part) -> str:
        """Return the fingerprint of a variant's training set. runs: the runs behind its labels."""
        if not cell.arm.rebuild:
            return self.part(part)
        return self._copied(runs[-1], part) if cell.arm.copies else read(runs[-1], RebuildResult).corpus

    def _copied(self, rebuild: Run, part: Part) -> str:
        """Seal a part of L_C with one more, unchanged copy of each sentence that `rebuild` copied with changes."""
        train = self.job.corpus(self.part(part))
        again = sorted({edit.copy_of for edit in read_edits(rebuild) if edit.copy_of is not None})
        rows, name = [*range(len(train)), *again], f"{train.name} with {len(again):,} unchanged copies"
        origin = {"from": train.fingerprint}
        return self.job.library.subset(train, np.array(rows), name=name, origin=origin).fingerprint

    @cached_property
    def assisting(self) -> Corpus:
        """Assisting corpus without held-out sentences. Errors: ConfigError for a type map that renames types of L_C."""
        config = self.config
        check_trainable(self.job.corpus(config.train), parse_map(config.type_map))
        return learnable(config.assisting, self.barred, self.job)

    def assisting_options(self, cell: Cell, replicate: Replicate, runs: Sequence[Run], part: Part) -> Options:
        """Return the options that add assisting sentences to a fine-tuning. runs: the variant's `skl` run, if any.

        Errors: ConfigError, CorpusError if no assisting sentence is left or the network cannot learn from them.
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
        """Parts of L_C that every arm is fine-tuned on, unless multipliers are measured."""
        config = self.config
        return [(0, 0), *((size, draw) for draw in range(config.draws) for size in config.train_sizes)]

    def part(self, part: Part) -> str:
        """Seal a part of L_C and return its fingerprint. Parts of one draw are nested: prefixes of one random order."""
        config, (size, draw) = self.config, part
        if not size:
            return config.train
        train = self.job.corpus(config.train)
        if size > len(train):
            raise ConfigError(
                f"train_sizes: {size:,} sentences are more than {train.name} has; give at most {len(train):,}."
            )
        order = np.random.default_rng([config.draw_seed, draw]).permutation(len(train))
        name = f"{train.name} {size} draw {draw + 1}"
        origin = {"from": train.fingerprint}
        return self.job.library.subset(train, order[:size], name=name, origin=origin).fingerprint


class Stages:
    """Builds the options of an experiment's runs. job: as in `Labels`."""

    def __init__(self, config: ExperimentConfig, job: Job, pool: str = "") -> None:
        """pool: if `config` uses one half, fingerprint of all pooled sentences. Of all text, only T_C may contain them.

        The attribute `firsts` is {name in transfer:CORPUS: the corpus}. Errors: ConfigError if no corpus has the name.
        """
        self.config, self.job, self.pool = config, job, pool
        held_out = (*config.held_out, config.dev)
        self.barred = (pool, *config.also_test, *config.holdout) if pool else held_out
        self.labels = Labels(config, job, self.barred)
        self._on_half: dict[tuple[str, int], Stages] = {}
        learns = [cell.arm for cell in config.cells if cell.arm.source and not self.imported(cell.arm)]
        self.named = {arm.source: self._named(arm) for arm in learns}
        begun = [cell.arm for cell in config.cells if cell.arm.first and not cell.arm.encoder]
        corpora = [job.corpus(reference) for reference in config.transfer]
        self.firsts = {arm.first: find_named(arm, arm.first, corpora, "corpora in transfer") for arm in begun}

    def halves(self, replicate: Replicate) -> HalvesConfig:
        """Return the options of splitting the pooled sentences; the two replicates of one split share these options."""
        config, sizes = self.config, self.config.half_sizes(self._split_sizes)
        return HalvesConfig(
            train=config.train,
            dev=config.dev,
            test=config.test,
            train_sentences=sizes["train"],
            dev_sentences=sizes["dev"],
            seed=config.seeds[replicate.number - 1 - replicate.side],
        )

    @property
    def _split_sizes(self) -> dict[str, int]:
        """{split: number of sentences}; a corpus that serves as two splits appears once."""
        names = dict.fromkeys(getattr(self.config, split) for split in SPLITS)
        sizes = {name: len(self.job.corpus(name)) for name in names}
        return {"train": sizes.pop(self.config.train), **sizes}

    @cached_property
    def label_sizes(self) -> tuple[int, ...]:
        """Sizes of the parts of L_C that multipliers are measured on, ascending; the last is all of L_C."""
        config, sizes = self.config, self._split_sizes
        whole = (config.half_sizes(sizes) if config.cross else sizes)["train"]
        return (*sorted({size for size in config.train_sizes or (whole // 4, whole // 2) if 0 < size < whole}), whole)

    def parts(self, cell: Cell, replicate: Replicate) -> list[Part]:
        """Return the parts of L_C that a replicate of a variant is fine-tuned on; (0, 0) is all of L_C.

        For multipliers, the claim, `random` and `none` also train on smaller parts, drawn for each replicate. A
        reference variant, which trains nothing, only has (0, 0). An estimate only has smaller parts.
        """
        if cell.arm.reference:
            return [(0, 0)]
        if cell.arm.more:
            n = len(self.job.corpus(self.config.train))
            sizes = () if more_labels.lacking(n, cell.arm.more, len(self.config.seeds)) else more_labels.parts(n)
            return [(size, replicate.number - 1) for size in sizes]
        claim = self.config.claimed
        if not self.config.multipliers or claim is None:
            return self.labels.sizes
        compared = [(NONE, ""), (RANDOM, claim.budget), (claim.arm.name, claim.budget)]
        smaller = self.label_sizes[:-1] if (cell.arm.name, cell.budget) in compared else ()
        return [(0, 0), *((size, replicate.number - 1) for size in smaller)]

    def on_half(self, run: Run, replicate: Replicate) -> "Stages":
        """Return the stages on a replicate's half of the labelled sentences. run: the run that split them."""
        key = run.id, replicate.side
        if (known := self._on_half.get(key)) is None:
            split = read(run, HalvesResult)
            half = split.halves[replicate.side]
            update = {name: getattr(half, name) for name in ("task", *SPLITS)}
            known = self._on_half[key] = Stages(self.config.model_copy(update=update), self.job, split.pool)
        return known

    def imported(self, arm: Arm) -> str:
        """Return the run of the imported vectors that an arm starts from; "" if it has none."""
        imports = dict(zip(self.config.imported_vectors, self.config.imports, strict=False))
        return "" if arm.states else imports.get(arm.source, "")

    def _named(self, arm: Arm) -> Corpus:
        """Return the source that an arm's name refers to. Errors: ConfigError."""
        sources = [self.job.corpus(reference) for reference in self.config.sources]
        return find_named(arm, arm.source, sources, "sources", () if arm.states else self.config.imported_vectors)

    def first(self, arm: Arm) -> Options:
        """Return the options of fine-tuning that make an arm's taggers train on another corpus first.

        Errors: CorpusError if all sentences of that corpus are in held-out data.
        """
        config, corpus = self.config, learnable(self.firsts[arm.first].fingerprint, self.barred, self.job)
        return {"first": corpus.fingerprint, "first_epochs": config.transfer_epochs, "type_map": config.type_map}

    @cached_property
    def task(self) -> Corpus:
        """T_C without the held-out sentences that `transductive` excludes from training."""
        config = self.config
        held_out = {"none": (*config.held_out, config.dev), "dev": config.held_out, "all": ()}[config.transductive]
        return learnable(config.task, held_out, self.job)

    @cached_property
    def general(self) -> Corpus:
        """Random sentences of D_C that no arm trains on; forgetting is measured on them (SOURCES.md, Forgetting)."""
        domain = self.job.corpus(self.config.domain)
        # At most a twentieth of D_C, because no arm can train on these sentences.
        n = min(GENERAL, -(-len(domain) // 20))
        rows = np.random.default_rng(self.config.draw_seed).choice(len(domain), n, replace=False)
        origin = {"from": domain.fingerprint}
        return self.job.library.subset(domain, np.sort(rows), name=f"{domain.name} general sample", origin=origin)

    @cached_property
    def sources(self) -> dict[tuple[str, str], Corpus]:
        """{(source, budget): text to train on from that source}, without held-out sentences.

        At one budget, the texts of all sources have the same number of tokens. A text is part of each larger text from
        the same source.
        Errors: ConfigError if a source is smaller than `cap_tokens`.
        """
        config = self.config
        whole = {self.job.corpus(ref).fingerprint: learnable(ref, self.barred, self.job) for ref in config.sources}
        small = min(whole.values(), key=lambda corpus: corpus.n_tokens)
        if max(config.cap_tokens, default=0) > small.n_tokens:
            raise ConfigError(
                f"cap_tokens: {small.name} has only {small.n_tokens:,} tokens, but every source must give the same "
                "number; give at most that, or leave that source out."
            )
        budgets = {cell.budget for cell in config.cells if cell.arm.source}
        caps = {budget: tokens_read(budget, config.cap_tokens, small.n_tokens) for budget in budgets}
        texts: dict[tuple[str, str], Corpus] = {}
        for mark, corpus in whole.items():
            for budget, cap in caps.items():
                rows = capped(corpus.lengths(), cap, config.draw_seed)
                texts[mark, budget] = corpus
                if len(rows) < len(corpus):
                    name, origin = f"{corpus.name} {cap:,} tokens", {"from": corpus.fingerprint}
                    texts[mark, budget] = self.job.library.subset(corpus, rows, name=name, origin=origin)
        return texts

    def source(self, cell: Cell) -> Corpus | None:
        """Return the text that a variant trains on from its source; None if it has none."""
        learns = cell.arm.source and not self.imported(cell.arm)
        return self.sources[self.named[cell.arm.source].fingerprint, cell.budget] if learns else None

    def select(self, cell: Cell, replicate: Replicate, alike: Run | None = None, times: float = 1) -> SelectConfig:
        """Return the options for selecting a variant's S_C. Sentences that also occur in dev or test are left out.

        alike, times: the budget is the number of tokens of the selection `alike`, multiplied by `times`. If `alike` is
        None, use the variant's own budget.
        """
        config, arm = self.config, cell.arm
        options = {key: getattr(config, key) for key in ("domain", "train", "dev", "encoder", "allow_download")}
        # If possible, use the same options as the Selection page, so that both share one scoring run. If not, remove
        # test leaks from T_C first.
        plain = config.transductive == "none" and not self.pool
        options |= {"task": config.task if plain else self.task.fingerprint, "transductive": not plain}
        of_strategy = config.strategies.get(arm.strategy, {})
        if "preset" in STRATEGIES[arm.strategy].Options.model_fields:  # the strategy trains a model
            of_strategy = {"preset": config.preset, **of_strategy}
        options |= {"holdout": config.held_out, "strategy": arm.strategy, "options": of_strategy}
        if self.pool:  # the same held-out text for all replicates, so that they share the audit of D_C
            trains = any("ner" in each.models for each in involved(arm.strategy, of_strategy))
            options |= {"holdout": self.barred, "dev": config.dev if trains else ""}
        if arm.strategy == Gazetteer.name and config.gazetteer:
            options["train"] = config.gazetteer
        # All variants and replicates use the same vectors of D_C, so embedding every sentence once costs less than a
        # cascade for each selection.
        if len(self.job.corpus(config.domain)) > LARGE:
            options["cascade"] = False
        options["seed"] = replicate.draw
        budget = f"{self.task.n_tokens}tokens" if arm.plain_name == CONTROL else cell.budget
        if arm.pseudo:  # a small D_C can have fewer sentences than the budget
            budget = str(min(int(budget), len(self.job.corpus(config.domain))))
        if alike:
            tokens = round(times * read(alike, SelectResult).tokens)
            # A multiple can exceed the size of D_C.
            budget = f"{min(tokens, self.job.corpus(config.domain).n_tokens)}tokens"
        return SelectConfig.parse({**options, "budget": budget, **config.select})

    def pretrain(self, cell: Cell, replicate: Replicate, selects: Mapping[Cell, Run], pieces: float) -> PretrainConfig:
        """Return the options of a variant's pre-training.

        selects: its selection; with `fixed`, those of all variants.
        """
        config = self.config
        options: Options = {"preset": config.preset, "seed": replicate.draw, **config.pretrain}
        options |= {**self.amount(selects, pieces), "allow_download": config.allow_download}
        if config.transductive == "none":
            options.setdefault("heldout_task", config.dev)
        if config.domain:
            options.setdefault("general", self.general.fingerprint)
        init = cell.arm.encoder or config.encoder
        return PretrainConfig.parse({"corpora": self.read(cell, selects.get(cell)), "init": init, **options})

    def amount(self, selects: Mapping[Cell, Run], pieces: float) -> Options:
        """Return the options of the equal amount of training that `fixed` requires; {} for the preset's epochs.

        pieces: word pieces per token.
        """
        kind, config = self.config.fixed, self.config
        if kind == "none":
            return {}
        cells = [cell for cell in config.cells if cell.arm.pretrains]
        # Ignore variants that train on all of D_C, else the others would repeat their own text many times.
        some = [cell for cell in cells if cell.arm.budget != WHOLE] or cells
        read = [[self.job.corpus(ref) for ref in self.read(cell, selects.get(cell))] for cell in some]
        settings = config.mlm_settings
        if kind == "steps":
            most = max((sum(map(len, corpora)) for corpora in read), default=0)
            return {"max_steps": settings.full_steps(most)}
        tokens = max((sum(corpus.n_tokens for corpus in corpora) for corpora in read), default=0)
        return {"max_pieces": round(settings.n_epochs * tokens * pieces)}

    def read(self, cell: Cell, select: Run | None) -> tuple[str, ...]:
        """Return the corpora that a variant's MLM trains on."""
        if source := self.source(cell):
            return (source.fingerprint,)
        task = (self.task.fingerprint,) if cell.arm.task else ()
        return (*task, *((read(select, SelectResult).corpus,) if select else ()))

    def finetune(
        self,
        cell: Cell,
        replicate: Replicate,
        part: Part,
        *,
        select: Run | None,
        pretrain: Run | None,
        labels: Sequence[Run],
    ) -> FinetuneConfig:
        """Return the options of a variant's taggers on one part of L_C. labels: the runs behind its training set."""
        config = self.config
        options = {"preset": config.tagger_preset, "allow_download": config.allow_download, **config.keep}
        options |= config.finetune
        options |= {**config.tagger, **self._borrowed(cell, pretrain)}
        if cell.arm.assisting:
            options |= self.labels.assisting_options(cell, replicate, labels, part)
        if cell.arm.pseudo and select:
            options["unlabelled"] = read(select, SelectResult).corpus
        init = pretrain.id if pretrain and cell.arm.adapts else cell.arm.encoder or config.encoder
        train, tests = self.labels.train(cell, labels, part), (config.test, *config.also_test)
        data = {"train": train, "dev": config.dev, "test": tests, "seeds": replicate.seeds}
        return FinetuneConfig.parse({"init": init, **data, **options})

    def reference(self, cell: Cell) -> Options:
        """Return the options of the run that finds the entities of a reference variant."""
        return reference_options(cell.arm.reference, cell.arm.value, self.config)

    def _borrowed(self, cell: Cell, pretrain: Run | None) -> Options:
        """Return the fine-tuning options that differ from those of `none`, apart from the labels."""
        arm = cell.arm
        options: Options = {}
        if size := self.config.vectors.get("dimension"):  # random word vectors need the same dimension as learnt ones
            options["skipgram"] = {"dimension": size}
        if arm.states:
            options["states"] = pretrain.id if pretrain else self.config.encoder
        elif run := self.imported(arm):
            options["imported_vectors"] = run
        elif source := self.source(cell):
            options |= {"vectors": source.fingerprint, "skipgram": self.config.vectors}
        if arm.lpft:
            options["stages"] = "lpft"
        if arm.names:
            options["dictionary"] = self.config.dictionary
        if arm.first:
            options |= self.first(arm)
        if arm.pseudo == DISTANT:
            options["distant"] = self.config.dictionary or (self.config.train,)
        return {**options, **arm.tagger}


def find_named(arm: Arm, name: str, corpora: Sequence[Corpus], what: str, others: Sequence[str] = ()) -> Corpus:
    """Return the corpus that an arm's name refers to, by name or fingerprint.

    what: the corpora in words, for the error. others: further names that the arm could refer to. Errors: ConfigError.
    """
    matches = [corpus for corpus in corpora if name in (corpus.name, *corpus.names)]
    matches = matches or [corpus for corpus in corpora if corpus.fingerprint.startswith(name)]
    if len(matches) != 1:
        names = ", ".join([*(corpus.name for corpus in corpora), *others])
        raise ConfigError(
            f"arms: {arm.name} names {len(matches) or 'none'} of the {what}; choose among {names}, or write the "
            "fingerprint."
        )
    return matches[0]


def options_of(config: Config) -> Options:
    """Return the options of a config that were set, as `Job.child` takes them."""
    return config.model_dump(exclude_unset=True)


CHECK = ""  # kind of a step that has no run and only raises an error if taggers cannot be trained on the data


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A run for one replicate of one variant.

    options: function that returns the options of the run, given the runs of the steps in `needs`. part: part of L_C
    that it uses.
    """

    kind: str
    cell: Cell
    replicate: Replicate
    options: Callable[[Mapping["Step", Run]], Options]
    needs: tuple["Step", ...] = ()
    part: Part = (0, 0)

    @property
    def what(self) -> str:
        """Replicate and part of L_C in words; "" for a single replicate on all of L_C."""
        size, draw = self.part
        part = f"{size:,} labelled sentences, draw {draw + 1}" if size else ""
        return ", ".join(filter(None, (self.replicate.in_words(), part)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A replicate of a variant and its stages.

    halves: step that splits the labels into halves; None if all share L_C.
    """

    stages: Stages
    cell: Cell
    replicate: Replicate
    halves: Step | None

    @property
    def needs(self) -> tuple[Step, ...]:
        """Steps that must come before all others of the replicate."""
        return (self.halves,) if self.halves else ()

    def within(self, runs: Mapping[Step, Run]) -> Stages:
        """Return the stages on the replicate's own labels."""
        return self.stages.on_half(runs[self.halves], self.replicate) if self.halves else self.stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The steps of one replicate. labels, tuned: {part of L_C: steps}. halves: step shared with other variants.

    A reference variant has one step in `tuned`, which finds the entities of the test sets. An estimate has steps on
    parts of L_C only.
    """

    replicate: Replicate
    halves: Step | None
    select: Step | None
    labels: Mapping[Part, tuple[Step, ...]]
    pretrain: Step | None
    tuned: Mapping[Part, Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The steps of one variant, one chain per replicate."""

    cell: Cell
    chains: tuple[Chain, ...]


def lines(stages: Stages, pieces: float) -> list[Line]:
    """Return the steps of every variant. pieces: word pieces per token of T_C."""
    cells = stages.config.cells
    halves = _halves(stages, cells)
    places = {
        cell: [
            Place(stages=stages, cell=cell, replicate=replicate, halves=halves.get(replicate.number))
            for replicate in stages.config.replicates(cell)
        ]
        for cell in cells
    }
    models = {cell: as_much_as(cell, cells, stages.config.claim) for cell in cells if cell.arm.strategy}
    selects: dict[tuple[Cell, Replicate], Step] = {}
    # Start with the variants whose selection sets the number of tokens of others.
    for cell, model in sorted(models.items(), key=lambda item: item[1] is not None):
        for place in places[cell]:
            selects[cell, place.replicate] = _select(place, selects[model, place.replicate] if model else None)
    return [Line(cell=cell, chains=tuple(_chain(place, selects, pieces) for place in places[cell])) for cell in cells]


def _halves(stages: Stages, cells: Sequence[Cell]) -> dict[int, Step]:
    """Return {number of a replicate: step that splits the labelled sentences}; {} unless halves are swapped.

    All variants share these steps. The two replicates that swap the halves of one split share its step.
    """
    steps: dict[int, Step] = {}
    for replicate in stages.config.replicates(cells[0]) if stages.config.cross else ():
        if replicate.side:
            steps[replicate.number] = steps[replicate.number - 1]
        else:
            steps[replicate.number] = _split(stages, cells[0], replicate)
    return steps


def _split(stages: Stages, cell: Cell, replicate: Replicate) -> Step:
    return Step(
        kind="halves", cell=cell, replicate=replicate, options=lambda runs: options_of(stages.halves(replicate))
    )


def in_order(lines: Iterable[Line], stops: Sequence[int] = ()) -> list[list[Step]]:
    """Return the steps in blocks, one block per stop. stops: numbers of replicates; () for a single block.

    In a block, all selections, labels and reference variants come first, so that unusable data fails early. Then the
    trainings follow, replicate by replicate and arm by arm.
    """
    chains = [chain for line in lines for chain in line.chains]
    ends = stops or (max((chain.replicate.number for chain in chains), default=0),)
    begins = (-1, *ends[:-1])
    return [
        _ordered([chain for chain in chains if after < chain.replicate.number <= upto])
        for after, upto in zip(begins, ends, strict=True)
    ]


def _ordered(chains: Sequence[Chain]) -> list[Step]:
    last = [
        step
        for chain in sorted(chains, key=lambda chain: chain.replicate.number)
        for step in (chain.pretrain, *chain.tuned.values())
        if step
    ]
    return [
        *dict.fromkeys(chain.halves for chain in chains if chain.halves),
        # A selection that takes its number of tokens from another one comes after it.
        *sorted((chain.select for chain in chains if chain.select), key=lambda select: len(select.needs)),
        *(step for chain in chains for steps in chain.labels.values() for step in steps),
        *sorted(last, key=lambda step: not step.cell.arm.reference),
    ]


def _chain(place: Place, selects: Mapping[tuple[Cell, Replicate], Step], pieces: float) -> Chain:
    parts, cell = place.stages.parts(place.cell, place.replicate), place.cell
    labels = {part: _labels(place, part) for part in parts}
    chosen = {other: step for (other, of), step in selects.items() if of == place.replicate}
    pretrain = _pretrain(place, chosen, pieces) if cell.arm.pretrains else None
    return Chain(
        replicate=place.replicate,
        halves=place.halves,
        select=chosen.get(cell),
        labels=labels,
        pretrain=pretrain,
        tuned={
            part: _finetune(place, part, select=chosen.get(cell), pretrain=pretrain, labels=labels[part])
            for part in parts
        },
    )


def _select(place: Place, alike: Step | None) -> Step:
    """Return the step of a selection.

    alike: step of another selection; its number of tokens, or a multiple of it, is the budget. None: the variant's own
    budget.
    """
    cell, replicate = place.cell, place.replicate

    def options(runs: Mapping[Step, Run]) -> Options:
        pattern = (runs[alike], times(cell, alike.cell)) if alike else ()
        return options_of(place.within(runs).select(cell, replicate, *pattern))

    return Step(
        kind="select",
        cell=cell,
        replicate=replicate,
        needs=(*place.needs, *((alike,) if alike else ())),
        options=options,
    )


def _labels(place: Place, part: Part) -> tuple[Step, ...]:
    """Return the steps that extend, check or rebuild the labels before training; () if the arm only uses L_C."""
    cell, replicate = place.cell, place.replicate
    step = partial(Step, cell=cell, replicate=replicate, part=part)

    def within(runs: Mapping[Step, Run]) -> Labels:
        return place.within(runs).labels

    if cell.arm.assisting:
        skl = step(kind="skl", needs=place.needs, options=lambda runs: options_of(within(runs).skl(part)))
        needs = (skl,) if cell.arm.assisting < math.inf else ()
        check = step(
            kind=CHECK,
            needs=(*place.needs, *needs),
            options=lambda runs: within(runs).assisting_options(cell, replicate, [runs[s] for s in needs], part),
        )
        return (*needs, check)
    if cell.arm.first:
        return (step(kind=CHECK, needs=place.needs, options=lambda runs: place.within(runs).first(cell.arm)),)
    if not cell.arm.rebuild:
        return ()
    difficulty = step(
        kind="difficulty", needs=place.needs, options=lambda runs: options_of(within(runs).difficulty(part))
    )
    needs = (difficulty,) if cell.arm.measures else ()
    rebuild = step(
        kind="rebuild",
        needs=(*place.needs, *needs),
        options=lambda runs: options_of(within(runs).rebuild(cell, replicate, [runs[s] for s in needs], part)),
    )
    return (*needs, rebuild)


def _pretrain(place: Place, selects: Mapping[Cell, Step], pieces: float) -> Step:
    """Return the step of a pre-training; with `fixed`, it needs the selections of all variants.

    selects: the selections of this replicate.
    """
    cell, replicate = place.cell, place.replicate
    selection = (selects[cell],) if cell in selects else ()
    needs = selection if place.stages.config.fixed == "none" else tuple(selects.values())

    def options(runs: Mapping[Step, Run]) -> Options:
        chosen = {other: runs[step] for other, step in selects.items() if step in needs}
        return options_of(place.within(runs).pretrain(cell, replicate, chosen, pieces))

    return Step(
        kind="pretrain",
        cell=cell,
        replicate=replicate,
        needs=(*place.needs, *needs),
        options=options,
    )


def _finetune(
    place: Place, part: Part, *, select: Step | None, pretrain: Step | None, labels: tuple[Step, ...]
) -> Step:
    """Return the step that trains a replicate's taggers; for a reference variant, the step that finds the entities."""
    cell, replicate = place.cell, place.replicate
    if kind := cell.arm.reference:

        def found(runs: Mapping[Step, Run]) -> Options:
            return place.within(runs).reference(cell)

        return Step(kind=kind, cell=cell, replicate=replicate, needs=place.needs, options=found)
    label_steps = tuple(step for step in labels if step.kind != CHECK)
    select = select if cell.arm.pseudo else None
    before = tuple(filter(None, (select, pretrain)))

    def options(runs: Mapping[Step, Run]) -> Options:
        return options_of(
            place.within(runs).finetune(
                cell,
                replicate,
                part,
                select=runs[select] if select else None,
                pretrain=runs[pretrain] if pretrain else None,
                labels=[runs[step] for step in label_steps],
            )
        )

    return Step(
        kind="finetune",
        cell=cell,
        replicate=replicate,
        part=part,
        needs=(*place.needs, *before, *label_steps),
        options=options,
    )
