"""Methods that rebuild training sets follow the rules of SOURCES.md, Rebuilding."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bias import replacements
from core.bias.pools import Pools, Thresholds, base_and, check, find_pools, low_share
from core.bias.replacements import _letters, context_words, dataaug, guard, levenshtein, moved, stretches
from core.bias.training_sentences import Measured, Rebuilt, Training, is_content_word, key_of, surface
from core.corpora.readers import ReadOptions, read
from core.errors import ConfigError
from tests.bias.planted import measured, pools, rungs, sentences, training
from tests.bias.promises import assert_promises, types
from tests.conftest import entities_of, sentence

Method = Callable[[Training, Sequence[Pools], float, int], Rebuilt]

ADDED: tuple[Method, ...] = (replacements.random2low, replacements.highc2low)
IN_PLACE: tuple[Method, ...] = (replacements.redundant2low, replacements.random2high, replacements.low2high)
ALL: tuple[Method, ...] = (*ADDED, *IN_PLACE)


def halves(word: str) -> list[tuple[str, str]]:
    cut = (len(word) + 1) // 2
    return [(word[:cut], word[:cut]), (f"##{word[cut:]}", word[cut:])] if word[cut:] else [(word, word)]


@pytest.mark.parametrize("method", ALL)
@given(
    n=st.integers(1, 60),
    seed=st.integers(0, 10**6),
    rate=st.sampled_from([0.1, 0.2, 0.4, 1.0]),
    high=st.sampled_from(["50%", "90%", "1.5"]),
    kinds=st.sampled_from([("PER",), ("LOC", "ORG", "PER")]),
)
@settings(max_examples=12, deadline=None)
def test_rebuilt_sentences_are_new_and_match_the_log(
    method: Method, n: int, seed: int, rate: float, high: str, kinds: tuple[str, ...]
) -> None:
    found = training(n, seed, [one.text for one in sentences(n, seed, kinds)[: n // 10]], kinds)
    drawn = rungs(found, entity_high=high, context_high=high)
    made = method(found, drawn, rate, seed)
    assert_promises(method.__name__, made, found, drawn, rate)
    assert made == method(found, drawn, rate, seed)
    nothing = method(found, drawn, 0.0, seed)
    assert (nothing.sentences, nothing.edits) == (found.sentences, [])


@given(seed=st.integers(0, 10**6))
@settings(max_examples=6, deadline=None)
def test_augmented_copies_are_new_and_match_the_log(seed: int) -> None:
    found = training(seed=seed, held_out=[s.text for s in sentences(60, seed)[:6]])
    made = dataaug(found, halves, seed)
    assert made.sentences[:60] == list(found.sentences)
    texts = Counter(key_of(one.text) for one in made.sentences)
    for edit in made.edits:
        assert edit.copy_of is not None
        assert types([made.sentences[edit.row]]) == types([found.sentences[edit.copy_of]])
        assert edit.after == surface(made.sentences[edit.row].tokens[edit.start : edit.end]) != edit.before
        key = key_of(made.sentences[edit.row].text)
        assert texts[key] == 1
        assert key not in found.closed
    assert made == dataaug(found, halves, seed)


LONG = [pytest.param(name, marks=pytest.mark.full) for name in ("conll2003", "inlegalner")]


@pytest.fixture(scope="module", params=["crossner-literature", *LONG])
def real(request: pytest.FixtureRequest, real_data: Path) -> tuple[str, Training]:
    """Return real sentences with random measurements."""
    rows = read(real_data / request.param / "train.conll", ReadOptions(scheme="iob2"))
    return request.param, measured([row for _, row in zip(range(2500), rows, strict=False)])


@pytest.mark.real
@pytest.mark.parametrize("method", ALL)
def test_every_method_reaches_its_rate_on_real_text(real: tuple[str, Training], method: Method) -> None:
    corpus, found = real
    drawn = rungs(found)
    for rate in (0.1, 0.2, 0.3, 0.4):
        made = method(found, drawn, rate, 1)
        assert_promises(method.__name__, made, found, drawn, rate)
        if (corpus, method) == ("crossner-literature", replacements.redundant2low) and rate > 0.2:
            # Few names of this corpus occur twice: the method replaces fewer than asked and reports it.
            assert made.wanted > len(made.edits) > 0.15 * len(found)
            assert made.reached == "0%"
        else:
            assert len(made.edits) >= 0.97 * made.wanted > 0


@pytest.mark.parametrize("method", ALL)
def test_every_method_reaches_its_rate_on_planted_text(method: Method) -> None:
    found = training(300, 2)
    drawn = rungs(found)
    for rate in (0.1, 0.3):
        made = method(found, drawn, rate, 2)
        assert_promises(method.__name__, made, found, drawn, rate)
        assert len(made.edits) == made.wanted > 20
        assert made.reached == ("40%" if method is replacements.highc2low and rate == 0.3 else "")
    one = Training.of(
        [sentence(f"Ada came {i}", [(0, 1, "PER")]) for i in range(4)],
        {(i, 0, 1): Measured(-1.0 if i == 0 else 2.0, 1.0, "high") for i in range(4)},
    )
    if method is replacements.random2low:  # a single name has no replacement
        assert method(one, [pools(one, entity_low="0", entity_high="1")], 1.0, 1).edits == []


def test_redundant_names_are_replaced_by_frequency_then_by_shared_word() -> None:
    found = training(400)
    drawn = pools(found, entity_low="20%", entity_high="50%")
    mask = zip(found.kinds, found.names, drawn.entity_high, strict=True)
    often = Counter((kind, name) for kind, name, high in mask if high)
    repeats = often.total() - len(often)

    def gone(rate: float) -> Counter[tuple[str, tuple[str, ...]]]:
        made = replacements.redundant2low(found, [drawn], rate, 1)
        return Counter((edit.type, tuple(edit.before.split())) for edit in made.edits)

    few = gone(0.05)
    least = min(often[group] for group in few)
    assert all(n <= least or few[group] == n - 1 for group, n in often.items())
    assert few.total() == round(0.05 * len(found))
    assert gone(repeats / len(found)) == Counter({group: n - 1 for group, n in often.items()})
    every = gone(1.0)
    stay = often - every
    assert every.total() > repeats
    assert set(stay.values()) == {1}
    shared = Counter((kind, word) for kind, name in stay for word in set(name) if is_content_word(word))
    assert all(shared[kind, name[0]] or shared[kind, name[-1]] for kind, name in every)


def test_kept_name_covers_all_its_words() -> None:
    names = ("New York", "New Jersey", "York Minster")
    found = Training.of([sentence(name, [(0, 2, "LOC")]) for name in names])
    stay = [{0, 1, 2}.difference(replacements._redundant(found, range(3), Random(seed))) for seed in range(12)]
    assert {0} in stay
    assert all(left in ({0}, {1, 2}) for left in stay)


def test_low2high_deletes_the_lowest_contexts() -> None:
    found = training(400, types=("PER",))
    drawn = rungs(found)
    made = replacements.low2high(found, drawn, 0.2, 1)
    assert_promises("low2high", made, found, drawn, 0.2)
    means = {row: found.context[mentions].mean() for row, mentions in found.by_row(range(len(found))).items()}
    singles = {row for row in means if len(entities_of(found.sentences[row])) == 1}
    gone = {edit.row for edit in made.edits} & singles
    assert max(means[row] for row in gone) <= np.quantile([means[row] for row in singles], 0.35)


def test_single_mention_is_moved_if_no_sentence_has_the_same_types() -> None:
    """The name with the low context moves into the context of another name of its type."""
    rows = [
        sentence("Ada met Bo , who left Ulm", [(0, 1, "PER"), (2, 3, "PER"), (6, 7, "LOC")]),
        sentence("the town of Rome lies far south", [(3, 4, "LOC")]),
        sentence("Oslo is", [(0, 1, "LOC")]),
    ]
    poor = {(0, 6, 7), (2, 0, 1)}
    places = [(row, e.start, e.end) for row, one in enumerate(rows) for e in entities_of(one)]
    found = Training.of(rows, {place: Measured(1.0, -1.0 if place in poor else 1.0, "low") for place in places})
    made = replacements.low2high(found, [pools(found, context_high="0")], 0.4, 1)
    assert [one.text for one in made.sentences] == [
        "Ada met Bo , the town of Ulm lies far south",
        rows[1].text,
        "the town of Oslo lies far south",
    ]
    (single,) = (edit for edit in made.edits if edit.row == 0)
    assert (single.before, single.after, single.context_of, single.copy_of) == ("Rome", "Ulm", 1, None)
    assert (single.start, single.end) == (7, 8)
    assert entities_of(made.sentences[0])[:2] == entities_of(rows[0])[:2]


@pytest.mark.parametrize("seed", range(3))
def test_last_context_of_a_type_is_not_deleted(seed: int) -> None:
    """The result does not depend on the order of draws."""
    rows = [
        sentence("the town of Rome lies far south , and there came Cy at noon", [(3, 4, "LOC"), (10, 11, "PER")]),
        sentence("Oslo is", [(0, 1, "LOC")]),
        sentence("then there came Dan at noon", [(3, 4, "PER")]),
    ]
    places = [(row, e.start, e.end) for row, one in enumerate(rows) for e in entities_of(one)]
    found = Training.of(rows, dict.fromkeys(places, Measured(1.0, 1.0, "high")))
    made = replacements.random2high(found, [pools(found, context_high="0")], 1.0, seed)
    assert made.sentences[1].text == "the town of Oslo lies far south ,"


@pytest.mark.parametrize("seed", range(3))
def test_whole_sentences_are_replaced_while_a_donor_is_left(seed: int) -> None:
    """The last sentence with both types stays, although names of both types could be moved one by one."""
    rows = [sentence(f"A{i} came here and saw x{i} of B{i}", [(0, 1, "A"), (7, 8, "B")]) for i in range(4)]
    rows += [sentence(f"there was {kind}{i} once more y{i}", [(2, 3, kind)]) for kind in "AB" for i in range(9)]
    places = [(row, e.start, e.end) for row, one in enumerate(rows) for e in entities_of(one)]
    found = Training.of(rows, dict.fromkeys(places, Measured(1.0, 1.0, "high")))
    made = replacements.random2high(found, [pools(found, context_high="0")], 1.0, seed)
    both = [edit for edit in made.edits if edit.row < 4]
    assert len({edit.row for edit in both}) == 3
    assert all(edit.copy_of is not None for edit in both)


def test_stretch_ends_at_the_punctuation_nearest_the_middle() -> None:
    spans = [(1, 2, "A"), (7, 8, "A"), (10, 11, "B"), (11, 12, "B")]
    one = sentence("the X , he said so ( Y of old Z Q", spans)
    assert stretches(one) == [(0, 3), (3, 9), (9, 11), (11, 12)]
    assert context_words(one) == [1, 4, 1, 0]
    two = sentence("X bought it ( from Y )", [(0, 1, "A"), (5, 6, "B")])
    assert stretches(two) == [(0, 3), (3, 7)]  # an opening bracket belongs to the following words
    lent = moved(two, {0: (one, 1)})
    assert lent.text == "he said so ( X of ( from Y )"
    assert entities_of(lent) == entities_of(sentence(lent.text, [(4, 5, "A"), (8, 9, "B")]))


def test_threshold_ladder_is_nested_and_ends_at_every_mention_not_low() -> None:
    found = training(100)
    for given_ in ("50%", "90%", "0.7"):
        drawn = rungs(found, entity_high=given_, context_high=given_)
        assert drawn[0].reached == ""
        assert drawn[-1].reached == "0%"
        for higher, lower in pairwise(drawn):
            assert (higher.entity_high <= lower.entity_high).all()
            assert (higher.context_high <= lower.context_high).all()
            assert (higher.entity_low == lower.entity_low).all()
            assert lower.entity_high.sum() + lower.context_high.sum() > (
                higher.entity_high.sum() + higher.context_high.sum()
            )
        assert (drawn[-1].entity_high == ~drawn[-1].entity_low).all()


def test_low_share_set_has_the_asked_share_of_low_sentences() -> None:
    found = training(300)
    low = Counter(found.sentences[int(found.rows[m])].id for m, bin in enumerate(found.bins) if bin == "low")
    measured = Counter(found.sentences[int(found.rows[m])].id for m, bin in enumerate(found.bins) if bin)
    sets = {share: low_share(found, share, 40, 5) for share in (0.0, 0.25, 0.5, 0.9)}
    for share, outcome in sets.items():
        ids = [sentence.id for sentence in outcome.sentences]
        assert len(set(ids)) == 40
        assert sum(id in low for id in ids) == share * 40
        assert (outcome.low, outcome.measured) == (sum(low[id] for id in ids), sum(measured[id] for id in ids))
    assert sets[0.0].low == 0
    nested = [{sentence.id for sentence in outcome.sentences if sentence.id in low} for outcome in sets.values()]
    assert all(smaller < larger for smaller, larger in pairwise(nested))
    with pytest.raises(ConfigError, match="299 sentences with a low-CEIM mention are needed"):
        low_share(found, 1.0, 299, 1)
    with pytest.raises(ConfigError, match="200 sentences without a low-CEIM mention are needed"):
        low_share(found, 0.0, 200, 1)


@pytest.mark.parametrize(("bin", "size"), [("low", 50), ("high", 30)])
def test_sentences_added_to_a_random_base_have_the_named_bin(bin: str, size: int) -> None:
    found = training(300)
    base = {sentence.id for sentence in base_and(found, "none", size, 5).sentences}
    both = {sentence.id for sentence in base_and(found, bin, size, 5).sentences}
    assert base < both
    assert len(both) == 2 * size
    bins: dict[str, set[str]] = defaultdict(set)
    for m, name in enumerate(found.bins):
        bins[found.sentences[int(found.rows[m])].id].add(name)
    assert all(bin in bins[id] for id in both - base)
    if bin != "low":
        assert not any("low" in bins[id] for id in both - base)


def test_pools_are_per_type_with_a_fallback_for_few_low_names() -> None:
    entity = np.array([-1.0, 1, 2, 3, 4, *range(1, 31), np.nan])
    kinds = ["A"] * 5 + ["B"] * 30 + ["A"]
    found = find_pools(kinds, entity, np.zeros(36), Thresholds())
    assert np.flatnonzero(found.entity_low).tolist() == [0, *range(5, 11)]
    assert found.sizes()["entity_high"] == {"A": 3, "B": 15}
    bits = find_pools(kinds, entity, np.zeros(36), Thresholds(entity_low="1", entity_high="3.5"))
    assert bits.sizes()["entity_low"] == {"A": 2, "B": 1}
    assert bits.sizes()["entity_high"] == {"A": 1, "B": 27}
    for wrong in ("often", "120%", ""):
        with pytest.raises(ConfigError, match="cannot be read; give bits"):
            check(wrong)


def test_edit_distance_equals_a_slow_implementation() -> None:
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


def test_dataaug_keeps_typical_pieces_and_adds_one_copy_per_sentence() -> None:
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
def test_copies_repeat_neither_existing_nor_held_out_sentences(method: Method) -> None:
    """Ada can become Bo, Cy, or Di, but "Cy came" exists already and "Di came" is held out."""
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
    made = method(found, [pools(found, entity_high="1", context_high="0")], 0.5, 1)
    assert [one.text for one in made.sentences[6:]] == ["Bo came"]
