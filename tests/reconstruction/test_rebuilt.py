"""Rebuilt training sets keep every rule of SOURCES.md, Rebuilding."""

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ConfigError
from core.reconstruction import contexts, entities, shares
from core.reconstruction.augment import _letters, dataaug, guard, levenshtein
from core.reconstruction.pools import Pools, Thresholds, check, find_pools
from core.reconstruction.training import Measured, Rebuilt, Training, key_of, name_of, ordered, surface
from core.text.schemes import decode, encode
from core.text.sentence import Sentence
from tests.conftest import entities_of, sentence
from tests.reconstruction.planted import pools, sentences, training

ADDED = (entities.random2low, entities.highc2low)
IN_PLACE = (entities.redundant2low, contexts.random2high, contexts.low2high)
ALL = (*ADDED, *IN_PLACE)


Method = Callable[[Training, Pools, float, int], Rebuilt]


def types(rows: Iterable[Sentence]) -> Counter[str]:
    return Counter(entity.type for row in rows for entity in entities_of(row))


def halves(word: str) -> list[tuple[str, str]]:
    cut = (len(word) + 1) // 2
    return [(word[:cut], word[:cut]), (f"##{word[cut:]}", word[cut:])] if word[cut:] else [(word, word)]


def by_halves(found: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    return dataaug(found, halves, seed)


@pytest.mark.parametrize("method", ALL)
def test_rate_zero_is_the_identity(method: Method) -> None:
    found = training()
    made = method(found, pools(found), 0.0, 1)
    assert made.sentences == found.sentences
    assert made.edits == []


@pytest.mark.parametrize("method", [*ALL, by_halves])
@given(seed=st.integers(0, 10**6), rate=st.sampled_from([0.1, 0.2, 0.4, 1.0]))
@settings(max_examples=12, deadline=None)
def test_every_sentence_is_whole_and_new_and_the_log_is_true(method: Method, seed: int, rate: float) -> None:
    found = training(seed=seed, held_out=[s.text for s in sentences(60, seed)[:6]])
    made = method(found, pools(found), rate, seed)
    before = Counter(key_of(one.text) for one in found.sentences)
    after = Counter(key_of(one.text) for one in made.sentences)
    changed = {edit.row for edit in made.edits}
    for row, one in enumerate(made.sentences):
        assert one.text == " ".join(one.tokens)
        tags = encode(entities_of(one), len(one.tokens), "iob2")
        assert len(tags) == len(one.tokens)
        assert decode(tags, "iob2")[0] == entities_of(one)
        if row in changed:
            assert key_of(one.text) not in found.closed
            assert method is entities.redundant2low or (after[key_of(one.text)], before[key_of(one.text)]) == (1, 0)
        else:
            assert one == found.sentences[row]
    for edit in made.edits:
        new = made.sentences[edit.row]
        assert edit.after == surface(new.tokens[edit.start : edit.end])
        assert edit.after.casefold() != edit.before.casefold()
        source = found.sentences[edit.row if edit.copy_of is None else edit.copy_of]
        assert edit.before in [surface(name_of(source, e)) for e in ordered(source) if e.type == edit.type]
        assert key_of(source.text) not in found.closed
    if method is not by_halves:
        assert len(made.edits) <= made.wanted == round(rate * len(found))
    assert made == method(found, pools(found), rate, seed)


@pytest.mark.parametrize("method", ADDED)
def test_copies_are_added_with_the_types_of_their_sentences_and_low_names(method: Method) -> None:
    found = training(200)
    drawn = pools(found)
    made = method(found, drawn, 0.2, 3)
    assert made.sentences[:200] == list(found.sentences)
    assert len(made.edits) == made.wanted > 20
    low = {
        (kind, surface(name))
        for kind, name, is_low in zip(found.kinds, found.names, drawn.entity_low, strict=True)
        if is_low
    }
    for edit in made.edits:
        assert edit.copy_of is not None
        assert (edit.type, edit.after) in low
        assert types([made.sentences[edit.row]]) == types([found.sentences[edit.copy_of]])
    source = drawn.entity_high & drawn.context_high if method is entities.highc2low else drawn.entity_high
    able = {
        (int(row), kind, surface(name))
        for row, kind, name in ((found.rows[m], found.kinds[m], found.names[m]) for m in np.flatnonzero(source))
    }
    assert {(edit.copy_of, edit.type, edit.before) for edit in made.edits} <= able
    assert len({edit.copy_of for edit in made.edits}) == len(made.sentences) - 200


@pytest.mark.parametrize("method", IN_PLACE)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_size_and_the_types_of_all_stay(method: Method, seed: int) -> None:
    found = training(300, seed)
    made = method(found, pools(found), 0.3, seed)
    assert len(made.sentences) == 300
    assert types(made.sentences) == types(found.sentences)
    assert made.edits


def test_redundant_names_go_most_frequent_first_and_one_of_each_stays() -> None:
    found = training(400)
    drawn = pools(found, entity_low="20%", entity_high="50%")
    often = Counter((k, n) for k, n, high in zip(found.kinds, found.names, drawn.entity_high, strict=True) if high)
    for rate in (0.05, 1.0):
        made = entities.redundant2low(found, drawn, rate, 1)
        gone = Counter((edit.type, tuple(edit.before.split())) for edit in made.edits)
        assert all(gone[group] < often[group] for group in gone)
        if rate == 1.0:
            assert all(gone[group] == n - 1 for group, n in often.items())
        else:
            least = min(often[group] for group in gone)
            assert all(n <= least or gone[group] == n - 1 for group, n in often.items())
            assert len(made.edits) == made.wanted


def test_deleted_contexts_are_the_lowest_and_retained_ones_are_high() -> None:
    found = training(400, types=("PER",))
    drawn = pools(found)
    made = contexts.low2high(found, drawn, 0.2, 1)
    means = {row: found.context[mentions].mean() for row, mentions in found.by_row(range(len(found))).items()}
    singles = {row for row in means if len(entities_of(found.sentences[row])) == 1}
    gone = {edit.row for edit in made.edits} & singles
    assert max(means[row] for row in gone) <= np.quantile([means[row] for row in singles], 0.35)
    high = found.by_row(np.flatnonzero(drawn.context_high).tolist())
    for edit in made.edits:
        assert edit.copy_of is not None
        assert len(high[edit.copy_of]) == len(entities_of(found.sentences[edit.copy_of]))
        assert edit.copy_of not in {other.row for other in made.edits}
    names = Counter(surface(name) for name in found.names)
    assert Counter(surface(name_of(s, e)) for s in made.sentences for e in entities_of(s)) == names  # moved, none lost


def test_shares_are_those_asked_for_and_nested() -> None:
    found = training(300)
    low_rows = {int(found.rows[m]) for m, bin in enumerate(found.bins) if bin == "low"}
    sets = [{s.id for s in shares.low_share(found, share, 60, 5).sentences} for share in (0.0, 0.5)]
    assert [len(one) for one in sets] == [60, 60]
    ids = {found.sentences[row].id for row in low_rows}
    assert len(sets[1] & ids) >= 30
    assert len(sets[0] & sets[1]) >= 25
    both = shares.base_and(found, "high", 50, 5).sentences
    assert len({s.id for s in both}) == 100
    with pytest.raises(ConfigError, match="low-CEIM mention are wanted"):
        shares.low_share(found, 1.0, 299, 1)


def test_pools_go_by_type_and_fall_back_where_hardly_any_name_is_below_zero() -> None:
    entity = np.array([-1.0, 1, 2, 3, 4, *range(1, 31), np.nan])
    kinds = ["A"] * 5 + ["B"] * 30 + ["A"]
    found = find_pools(kinds, entity, np.zeros(36), Thresholds())
    assert np.flatnonzero(found.entity_low).tolist() == [0, *range(5, 11)]
    assert found.sizes()["entity_high"] == {"A": 3, "B": 15}
    bits = find_pools(kinds, entity, np.zeros(36), Thresholds(entity_low="1", entity_high="3.5"))
    assert bits.sizes()["entity_low"] == {"A": 2, "B": 1}
    assert bits.sizes()["entity_high"] == {"A": 1, "B": 27}
    for wrong in ("often", "120%", ""):
        with pytest.raises(ConfigError, match="is not understood"):
            check(wrong)


def test_one_name_a_type_leaves_nothing_to_put_there() -> None:
    rows = [sentence(f"Ada came {i}", [(0, 1, "PER")]) for i in range(4)]
    found = Training.of(rows, {(i, 0, 1): Measured(-1.0 if i == 0 else 2.0, 1.0, "high") for i in range(4)})
    made = entities.random2low(found, pools(found, entity_low="0", entity_high="1"), 1.0, 1)
    assert made.edits == []


def test_distances_are_levenshteins() -> None:
    def slow(a: str, b: str) -> int:
        table = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                table[i][j] = min(
                    table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1])
                )
        return table[-1][-1]

    words = ["", "a", "kitten", "sitting", "Sunday", "Saturday", "été", "Ankara Gücü", "abcabc"]
    for word in words:
        assert levenshtein(word, _letters(words)).tolist() == [slow(word, other) for other in words]


