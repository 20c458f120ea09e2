"""The answer of a whole experiment in a sentence or two, from its verdicts."""

from collections.abc import Sequence

from core.artifacts.leaderboard import ArmRow, nothing_learnt
from core.plots.results import VERDICT_MARKS, line_name

NOTHING = (
    "No tagger learnt anything, so nothing can be said: in no arm does F1 rise above what chance gives. That is no "
    "evidence for or against any of them; the training has to work first."
)


def answer(rows: Sequence[ArmRow]) -> str:
    """One or two sentences for the whole experiment, by the verdicts alone: means without a verdict prove nothing."""
    if nothing_learnt(rows):
        return NOTHING
    named = {word: [line_name(row) for row in rows if row.verdict == word] for word in VERDICT_MARKS}
    helped, level = named["helped"], named["no evidence"]
    only_read = all_read(rows)
    sentences = []
    if named["improves"]:
        sentences.append(
            f"Yes: {'pre-training improved the tagger' if only_read else 'the tagger improved'} with "
            f"{_listed(named['improves'])}."
        )
    if named["hurts"]:
        sentences.append(f"It did harm with {_listed(named['hurts'])}.")
    if helped and only_read:
        sentences.append(
            f"With {_listed(helped)} the tagger was better than without pre-training, but is not shown to be better "
            "than with random text of the same amount: reading helped, whether choosing what to read did is not known."
        )
    elif helped:
        sentences.append(
            f"With {_listed(helped)} the tagger was better than with none of it, but choosing is not shown to help."
        )
    if named["below control"]:
        sentences.append(
            f"With {_listed(named['below control'])} the tagger was worse than with "
            f"{'random text of the same amount' if only_read else 'what it is held against'}: the choice did harm."
        )
    if level and sentences:
        sentences.append(f"For {_listed(level)} there is no evidence either way.")
    elif level:
        what = "pre-training" if only_read else "any of this"
        sentences.append(f"This experiment gives no evidence that {what} helped. That is not evidence that it did not.")
    return " ".join(sentences) or "Nothing was compared with the tagger that had no pre-training."


def all_read(rows: Sequence[ArmRow]) -> bool:
    """Whether pre-training is all that arms differ in."""
    return all(row.sentences for row in rows if row.verdict != "baseline")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
