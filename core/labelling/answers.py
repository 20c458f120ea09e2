"""Answers of a person about the sentences of a queue, in an append-only log beside the `queue` run.

answers.jsonl   one answer per line; the latest answer about a sentence counts
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from core.errors import ConfigError
from core.runs import journal
from core.text.sentence import Entity

FILE = "answers.jsonl"
Action = Literal["label", "skip", "flag", "reopen"]
ACTIONS: dict[str, Action] = {name: name for name in get_args(Action)}
READ_IN = 1.5  # seconds; a sentence that was accepted faster, as suggested, was hardly read
LONGEST = 40  # letters of a type
MOST_SECONDS = 3600.0  # of one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    action: `label`: the entities are right, also if there are none; `skip`; `flag`: the sentence needs a second look;
    `reopen`: undoes the latest answer about the sentence. place: number of the sentence in the queue, from 0.
    seconds: time that it took. client, number: the browser tab and its count, so that no answer is stored twice.
    time: seconds since 1970. by: the account.
    """

    action: Action
    place: int
    entities: tuple[Entity, ...] = ()
    seconds: float = 0.0
    client: str = ""
    number: int = 0
    time: float = 0.0
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """All answers about the sentences of a queue, oldest first."""

    history: tuple[Answer, ...] = ()

    @cached_property
    def latest(self) -> Mapping[int, Answer]:
        """{place: the answer that counts}, in the order of the queue; reopened sentences have none."""
        last: dict[int, Answer] = {}
        for answer in self.history:
            if answer.action == "reopen":
                last.pop(answer.place, None)
            else:
                last[answer.place] = answer
        return {place: last[place] for place in sorted(last)}

    @cached_property
    def labelled(self) -> Mapping[int, tuple[Entity, ...]]:
        """{place: its entities} of the labelled sentences."""
        return {place: answer.entities for place, answer in self.latest.items() if answer.action == "label"}

    def stored(self) -> Mapping[str, int]:
        """Return {client: number of its last stored answer}."""
        last: dict[str, int] = {}
        for answer in self.history:
            last[answer.client] = max(answer.number, last.get(answer.client, answer.number))
        return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was done in a queue. seconds: time of all answers, corrections included. types: entities by type.

    unread: sentences that were accepted as suggested in less than `READ_IN` seconds.
    """

    of: int
    labelled: int
    skipped: int
    flagged: int
    seconds: float
    types: Mapping[str, int]
    unread: int

    @property
    def left(self) -> int:
        """Number of sentences without an answer."""
        return self.of - self.labelled - self.skipped - self.flagged


def progress(answers: Answers, suggested: Sequence[tuple[Entity, ...]]) -> Progress:
    """Count the answers. suggested: what the tagger found in each sentence of the queue."""
    counts = Counter(answer.action for answer in answers.latest.values())
    types = Counter(entity.type for entities in answers.labelled.values() for entity in entities)
    unread = sum(
        answer.action == "label" and answer.seconds < READ_IN and answer.entities == suggested[place]
        for place, answer in answers.latest.items()
        if suggested[place]
    )
    return Progress(
        of=len(suggested),
        labelled=counts["label"],
        skipped=counts["skip"],
        flagged=counts["flag"],
        seconds=sum(answer.seconds for answer in answers.history),
        types=dict(types.most_common()),
        unread=unread,
    )


def read(folder: Path) -> Answers:
    """Read the log in the folder of a run. Incomplete and damaged lines are ignored."""
    return Answers(history=journal.read(folder / FILE, _of_line))


def is_spoilt(folder: Path) -> bool:
    """Return True if a line of the log cannot be read."""
    return journal.is_spoilt(folder / FILE, _of_line)


def add(folder: Path, given: Sequence[Answer]) -> None:
    """Append the answers that the log does not hold yet. Hold `journal.changing` while calling it."""
    last = read(folder).stored()
    for answer in given:
        if answer.number > last.get(answer.client, -1):
            entities = [[entity.start, entity.end, entity.type] for entity in answer.entities]
            journal.append(
                folder / FILE,
                action=answer.action,
                place=answer.place,
                entities=entities,
                seconds=round(answer.seconds, 2),
                client=answer.client,
                number=answer.number,
            )


def checked(given: Mapping[str, object], lengths: Sequence[int]) -> Answer:
    """Return an answer as a browser sends it. lengths: tokens of each sentence of the queue. Errors: ConfigError."""
    try:
        answer = _of_line(given)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError("This answer cannot be read, so it was not stored; reload the page.") from error
    if not 0 <= answer.place < len(lengths):
        raise ConfigError(
            f"The queue has no sentence {answer.place + 1}, so the answer was not stored; reload the page."
        )
    if not 0 <= answer.seconds <= MOST_SECONDS or not 0 <= answer.number < 2**53:
        raise ConfigError("This answer has an impossible time or number, so it was not stored; reload the page.")
    end = 0
    for entity in answer.entities:
        if not end <= entity.start < entity.end <= lengths[answer.place]:
            raise ConfigError(
                f"Sentence {answer.place + 1}: two entities overlap, or one lies outside of it, so the answer was not "
                "stored; reload the page."
            )
        check_type(entity.type)
        end = entity.end
    return answer


def check_type(name: str) -> None:
    """Check the name of a type. Errors: ConfigError if it is empty, too long, or has blanks or control characters."""
    if not name or len(name) > LONGEST or not name.isprintable() or any(letter.isspace() for letter in name):
        raise ConfigError(f"A type needs a name of 1 to {LONGEST} letters without blanks, such as PARTY; change it.")


def _of_line(line: Mapping[str, object]) -> Answer:
    """Parse a line of the log. Errors: ValueError, TypeError, KeyError."""
    action, entities = str(line["action"]), line["entities"]
    if action not in ACTIONS or not isinstance(entities, list):
        raise ValueError(action)
    return Answer(
        action=ACTIONS[action],
        place=_whole(line["place"]),
        entities=tuple(
            sorted(Entity(start=_whole(start), end=_whole(end), type=str(type)) for start, end, type in entities)
        ),
        seconds=float(line["seconds"]),  # type: ignore[arg-type]
        client=str(line["client"])[:64],
        number=_whole(line["number"]),
        time=float(line.get("time", 0.0)),  # type: ignore[arg-type]
        by=str(line.get("by", "")),
    )


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value
