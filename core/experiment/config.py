"""Options of an experiment, and the variants and replicates that follow from them.

All options are checked before any run starts.

If an arm has only one selection (S_C) and one pre-training, its taggers are not independent samples. Their scores show
how much taggers vary. They do not show how much the result would vary with another selection and another pre-training
(SOURCES.md, Replicates).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, ValidationInfo, field_validator, model_validator

from core.assisting.skl import SklOptions, parse_map
from core.bias.difficulty import DifficultyOptions
from core.bias.rebuild import EDITION, METHODS, SHARES_EDITION, RebuildOptions
from core.config import LARGEST_SEED, Budget, Config, checked, option
from core.corpora.library import Library
from core.encoders.vectors import find_import
from core.errors import ConfigError
from core.experiment import arms
from core.experiment.arms import Cell, claimed, find
from core.experiment.reference import KINDS, options_of
from core.kind import Options
from core.llm.llm import LlmConfig, LlmOptions
from core.models.encoder import EncoderOptions
from core.models.networks import ON_ENCODER
from core.paths import home
from core.pretraining.pretrain import PretrainOptions
from core.runs.store import RunStore
from core.selection import STRATEGIES, strategy_options
from core.selection.select import SelectOptions
from core.similarity.wvv import WvvOptions
from core.stats.bootstrap import PAIRED_FROM
from core.stats.draws import short_seed
from core.tagging.network import MULTILINGUAL
from core.training.mlm_settings import MlmSettings
from core.training.settings import TaggerSettings

# {stage: class of the options that the user may set}. The experiment sets all other options of the stage.
_STAGES: dict[str, type[Config]] = {
    "select": SelectOptions,
    "pretrain": PretrainOptions,
    "finetune": TaggerSettings,
    "difficulty": DifficultyOptions,
    "rebuild": RebuildOptions,
    "skl": SklOptions,
    "vectors": WvvOptions,
    "llm": LlmOptions,
}


# With the option `cross`, these are pooled and then split into halves.
SPLITS = ("train", "dev", "test")
# Budgets of `random` as multiples of the claim's budget, evenly spaced on a log scale.
TIMES = (1, 2, 4)
# Difference between the seeds of two successive taggers of a replicate.
TAGGERS_APART = 100_000
# Values of `cap_tokens` that mean "as many tokens as the smallest source has".
_SMALLEST = (None, "", 0, "0", (0,), [0], ("0",), ["0"])


def _listed(given: object) -> object:
    """Return `given`, a value of the option `cap_tokens`, as a tuple; () if it is in `_SMALLEST`."""
    if given in _SMALLEST:
        return ()
    return (given,) if isinstance(given, int | str) else given


def _distinct_caps(caps: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(caps)) < len(caps) or any(cap < 1 for cap in caps):
        raise ConfigError(
            f"cap_tokens: {', '.join(map(str, caps))} must be different numbers of tokens, each at least 1; a "
            "single 0 means as many tokens as the smallest source has."
        )
    return caps


def _stored(caps: Sequence[int]) -> int | list[int]:
    # A single size is stored as a number, as in earlier versions, so that run keys stay the same.
    return (caps[0] if caps else 0) if len(caps) < 2 else list(caps)


Caps = Annotated[tuple[int, ...], BeforeValidator(_listed), AfterValidator(_distinct_caps), PlainSerializer(_stored)]
Repeat = Literal["tagger", "pipeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One repetition of a variant.

    draw: seed of the selection, of MLM and of a rebuilt L_C.
    seeds: seeds of the taggers of the replicate.
    number: number of the replicate, from 1; 0 if the variant has only one selection and one pre-training.
    """

    draw: int
    seeds: tuple[int, ...]
    number: int = 0

    @property
    def side(self) -> int:
        """Number of the half that the replicate trains on, 0 or 1, if halves are swapped."""
        return (self.number - 1) % 2

    def in_words(self) -> str:
        """Return the name of the replicate, such as "replicate 2"; "" if the variant has only one."""
        return f"replicate {self.number}" if self.number else ""


