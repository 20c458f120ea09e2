"""The steps of an experiment: the runs of each variant with their options, from the selection to the taggers."""

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
from core.tagging.estimate import Text, balanced, mlm_steps

# Number of sentences of D_C that no arm trains on, so that forgetting can be measured on them.
GENERAL = 500
# A random part of L_C: (number of sentences, number of the draw). (0, 0) is all of L_C.
Part = tuple[int, int]


class Labels:
    """Options of the runs that prepare an arm's labels: parts of L_C, assisting sentences, a rebuilt L_C.

    job: returns the corpora, and executes the audits (searches for test leaks) on which the options depend. If an
        experiment is only planned, the job only finds finished audits.
    """

    def __init__(self, config: ExperimentConfig, job: Job, barred: Sequence[str] = ()) -> None:
        """barred: corpora whose sentences must not be used as assisting sentences."""
        self.config, self.job, self.barred = config, job, barred

    def skl(self, part: Part) -> SklConfig:
        """Return the options of a run that scores assisting sentences by the divergence of their tags from `part`."""
        config = self.config
        options = {"primary": self.part(part), "assisting": self.assisting.fingerprint, **config.skl}
        return SklConfig.parse({**options, "type_map": config.type_map})

    def difficulty(self, part: Part) -> DifficultyConfig:
        """Return the options of a run that measures PVI on a part of L_C. All methods of rebuilding use this run."""
        config = self.config
        options: Options = {"preset": config.preset, "seed": config.draw_seed, **config.difficulty}
        options |= {"encoder": config.difficulty_encoder or config.encoder, "allow_download": config.allow_download}
        return DifficultyConfig.parse({"train": self.part(part), **options})

    def rebuild(self, cell: Cell, replicate: Replicate, measured: Sequence[Run], part: Part) -> RebuildConfig:
        """Return the options of a run that rebuilds a part of L_C without held-out text.

        measured: a list with the run that measured PVI on this part; [] for methods that do not use PVI.
        """
        config, arm = self.config, cell.arm
        options: Options = {"seed": replicate.draw, **config.rebuild, "method": arm.rebuild}
        options |= {"rate": arm.rate, "difficulty": measured[0].id} if measured else {"encoder": config.encoder}
        options |= {"size": arm.size, "add_bin": arm.bin} if arm.rebuild == SHARE else {}
        return RebuildConfig.parse({"train": self.part(part), "holdout": (*config.held_out, config.dev), **options})

    def train(self, cell: Cell, runs: Sequence[Run], part: Part) -> str:
        """Return the fingerprint of a variant's training set. runs: finished runs that prepared its labels."""
        if not cell.arm.rebuild:
            return self.part(part)
        return self._copied(runs[-1], part) if cell.arm.copies else read(runs[-1], RebuildResult).corpus

    def _copied(self, rebuild: Run, part: Part) -> str:
        """Store a part of L_C with unchanged copies of the sentences that `rebuild` copied with changes.

        Return the fingerprint of the new corpus.
        """
        train = self.job.corpus(self.part(part))
        again = sorted({edit.copy_of for edit in read_edits(rebuild) if edit.copy_of is not None})
        rows, name = [*range(len(train)), *again], f"{train.name} with {len(again):,} unchanged copies"
        origin = {"from": train.fingerprint}
        return self.job.library.subset(train, np.array(rows), name=name, origin=origin).fingerprint

    @cached_property
    def assisting(self) -> Corpus:
        """Assisting corpus without held-out sentences. Errors: ConfigError if `type_map` renames types of L_C."""
        config = self.config
        check_trainable(self.job.corpus(config.train), parse_map(config.type_map))
        return learnable(config.assisting, self.barred, self.job)

    def assisting_options(self, cell: Cell, replicate: Replicate, runs: Sequence[Run], part: Part) -> Options:
        """Return the fine-tuning options that add assisting sentences. runs: the variant's `skl` run, if it has one.

        Errors: ConfigError; CorpusError if no assisting sentence can be used or the network cannot learn from them.
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
        """Parts of L_C on which every arm is fine-tuned, unless the option `multipliers` is set."""
        config = self.config
        return [(0, 0), *((size, draw) for draw in range(config.draws) for size in config.train_sizes)]

    def part(self, part: Part) -> str:
        """Store a part of L_C and return its fingerprint. A larger part of the same draw contains all smaller ones."""
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
        """pool: fingerprint of all pooled sentences, if `config` uses one half of them; else "".

        All text to train on is used without pooled sentences, except T_C and the training set.
        The attribute `firsts` is {name in an arm such as `transfer:NAME`: corpus with this name}.
        Errors: ConfigError if no corpus has the name that an arm gives.
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
        """Return the options of a run that splits the pooled sentences. Two replicates share each split."""
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
        """{split: number of sentences}. If two splits use the same corpus, only one of them is included."""
        names = dict.fromkeys(getattr(self.config, split) for split in SPLITS)
        sizes = {name: len(self.job.corpus(name)) for name in names}
        return {"train": sizes.pop(self.config.train), **sizes}

    @cached_property
    def label_sizes(self) -> tuple[int, ...]:
        """Sizes of the parts of L_C that are used to measure multipliers, ascending. The last is all of L_C."""
        config, sizes = self.config, self._split_sizes
        whole = (config.half_sizes(sizes) if config.cross else sizes)["train"]
        return (*sorted({size for size in config.train_sizes or (whole // 4, whole // 2) if 0 < size < whole}), whole)

    def parts(self, cell: Cell, replicate: Replicate) -> list[Part]:
        """Return the parts of L_C on which a replicate of a variant is fine-tuned; (0, 0) is all of L_C.

        If multipliers are measured, the claim, `random` and `none` also train on smaller parts, drawn per replicate. A
        reference variant, which trains nothing, has only (0, 0). An estimate (`labels:+N`) has only smaller parts.
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
        """Return the stages for the half of the labelled sentences on which a replicate trains.

        run: run that split the labelled sentences.
        """
        key = run.id, replicate.side
        if (known := self._on_half.get(key)) is None:
            split = read(run, HalvesResult)
            half = split.halves[replicate.side]
            update = {name: getattr(half, name) for name in ("task", *SPLITS)}
            known = self._on_half[key] = Stages(self.config.model_copy(update=update), self.job, split.pool)
        return known

    def imported(self, arm: Arm) -> str:
        """Return the id of the run that imported the arm's word vectors; "" if the arm uses no imported vectors."""
        imports = dict(zip(self.config.imported_vectors, self.config.imports, strict=False))
        return "" if arm.states else imports.get(arm.source, "")

    def _named(self, arm: Arm) -> Corpus:
        """Return the source corpus that the arm's name contains. Errors: ConfigError."""
        sources = [self.job.corpus(reference) for reference in self.config.sources]
        return find_named(arm, arm.source, sources, "sources", () if arm.states else self.config.imported_vectors)

    def first(self, arm: Arm) -> Options:
        """Return the fine-tuning options with which an arm's taggers train on another corpus first.

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
        """Random sentences of D_C to measure forgetting on. No arm trains on these (SOURCES.md, Forgetting)."""
        domain = self.job.corpus(self.config.domain)
        # At most a twentieth of D_C, because no arm can train on these sentences.
        n = min(GENERAL, -(-len(domain) // 20))
        rows = np.random.default_rng(self.config.draw_seed).choice(len(domain), n, replace=False)
        origin = {"from": domain.fingerprint}
        return self.job.library.subset(domain, np.sort(rows), name=f"{domain.name} general sample", origin=origin)

    @cached_property
    def sources(self) -> dict[tuple[str, str], Corpus]:
        """{(source, budget): text of this source to train on}, without held-out sentences.

        At one budget, the texts of all sources have the same number of tokens. A text contains all smaller texts of the
        same source. Errors: ConfigError if a source is smaller than `cap_tokens`.
        """
        config = self.config
        whole = {self.job.corpus(ref).fingerprint: learnable(ref, self.barred, self.job) for ref in config.sources}
        small = min(whole.values(), key=lambda corpus: corpus.n_tokens)
        if max(config.cap_tokens, default=0) > small.n_tokens:
            raise ConfigError(
                f"cap_tokens: {small.name} has only {small.n_tokens:,} tokens, but every source must give the same "
                "number; give at most this number, or leave this source out."
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
        """Return the text of a source corpus that a variant trains on; None if the variant has no source corpus."""
        learns = cell.arm.source and not self.imported(cell.arm)
        return self.sources[self.named[cell.arm.source].fingerprint, cell.budget] if learns else None

    def select(self, cell: Cell, replicate: Replicate, alike: Run | None = None, times: float = 1) -> SelectConfig:
        """Return the options of a run that selects a variant's S_C, without sentences that also occur in dev or test.

        alike, times: the budget is the number of tokens of the selection `alike`, multiplied by `times`. If `alike` is
        None, the budget is the variant's own.
        """
        config, arm = self.config, cell.arm
        options = {key: getattr(config, key) for key in ("domain", "train", "dev", "encoder", "allow_download")}
        # If possible, use the same options as the page Selection, so that both use the same scoring run. Otherwise
        # remove test leaks from T_C first.
        plain = config.transductive == "none" and not self.pool
        options |= {"task": config.task if plain else self.task.fingerprint, "transductive": not plain}
        of_strategy = config.strategies.get(arm.strategy, {})
        if "preset" in STRATEGIES[arm.strategy].Options.model_fields:  # true for strategies that train a model
            of_strategy = {"preset": config.preset, **of_strategy}
        options |= {"holdout": config.held_out, "strategy": arm.strategy, "options": of_strategy}
        if self.pool:  # Use the same held-out text for all replicates, so that they share one audit of D_C.
            trains = any("ner" in each.models for each in involved(arm.strategy, of_strategy))
            options |= {"holdout": self.barred, "dev": config.dev if trains else ""}
        if arm.strategy == Gazetteer.name and config.gazetteer:
            options["train"] = config.gazetteer
        # All variants and replicates use the same vectors of D_C, so embedding every sentence once costs less than a
        # cascade for each selection.
        if len(self.job.corpus(config.domain)) > LARGE:
            options["cascade"] = False
        options["seed"] = replicate.draw
        domain, budget = self.job.corpus(config.domain), cell.budget
        if arm.plain_name == CONTROL:
            budget = f"{self.task.n_tokens}tokens"
        if arm.pseudo:  # The fixed budget may be larger than D_C.
            budget = str(min(int(budget), len(domain)))
        if alike:
            budget = f"{round(times * read(alike, SelectResult).tokens)}tokens"
        if budget.endswith("tokens"):  # T_C may be larger than D_C, and so may a multiple of the claim's budget.
            budget = f"{min(int(budget.removesuffix('tokens')), domain.n_tokens)}tokens"
        return SelectConfig.parse({**options, "budget": budget, **config.select})

    def pretrain(self, cell: Cell, replicate: Replicate, selects: Mapping[Cell, Run], pieces: float) -> PretrainConfig:
        """Return the options of a variant's pre-training.

        selects: {variant: its finished selection}; only the variant's own selection, unless the option `fixed` is set.
        pieces: word pieces per token.
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
        """Return the options that give all variants the same amount of pre-training; {} unless `fixed` requires this.

        selects, pieces: as in `pretrain`.
        """
        kind, config = self.config.fixed, self.config
        if kind == "none":
            return {}
        cells = [cell for cell in config.cells if cell.arm.pretrains]
        # Ignore variants that train on all of D_C: otherwise all other variants would repeat their text many times.
        some = [cell for cell in cells if cell.arm.budget != WHOLE] or cells
        settings = config.mlm_settings
        texts = [self._an_epoch(self.read(cell, selects.get(cell))) for cell in some]
        own = [(text, *mlm_steps(settings, text, pieces)) for text in texts]
        if kind == "steps":
            return {"max_steps": max((steps for _, steps, _ in own), default=0)}
        return {"max_pieces": max((round(epochs * text.tokens * pieces) for text, _, epochs in own), default=0)}

    def _an_epoch(self, references: Sequence[str]) -> Text:
        """Return what an epoch of MLM on these corpora reads."""
        corpora = [self.job.corpus(reference) for reference in references]
        task, others = (
            Text(sentences=sum(map(len, part)), tokens=sum(corpus.n_tokens for corpus in part))
            for part in (corpora[:1], corpora[1:])
        )
        return balanced(self.config.mlm_settings, task, others)

    def read(self, cell: Cell, select: Run | None) -> tuple[str, ...]:
        """Return the fingerprints of the corpora on which a variant runs MLM. select: its selection, if it has one."""
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
        """Return the options of a run that trains a variant's taggers on one part of L_C.

        labels: finished runs that prepared the training set.
        """
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
        """Return the options of a reference variant's run, which finds the entities in the test sets."""
        return reference_options(cell.arm.reference, cell.arm.value, self.config)

    def _borrowed(self, cell: Cell, pretrain: Run | None) -> Options:
        """Return the fine-tuning options that a variant's arm sets, except those for assisting sentences and S_C."""
        arm = cell.arm
        options: Options = {}
        # Random word vectors must have the same dimension as learnt vectors.
        if size := self.config.vectors.get("dimension"):
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
    """Return the one of `corpora` that has this name, or a fingerprint that begins with it. Errors: ConfigError.

    The beginning of a fingerprint must have at least 6 digits, as in `Library.find`.
    what: word for these corpora in the error message. others: further allowed names, also listed in the message.
    """
    matches = [corpus for corpus in corpora if name in (corpus.name, *corpus.names)]
    if len(name) >= 6:
        matches = matches or [corpus for corpus in corpora if corpus.fingerprint.startswith(name)]
    if len(matches) != 1:
        names = ", ".join([*(corpus.name for corpus in corpora), *others])
        raise ConfigError(
            f"arms: {arm.name} names {len(matches) or 'none'} of the {what}; choose among {names}, or write the "
            "fingerprint."
        )
    return matches[0]


def options_of(config: Config) -> Options:
    """Return the options of a config that were set explicitly, in the form that `Job.child` requires."""
    return config.model_dump(exclude_unset=True)


CHECK = ""  # kind of a step without a run: it only raises an error if taggers cannot be trained on the data


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A run to execute for one replicate of one variant.

    options: function that returns the options of the run, given {step in `needs`: its run}.
    part: part of L_C that the run uses.
    """

    kind: str
    cell: Cell
    replicate: Replicate
    options: Callable[[Mapping["Step", Run]], Options]
    needs: tuple["Step", ...] = ()
    part: Part = (0, 0)

    @property
    def what(self) -> str:
        """Replicate and part of L_C, in words; "" if the variant has one replicate and uses all of L_C."""
        size, draw = self.part
        part = f"{size:,} labelled sentences, draw {draw + 1}" if size else ""
        return ", ".join(filter(None, (self.replicate.in_words(), part)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A replicate of a variant, with the stages that build the options of its runs.

    halves: step that splits the labelled sentences into halves; None if halves are not swapped.
    """

    stages: Stages
    cell: Cell
    replicate: Replicate
    halves: Step | None

    @property
    def needs(self) -> tuple[Step, ...]:
        """Steps that must finish before all other steps of the replicate."""
        return (self.halves,) if self.halves else ()

    def within(self, runs: Mapping[Step, Run]) -> Stages:
        """Return the stages for the replicate's own half of the labels, or for L_C if halves are not swapped."""
        return self.stages.on_half(runs[self.halves], self.replicate) if self.halves else self.stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The steps of one replicate of a variant.

    halves: step that splits the labelled sentences, shared by all variants.
    labels: {part of L_C: steps that prepare the labels}. tuned: {part of L_C: step that trains the taggers}.

    A reference variant has one step in `tuned`, which finds the entities in the test sets. An estimate (`labels:+N`)
    has steps on smaller parts of L_C only.
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
    # Start with the variants whose selection sets the number of tokens of other variants.
    for cell, model in sorted(models.items(), key=lambda item: item[1] is not None):
        for place in places[cell]:
            selects[cell, place.replicate] = _select(place, selects[model, place.replicate] if model else None)
    return [Line(cell=cell, chains=tuple(_chain(place, selects, pieces) for place in places[cell])) for cell in cells]


def _halves(stages: Stages, cells: Sequence[Cell]) -> dict[int, Step]:
    """Return {number of a replicate: step that splits the labelled sentences}; {} unless halves are swapped.

    All variants share these steps. Two successive replicates, which swap the halves of one split, also share a step.
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
    """Return the steps in blocks. Each block ends at an interim analysis.

    stops: numbers of replicates after which the experiment may end; () for a single block. In a block, all selections,
    labels and reference variants come first, so that errors in the data appear early. The trainings follow, replicate
    by replicate, and in each replicate arm by arm.
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
        # If the number of tokens of a selection is set by another selection, the other one comes first.
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
    """Return the step that selects the text of a replicate.

    alike: step of another selection, whose number of tokens (or a multiple) is the budget. None: the variant's own
    budget is used.
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
    """Return the steps that extend, check or rebuild the labels before training; () if the arm uses L_C unchanged."""
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
    """Return the step that pre-trains a replicate. With the option `fixed`, it needs the selections of all variants.

    selects: {variant: step of its selection in this replicate}. pieces: word pieces per token.
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
    """Return the step that trains the taggers of a replicate, or that finds the entities of a reference variant."""
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
