"""The variants (arms) of an experiment: their differences from `none`, their baselines and controls, and their order.

An arm differs from `none` in one respect: the text for pre-training (MLM), the source of word vectors or of frozen
encoder states, labels of other corpora, L_C itself, or the order of training. All other settings are the same for all
arms. A reference variant (such as `dictionary`) trains nothing: a run of another kind finds the entities in the test
sets.

To add an arm, add an entry to `_FIXED`. If its name includes a value (`skl:2`), add the entry to `_NAMED` instead.
Strategies need no entry. An entry states in `without` what `none` has instead; sentences about the verdict use this.
Then check in this file:

- `Arm.needs` and `_LACKS`, if the arm requires a corpus
- `Arm.networks`, if the arm does not differ from `none` with some networks
- for an arm with its own control: `Arm.own_control`, and `_AGAINST`, which describes the control. Set `control=True` in
  the control's own entry
- for an arm that shares its control with other arms: the functions `control` and `complete`
- for a new field of `Arm`: `experiment/steps.py` and `experiment/cost.py`, which read the fields

To add a reference variant, write a kind of run with the option `test`. It must write the same artifacts as the kind
`dictionary`: an evaluation and predictions per test set. Then add an entry to `KINDS` in `experiment/reference.py`; the
arm is created from it. No changes are needed for leaderboard, tables, report, pages, swapped halves, resuming and Ray
(`tests/experiment/test_every_arm.py` checks this).

An estimate (`labels:+100`) only trains taggers on parts of L_C. Its results are in a separate table (`more_labels.py`).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from core.bias.rebuild import Method, RebuildOptions
from core.config import Budget
from core.errors import ConfigError
from core.experiment.reference import KINDS
from core.models.networks import ON_ENCODER, Network
from core.selection import DEFAULT_STRATEGY, STRATEGIES
from core.tagging.config import check_settings
from core.training.settings import TaggerSettings

NONE, RANDOM, CONTROL, STATES, ALL = "none", "random", "random-only", "states", "all"
CONTROLS = (RANDOM, CONTROL, "length-matched-random")  # baselines of selections; they get no verdict
WHOLE = "100%"
# Prefix of the additional encoders in the option `axis`.
ENCODER = "encoder:"
# Names of `none` in papers: `monolingual` in Murthy et al. 2018, `base` in Ma et al. 2023.
OTHER_NAMES = {"monolingual": NONE, "base": NONE}
# The only method of rebuilding L_C that needs no PVI.
AUGMENT = "dataaug"
# The only method whose rate may be 0%. At 0%, all other methods would leave L_C unchanged.
SHARE = "low-share"
# Methods that add changed copies of sentences to L_C.
GROWS = (AUGMENT, "random2low", "highc2low")
PART, COPIES, BASE, SPAN = "random-part", "copies", "base", "span"
DICTIONARY, NAMES = "dictionary", f"{NONE}+dictionary"
SELF_TRAIN, DISTANT = "self-train", "distant"
# Budget in sentences of a selection that gets pseudo-labels.
PSEUDO = "2000"
# First part of the name of an estimate, such as `labels:+100`.
MORE = "labels"
SIZE: int = RebuildOptions.model_fields["size"].default
BINS: Mapping[str, str] = {  # {bin of CEIM (name minus context): what its mentions have in common, in words}
    "low": "whose context is more informative",
    "near_zero": "whose name and context are equally informative",
    "high": "whose name is more informative",
}
# {control: the text or tagger that it uses, in words}; the control's name is without its value
_AGAINST: Mapping[str, str] = {
    RANDOM: "a random selection of as many tokens",
    CONTROL: "a random selection of as many tokens",
    STATES: "the states of the unchanged encoder",
    PART: "the same number of random assisting sentences",
    COPIES: "unchanged copies of the same sentences",
    SPAN: "a plain tagger of spans",
    **dict.fromkeys((f"{SELF_TRAIN}:{RANDOM}", f"{DISTANT}:{RANDOM}"), "as many random sentences"),
}
# {missing option: (what the arm needs it for, what the user should give)}
_LACKS = {
    "task": ("uses the task corpus", "a task corpus"),
    "domain": ("selects from the domain corpus", "a domain corpus"),
    "sources": ("uses a source", "sources"),
    "words": ("uses a source", "sources or imported_vectors"),
    "assisting": ("adds assisting sentences", "an assisting corpus"),
    "dictionary": ("looks names up", "a dictionary: lists of names"),
    "transfer": ("trains on another labelled corpus first", "that corpus in transfer"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Difference of a variant from `none`. An empty field means that the arm does not have the property.

    summary: sentence that describes the arm.
    task: True for MLM on T_C.
    strategy: strategy that selects S_C for MLM.
    budget: budget of S_C in place of the experiment's budgets; "" to run the arm once per budget.
    source: corpus from which word vectors are learnt, or the name of imported vectors. If `states` is True, the corpus
        for MLM.
    states: True if the network also reads the encoder's frozen states.
    assisting: SKL below which sentences of the assisting corpus are added to L_C; 0: none are added.
    rebuild: method that rebuilds L_C; "": L_C is not rebuilt.
    rate: share of mentions that the method changes, or for `low-share` share of sentences with a low-CEIM mention,
        from 0 to 1; unused by `dataaug`.
    lpft: True to train in two stages: first the classification head, then the whole tagger.
    without: what `none` has instead, in words, such as "random word vectors".
    encoder: encoder in place of the experiment's own.
    control: True for the control of another arm. A control replaces the other arm's sentences with the same number of
        random ones, its changed copies with unchanged ones, or its tagger with the plain span tagger.
    size: number of sentences in a training set of fixed size; 0: not fixed.
    bin: CEIM bin from which `size` more sentences are added; "none" or "": no sentences are added.
    tagger: options of the arm's taggers that differ from those of `none`.
    names: True if the arm's taggers also see which words are in the experiment's dictionary.
    first: name of another labelled corpus that the arm's taggers train on before L_C.
    pseudo: SELF_TRAIN or DISTANT if the arm's taggers train on pseudo-labels of S_C. MLM then does not use S_C.
    reference: for a reference variant, the kind of run that finds the entities of the test sets.
    value: value in the name of a reference variant, such as FOLDER in zero-shot:FOLDER.
    more: for an estimate, the number of further labelled sentences; 0 for all other arms.
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
    names: bool = False
    first: str = ""
    pseudo: str = ""
    reference: str = ""
    value: str = ""
    more: int = 0

    @property
    def plain_name(self) -> str:
        """Name without the encoder."""
        return self.name.removesuffix(f" {ENCODER}{self.encoder}") if self.encoder else self.name

    @property
    def judged(self) -> bool:
        """True if the arm gets a verdict."""
        return not (self.name == NONE or self.plain_name in CONTROLS or self.control or self.reference or self.more)

    @property
    def pretrains(self) -> bool:
        """True if the arm runs MLM on any text."""
        return self.adapts or (self.states and bool(self.source))

    @property
    def prepares(self) -> bool:
        """True if the arm selects text or runs MLM before it trains taggers; a replicate repeats these steps too."""
        return self.pretrains or bool(self.pseudo)

    @property
    def adapts(self) -> bool:
        """True if the arm fine-tunes the encoder that its MLM trained."""
        return self.task or (bool(self.strategy) and not self.pseudo)

    @property
    def chooses(self) -> bool:
        """True if the arm is run once per budget."""
        return bool(self.strategy) and not self.budget

    @property
    def measures(self) -> bool:
        """True if the arm rebuilds L_C by a method that requires the PVI of the mentions in L_C."""
        return self.rebuild not in ("", AUGMENT)

    @property
    def needs(self) -> tuple[str, ...]:
        """Options of an experiment that the arm requires."""
        wanted = {
            "task": self.adapts or self.strategy,
            "domain": self.strategy,
            "assisting": self.assisting,
            "dictionary": self.names,
        }
        wanted |= {"sources" if self.states else "words": self.source, "transfer": self.first}
        return tuple(name for name, needed in wanted.items() if needed)

    @property
    def base(self) -> str:
        """Name of the arm's baseline: `none`, or a random training set of the same size if the arm fixes the size."""
        return f"{BASE}:{self.size}" if self.size and not self.control else NONE

    @property
    def copies(self) -> bool:
        """True for a control that adds unchanged copies of sentences."""
        return self.control and self.rebuild in GROWS

    @property
    def own_control(self) -> str:
        """Name of the control that belongs to this arm alone; "" if it has none."""
        if self.control:
            return ""
        if 0 < self.assisting < math.inf:
            return f"{PART}:{self.assisting:g}"
        if self.tagger:
            return SPAN
        if self.pseudo:
            return f"{self.pseudo}:{RANDOM}"
        return f"{COPIES}:{self.plain_name}" if self.rebuild in GROWS else ""

    @property
    def networks(self) -> tuple[str, ...]:
        """Networks for which the arm differs from `none`."""
        if self.states:
            return ("bilstm",)
        if self.source:
            return ("bilstm", "charcnn")
        if self.tagger:
            return ("encoder",) if self.control else ON_ENCODER  # with span taggers, the control equals `none`
        if self.names or self.pseudo:
            return ("encoder",)
        return ON_ENCODER if self.adapts or self.lpft or self.first else get_args(Network)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A variant of an experiment: an arm, with a budget if the arm selects text. The leaderboard has a row for each.

    budget: budget of the selection; for a source that is used with several values of `cap_tokens`, one of these values;
        "" for all other arms.
    """

    arm: Arm
    budget: str = ""

    def __str__(self) -> str:
        return f"{self.arm.name} {self.budget}".strip()


def _pseudo(kind: str, summary: str) -> tuple[Arm, Arm]:
    """Return an arm that trains on pseudo-labels, and its control on random sentences. kind: SELF_TRAIN or DISTANT."""
    arm = Arm(
        name=kind,
        summary=summary,
        strategy=DEFAULT_STRATEGY,
        budget=PSEUDO,
        pseudo=kind,
        without="no unlabelled sentences",
    )
    other = f"{kind} on the same number of random sentences: the control that {kind} must beat."
    return arm, replace(arm, name=f"{kind}:{RANDOM}", summary=other, strategy=RANDOM, control=True)


def _reference(kind: str, value: str = "") -> Arm:
    line = KINDS[kind]
    value = line.normal(value)
    name = f"{kind}:{value}" if value else kind
    without = "the tagger trained on the labels"
    return Arm(name=name, summary=line.summary(value), without=without, reference=kind, value=value)


# In these entries, `budget=WHOLE` selects all of D_C except test leaks, near duplicates, and sentences that are too
# short or too long.
_FIXED: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(name=NONE, summary="No change: the baseline of every other variant (also called `monolingual` or `base`)."),
        Arm(name="tapt", summary="Pre-training on the task corpus alone.", task=True),
        Arm(name="dapt", summary="Pre-training on all of the domain corpus.", strategy=RANDOM, budget=WHOLE),
        Arm(
            name="tapt+dapt",
            summary="Pre-training on the task corpus and all of the domain corpus.",
            task=True,
            strategy=RANDOM,
            budget=WHOLE,
        ),
        Arm(
            name=CONTROL,
            summary="Pre-training on random text of the domain corpus, as long as the task corpus. Control of tapt.",
            strategy=RANDOM,
            budget="|T_C|",
        ),
        Arm(
            name=STATES,
            summary="Frozen states of the original encoder, in a bilstm: the baseline of lm:SOURCE.",
            states=True,
            without="random word vectors alone",
        ),
        Arm(
            name=ALL,
            summary="The training set and all sentences of the assisting corpus.",
            assisting=math.inf,
            without="no assisting sentences",
        ),
        Arm(
            name=SPAN,
            summary="A tagger of spans of up to four words: the control that miner must beat.",
            control=True,
            without="the usual tagger",
            tagger={"network": SPAN},
        ),
        Arm(
            name="miner",
            summary="A tagger of spans that learns similar representations for names of one type (Wang et al. 2022).",
            without="the usual tagger",
            tagger={"network": SPAN, "beta": 0.01, "gamma": 0.001},
        ),
        Arm(
            name=NAMES,
            summary="A tagger that also sees which words are in the dictionary.",
            without="no dictionary",
            names=True,
        ),
        *(_reference(kind) for kind, line in KINDS.items() if not line.value),
        *_pseudo(SELF_TRAIN, f"The training set and {int(PSEUDO):,} selected sentences that a first tagger labelled."),
        *_pseudo(
            DISTANT,
            f"Training first on {int(PSEUDO):,} selected sentences, labelled with the names of the dictionary (or of "
            "the training set, if there is no dictionary), then on the training set.",
        ),
        Arm(name="lpft", summary="Train the head first, then the whole tagger.", lpft=True, without="one stage"),
        Arm(
            name=AUGMENT,
            summary="The training set and a copy of each sentence with other mentions or typos.",
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


def _transfer(name: str, corpus: str) -> Arm:
    summary = f"Training on the labels of {corpus} first, then on the training set."
    return Arm(name=name, summary=summary, first=corpus, without="no other labels first")


def _more(name: str, value: str) -> Arm:
    match = re.fullmatch(r"\+([1-9][0-9]{0,8})", value)
    if not match:
        raise ConfigError(f"arms: {name!r} needs a number of sentences; write for example {MORE}:+100.")
    n = int(match[1])
    summary = f"An estimate of the score with {n:,} more labelled sentences, from taggers on parts of the training set."
    return Arm(name=f"{MORE}:+{n}", summary=summary, more=n, without="the labels as they are")


def _skl(name: str, value: str) -> Arm:
    try:
        threshold = float(value)
    except ValueError:
        threshold = math.nan
    if not 0 < threshold < math.inf:
        raise ConfigError(f"arms: {name!r} needs a threshold above 0; write for example skl:2.")
    summary = (
        "The training set, and assisting sentences whose symmetric KL divergence (SKL) from the training set is below "
        f"{threshold:g}."
    )
    return Arm(name=f"skl:{threshold:g}", summary=summary, assisting=threshold, without="no assisting sentences")


def _part(name: str, value: str) -> Arm:
    skl = _skl(name, value)
    summary = f"Random assisting sentences, as many as {skl.name} keeps: the control that {skl.name} must beat."
    return replace(skl, name=f"{PART}:{skl.assisting:g}", summary=summary, control=True)


def _copies(name: str, value: str) -> Arm:
    arm = find(value)
    if arm.rebuild not in GROWS or arm.control:
        raise ConfigError(
            f"arms: {name!r} must name a variant that adds labelled sentences; write for example copies:dataaug."
        )
    summary = f"The training set and unchanged copies of the sentences that {arm.name} copies: its control."
    return replace(arm, name=f"{COPIES}:{arm.name}", summary=summary, control=True)


def _base(name: str, value: str) -> Arm:
    head, bin = name.partition(":")[0], name.partition(":")[0].partition("+")[2]
    if not value.isascii() or not value.isdigit() or not 0 < int(value) <= 10**9:
        raise ConfigError(f"arms: {name!r} needs a number of sentences; write for example {head}:1000.")
    n = int(value)
    added = f", and {n:,} more {BINS[bin]}" if bin else ": the baseline of the other training sets of this size"
    return Arm(
        name=f"{head}:{n}",
        summary=f"{n:,} random labelled sentences with a name{added}.",
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
    # Write 30.0% as 30%, so that both name the same arm.
    rate = f"{share * 100:.12g}%"
    summary = f"The training set, rebuilt by {method} at a rate of {rate}."
    return Arm(name=f"{method}:{rate}", summary=summary, rebuild=method, rate=share, without="the labels as they are")


def _valued_reference(name: str, value: str) -> Arm:
    return _reference(name.partition(":")[0], value)


_NAMED: Mapping[str, tuple[str, Callable[[str, str], Arm]]] = {
    "vectors": ("SOURCE", _vectors),
    "lm": ("SOURCE", _lm),
    "skl": ("THRESHOLD", _skl),
    "transfer": ("CORPUS", _transfer),
    MORE: ("+N", _more),
    PART: ("THRESHOLD", _part),
    COPIES: ("ARM", _copies),
    **dict.fromkeys((BASE, *(f"{BASE}+{bin}" for bin in BINS)), ("SIZE", _base)),
    **{method: ("RATE", _rebuild) for method in get_args(Method) if method != AUGMENT},
    **{kind: (line.value, _valued_reference) for kind, line in KINDS.items() if line.value},
}
FIXED_NAMES = tuple(_FIXED)
ARM_NAMES = (*FIXED_NAMES, *STRATEGIES)
# The help explains these controls but does not list them among the arms, because `complete` adds them.
COPIES_HELP = (
    "Each variant (arm) that adds labelled sentences is also compared with copies:ARM, the same number of unchanged "
    "copies."
)
ARM_SHAPES = tuple(f"{head}:{value}" for head, (value, _) in _NAMED.items() if head not in (PART, COPIES))


def find(name: str) -> Arm:
    """Return the arm called `name`. Errors: ConfigError if `name` is unknown or its value is not valid."""
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
    """Return True if an experiment with these arms is like those of Ma et al. 2023.

    This requires at least one arm that changes L_C or the tagger. No arm may pre-train or use labels of another corpus.
    """
    named = [find(name) for name in names]
    others = any(arm.pretrains or arm.assisting or arm.first for arm in named)
    return any(arm.rebuild or arm.tagger for arm in named) and not others


def complete(names: Sequence[str], given: Mapping[str, object], network: str, size: int = SIZE) -> tuple[str, ...]:
    """Return `names` in normal form, with the baselines that a verdict requires: `none` and the controls.

    given: {option of the experiment: its value}. If a corpus was not given, the value of its option is "" or ().
    size: number of sentences in the training set of a `low-share` arm.
    Errors: ConfigError for an unknown arm, for an arm whose corpora are missing, and for an arm that does not differ
    from `none` with `network`.
    """
    arms = {arm.name: sized(arm, size) for arm in map(find, names)}
    given = {**given, "words": given.get("sources") or given.get("imported_vectors")}
    for arm in arms.values():
        if lacking := [name for name in arm.needs if not given.get(name)]:
            does, what = _LACKS[lacking[0]]
            raise ConfigError(f"arms: {arm.name} {does}; give {what}, or leave that variant out.")
        if network not in arm.networks:
            raise ConfigError(
                f"arms: {arm.name} needs the network {' or '.join(arm.networks)}, but all variants share "
                f"{network}; set another network in finetune, or leave that variant out."
            )
    needed = [NONE]
    needed += [RANDOM] if any(arm.chooses for arm in arms.values()) else []
    needed += [CONTROL] if given.get("domain") and "tapt" in arms else []
    needed += [STATES] if any(arm.states for arm in arms.values()) else []
    needed += [ALL] if any(arm.assisting for arm in arms.values()) else []
    needed += [name for arm in arms.values() if (name := arm.own_control) and network in find(name).networks]
    needed += [arm.base for arm in arms.values()]
    return (*(name for name in dict.fromkeys(needed) if name not in arms), *arms)


def check_taggers(names: Sequence[str], settings: TaggerSettings) -> None:
    """Check before any training that each arm's own tagger options fit the shared `settings`. Errors: ConfigError."""
    for name in names:
        check_settings(settings.model_copy(update=find(name).tagger))


