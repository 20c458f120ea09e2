"""The options of an experiment, checked before anything is computed."""

from itertools import pairwise
from typing import Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from core.assisting.skl import SklOptions, parse_map
from core.bias.difficulty import DifficultyOptions
from core.bias.rebuild import EDITION, METHODS, SHARES_EDITION, RebuildOptions
from core.config import Budget, Config, checked, option
from core.errors import ConfigError
from core.experiment import arms, caps, halves, lineup, multipliers
from core.experiment.arms import Cell
from core.experiment.claim import claimed
from core.experiment.imported_vectors import settled_words
from core.experiment.replicates import Repeat, Replicate, check_looks, replicates
from core.kind import Options
from core.models.encoder_options import EncoderOptions
from core.pretraining.pretrain import PretrainOptions
from core.selection import STRATEGIES, strategy_options
from core.selection.select import SelectOptions
from core.similarity.wvv import WvvOptions
from core.tagging.network import MULTILINGUAL, begins_from_encoder
from core.training.mlm_settings import MlmSettings
from core.training.settings import TaggerSettings

# What may be said of a stage's runs; all else of them the experiment says itself.
_STAGES: dict[str, type[Config]] = {
    "select": SelectOptions,
    "pretrain": PretrainOptions,
    "finetune": TaggerSettings,
    "difficulty": DifficultyOptions,
    "rebuild": RebuildOptions,
    "skl": SklOptions,
    "vectors": WvvOptions,
}


