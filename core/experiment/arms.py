"""The arms of an experiment: in what each line of the leaderboard differs from `none`.

An arm differs in one respect: the text that the encoder is pre-trained on (MLM), the source of word vectors or of an
encoder's frozen states, the assisting sentences, L_C itself, or the order of training. All else is alike for all. A new
sort of arm is one entry here and, where its name carries a value (`skl:2`), one in `_NAMED`.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from core.bias.rebuild import Method, RebuildOptions
from core.errors import ConfigError
from core.models.networks import ON_ENCODER, Network
from core.selection import STRATEGIES

NONE, RANDOM, CONTROL, STATES, ALL = "none", "random", "random-only", "states", "all"
CONTROLS = (RANDOM, CONTROL, "length-matched-random")  # what a choice of sentences must beat; no verdict of their own
WHOLE = "100%"
ENCODER = "encoder:"  # an axis: what every arm is run from too
OTHER_NAMES = {"monolingual": NONE, "base": NONE}  # what Murthy et al. 2018 and Ma et al. 2023 call it
AUGMENT = "dataaug"  # the one way to rebuild L_C that goes by no PVI
SHARE = "low-share"  # the one whose share may be 0%: elsewhere that is L_C as it is
GROWS = (AUGMENT, "random2low", "highc2low")  # ways that add changed copies of sentences to L_C
PART, COPIES, BASE, SPAN = "random-part", "copies", "base", "span"
SIZE: int = RebuildOptions.model_fields["size"].default
BINS: Mapping[str, str] = {  # of CEIM, in words
    "low": "whose context tells more",
    "near_zero": "whose name and context tell alike",
    "high": "whose name tells more",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Difference of a line from `none`.

    task: MLM on T_C. strategy: MLM also on S_C, chosen by this strategy; "": on nothing of D_C.
    budget: of that S_C, where the experiment's budgets do not apply; "" where they do, once each.
    source: what word vectors are learnt from, or an import of them, or with `states` what MLM reads; "": nothing.
    states: the encoder's frozen states join the network. assisting: sentences of the assisting corpus below this SKL,
    0: none.
    rebuild: the method that makes another L_C, at `rate` (a share; dataaug has none). lpft: in two stages.
    without: what `none` is beside this arm, in words. encoder: what it starts from in place of the experiment's own.
    control: as many assisting sentences at random as are below `assisting`, unchanged copies of the sentences that
    `rebuild` adds changed ones of, a random set of as many sentences, or spans alone. size: sentences of a set of one
    size, bin: of which CEIM as many more are added; "none": of none. tagger: options in which its taggers differ.
    """

    name: str
    summary: str
    task: bool = False
    strategy: str = ""
    budget: str = ""
    source: str = ""
    states: bool = False
    assisting: float = 0.0
    rebuild: str = ""
    rate: float = 0.0
    lpft: bool = False
    without: str = "no pre-training"
    encoder: str = ""
    control: bool = False
    size: int = 0
    bin: str = ""
    tagger: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def plain_name(self) -> str:
        """Its name but for the encoder."""
        return self.name.removesuffix(f" {ENCODER}{self.encoder}") if self.encoder else self.name

    @property
    def judged(self) -> bool:
        """Whether there is a verdict on it."""
        return self.name != NONE and self.plain_name not in CONTROLS and not self.control

    @property
    def pretrains(self) -> bool:
        """Whether there is any MLM at all."""
        return self.task or bool(self.strategy) or (self.states and bool(self.source))

    @property
    def adapts(self) -> bool:
        """Whether the MLM's encoder is what is fine-tuned."""
        return self.task or bool(self.strategy)

    @property
    def chooses(self) -> bool:
        """Whether it is run once a budget."""
        return bool(self.strategy) and not self.budget

    @property
    def measures(self) -> bool:
        """Whether L_C is rebuilt by how hard its mentions are."""
        return self.rebuild not in ("", AUGMENT)

    @property
    def needs(self) -> tuple[str, ...]:
        """The options of an experiment that must be given."""
        wanted = {"task": self.adapts, "domain": self.strategy, "assisting": self.assisting}
        wanted["sources" if self.states else "words"] = self.source
        return tuple(name for name, needed in wanted.items() if needed)

    @property
    def base(self) -> str:
        """The name of the random set that stands in the place of `none` for a set of one size; else that of `none`."""
        return f"{BASE}:{self.size}" if self.size and not self.control else NONE

    @property
    def copies(self) -> bool:
        """Whether it is a control of unchanged copies."""
        return self.control and self.rebuild in GROWS

    @property
    def own_control(self) -> str:
        """The name of the control that is made for this one arm; "" where there is none."""
        if self.control:
            return ""
        if 0 < self.assisting < math.inf:
            return f"{PART}:{self.assisting:g}"
        if self.tagger:
            return SPAN
        return f"{COPIES}:{self.plain_name}" if self.rebuild in GROWS else ""

    @property
    def networks(self) -> tuple[str, ...]:
        """Networks that can tell it from `none`."""
        if self.states:
            return ("bilstm",)
        if self.source:
            return ("bilstm", "charcnn")
        if self.tagger:
            return ("encoder",) if self.control else ON_ENCODER  # among taggers of spans the control is `none`
        return ON_ENCODER if self.adapts or self.lpft else get_args(Network)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One line of the leaderboard: an arm at a budget ("" where it chooses nothing, or all there is)."""

    arm: Arm
    budget: str = ""

    def __str__(self) -> str:
        return f"{self.arm.name} {self.budget}".strip()


# DAPT reads every sentence of D_C that may be used at all: leaks, copies, too short and too long ones stay out.
_FIXED: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(name=NONE, summary="Nothing: what every other variant is measured against (`monolingual` and `base` too)."),
        Arm(name="tapt", summary="Pre-training on the task corpus alone.", task=True),
        Arm(name="dapt", summary="Pre-training on all of the domain corpus.", strategy=RANDOM, budget=WHOLE),
        Arm(name="tapt+dapt", summary="Both: tapt and dapt.", task=True, strategy=RANDOM, budget=WHOLE),
        Arm(
            name=CONTROL,
            summary="Pre-training on random sentences of the domain corpus, as many as TAPT reads: its baseline.",
            strategy=RANDOM,
            budget="|T_C|",
        ),
        Arm(
            name=STATES,
            summary="Frozen states of the encoder as it came, in a bilstm: what lm:SOURCE must beat.",
            states=True,
            without="random word vectors alone",
        ),
        Arm(
            name=ALL,
            summary="All sentences of the assisting corpus too.",
            assisting=math.inf,
            without="no assisting sentences",
        ),
        Arm(
            name=SPAN,
            summary="A tagger of spans of up to four words: what miner must beat.",
            control=True,
            without="the usual tagger",
            tagger={"network": SPAN},
        ),
        Arm(
            name="miner",
            summary="A tagger of spans that learns to read names of a type alike (Wang et al. 2022).",
            without="the usual tagger",
            tagger={"network": SPAN, "beta": 0.01, "gamma": 0.001},
        ),
        Arm(name="lpft", summary="The head first, then all of the tagger.", lpft=True, without="one stage"),
        Arm(
            name=AUGMENT,
            summary="The labels and a copy of each sentence with other mentions or typos.",
            rebuild=AUGMENT,
            without="the labels as they are",
        ),
    )
}


def _vectors(name: str, source: str) -> Arm:
    summary = f"Word vectors of {source}."
    return Arm(name=name, summary=summary, source=source, without="random word vectors")


def _lm(name: str, source: str) -> Arm:
    summary = f"Frozen states of the encoder after pre-training on {source}."
    return Arm(name=name, summary=summary, source=source, states=True, without="random word vectors alone")


def _skl(name: str, value: str) -> Arm:
    try:
        threshold = float(value)
    except ValueError:
        threshold = math.nan
    if not 0 < threshold < math.inf:
        raise ConfigError(f"arms: {name!r} needs a threshold above 0; write for example skl:2.")
    summary = f"Assisting sentences whose symmetric KL divergence (SKL) is below {threshold:g}."
    return Arm(name=f"skl:{threshold:g}", summary=summary, assisting=threshold, without="no assisting sentences")


def _part(name: str, value: str) -> Arm:
    skl = _skl(name, value)
    summary = f"As many assisting sentences at random as {skl.name} keeps: what it must beat."
    return replace(skl, name=f"{PART}:{skl.assisting:g}", summary=summary, control=True)


def _copies(name: str, value: str) -> Arm:
    arm = find(value)
    if arm.rebuild not in GROWS or arm.control:
        raise ConfigError(f"arms: {name!r} is of none that adds labelled sentences; write such as copies:dataaug.")
    summary = f"The labels with unchanged copies of the sentences that {arm.name} copies: what it must beat."
    return replace(arm, name=f"{COPIES}:{arm.name}", summary=summary, control=True)


def _base(name: str, value: str) -> Arm:
    head, bin = name.partition(":")[0], name.partition(":")[0].partition("+")[2]
    if not value.isascii() or not value.isdigit() or not 0 < int(value) <= 10**9:
        raise ConfigError(f"arms: {name!r} needs a number of sentences; write for example {head}:1000.")
    n = int(value)
    added = f", and {n:,} more {BINS[bin]}" if bin else ": what a set made of it must beat"
    return Arm(
        name=f"{head}:{n}",
        summary=f"{n:,} random sentences of the labels with a name{added}.",
        rebuild=SHARE,
        size=n,
        bin=bin or "none",
        control=not bin,
        without=f"{n:,} random sentences",
    )


def _rebuild(name: str, value: str) -> Arm:
    method = name.partition(":")[0]
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", value)
    share = float(match[1]) / 100 if match else math.nan
    if not 0 <= share <= 1 or (not share and method != SHARE):
        raise ConfigError(f"arms: {name!r} needs a share; write for example {method}:20%.")
    # 30% and 30.0% are one arm, under one name.
    rate = f"{share * 100:.12g}%"
    summary = f"The labels rebuilt by {method} at {rate}."
    return Arm(name=f"{method}:{rate}", summary=summary, rebuild=method, rate=share, without="the labels as they are")


_NAMED: Mapping[str, tuple[str, Callable[[str, str], Arm]]] = {
    "vectors": ("SOURCE", _vectors),
    "lm": ("SOURCE", _lm),
    "skl": ("THRESHOLD", _skl),
    PART: ("THRESHOLD", _part),
    COPIES: ("ARM", _copies),
    **dict.fromkeys((BASE, *(f"{BASE}+{bin}" for bin in BINS)), ("SIZE", _base)),
    **{method: ("RATE", _rebuild) for method in get_args(Method) if method != AUGMENT},
}
FIXED_NAMES = tuple(_FIXED)
ARM_NAMES = (*FIXED_NAMES, *STRATEGIES)
# Controls are added by themselves, so nobody is offered them, but what they are is said.
COPIES_HELP = (
    "A variant (arm) that adds labelled sentences is joined by copies:ARM, as many unchanged copies, to be beaten."
)
ARM_SHAPES = tuple(f"{head}:{value}" for head, (value, _) in _NAMED.items() if head not in (PART, COPIES))


def find(name: str) -> Arm:
    """An arm by name. Errors: ConfigError, which lists them all."""
    name = OTHER_NAMES.get(name, name)
    if name in _FIXED:
        return _FIXED[name]
    if name in STRATEGIES:
        summary = f"Pre-training on the task corpus and the selection. {STRATEGIES[name].summary}"
        return Arm(name=name, summary=summary, task=True, strategy=name)
    head, _, value = name.partition(":")
    if head in _NAMED and value.strip():
        return _NAMED[head][1](name, value.strip())
    raise ConfigError(f"arms: {name!r} is not known; choose among {', '.join((*ARM_NAMES, *ARM_SHAPES))}.")


def of_bias(names: Iterable[str]) -> bool:
    """Whether arms are of those that Ma et al. 2023 compare, none pre-trained and none that borrows."""
    named = [find(name) for name in names]
    return any(arm.rebuild or arm.tagger for arm in named) and not any(arm.pretrains or arm.assisting for arm in named)