def cells(
    names: Sequence[str],
    budgets: Sequence[str],
    encoders: Sequence[str] = (),
    *,
    size: int = SIZE,
    caps: Sequence[int] = (),
    imported: Sequence[str] = (),
) -> list[Cell]:
    """Return the variants of an experiment, in the order in which they are run.

    encoders: encoders in addition to the experiment's own. Every arm is also run with these, except reference variants
        and estimates.
    size: number of sentences in the training set of a `low-share` arm.
    caps: numbers of tokens to use from a source corpus; with several numbers, there is one variant per number.
    imported: names of imported word vectors; their arms use no source corpus.
    """
    amounts = [f"{cap}tokens" for cap in caps] if len(caps) > 1 else [""]
    lines: list[Cell] = []
    named = [sized(find(name), size) for name in names]
    further = [under(encoder, arm) for encoder in encoders for arm in named if not (arm.reference or arm.more)]
    for arm in (*named, *further):
        reads = arm.source and (arm.states or arm.source not in imported)
        own = budgets if arm.chooses else amounts if reads else (arm.budget,)
        lines += [Cell(arm=arm, budget=budget) for budget in own]
    return lines


def under(encoder: str, arm: Arm) -> Arm:
    """Return a copy of the arm that starts from `encoder` and uses the same sentences and labels.

    If `encoder` is "", return `arm` itself.
    """
    if not encoder:
        return arm
    without = f"{arm.without}, from {encoder} too" if arm.name != NONE else "the experiment's own encoder"
    summary = f"{arm.summary} From {encoder}."
    return replace(arm, name=f"{arm.name} {ENCODER}{encoder}", encoder=encoder, summary=summary, without=without)


