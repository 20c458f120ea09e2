"""What an `intake` run made of several files: a corpus for each part, and what became of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.corpora.grouped import DIVIDE, SOURCE
from core.shown import count
from core.terms import DEV, DOMAIN, TASK, TEST, TRAIN

KIND = "intake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The files of one part. run: the `add` that read them, "" where none could be begun. problem: why they are not
    here, "" if they are."""

    part: str
    files: int
    run: str
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeResult:
    """Result of an `intake` run. roles: those that were given. task_of_train: T_C is the text of L_C train."""

    parts: Sequence[Taken]
    roles: Sequence[str]
    task_of_train: bool


ROLES = {"task": TASK, "domain": DOMAIN, "train": TRAIN, "dev": DEV, "test": TEST}  # of each role


def parts_in_words(parts: Sequence[str]) -> str:
    """Name parts of an import, equal ones with their number: `task corpus, 2 further sources`."""
    words = {**{role: term.word for role, term in ROLES.items()}, DIVIDE: "labelled corpus"}
    named = Counter(words.get(part, "further source" if part == SOURCE else part) for part in parts)
    plural = {word: word.replace("corpus", "corpora") for word in named if word.endswith("corpus")}
    return ", ".join(word if n == 1 else count(n, word, plural.get(word, "")) for word, n in named.items())