class ExperimentConfig(Config):
    """Options of an experiment: variants, corpora and settings."""

    task: str = option("", "Task corpus (T_C), without labels; for variants that are pre-trained.", corpus=True)
    domain: str = option("", "Domain corpus (D_C): the text to select from.", corpus=True)
    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set: settings and epochs are chosen on it.", corpus=True)
    test: str = option(..., "Test set: each variant is tested on it once.", corpus=True)
    holdout: tuple[str, ...] = option(
        (), "Further labelled corpora; text that also occurs in them is a test leak.", corpus=True
    )
    arms: tuple[str, ...] = option(
        ("none", "random", "classifier"),
        f"Variants to compare with `none`, the baseline: {', '.join(arms.FIXED_NAMES)}, a strategy, or a name with a "
        f"value: {', '.join(arms.ARM_SHAPES)}. {arms.COPIES_HELP}",
    )
    budgets: tuple[str, ...] = option(("10%",), "Budget of each strategy: 1000 (sentences), 50000tokens or 20%.")
    claim: str = option(
        "", "Variant that the planned test is about; by default the first strategy. Other verdicts are exploratory."
    )
    seeds: tuple[int, ...] = option(
        (1, 2, 3), "Seeds, one per replicate, the same for every variant; to test a claim, give 6 seeds and set looks."
    )
    repeat: Repeat = option(
        "pipeline",
        "Stages that every seed repeats. tagger: only the tagger; this can show that pre-training helped, "
        "but not that the selection did. pipeline: selection, pre-training and tagger.",
    )
    taggers: int = option(
        1,
        "Number of taggers that every replicate trains; their scores are pooled. If a pre-training takes as long as "
        "several taggers, about 4 taggers give the smallest interval for the same time.",
        ge=1,
        le=16,
    )
    cross: bool = option(
        False,
        "Swap halves: pool train, dev and test, and split the pool into new halves for every second replicate. Train "
        "on each half, with its text as the task corpus, and test on the other. The interval then includes the random "
        "draw of labels. Leave task out.",
    )
    cross_train: int = option(0, "Training sentences per half; 0: as many as train has.", unit="sentences", ge=0)
    cross_dev: int = option(
        0, "Dev sentences per half; 0: 50% of the half's training sentences.", unit="sentences", ge=0
    )
    looks: tuple[int, ...] = option(
        (), "Numbers of replicates at which the experiment may end early, such as 2,4,6; by default all are run."
    )
    effect: float = option(
        1.0, "Gain to detect, in points of F1; used in forecasts and to decide whether to end early.", gt=0
    )
    encoder: str = option("minilm", "Encoder of all variants: a Hugging Face name, a folder, or minilm (bundled).")
    axis: tuple[str, ...] = option(
        (), "Further encoders, as encoder:NAME; every variant is also run with each, on the same selection and labels."
    )
    preset: Literal["quick", "paper"] = option(
        "quick",
        "Preset of all training. paper: as in Ma et al. 2023 if variants rebuild labels and no variant pre-trains.",
    )
    fixed: Literal["none", "steps", "tokens"] = option(
        "none",
        "Pre-train every variant for the same number of steps, or word pieces, so that variants with more text do not "
        "train for longer. The variant with the most text sets the number; variants that train on all of the domain "
        "corpus do not count.",
    )
    transductive: Literal["none", "dev", "all"] = option(
        "none",
        "Sentences of the task corpus that also occur in a held-out set. none: pre-train on none of them. dev: on "
        "those in the dev set. all: on all of them. Their labels are never used.",
    )
    train_sizes: tuple[int, ...] = option(
        (), "Also fine-tune on training sets of these sizes; a larger set contains the smaller ones.", unit="sentences"
    )
    multipliers: bool = option(
        False,
        "Also measure how much random text or how many labels the selection is worth; adds random variants with 2 and "
        "4 times the text, and taggers on fewer labels.",
    )
    draws: int = option(
        3,
        "Number of random parts of L_C per size in train_sizes; scores vary more between parts than between seeds.",
        ge=1,
    )
    strategies: dict[str, Options] = option({}, "Options of single strategies: {knn: {neighbours: 10}}.")
    select: Options = option({}, "Further options of every selection.")
    pretrain: Options = option({}, "Further options of pre-training: {epochs: 4, batch_size: 32}.")
    finetune: Options = option({}, "Further options of fine-tuning: {epochs: 40}.")
    draw_seed: int = option(0, "Seed of selection, pre-training and parts of L_C.", ge=0)
    allow_download: bool = option(False, "Download the encoder from the Hugging Face hub if it is missing.")
    also_test: tuple[str, ...] = option(
        (), "Further labelled test sets, for example harder ones; verdicts do not use them.", corpus=True
    )
    sources: tuple[str, ...] = option(
        (), "Corpora on which the variants vectors:SOURCE and lm:SOURCE train.", corpus=True
    )
    cap_tokens: Caps = option(
        (),
        "Number of tokens to use from every source; if you give several numbers, each variant with a source is run "
        "once per number.",
        unit="tokens",
    )
    assisting: str = option("", "Labelled corpus whose sentences the variants all and skl:THRESHOLD add.", corpus=True)
    transfer: tuple[str, ...] = option(
        (), "Labelled corpora that the variants transfer:CORPUS train on first, before the training set.", corpus=True
    )
    transfer_epochs: int = option(
        2, "Epochs on a transfer corpus; the weights after the last epoch are kept.", ge=1, le=100
    )
    type_map: tuple[str, ...] = option(
        (),
        "OLD=NEW renames a type of the assisting or transfer corpora, or of a ready model, to a type of the labels "
        "(PER=person); OLD= drops the type.",
    )
    dictionary: tuple[str, ...] = option(
        (),
        "Lists of names, as labelled corpora, for the variants dictionary and none+dictionary. Without a list, the "
        "variant dictionary looks up the names of the training set.",
        corpus=True,
    )
    llm: Options = option(
        {}, "Further options of the variants llm:MODEL@ADDRESS: {examples: 8}; allow_host permits another computer."
    )
    gazetteer: str = option(
        "", "Corpus with the names that the variant gazetteer looks for, instead of train.", corpus=True
    )
    difficulty_encoder: str = option(
        "", "Encoder to measure pointwise V-information (PVI) with; by default the same as encoder."
    )
    difficulty: Options = option({}, "Further options of measuring pointwise V-information (PVI): {repeats: 3}.")
    rebuild: Options = option({}, "Further options of rebuilding the labels.")
    skl: Options = option({}, "Further options of scoring assisting sentences: {unit: surface}.")
    vectors: Options = option({}, "Options of learning word vectors: {window: 2, dimension: 200}.")
    imported_vectors: tuple[str, ...] = option(
        (), "Imported word vectors for variants vectors:NAME; all variants use vectors of the same dimension."
    )

    imports: tuple[str, ...] = option((), "Runs that imported the word vectors.", hidden=True)
    weights: str = option("", "Hashes of the encoders and ready models.", hidden=True)
    edition: str = option(
        "", "Version of the analysis and of the methods that rebuild labels, set by Winnow.", hidden=True
    )

    def settled(self) -> Self:
        """Return the options with `weights`, `edition`, `imports` and the dimension of word vectors filled in.

        Errors: ModelError if an encoder is missing and downloads are not allowed, or if the model of an arm
        zero-shot:FOLDER cannot be used; PathError if that model may not be read; ConfigError if imported vectors are
        unknown, or if a dictionary has the same content as a held-out corpus; CorpusError if a dictionary is missing.
        """
        self._check_names(lambda name: Library(home()).find(name).fingerprint)
        named = (
            EncoderOptions(encoder=name, allow_download=self.allow_download).settled()
            for name in (self.encoder, *self.encoders)
        )
        ready = (str(line.settled().model_dump().get("weights", "")) for line in self.references.values())
        weights = " ".join([*(options.weights for options in named), *ready]).strip()
        methods = {arms.find(name).rebuild for name in self.arms}
        # Add "shares" only if an arm draws sentences by CEIM, so that the run keys of other experiments stay the same.
        edition = EDITION * bool(methods & set(METHODS)) + f" shares {SHARES_EDITION}" * ("low-share" in methods)
        # Add these newer methods only if the experiment uses them, so that the run keys of others stay the same.
        newer = " pairs" * (len(self.seeds) >= PAIRED_FROM) + " limit" * (2 in self.stops)
        edition = f"{edition}{newer}".strip()
        return self.model_copy(update={"weights": weights, "edition": edition, **self._imports()})

    @property
    def keep(self) -> Options:
        """Options {"keep": "last"} of all fine-tuning, for the network `encoder` with the preset `quick`; else {}.

        With this option, a tagger keeps its last epoch. In these runs, F1 of the last epoch varies less with the seed
        than F1 of the best epoch.
        """
        measured = self.network == "encoder" and self.tagger_preset == "quick" and "preset" not in self.finetune
        return {"keep": "last"} if measured else {}

    def _imports(self) -> Options:
        """Return the options `imports`, the runs that imported word vectors, and `vectors`, with their dimension.

        All arms use this dimension. Return {} without imported vectors.
        Errors: ConfigError if a name is unknown, or if the vectors have different dimensions.
        """
        if not self.imported_vectors:
            return {}
        named = [find_import("imported_vectors", name, RunStore(home())) for name in self.imported_vectors]
        given = {"dimension of vectors": self.vectors["dimension"]} if "dimension" in self.vectors else {}
        lengths = {**given, **{imported.name: imported.dimension for _, imported in named}}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ConfigError(
                f"imported_vectors: all variants need vectors of one dimension, but these differ ({listed}); leave one "
                "out."
            )
        vectors = {**self.vectors, "dimension": named[0][1].dimension}
        return {"imports": tuple(run_id for run_id, _ in named), "vectors": vectors}

    @field_validator("budgets")
    @classmethod
    def _budgets(cls, budgets: tuple[str, ...]) -> tuple[str, ...]:
        """Return the budgets in normal spelling, each once. Errors: ConfigError."""
        try:
            parsed = [Budget.parse(budget) for budget in budgets]
        except ConfigError as error:
            raise ConfigError(f"budgets{str(error).removeprefix('budget')}") from error
        if any(budget.unit == "threshold" for budget in parsed):
            raise ConfigError(
                "budgets: a threshold gives each strategy a different size; give 1000, 50000tokens or 20%."
            )
        return tuple(dict.fromkeys(map(str, parsed)))

    @field_validator("looks")
    @classmethod
    def _looks(cls, looks: tuple[int, ...]) -> tuple[int, ...]:
        if looks and (looks[0] < 2 or any(b <= a for a, b in pairwise(looks))):
            raise ConfigError(
                f"looks: {looks} must be rising numbers of replicates, at least 2; write for example 2,4,6."
            )
        return looks

    @field_validator("seeds", "train_sizes")
    @classmethod
    def _distinct(cls, values: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        if len(set(values)) < len(values) or any(value < 0 for value in values):
            raise ConfigError(f"{info.field_name}: {values} must be different whole numbers, none below 0.")
        return values

    @field_validator("arms")
    @classmethod
    def _arms(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the arms in normal spelling, each once. Errors: ConfigError."""
        return tuple(dict.fromkeys(arms.find(name).name for name in names))

    @field_validator("claim")
    @classmethod
    def _claim(cls, name: str) -> str:
        """Return the arm's name in normal spelling. Errors: ConfigError."""
        return arms.find(name).name if name else ""

    @field_validator("axis")
    @classmethod
    def _axis(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the encoders in normal spelling, each once. Errors: ConfigError."""
        for name in names:
            if not name.removeprefix(arms.ENCODER).strip() or not name.startswith(arms.ENCODER):
                raise ConfigError(f"axis: {name!r} is not understood; write for example encoder:minilm.")
        return tuple(dict.fromkeys(arms.ENCODER + name.removeprefix(arms.ENCODER).strip() for name in names))

    @field_validator("type_map")
    @classmethod
    def _type_map(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        """Return the pairs OLD=NEW in normal spelling, sorted. Errors: ConfigError."""
        return tuple(sorted(f"{old}={new}" for old, new in parse_map(pairs).items()))

    @field_validator("strategies")
    @classmethod
    def _strategies(cls, strategies: dict[str, Options]) -> dict[str, Options]:
        """Check each strategy's options and return those that the user gave, in normal form. Errors: ConfigError."""
        by_strategy = {}
        for name, own in strategies.items():
            try:
                values = strategy_options(name, own).model_dump(mode="json")
            except ConfigError as error:
                raise ConfigError(f"strategies.{name}.{error}") from error
            by_strategy[name] = {key: values[key] for key in own}
        return by_strategy

    @field_validator(*_STAGES)
    @classmethod
    def _options(cls, options: Options, info: ValidationInfo) -> Options:
        """Check the options of a stage before the experiment starts, not hours later. Errors: ConfigError."""
        name = info.field_name or ""
        return checked(name, options, _STAGES[name])

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Check that the options fit together and that every arm has the corpora it needs. Errors: ConfigError."""
        if not self.seeds:
            raise ConfigError("seeds: give at least one.")
        if max(self.tagger_seeds) > LARGEST_SEED:
            raise ConfigError(f"seeds: a tagger's seed can be at most {LARGEST_SEED:,}; give smaller seeds.")
        if len(set(self.tagger_seeds)) < len(self.tagger_seeds):
            raise ConfigError(
                f"taggers: each further tagger adds {TAGGERS_APART:,} to the seed, so two taggers would have the "
                "same seed; give smaller seeds."
            )
        if not self.budgets and any(name in STRATEGIES for name in self.arms):
            raise ConfigError("budgets: give at least one, for example 10%.")
        if "add_bin" in self.rebuild:
            raise ConfigError(
                "rebuild.add_bin: in an experiment, every bin is a variant; leave the option out, and add for example "
                "base+low:1000 to arms."
            )
        if self.encoders and self.network not in ON_ENCODER:
            raise ConfigError(
                f"axis: a {self.network} uses no encoder; leave out axis, or the variants that need this network."
            )
        self._check_multipliers()
        names = self._names()
        arms.check_taggers(names, self.tagger_settings)
        if self.claim and (self.claim not in names or not arms.find(self.claim).judged):
            judged = ", ".join(name for name in self.arms if arms.find(name).judged)
            raise ConfigError(
                f"claim: {self.claim} gets no verdict; name one of {judged or 'the strategies, and add it to arms'}."
            )
        self._check_looks()
        self._check_cross()
        self._check_names()
        _ = self.references  # raises ConfigError if the options of a reference variant are wrong
        return self

    @property
    def references(self) -> dict[str, Config]:
        """{reference variant: options of its run}. Errors: ConfigError, also if a host is not allowed."""
        found = dict[str, Config]()
        for arm in map(arms.find, self.arms):
            if kind := arm.reference:
                try:
                    found[arm.name] = KINDS[kind].kind.config.parse(options_of(kind, arm.value, self))
                except ConfigError as error:
                    raise ConfigError(f"arms: {arm.name}: {error}") from error
        return found

    @property
    def hosts(self) -> list[str]:
        """Names of the other computers to which reference variants send sentences."""
        asked = [line.settled() for line in self.references.values() if isinstance(line, LlmConfig)]
        return sorted({line.allow_host for line in asked if line.allow_host})

    def _check_names(self, of: Callable[[str], str] = str) -> None:
        """Refuse a dictionary that is a held-out corpus.

        If taggers use the dictionary or halves are swapped, the dictionary may not be the training set either.
        of: function that returns the fingerprint of a corpus by its name; by default, the names are compared.
        Errors: ConfigError, and errors of `of`.
        """
        barred = {self.dev, *self.held_out}
        # With swapped halves, sentences of the training set are tested too.
        barred |= {self.train} if self.cross or any(arms.find(name).names for name in self.arms) else set()
        marks = set(map(of, barred)) if self.dictionary else set()
        if own := [name for name in self.dictionary if of(name) in marks]:
            raise ConfigError(
                f"dictionary: {', '.join(own)} is also the training set or a held-out corpus, so its names would be "
                "found too often; give a list of other names."
            )

    def _check_multipliers(self) -> None:
        if not self.multipliers:
            return
        if self.repeat != "pipeline" or len(self.seeds) < 2:
            raise ConfigError(
                "multipliers: need replicates of the whole pipeline; set repeat to pipeline and give two seeds or "
                "more, or leave multipliers out."
            )
        if self.claimed is None or not self.claimed.arm.chooses:
            raise ConfigError(
                "multipliers: these measure the worth of a selection; name a strategy as the claim, or leave "
                "multipliers out."
            )

    def _check_looks(self) -> None:
        if not self.looks:
            return
        if self.looks[-1] != len(self.seeds):
            raise ConfigError(
                f"looks: the last number, {self.looks[-1]}, must be the number of seeds, {len(self.seeds)}."
            )
        if not self.claimed or not self.replicates(self.claimed)[0].number:
            raise ConfigError(
                "looks: only an experiment that repeats its pipeline for each seed can end early; set repeat to "
                "pipeline and add a variant that pre-trains or rebuilds labels, or leave out looks."
            )

    def _check_cross(self) -> None:
        if not self.cross:
            if self.cross_train or self.cross_dev:
                raise ConfigError("cross_train, cross_dev: these need swapped halves; give cross, or leave them out.")
            return
        if estimates := [name for name in self.arms if arms.find(name).more]:
            raise ConfigError(
                f"arms: {estimates[0]} needs a single training set, which cross does not have; leave one of them out."
            )
        if self.task:
            raise ConfigError(
                "task: with cross, the task corpus is the text of each half, so that it contains no test sentences; "
                "leave task out."
            )
        if self.repeat != "pipeline":
            raise ConfigError(
                "cross: every replicate trains on its own half and so repeats all stages; set repeat to pipeline."
            )
        if len(self.seeds) % 2:
            raise ConfigError(
                f"seeds: cross needs two replicates per split, one for each half; {len(self.seeds)} seeds leave one "
                "half untested. Give 2, 4 or 6."
            )
        if odd := [look for look in self.looks if look % 2]:
            raise ConfigError(
                f"looks: {odd[0]} replicates do not test both halves of every split; give even numbers, such as 2,4,6."
            )

    def _names(self) -> tuple[str, ...]:
        given = {**dict(self), "task": self.task or self.cross}
        return arms.complete(self.arms, given, self.network, arms.set_size(self.rebuild))

    @property
    def encoders(self) -> list[str]:
        """Encoders of the option `axis`: every arm is also run with these, in addition to `encoder`."""
        names = (name.removeprefix(arms.ENCODER) for name in self.axis)
        return [name for name in names if name != self.encoder]

    @property
    def network(self) -> str:
        """Network of all taggers, from `finetune`. Default: a bilstm if an arm uses word vectors or frozen states."""
        borrows = any(arm.source or arm.states for arm in map(arms.find, self.arms))
        return str(self.finetune.get("network", "bilstm" if borrows else "encoder"))

    @property
    def mlm_settings(self) -> MlmSettings:
        """Pre-training settings that all arms share."""
        return PretrainOptions.parse({"preset": self.preset, **self.pretrain})

    @property
    def tagger_preset(self) -> str:
        """Preset of all fine-tuning: `paper-bias` in place of `paper` if the arms are like those of Ma et al. 2023."""
        fits = self.preset == "paper" and arms.of_bias(self.arms) and self.network in ON_ENCODER
        return "paper-bias" if fits else self.preset

    @property
    def tagger_settings(self) -> TaggerSettings:
        """Fine-tuning settings that all arms share."""
        return TaggerSettings.parse({"preset": self.tagger_preset, "network": self.network, **self.finetune})

    @property
    def tagger(self) -> Options:
        """Fine-tuning options that set the network of all arms: its name, unless it is the default, and its size.

        The size is fixed so that an arm that adds labels of another corpus does not get a larger network.
        """
        options: Options = {} if self.network == "encoder" else {"network": self.network}
        borrows = any(arm.assisting for arm in map(arms.find, self.arms))
        usual = MULTILINGUAL if self.network == "charcnn" and borrows else None
        if hidden := self.finetune.get("hidden") or usual:
            options["hidden"] = hidden
        return options

    @property
    def held_out(self) -> tuple[str, ...]:
        """Test sets and held-out corpora. Sentences of other text are test leaks if they occur in these or in dev."""
        return tuple(dict.fromkeys((self.test, *self.also_test, *self.holdout)))

    @property
    def cells(self) -> list[Cell]:
        """All variants: the arms that the user listed, and the baselines and controls that a verdict requires."""
        size, caps, imported = arms.set_size(self.rebuild), self.cap_tokens, self.imported_vectors
        cells = arms.cells(self._names(), self.budgets, self.encoders, size=size, caps=caps, imported=imported)
        claim = claimed(cells, self.claim)
        if not self.multipliers or claim is None or not claim.arm.chooses:
            return cells
        return [*cells, *(cell for cell in random_multiples(claim) if cell not in cells)]

    @property
    def claimed(self) -> Cell | None:
        """Variant that the claim is about; None if no arm gets a verdict."""
        return claimed(self.cells, self.claim)

    @property
    def stops(self) -> tuple[int, ...]:
        """Numbers of replicates at which the experiment may end; the last is the number of seeds."""
        return self.looks or (len(self.seeds),)

    def replicates(self, cell: Cell) -> tuple[Replicate, ...]:
        """Return the replicates of a variant, in order.

        If only the taggers of a variant depend on the seed, as for `none`, one replicate trains the taggers of all
        seeds. An estimate (`labels:+N`) has one replicate per seed, because each seed draws different parts of L_C. A
        reference variant has one replicate without tagger seeds; with swapped halves, it has one per tested half.
        """
        if cell.arm.reference:
            halves = enumerate(self.seeds, 1) if self.cross else [(0, self.draw_seed)]
            return tuple(Replicate(draw=seed, seeds=(), number=number) for number, seed in halves)
        if cell.arm.more:
            return tuple(Replicate(draw=s, seeds=self._of_seed(s), number=i) for i, s in enumerate(self.seeds, 1))
        own_labels = self.cross or self.multipliers
        # Random assisting sentences are drawn once per seed even if `repeat` is `tagger`, because this takes no time.
        drawn = cell.arm.control and cell.arm.assisting
        if not drawn and (self.repeat == "tagger" or not (own_labels or cell.arm.prepares or cell.arm.rebuild)):
            return (Replicate(draw=short_seed(self.draw_seed), seeds=self.tagger_seeds),)
        return tuple(Replicate(draw=seed, seeds=self._of_seed(seed), number=i) for i, seed in enumerate(self.seeds, 1))

    @property
    def tagger_seeds(self) -> tuple[int, ...]:
        """Seeds of all taggers of a variant, in the order of the replicates."""
        return tuple(tagger for seed in self.seeds for tagger in self._of_seed(seed))

    def _of_seed(self, seed: int) -> tuple[int, ...]:
        return tuple(seed + TAGGERS_APART * number for number in range(self.taggers))

    def half_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the numbers of training and dev sentences of a half, as {"train": n, "dev": n}.

        By default a half trains on as many sentences as `train` has, but at most on two thirds of the half. The dev set
        gets half as many. sizes: {split: number of sentences}; if two splits use the same corpus, only one is included.
        """
        half = sum(sizes.values()) // 2
        train = self.cross_train or max(min(sizes["train"], 2 * half // 3), 1)
        return {"train": train, "dev": self.cross_dev or max(min(train // 2, half - train), 1)}


class HalvesConfig(Config):
    """Options of a run that splits labelled sentences into halves."""

    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set.", corpus=True)
    test: str = option(..., "Labelled test split.", corpus=True)
    train_sentences: int = option(..., "Number of training sentences in each half.", unit="sentences", ge=1)
    dev_sentences: int = option(
        ..., "Number of dev sentences in each half of the labelled data.", unit="sentences", ge=1
    )
    seed: int = option(0, "Seed of the split.", ge=0)


def tokens_read(budget: str, caps: Sequence[int], smallest: int) -> int:
    """Return the number of tokens that a variant uses from its source corpus.

    budget: budget of the variant; "" if `caps` has at most one number. smallest: tokens of the smallest source.
    """
    return int(Budget.parse(budget).value) if budget else next(iter(caps), smallest)


def random_multiples(claim: Cell) -> list[Cell]:
    """Return the variants of `random` at the claim's budget and at multiples of that budget. Errors: ConfigError."""
    budget = Budget.parse(claim.budget)
    if budget.unit == "fraction" and budget.value * TIMES[-1] > 1:
        raise ConfigError(
            f"multipliers: {TIMES[-1]} times {claim.budget} is more than the domain corpus has; give a budget of "
            f"{100 // TIMES[-1]}% at most, or leave multipliers out."
        )
    return [Cell(arm=find(arms.RANDOM), budget=str(replace(budget, value=budget.value * times))) for times in TIMES]
