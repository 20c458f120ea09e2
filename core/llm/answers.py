"""Answers of models, stored in the folder of each run, so that no run sends the same request twice.

chunks/answers.jsonl    {"key": sha256 of the request, "text": the answer, "seconds": ...}, one usable answer per line

A request contains the model and the prompt, but no address. A run also reuses the answers of the project's other runs.
An answer is deleted together with the run that asked for it. This run is deleted together with its corpora.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from core.files import WholeLines, append_line, write_atomic
from core.llm.prompt import quotes_in
from core.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A usable answer. key: sha256 of the request. seconds: time that the model took, including repeated requests."""

    key: str
    text: str
    seconds: float


class Answers:
    """The usable answers of a run, by key.

    run: the run that asks. others: runs that may have sent the same requests. wanted: keys of the requests of this run.
    """

    def __init__(self, run: Run, others: Iterable[Run], wanted: Collection[str]) -> None:
        self._file, self._known = _file(run), dict[str, Answer]()
        for each in (run, *others):
            for answer in _read(_file(each)):
                if answer.key in wanted:
                    self._known.setdefault(answer.key, answer)
        write_atomic(self._file, b"".join(_line(answer) + b"\n" for answer in self._known.values()))

    def get(self, key: str) -> Answer | None:
        """Return the answer to a request; None if it is not stored."""
        return self._known.get(key)

    def add(self, answer: Answer) -> None:
        """Store an answer in memory and in the file of the run."""
        append_line(self._file, _line(answer))
        self._known[answer.key] = answer


def _file(run: Run) -> Path:
    return run.chunks / "answers.jsonl"


def _line(answer: Answer) -> bytes:
    return json.dumps(asdict(answer)).encode()


def _read(file: Path) -> Iterator[Answer]:
    """Yield the usable answers of a file. Damaged lines, and a last line that was cut off, are left out."""
    with suppress(FileNotFoundError), file.open("rb") as lines:
        for line in WholeLines(lines):
            with suppress(ValueError, TypeError, RecursionError):
                answer = Answer(**json.loads(line))
                if isinstance(answer.text, str) and quotes_in(answer.text) is not None:
                    yield Answer(key=str(answer.key), text=answer.text, seconds=float(answer.seconds))
