"""What an `intake` run made of several files: a corpus for each part, and what became of each."""

from collections.abc import Sequence
from dataclasses import dataclass

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
