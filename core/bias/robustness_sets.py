"""Test sets in which names no longer help: unseen ones, those of other types, misspelt ones.

After TextFlint (SOURCES.md, Robustness sets).
Every mention is renamed, from the right to the left as it were: its type stays and its tags are laid anew. What a set
promises is asserted of each new name as it is put there.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from core.bias.names import Known, NameMaker, folded, is_content_word
from core.bias.result import Edit, Slot
from core.bias.training_sentences import Name, edits_of, name_of, ordered, renamed, surface
from core.bias.typos import slip
from core.errors import CorpusError
from core.text.sentence import Entity, Sentence

NewName = tuple[Name, str]  # a new name, and where it is from
ChooseName = Callable[[Name, str], NewName | None]  # given a name and its type; None leaves it as it is
TRIES = 50  # random draws before names are gone through in order, or the name is left as it is


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
    test: Sequence[Sentence],
    known: Known,
    gazetteer: Mapping[str, Sequence[Name]],
    seed: int,
    finds: Mapping[str, Sequence[Name]] | None = None,
) -> Robust:
    """OOV: names that training sentences do not hold, nor any of their words but function words.

    gazetteer, finds: {type: names}, of which the new ones are taken: first those that a tagger found, which read like
    names of the domain, then those of lists; for a type without any they are generated.
    """
    rng = Random(seed)
    lists = {
        source: {kind: [n for n in dict.fromkeys(names) if known.is_new(n)] for kind, names in by_type.items()}
        for source, by_type in (("finds", finds or {}), ("gazetteer", gazetteer))
    }
    all_names = [name for names in known.names.values() for name in names]
    makers: dict[str, NameMaker] = {}

    def choose_name(name: Name, kind: str) -> NewName:
        drawn = ((_other(by_type.get(kind, ()), name, rng), source) for source, by_type in lists.items())
        chosen = next(((other, source) for other, source in drawn if other), None)
        if chosen is None:
            # Made on demand and kept: training a chain a type takes far longer than a name from it.
            if kind not in makers:
                makers[kind] = NameMaker(known.names.get(kind) or all_names)
            chosen = makers[kind].make(known, rng), "generated"
        assert known.is_new(chosen[0])
        return chosen

    return _renamed(test, known, choose_name, "oov")


def cross_category(test: Sequence[Sentence], known: Known, *, strict: bool, seed: int) -> Robust:
    """Names of other types. strict: that training sentences never have under the slot's type; else, as TextFlint's
    lists, names that have another type, whether or not they have the slot's too.

    Errors: CorpusError where training sentences have no such name.
    """
    rng = Random(seed)
    if len(known.names) < 2:
        raise CorpusError(
            f"cross-category: the training sentences name {' '.join(known.names) or 'nothing'}, and names of another"
            " type are needed; give a training corpus with two types or more."
        )
    pools = {kind: _of_others(known, kind, strict) for kind in sorted({e.type for s in test for e in ordered(s)})}

    def choose_name(name: Name, kind: str) -> NewName:
        chosen = _other(pools[kind], name, rng)
        if chosen is None:
            raise CorpusError(
                f"cross-category: every name of the training sentences is a {kind} somewhere; choose textflint for"
                " ambiguous, or give a training corpus with names of more types."
            )
        # strict asks that no training sentence has the name under this type; textflint, that one has it under another.
        types = known.kinds[folded(chosen)]
        assert kind not in types if strict else types - {kind}
        return chosen, "train"

    return _renamed(test, known, choose_name, "cross-category")


def _of_others(known: Known, kind: str, strict: bool) -> list[Name]:
    names = dict.fromkeys(name for names in known.names.values() for name in names)
    return [n for n in names if (kind not in known.kinds[folded(n)] if strict else known.kinds[folded(n)] - {kind})]


def _other(names: Sequence[Name], name: Name, rng: Random) -> Name | None:
    """One of `names` that is not `name` in any case."""
    # Draws first, so that names are uniform; a pool of little but `name` itself ends in the first other one.
    for _ in range(TRIES if names else 0):
        if folded(other := rng.choice(names)) != folded(name):
            return other
    return next((other for other in names if folded(other) != folded(name)), None)


def misspelt(test: Sequence[Sentence], known: Known, seed: int) -> Robust:
    """Typos: one edit in a word of each name, so that no entity of the training sentences is called so."""
    # Sorted, for a set of letters has another order in every process, and a seed is to give the same again.
    rng, letters = Random(seed), "".join(sorted({letter for word in known.words for letter in word}))

    def choose_name(name: Name, kind: str) -> NewName | None:
        places = [place for place, word in enumerate(name) if is_content_word(word) and len(word) > 1]
        for _ in range(TRIES if places else 0):
            place = rng.choice(places)
            typo = (*name[:place], slip(name[place], rng, letters) or name[place], *name[place + 1 :])
            if folded(typo) != folded(name) and folded(typo) not in known.kinds:
                return typo, "typo"
        return None

    return _renamed(test, known, choose_name, "typos")


def _slot(row: int, before: tuple[Sentence, Entity], after: tuple[Sentence, Entity], source: str, doubt: str) -> Slot:
    return Slot(
        row=row,
        start=after[1].start,
        end=after[1].end,
        type=after[1].type,
        before=surface(name_of(*before)),
        after=surface(name_of(*after)),
        source=source,
        ambiguous=doubt,
    )


def _renamed(test: Sequence[Sentence], known: Known, choose_name: ChooseName, kind: str) -> Robust:
    sentences, edits, slots = list[Sentence](), list[Edit](), list[Slot]()
    for row, sentence in enumerate(test):
        chosen = {
            place: choice
            for place, entity in enumerate(ordered(sentence))
            if (choice := choose_name(name_of(sentence, entity), entity.type))
        }
        new_sentence = renamed(sentence, {place: name for place, (name, _) in chosen.items()})
        edits += edits_of(sentence, new_sentence, chosen, row=row, copy_of=None, kind=kind)
        for place, (old, new) in enumerate(zip(ordered(sentence), ordered(new_sentence), strict=True)):
            source = chosen[place][1] if place in chosen else ""
            slots.append(_slot(row, (sentence, old), (new_sentence, new), source, known.ambiguity(new_sentence, new)))
        assert [entity.type for entity in ordered(new_sentence)] == [entity.type for entity in ordered(sentence)]
        sentences.append(new_sentence)
    assert len(sentences) == len(test)
    return Robust(sentences=sentences, edits=edits, slots=slots)
