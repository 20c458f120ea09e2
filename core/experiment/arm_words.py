"""Arms in words, for who does not know their names: what one adds, what it must beat beside nothing, what that asks."""

from collections.abc import Mapping, Sequence
from statistics import mean

from core.config import Budget
from core.experiment.result import ArmRow, ExperimentResult, split_name

JUDGED = ("improves", "helped", "hurts", "below control", "no evidence")  # the surest first
_NAMES = {
    "tapt": "the task's own text",
    "dapt": "all of the domain corpus",
    "tapt+dapt": "the task's own text and all of the domain corpus",
    "all": "all borrowed labels",
    "dataaug": "changed copies of its training sentences",
    "lpft": "training in two stages",
    "span": "spans in place of words",
    "miner": "names of a type read alike",
}
_HEADS = {
    "vectors": "word vectors of {}",
    "lm": "a language model of {}",
    "skl": "borrowed labels that agree (up to {})",
}
_COPIES = ("changing the copies", "unchanged copies")
_CONTROLS: Mapping[str, tuple[str, str]] = {  # by what an arm's name begins with: what is asked, what it must beat
    "dataaug": _COPIES,
    "random2low": _COPIES,
    "highc2low": _COPIES,
    "lm": ("reading the source", "the language model as it came"),
    "miner": ("comparing names", "a plain tagger of spans"),
}


def name_of(row: ArmRow, rows: Sequence[ArmRow]) -> str:
    """Name of what an arm adds."""
    name, encoder = split_name(row.arm)
    head, _, value = name.partition(":")
    if row.verdict == "control" and row.sentences:
        words = "random sentences"
    elif name in _NAMES:
        words = _NAMES[name]
    elif head in _HEADS and value:
        words = _HEADS[head].format(value)
    elif row.budget and row.sentences:
        alone = len({other.arm for other in rows if other.budget and other.verdict in JUDGED}) == 1
        asked = Budget.parse(row.budget)  # a row's sentences count the task's own text too
        words = f"the chosen {asked.in_words}{' of the domain corpus' * (asked.unit == 'fraction')}"
        words += "" if alone else f" ({name})"
    else:
        words = f"“{name}”"
    return f"{words}, from the encoder {encoder}" if encoder else words


def reads(row: ArmRow) -> bool:
    """Whether what an arm adds is text that its tagger has read; a language model that has is a thing to have."""
    return bool(row.sentences) and _head(row.arm) != "lm"


def held_against(row: ArmRow) -> str:
    """Name of what an arm must beat beside nothing."""
    _, control = _CONTROLS.get(_head(row.arm), ("", ""))
    return control or ("as much random text" if row.sentences else "a random part")


def asked_by_control(arm: str) -> str:
    """Name of what helps, where an arm beats its control."""
    asked, _ = _CONTROLS.get(_head(arm), ("choosing", ""))
    return asked


def _head(arm: str) -> str:
    return split_name(arm)[0].partition(":")[0]


def overlap_in_short(result: ExperimentResult) -> str:
    """Sentences that were learnt from and tested too, and how far they move the scores, for a reader who trains no
    models; nothing where there are none."""
    if not (shared := result.train_in_test):
        return ""
    n = shared.exact + shared.near
    moved = [abs(row.mean - mean(row.unseen_f1)) for row in result.leaderboard if row.unseen_f1]
    without = f"; without what they share no score moves by more than {max(moved):.1f} points" if moved else ""
    return (
        f"{n:,} of the sentences learnt from stand{'s' * (n == 1)}, word for word or nearly, among those decided by or "
        f"tested on{without}."
    )
