"""Answers of annotators about the sentences of a queue, as an append-only log in the run's folder.

answers.jsonl   one answer per line; the latest answer about a sentence counts
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from core.errors import ConfigError
from core.results import percent_f1
from core.runs import journal
from core.text.sentence import Entity

FILE = "answers.jsonl"
KINDS = ("queue", "draw", "review")
Action = Literal["label", "skip", "flag", "reopen"]
ACTIONS: dict[str, Action] = {name: name for name in get_args(Action)}
# A suggestion that was accepted in fewer seconds was probably not read.
READ_IN = 1.5
# Maximum number of letters of a type's name and of an annotator's name.
LONGEST = 40
# Stored as the annotator of an answer that settles a difference between annotators.
SETTLED = "settled"
# Maximum time of one answer, in seconds. Answers with a longer time are rejected as invalid.
MOST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a person about one sentence.

    action: `label` if `entities` are right, even if there are none; `skip` if the person skipped the sentence; `flag`
    if the sentence needs a second look; `reopen` to delete the earlier answer. Entities of a skip or a flag are no
    labels; the editor shows them again if the sentence is shown again. place: position of the sentence in the
    queue, from 0. seconds: time that the answer took. client, number: id of the browser tab, and number of the answer
    in that tab; they prevent an answer from being stored twice. annotator: name of the person, "" if no names are used;
    `SETTLED` for an answer that settles a difference. time: seconds since 1970. by: account that stored the answer.
    """

    action: Action
    place: int
    entities: tuple[Entity, ...] = ()
    seconds: float = 0.0
    client: str = ""
    number: int = 0
    annotator: str = ""
    time: float = 0.0
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """All answers about the sentences of a queue. history: the answers, oldest first."""

    history: tuple[Answer, ...] = ()

    @cached_property
    def latest(self) -> Mapping[int, Answer]:
        """Latest answer about each sentence, {position in the queue: answer}, in order, without reopened sentences."""
        last: dict[int, Answer] = {}
        for answer in self.history:
            if answer.action == "reopen":
                last.pop(answer.place, None)
            else:
                last[answer.place] = answer
        return {place: last[place] for place in sorted(last)}

    def of(self, annotator: str) -> "Answers":
        """Return the answers of one annotator."""
        return Answers(history=tuple(answer for answer in self.history if answer.annotator == annotator))

    @cached_property
    def by_annotator(self) -> Mapping[str, Mapping[int, tuple[Entity, ...]]]:
        """Labels of each annotator, {annotator: {position in the queue: entities}}. Settlements are not included."""
        names = dict.fromkeys(answer.annotator for answer in self.history if answer.annotator != SETTLED)
        labels = {name: _labels(self.of(name)) for name in sorted(names)}
        return {name: found for name, found in labels.items() if found}

    @cached_property
    def differing(self) -> Mapping[int, Mapping[str, tuple[Entity, ...]]]:
        """Sentences on which annotators differ, in order: {position in the queue: {annotator: entities}}."""
        found: dict[int, dict[str, tuple[Entity, ...]]] = {}
        for name, labels in self.by_annotator.items():
            for place, entities in labels.items():
                found.setdefault(place, {})[name] = entities
        return {place: found[place] for place in sorted(found) if len(set(found[place].values())) > 1}

    @cached_property
    def labelled(self) -> Mapping[int, tuple[Entity, ...]]:
        """Final labels, {position in the queue: entities}.

        A sentence on which annotators differ, or that one of them flagged, is left out until the difference is settled.
        A later answer of an annotator cancels the settlement.
        """
        settled: dict[int, tuple[Entity, ...]] = {}
        for answer in self.history:
            if answer.annotator == SETTLED:
                settled[answer.place] = answer.entities
            else:
                settled.pop(answer.place, None)
        agreed = {place: entities for labels in self.by_annotator.values() for place, entities in labels.items()}
        names = dict.fromkeys(answer.annotator for answer in self.history if answer.annotator != SETTLED)
        flagged = {p for name in names for p, answer in self.of(name).latest.items() if answer.action == "flag"}
        kept = {p: entities for p, entities in agreed.items() if p not in self.differing and p not in flagged}
        kept |= {place: entities for place, entities in settled.items() if place in agreed}
        return {place: kept[place] for place in sorted(kept)}

    @property
    def unsettled(self) -> Mapping[int, Mapping[str, tuple[Entity, ...]]]:
        """Sentences on which annotators differ (see `differing`), without those that are settled."""
        return {place: labels for place, labels in self.differing.items() if place not in self.labelled}

    def stored(self) -> Mapping[str, int]:
        """Return {browser tab: number of its last stored answer}."""
        last: dict[str, int] = {}
        for answer in self.history:
            last[answer.client] = max(answer.number, last.get(answer.client, answer.number))
        return last


