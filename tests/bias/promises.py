"""Properties of every rebuilt training set."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from core.bias.pools import Pools
from core.bias.result import Edit
from core.bias.training_sentences import Rebuilt, Training, key_of, name_of, surface
from core.results import BoolArray
from core.text.schemes import decode, encode
from core.text.sentence import Sentence
from tests.conftest import entities_of

ADDED, CONTEXTS = ("random2low", "highc2low"), ("random2high", "low2high")


def types(rows: Iterable[Sentence]) -> Counter[str]:
    return Counter(entity.type for row in rows for entity in entities_of(row))


def names(rows: Iterable[Sentence]) -> Counter[tuple[str, str]]:
    return Counter((entity.type, surface(name_of(row, entity))) for row in rows for entity in entities_of(row))


def assert_promises(method: str, made: Rebuilt, found: Training, rungs: Sequence[Pools], rate: float) -> None:
    """Assert the properties that hold at any rate."""
    assert len(made.edits) <= made.wanted == round(rate * len(found))
    assert len({(edit.row, edit.start) for edit in made.edits}) == len(made.edits)
    _whole(made, found)
    assert set(names(made.sentences)) <= set(names(found.sentences))  # no name changes its type
    if method in ADDED:
        assert made.sentences[: len(found.sentences)] == list(found.sentences)
        sources = [edit.copy_of for edit in made.edits]
        assert len(set(sources)) == len(made.sentences) - len(found.sentences)
        for edit in made.edits:
            assert edit.copy_of is not None
            assert types([made.sentences[edit.row]]) == types([found.sentences[edit.copy_of]])
    else:
        assert len(made.sentences) == len(found.sentences)
        assert types(made.sentences) == types(found.sentences)
    if method in CONTEXTS:
        assert names(made.sentences) == names(found.sentences)  # names are moved, not lost
        _contexts(method, made, found, rungs[0])
        return
    (pools,) = (rung for rung in rungs if rung.reached == made.reached)
    low = {(kind, name) for _, kind, name in _named(found, pools.entity_low & found.free)}
    source = _named(found, pools.entity_high & pools.context_high if method == "highc2low" else pools.entity_high)
    for edit in made.edits:
        row = edit.row if edit.copy_of is None else edit.copy_of
        assert (edit.type, edit.after) in low
        assert (row, edit.type, edit.before) in source
        assert edit.context_of is None


def _whole(made: Rebuilt, found: Training) -> None:
    before = Counter(key_of(one.text) for one in found.sentences)
    after = Counter(key_of(one.text) for one in made.sentences)
    changed = {edit.row for edit in made.edits}
    for row, one in enumerate(made.sentences):
        if row not in changed:
            assert one == found.sentences[row]
            continue
        assert one.text == " ".join(one.tokens)
        assert decode(encode(entities_of(one), len(one.tokens), "iob2"), "iob2")[0] == entities_of(one)
        key = key_of(one.text)
        assert key not in found.closed
        assert (after[key], before[key]) == (1, 0)
    for edit in made.edits:
        assert edit.after == surface(made.sentences[edit.row].tokens[edit.start : edit.end])
        assert edit.after.casefold() != edit.before.casefold()
        source = found.sentences[_source(edit)]
        assert (edit.type, edit.before) in names([source])
        assert key_of(source.text) not in found.closed


def _contexts(method: str, made: Rebuilt, found: Training, pools: Pools) -> None:
    """Assert that contexts come from unchanged sentences and from mentions with a high context.

    A sentence is lent as a whole only if all its contexts are high.
    """
    changed = {edit.row for edit in made.edits}
    rows = found.by_row(range(len(found)))
    all_high = {row for row, mentions in rows.items() if pools.context_high[mentions].all()}
    lending = _named(found, pools.context_high)
    for edit in made.edits:
        assert edit.context_of is not None
        assert edit.context_of not in changed
        assert (edit.context_of, edit.type, edit.before) in lending
        assert edit.copy_of is None or edit.copy_of in all_high
        if method == "low2high":
            assert edit.row not in all_high
            own = [m for m in rows[edit.row] if (found.kinds[m], surface(found.names[m])) == (edit.type, edit.after)]
            assert edit.copy_of is not None or not pools.context_high[own].all()


def _named(found: Training, mask: BoolArray) -> set[tuple[int, str, str]]:
    chosen = np.flatnonzero(mask).tolist()
    return {(int(found.rows[m]), found.kinds[m], surface(found.names[m])) for m in chosen}


def _source(edit: Edit) -> int:
    if edit.context_of is not None:
        return edit.context_of
    return edit.row if edit.copy_of is None else edit.copy_of