def set_size(rebuild: Mapping[str, object]) -> int:
    """Return the number of sentences in the training set of a `low-share` arm. rebuild: options of rebuilding."""
    return RebuildOptions.parse(rebuild).size


def sized(arm: Arm, size: int) -> Arm:
    """Return the arm, with `size` as the size of its training set if it is a `low-share` arm.

    The baseline of a `low-share` arm is a random training set of the same size.
    """
    shares = arm.rebuild == SHARE and not arm.size
    return replace(arm, size=size, without=f"{size:,} random sentences") if shares else arm


def claimed(cells: Sequence[Cell], name: str) -> Cell | None:
    """Return the variant that the planned test is about; None if no arm gets a verdict.

    Its arm is the one called `name`. Without such an arm, take the first arm that is run once per budget. Without that,
    take the first arm that gets a verdict.
    Its budget is the first of that arm's budgets. Its encoder is the experiment's own.
    """
    judged = [cell for cell in cells if cell.arm.judged and not cell.arm.encoder]
    named = [cell for cell in judged if cell.arm.name == name]
    return next(iter(named or [cell for cell in judged if cell.arm.chooses] or judged), None)


def as_much_as(cell: Cell, cells: Sequence[Cell], name: str) -> Cell | None:
    """Return the variant that sets the number of tokens for `cell`; None if `cell` follows its own budget.

    One strategy prefers short sentences, another long ones, so equal numbers of sentences are not equal amounts of
    text. Therefore only the claim's arm (or the first strategy, if the claim selects nothing) follows its budget in
    sentences. At each budget, all other variants select as many tokens as that arm. If that arm is not run at a budget,
    the others select a multiple (`times`) of the tokens that it selects at its first budget.
    """
    if not cell.arm.chooses or Budget.parse(cell.budget).unit == "tokens":
        return None
    claim = claimed([other for other in cells if other.arm.chooses], name)
    if claim is None or claim.arm.name == cell.arm.plain_name:
        return None
    alike = [
        other for other in cells if other.arm.encoder == cell.arm.encoder and other.arm.plain_name == claim.arm.name
    ]
    return next((other for other in alike if other.budget == cell.budget), alike[0])