def _labels(answers: Answers) -> dict[int, tuple[Entity, ...]]:
    return {place: answer.entities for place, answer in answers.latest.items() if answer.action == "label"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of two annotators on the sentences that both labelled. type: entity type; "" for all types together.

    a, b: number of entities that each annotator labelled. f1: F1 between the two sets of entities, in percent; None if
    both are empty. kappa: Cohen's kappa (Cohen 1960) of the tokens' types; None if all tokens have the same type, or
    none has a type.
    """

    type: str
    a: int
    b: int
    f1: float | None
    kappa: float | None


def agreement(
    a: Mapping[int, Sequence[Entity]], b: Mapping[int, Sequence[Entity]], lengths: Sequence[int]
) -> list[Agreement]:
    """Return the agreement on all types together, then on each type; [] if no sentence has labels of both annotators.

    a, b: {position in the queue: entities}. lengths: number of tokens of each sentence of the queue.
    """
    both = sorted(a.keys() & b.keys())
    if not both:
        return []
    types = sorted({entity.type for labels in (a, b) for place in both for entity in labels[place]})
    return [_agreement(name, [(a[place], b[place], lengths[place]) for place in both]) for name in ("", *types)]


def _agreement(name: str, pairs: Sequence[tuple[Sequence[Entity], Sequence[Entity], int]]) -> Agreement:
    from sklearn.metrics import cohen_kappa_score

    # n: number of entities that the first annotator labelled, that the second labelled, and that both labelled alike.
    # tokens: for each of the two annotators, the types of all tokens.
    n, tokens = [0, 0, 0], [list[str](), list[str]()]
    for one, other, length in pairs:
        sets = [{entity for entity in found if not name or entity.type == name} for found in (one, other)]
        for i, found in enumerate((sets[0], sets[1], sets[0] & sets[1])):
            n[i] += len(found)
        for marks, found in zip(tokens, sets, strict=True):
            inside = {token: entity.type for entity in found for token in range(entity.start, entity.end)}
            marks += [inside.get(token, "") for token in range(length)]
    kappa = float(cohen_kappa_score(*tokens)) if len({*tokens[0], *tokens[1]}) > 1 else None
    return Agreement(
        type=name,
        a=n[0],
        b=n[1],
        f1=percent_f1(n[2], n[0], n[1]) if n[0] + n[1] else None,
        kappa=kappa,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Number of sentences of a queue by the action of their latest answer. of: number of all sentences of the queue.

    seconds: time that all answers took, including answers that were replaced later. types: {type: number of entities}.
    unread: number of sentences whose suggestions were accepted after less than `READ_IN` seconds. Answers from the file
    of a labelling tool have no time, so they do not count.
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
    """Return the number of sentences by answer. suggested: entities suggested for each sentence of the queue."""
    counts = Counter(answer.action for answer in answers.latest.values())
    types = Counter(entity.type for entities in answers.labelled.values() for entity in entities)
    # An answer that was undone and given again counts with the time of all answers about the sentence.
    seconds = defaultdict[int, float](float)
    for answer in answers.history:
        seconds[answer.place] += answer.seconds
    unread = sum(
        answer.action == "label" and 0 < seconds[place] < READ_IN and answer.entities == suggested[place]
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
    """Return the answers in the log of a run. folder: the run's folder. Incomplete and damaged lines are ignored."""
    return Answers(history=journal.read(folder / FILE, _of_line))


def is_spoilt(folder: Path) -> bool:
    """Return True if a line of the log cannot be read."""
    return journal.is_spoilt(folder / FILE, _of_line)


def add(folder: Path, given: Sequence[Answer]) -> None:
    """Append the answers that the log does not contain yet. The caller must hold the lock `journal.changing`."""
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
                **({"annotator": answer.annotator} if answer.annotator else {}),
            )


def checked(given: Mapping[str, object], lengths: Sequence[int], types: Collection[str] = ()) -> Answer:
    """Return an answer that a browser sent, parsed and checked. Errors: ConfigError.

    lengths: number of tokens of each sentence of the queue. types: known types; a new type must have a valid name
    (`check_type`).
    """
    try:
        answer = _of_line(given)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError("This answer cannot be read, so it was not stored; reload the page.") from error
    if not 0 <= answer.place < len(lengths):
        raise ConfigError(
            f"The queue has no sentence {answer.place + 1}, so the answer was not stored; reload the page."
        )
    if not 0 <= answer.seconds <= MOST_SECONDS or not 0 <= answer.number < 2**53:
        raise ConfigError("The time or the number of this answer is not valid, so it was not stored; reload the page.")
    check_annotator(answer.annotator)
    end = 0
    for entity in answer.entities:
        if not end <= entity.start < entity.end <= lengths[answer.place]:
            raise ConfigError(
                f"Sentence {answer.place + 1}: entities overlap or lie outside of the sentence, so the answer was not "
                "stored; reload the page."
            )
        if entity.type not in types:
            check_type(entity.type)
        end = entity.end
    return answer


def check_annotator(name: str) -> None:
    """Raise a ConfigError if an annotator's name is reserved, too long, or has control characters."""
    if len(name) > LONGEST or not name.isprintable() or name == SETTLED:
        raise ConfigError(f"An annotator's name has at most {LONGEST} letters, and is not {SETTLED!r}; change it.")


def check_type(name: str) -> None:
    """Raise a ConfigError if a type's name is empty, too long, or has blanks or control characters."""
    if not name or len(name) > LONGEST or not name.isprintable() or any(letter.isspace() for letter in name):
        raise ConfigError(f"A type needs a name of 1 to {LONGEST} letters without blanks, such as PARTY; change it.")


def _of_line(line: Mapping[str, object]) -> Answer:
    """Return the answer in a line of the log. Errors: ValueError, TypeError, KeyError."""
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
        annotator=str(line.get("annotator", "")),
        time=float(line.get("time", 0.0)),  # type: ignore[arg-type]
        by=str(line.get("by", "")),
    )


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value