def test_dataaug_spares_the_pieces_that_tell_a_type_and_adds_one_copy_a_sentence() -> None:
    found = training(120)
    spared = guard(found, halves)
    assert {"LOC", "ORG", "PER", "O"} == set(spared)
    made = dataaug(found, halves, 1, typo_share=1.0)
    slips = [edit for edit in made.edits if edit.kind == "typo"]
    assert len(slips) > len(made.edits) / 2
    for edit in slips:
        for word, was in zip(edit.after.split(), edit.before.split(), strict=True):
            assert word[0] == was[0]
            if halves(was)[0][0] in spared[edit.type]:
                assert word.startswith(halves(was)[0][1])
    assert len({edit.copy_of for edit in made.edits}) == len(made.edits) <= made.wanted
    near = dataaug(found, halves, 1, typo_share=0.0)
    assert {edit.kind for edit in near.edits} == {"mention"}
    known = {(kind, surface(name)) for kind, name in zip(found.kinds, found.names, strict=True)}
    assert {(edit.type, edit.after) for edit in near.edits} <= known


@pytest.mark.parametrize("method", ADDED)
def test_a_copy_is_made_once_and_no_held_out_sentence_is(method: Method) -> None:
    """Ada can become Bo, Cy or Di; that Cy came is there already, that Di came is held out."""
    rows = [sentence("Ada came", [(0, 1, "PER")])] * 3
    rows += [
        sentence(
            f"{name} came" if name == "Cy" else f"so {name} left", [(int(name != "Cy"), int(name != "Cy") + 1, "PER")]
        )
        for name in ("Bo", "Cy", "Di")
    ]
    measures = {
        (row, e.start, e.end): Measured(2.0 if row < 3 else -1.0, 1.0, "high")
        for row, s in enumerate(rows)
        for e in entities_of(s)
    }
    found = Training.of(rows, measures, ["Di came!"])
    made = method(found, pools(found, entity_high="1", context_high="0"), 0.5, 1)
    assert [one.text for one in made.sentences[6:]] == ["Bo came"]