def times(cell: Cell, other: Cell) -> float:
    """Return the budget of `cell` divided by the budget of `other`, the variant that sets the number of tokens."""
    return Budget.parse(cell.budget).value / Budget.parse(other.budget).value


def baseline(cell: Cell, others: Sequence[Cell]) -> Cell:
    """Return the baseline of `cell`: `none` with the same encoder, or a random training set of the same size.

    The baseline of `none` with another encoder is `none` with the experiment's own encoder.
    """
    encoder = "" if cell.arm.plain_name == NONE else cell.arm.encoder
    return next(other for other in others if (other.arm.plain_name, other.arm.encoder) == (cell.arm.base, encoder))


def control(cell: Cell, others: Sequence[Cell]) -> Cell | None:
    """Return the variant that `cell` must beat in addition to `none`; None if it has no control.

    The controls (SOURCES.md, Random controls) are: `random` at the same budget for a selection; `random-only` for TAPT;
    frozen states of the original encoder for `lm`; the same number of random assisting sentences for `skl`; unchanged
    copies for methods that add changed copies; the plain span tagger for MINER; the same number of random sentences for
    `distant` and `self-train`.
    DAPT uses all of D_C and has no control.
    """
    arm = cell.arm
    if arm.plain_name in CONTROLS:
        return None
    others = [other for other in others if other.arm.encoder == arm.encoder]
    named = {(other.arm.plain_name, other.budget): other for other in others}
    if arm.plain_name == "tapt":
        return next((other for other in others if other.arm.plain_name == CONTROL), None)
    if arm.chooses:
        return named.get((RANDOM, cell.budget))
    if arm.states and arm.source:
        return named.get((STATES, ""))
    return named.get((arm.own_control, cell.budget)) or named.get((arm.own_control, ""))


def against(cell: Cell) -> str:
    """Return words for the text or tagger of a control, such as "unchanged copies of the same sentences".

    Return "" if `_AGAINST` has no words for this variant.
    """
    name = cell.arm.plain_name
    return _AGAINST.get(name) or _AGAINST.get(name.partition(":")[0], "")


def purpose(cell: Cell) -> str:
    """Return a sentence that describes a control."""
    return cell.arm.summary if cell.arm.control else "Random sentences: the baseline that a selection must beat."
