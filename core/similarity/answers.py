"""What people answered before they saw the numbers, kept beside a comparison: a user's guess, a survey's answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from core.files import write_atomic
from core.runs.run import Run

_GUESS_FILE, _SURVEY_FILE = "guess.json", "survey.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An answer with the fingerprints of the corpora that it is about."""

    person: str
    target: Sequence[str]
    first: Sequence[str]
    second: Sequence[str]
    rating: int


_GUESSES, _ANSWERS = TypeAdapter(Mapping[str, Sequence[str]]), TypeAdapter(list[Kept])


def write_guesses(run: Run, guesses: Mapping[str, Sequence[str]]) -> None:
    """Write, for each target, the sources in the order that was guessed."""
    write_atomic(run.path / _GUESS_FILE, _GUESSES.dump_json(guesses))


def read_guesses(run: Run) -> Mapping[str, Sequence[str]]:
    """The guesses of a run; none from a file that is not there, or that was changed."""
    try:
        return _GUESSES.validate_json((run.path / _GUESS_FILE).read_bytes())
    except (OSError, ValueError):
        return {}


def write_answers(run: Run, answers: Sequence[Kept]) -> None:
    """Write all answers that were given at a run."""
    write_atomic(run.path / _SURVEY_FILE, _ANSWERS.dump_json([*answers]))


def read_answers(run: Run) -> list[Kept]:
    """The answers that were given at a run; none from a file that is not there, or that was changed."""
    try:
        return _ANSWERS.validate_json((run.path / _SURVEY_FILE).read_bytes())
    except (OSError, ValueError):
        return []
