"""Test sets in which names no longer help: unseen ones, those of other types, misspelt ones.

After TextFlint (SOURCES.md, Robustness sets).
Every mention is renamed, from the right to the left as it were: its type stays and its tags are laid anew. What a set
promises is asserted of each new name as it is put there.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from core.errors import CorpusError
from core.reconstruction.names import Known, NameMaker, folded, tells
from core.reconstruction.training import Edit, Name, edits_of, name_of, ordered, renamed, surface
from core.reconstruction.typos import slip
from core.text.sentence import Sentence

Choice = tuple[Name, str]  # a new name, and where it is from
Choose = Callable[[Name, str], Choice | None]  # given a name and its type; None leaves it as it is
TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A mention of the new test set. source: where its name is from, "" if it is as it was. ambiguous: why it cannot
    be told for sure (`Known.ambiguity`), "" if it can."""

    row: int
    start: int
    end: int
    type: str
    before: str
    after: str
    source: str
    ambiguous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """The test sentences in their order, under other names."""

    sentences: list[Sentence]
    edits: list[Edit]
    slots: list[Slot]

    def sources(self) -> dict[str, int]:
        """Mentions by where their names are from; those that are as they were are not counted."""
        return dict(Counter(slot.source for slot in self.slots if slot.source))


def unseen(
    test: Sequence[Sentence], known: Known, gazetteer: Mapping[str, Sequence[Name]], seed: int
) -> Robust:  # fmt: skip
    """OOV: names that training sentences do not hold, nor any of their words but function words.

    gazetteer: {type: names}, of which the new ones are taken; for a type without any they are generated.
    """
    lots = Random(seed)
    lists = {kind: [n for n in dict.fromkeys(names) if known.is_new(n)] for kind, names in gazetteer.items()}
    every = [name for names in known.names.values() for name in names]
    makers: dict[str, NameMaker] = {}

    def choose(name: Name, kind: str) -> Choice:
        other = _other(lists.get(kind, ()), name, lots)
        if other:
            chosen = other, "gazetteer"
        else:
            if kind not in makers:
                makers[kind] = NameMaker(known.names.get(kind) or every)
            chosen = makers[kind].make(known, lots), "generated"
        assert known.is_new(chosen[0])
        return chosen

    return _renamed(test, known, choose, "oov")


def cross_category(test: Sequence[Sentence], known: Known, *, strict: bool, seed: int) -> Robust:
    """Names of other types. strict: that training sentences never have under the slot's type; else, as TextFlint's
    lists, names that have another type, whether or not they have the slot's too.

    Errors: CorpusError where training sentences have no such name.
    """
    lots = Random(seed)
    if len(known.names) < 2:
        raise CorpusError(
            f"cross-category: the training sentences name {' '.join(known.names) or 'nothing'}, and names of another"
            " type are needed; give a training corpus with two types or more."
        )
    pools = {kind: _of_others(known, kind, strict) for kind in sorted({e.type for s in test for e in ordered(s)})}

    def choose(name: Name, kind: str) -> Choice:
        chosen = _other(pools[kind], name, lots)
        if chosen is None:
            raise CorpusError(
                f"cross-category: every name of the training sentences is a {kind} somewhere; choose textflint for"
                " ambiguous, or give a training corpus with names of more types."
            )
        types = known.kinds[folded(chosen)]
        assert kind not in types if strict else types - {kind}
        return chosen, "train"

    return _renamed(test, known, choose, "cross-category")


def _of_others(known: Known, kind: str, strict: bool) -> list[Name]:
    names = dict.fromkeys(name for names in known.names.values() for name in names)
    return [n for n in names if (kind not in known.kinds[folded(n)] if strict else known.kinds[folded(n)] - {kind})]


def _other(names: Sequence[Name], name: Name, lots: Random) -> Name | None:
    """One of `names` that is not `name` in any case."""
    for _ in range(TRIES if names else 0):
        if folded(found := lots.choice(names)) != folded(name):
            return found
    return next((other for other in names if folded(other) != folded(name)), None)


def misspelt(test: Sequence[Sentence], known: Known, seed: int) -> Robust:
    """Typos: one edit in a word of each name, so that no entity of the training sentences is called so."""
    lots = Random(seed)

    def choose(name: Name, kind: str) -> Choice | None:
        places = [place for place, word in enumerate(name) if tells(word) and len(word) > 1]
        for _ in range(TRIES if places else 0):
            place = lots.choice(places)
            made = (*name[:place], slip(name[place], lots) or name[place], *name[place + 1 :])
            if folded(made) != folded(name) and folded(made) not in known.kinds:
                return made, "typo"
        return None

    return _renamed(test, known, choose, "typos")


def _renamed(test: Sequence[Sentence], known: Known, choose: Choose, kind: str) -> Robust:
    sentences, edits, slots = list[Sentence](), list[Edit](), list[Slot]()
    for row, sentence in enumerate(test):
        chosen = {
            place: choice
            for place, entity in enumerate(ordered(sentence))
            if (choice := choose(name_of(sentence, entity), entity.type))
        }
        made = renamed(sentence, {place: name for place, (name, _) in chosen.items()})
        edits += edits_of(sentence, made, chosen, row=row, copy_of=None, kind=kind)
        for place, (old, new) in enumerate(zip(ordered(sentence), ordered(made), strict=True)):
            slots.append(Slot(
                row=row, start=new.start, end=new.end, type=new.type, before=surface(name_of(sentence, old)),
                after=surface(name_of(made, new)), source=chosen[place][1] if place in chosen else "",
                ambiguous=known.ambiguity(made, new),
            ))  # fmt: skip
        assert [entity.type for entity in ordered(made)] == [entity.type for entity in ordered(sentence)]
        sentences.append(made)
    assert len(sentences) == len(test)
    return Robust(sentences=sentences, edits=edits, slots=slots)