class ExperimentConfig(Config):
    """Options: what is compared, on what."""

    task: str = option("", "Task corpus (T_C), without labels; for variants that are pre-trained.", corpus=True)
    domain: str = option("", "Domain corpus (D_C): what to select from.", corpus=True)
    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set: settings and epochs are chosen on it.", corpus=True)
    test: str = option(..., "Test set: read once per variant.", corpus=True)
    holdout: tuple[str, ...] = option((), "Further labelled splits whose sentences count as leaks.", corpus=True)
    arms: tuple[str, ...] = option(
        ("none", "random", "classifier"),
        f"What is compared, each with none: {', '.join(arms.FIXED_NAMES)}, a strategy, or one with a value: "
        f"{', '.join(arms.ARM_SHAPES)}. {arms.COPIES_HELP}",
    )
    budgets: tuple[str, ...] = option(("10%",), "How much each strategy selects: 1000, 50000tokens or 20%.")
    claim: str = option("", "The variant that the claim is about; else the first strategy. All others are exploratory.")
    seeds: tuple[int, ...] = option((1, 2, 3), "A replicate each, the same for every variant; 6 and looks for a claim.")
    repeat: Repeat = option(
        "pipeline",
        "What every seed repeats. tagger: taggers alone, a quick look that can show that reading helped, not that "
        "choosing did. pipeline: the selection, pre-training and tagger, each under that seed.",
    )
    cross: bool = option(
        False,
        "Swap halves: train, dev and test are pooled and split anew for replicates 1, 3, 5; each half is learnt from, "
        "its text being the task corpus, and tested on the other: the interval includes the draw of labels. Takes no "
        "task.",
    )
    cross_train: int = option(0, "Labelled sentences of a half; 0: as many as train has.", unit="sentences", ge=0)
    cross_dev: int = option(0, "Of a half, to choose epochs by; 0: half as many.", unit="sentences", ge=0)
    looks: tuple[int, ...] = option(
        (), "Numbers of replicates at which it may end early, knowing enough: 2,4,6; else it looks once, at the end."
    )
    effect: float = option(1.0, "What it is to find, points of score; an early end and the chances go by it.", gt=0)
    encoder: str = option("minilm", "What variants start from: a Hugging Face name, a folder, or minilm (bundled).")
    axis: tuple[str, ...] = option(
        (), "encoder:NAME, so that every variant is also run from that encoder, on the same selection and labels."
    )
    preset: Literal["quick", "paper"] = option(
        "quick",
        "Settings of all training; paper fine-tunes as Ma et al. 2023 where all rebuild and none is pre-trained.",
    )
    fixed: Literal["none", "steps", "tokens"] = option(
        "none",
        "Give every pre-trained variant as many steps, or pieces, as the one with the most text (those on all "
        "of the domain corpus left aside), so that more text is not also more training.",
    )
    transductive: Literal["none", "dev", "all"] = option(
        "none",
        "Held-out sentences found in the task corpus that may be learnt from as plain text: none, those of the dev "
        "set, or all.",
    )
    train_sizes: tuple[int, ...] = option((), "Also fine-tune on so many labelled sentences, nested.", unit="sentences")
    multipliers: bool = option(
        False,
        "Also measure what choosing is worth: random reads 2 and 4 times as much, and fewer labels are learnt too.",
    )
    draws: int = option(3, "Draws of each train size: which sentences matters more than the seed.", ge=1)
    strategies: dict[str, Options] = option({}, "Options of single strategies: {knn: {neighbours: 10}}.")
    select: Options = option({}, "Further options of every selection.")
    pretrain: Options = option({}, "Further options of pre-training: {epochs: 4, batch_size: 32}.")
    finetune: Options = option({}, "Further options of fine-tuning: {epochs: 40}.")
    draw_seed: int = option(0, "Seed of selection, of pre-training and of which part of the labels is drawn.", ge=0)
    allow_download: bool = option(False, "Fetch the encoder from the Hugging Face hub if it is not here yet.")
    also_test: tuple[str, ...] = option(
        (), "Further labelled test splits, harder ones say: shown beside the test split, in no verdict.", corpus=True
    )
    sources: tuple[str, ...] = option((), "What vectors:SOURCE and lm:SOURCE read, by name.", corpus=True)
    cap_tokens: caps.Caps = option((), "So much of every source; of several, each has its own variants.", unit="tokens")
    assisting: str = option("", "Another labelled corpus, which all and skl:THRESHOLD borrow from.", corpus=True)
    type_map: tuple[str, ...] = option(
        (), "OLD=NEW, a type's name where the labels and the assisting corpus differ (PER=person); OLD= leaves it out."
    )
    gazetteer: str = option("", "Names that the variant gazetteer looks for in place of the labels'.", corpus=True)
    difficulty_encoder: str = option(
        "", "Whose pointwise V-information (PVI) labels are rebuilt by, where not the one fine-tuned."
    )
    difficulty: Options = option({}, "Further options of measuring pointwise V-information (PVI): {repeats: 3}.")
    rebuild: Options = option({}, "Further options of rebuilding the labels.")
    skl: Options = option({}, "Further options of scoring assisting sentences: {unit: surface}.")
    vectors: Options = option({}, "Of learning word vectors: {window: 2, dimension: 200}.")
    imported_vectors: tuple[str, ...] = option(
        (), "Word vectors that `vectors add` read, for variants vectors:NAME; all variants' words are as long."
    )

    imports: tuple[str, ...] = option((), "Runs of these.", hidden=True)
    weights: str = option("", "Hash of the encoder.", hidden=True)
    edition: str = option("", "Edition of the methods that rebuild the labels.", hidden=True)

    def settled(self) -> Self:
        """Options with the encoders' hashes, and the edition of methods that an arm rebuilds by.

        Errors: ModelError if an encoder is not here and may not be fetched.
        """
        named = (
            EncoderOptions(encoder=name, allow_download=self.allow_download).settled()
            for name in (self.encoder, *self.encoders)
        )
        weights = " ".join(options.weights for options in named).strip()
        methods = {arms.find(name).rebuild for name in self.arms}
        # The second part is left out where no arm draws by CEIM, so that keys of other experiments stay the same.
        edition = EDITION * bool(methods & set(METHODS)) + f" shares {SHARES_EDITION}" * ("low-share" in methods)
        edition = edition.strip()
        return self.model_copy(update={"weights": weights, "edition": edition, **settled_words(self)})

    @field_validator("budgets")
    @classmethod
    def _budgets(cls, budgets: tuple[str, ...]) -> tuple[str, ...]:
        """Write them in one spelling, each once."""
        try:
            parsed = [Budget.parse(budget) for budget in budgets]
        except ConfigError as error:
            raise ConfigError(f"budgets{str(error).removeprefix('budget')}") from error
        if any(budget.unit == "threshold" for budget in parsed):
            raise ConfigError("budgets: a threshold gives every strategy another size; give sentences, tokens or %.")
        return tuple(dict.fromkeys(map(str, parsed)))

    @field_validator("looks")
    @classmethod
    def _looks(cls, looks: tuple[int, ...]) -> tuple[int, ...]:
        if looks and (looks[0] < 2 or any(b <= a for a, b in pairwise(looks))):
            raise ConfigError(f"looks: {looks} must be rising numbers of replicates, 2 at least, for example 2,4,6.")
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
        """Write them in one spelling, each once."""
        return tuple(dict.fromkeys(arms.find(name).name for name in names))

    @field_validator("claim")
    @classmethod
    def _claim(cls, name: str) -> str:
        """Write it in one spelling. Errors: ConfigError."""
        return arms.find(name).name if name else ""

    @field_validator("axis")
    @classmethod
    def _axis(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Each once. Errors: ConfigError."""
        for name in names:
            if not name.removeprefix(arms.ENCODER).strip() or not name.startswith(arms.ENCODER):
                raise ConfigError(f"axis: {name!r} is not understood; write for example encoder:minilm.")
        return tuple(dict.fromkeys(arms.ENCODER + name.removeprefix(arms.ENCODER).strip() for name in names))

    @field_validator("type_map")
    @classmethod
    def _type_map(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        """Write it in one spelling and order. Errors: ConfigError."""
        return tuple(sorted(f"{old}={new}" for old, new in parse_map(pairs).items()))

    @field_validator("strategies")
    @classmethod
    def _strategies(cls, strategies: dict[str, Options]) -> dict[str, Options]:
        """Checked, what was given in one spelling. Errors: ConfigError."""
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
        """Checked now, not after hours. Errors: ConfigError."""
        name = info.field_name or ""
        return checked(name, options, _STAGES[name])

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Every arm known, and with what it needs."""
        if not self.seeds:
            raise ConfigError("seeds: give at least one.")
        if not self.budgets and any(name in STRATEGIES for name in self.arms):
            raise ConfigError("budgets: give at least one, for example 10%.")
        if "add_bin" in self.rebuild:
            raise ConfigError("rebuild.add_bin: is a variant of its own here; name base+low:1000 among the arms.")
        if self.encoders and not begins_from_encoder(self.network):
            raise ConfigError(f"axis: a {self.network} starts from no encoder; leave the axis out, or its variants.")
        multipliers.check(self)
        names = self._names()
        lineup.check_taggers(names, self.tagger_settings)
        if self.claim and (self.claim not in names or not arms.find(self.claim).judged):
            raise ConfigError(f"claim: {self.claim} is no variant that is judged; name one of {', '.join(self.arms)}.")
        check_looks(self)
        halves.check(self)
        return self

    def _names(self) -> tuple[str, ...]:
        given = {**dict(self), "task": self.task or self.cross}
        return lineup.complete(self.arms, given, self.network, lineup.set_size(self.rebuild))

    @property
    def encoders(self) -> list[str]:
        """Encoders that every arm is run from beside `encoder`."""
        names = (name.removeprefix(arms.ENCODER) for name in self.axis)
        return [name for name in names if name != self.encoder]

    @property
    def network(self) -> str:
        """Network of every arm's taggers: as fine-tuning says, else what word vectors and frozen states are for."""
        borrows = any(arm.source or arm.states for arm in map(arms.find, self.arms))
        return str(self.finetune.get("network", "bilstm" if borrows else "encoder"))

    @property
    def mlm_settings(self) -> MlmSettings:
        """Settings of the pre-training of every arm."""
        return PretrainOptions.parse({"preset": self.preset, **self.pretrain})

    @property
    def tagger_preset(self) -> str:
        """Preset of every arm's fine-tuning: `paper` is Ma et al. 2023's where arms are theirs alone."""
        fits = self.preset == "paper" and arms.of_bias(self.arms) and begins_from_encoder(self.network)
        return "paper-bias" if fits else self.preset

    @property
    def tagger_settings(self) -> TaggerSettings:
        """Settings of the fine-tuning of every arm."""
        return TaggerSettings.parse({"preset": self.tagger_preset, "network": self.network, **self.finetune})

    @property
    def tagger(self) -> Options:
        """Options of fine-tuning that are the same for every arm: the network, where it is not the usual one, and its
        size, so that an arm which borrows labels is not larger than one which does not."""
        options: Options = {} if self.network == "encoder" else {"network": self.network}
        borrows = any(arm.assisting for arm in map(arms.find, self.arms))
        usual = MULTILINGUAL if self.network == "charcnn" and borrows else None
        if hidden := self.finetune.get("hidden") or usual:
            options["hidden"] = hidden
        return options

    @property
    def held_out(self) -> tuple[str, ...]:
        """The corpora whose sentences are leaks, beside dev."""
        return tuple(dict.fromkeys((self.test, *self.also_test, *self.holdout)))

    @property
    def cells(self) -> list[Cell]:
        """Every line of the leaderboard: the arms that were asked for, and those that no verdict can do without."""
        size, caps, imported = lineup.set_size(self.rebuild), self.cap_tokens, self.imported_vectors
        cells = lineup.cells(self._names(), self.budgets, self.encoders, size=size, caps=caps, imported=imported)
        return [*cells, *multipliers.more_text(cells, claimed(cells, self.claim))] if self.multipliers else cells

    @property
    def claimed(self) -> Cell | None:
        """The line that the claim is about; None where no arm is judged."""
        return claimed(self.cells, self.claim)

    @property
    def stops(self) -> tuple[int, ...]:
        """Numbers of seeds at which it may end; the last is the plan's."""
        return self.looks or (len(self.seeds),)

    def replicates(self, cell: Cell) -> tuple[Replicate, ...]:
        """Replicates of a line, in order."""
        own = self.cross or self.multipliers
        return replicates(cell, self.repeat, self.seeds, self.draw_seed, own_labels=own)
