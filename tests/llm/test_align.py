"""Alignment of quoted strings to tokens, against a search through all spans."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from core.llm.align import ABSENT, MALFORMED, TAKEN, UNKNOWN, aligned
from core.text.sentence import Entity

TYPES = ("PER", "LOC")
TOKEN = st.sampled_from(["a", "A", "b", "ab", "aB", "ß", "SS", "-", "İ"])
TEXT = st.one_of(
    st.lists(TOKEN, max_size=3).map(" ".join),
    st.lists(TOKEN, max_size=3).map("".join),
    st.text("aAbBsSß -", max_size=4),
)
QUOTE: st.SearchStrategy[object] = st.one_of(
    st.fixed_dictionaries({"text": TEXT, "type": st.sampled_from(["PER", "LOC", "loc", "ORG", ""])}),
    st.sampled_from([None, 1, "a", [], {}, {"text": "a"}, {"text": 1, "type": "PER"}, {"type": "PER"}]),
)


def searched(tokens: Sequence[str], quotes: Sequence[object]) -> tuple[tuple[Entity, ...], Counter[str]]:
    """Do the same by comparing each quote with the text of every span."""
    spans = [(i, j) for i in range(len(tokens)) for j in range(i + 1, len(tokens) + 1)]
    entities, dropped, taken = [], Counter[str](), set[int]()
    for quote in quotes:
        text, type = (quote.get("text"), quote.get("type")) if isinstance(quote, dict) else (None, None)
        if not isinstance(text, str) or not isinstance(type, str) or not text.replace(" ", ""):
            dropped["malformed"] += 1
            continue
        if type.upper() not in TYPES:
            dropped["unknown type"] += 1
            continue
        solid = text.replace(" ", "")
        same = [(i, j) for i, j in spans if "".join(tokens[i:j]) == solid]
        alike = [(i, j) for i, j in spans if "".join(tokens[i:j]).casefold() == solid.casefold()]
        free = [(i, j) for i, j in same + alike if not taken & set(range(i, j))]
        if not free:
            dropped["overlapping" if alike else "not in the sentence"] += 1
            continue
        start, end = free[0]
        taken |= set(range(start, end))
        entities.append(Entity(start=start, end=end, type=type.upper()))
    return tuple(sorted(entities)), dropped


@given(st.lists(TOKEN, max_size=8), st.lists(QUOTE, max_size=6))
def test_alignment_equals_a_search_through_all_spans(tokens: list[str], quotes: list[object]) -> None:
    entities, dropped = aligned(tokens, quotes, TYPES)
    assert (entities, dropped) == searched(tokens, quotes)
    assert len(entities) + dropped.total() == len(quotes)


def found(text: str, *pairs: tuple[str, str]) -> tuple[list[tuple[int, int, str]], dict[str, int]]:
    entities, dropped = aligned(text.split(), [{"text": text, "type": type} for text, type in pairs], TYPES)
    return [(entity.start, entity.end, entity.type) for entity in entities], dict(dropped)


def test_quotes_get_their_next_free_occurrence() -> None:
    repeated = found("Bo saw Bo and bo .", ("Bo", "PER"), ("Bo", "LOC"), ("Bo", "PER"), ("Bo", "PER"))
    assert repeated == ([(0, 1, "PER"), (2, 3, "LOC"), (4, 5, "PER")], {TAKEN: 1})
    # The same case first, then any case.
    assert found("us met US", ("US", "LOC"), ("US", "LOC")) == ([(0, 1, "LOC"), (2, 3, "LOC")], {})
    assert found("us met US", ("US", "LOC")) == ([(2, 3, "LOC")], {})
    assert found("New York Times", ("New York Times", "LOC"), ("York", "LOC")) == ([(0, 3, "LOC")], {TAKEN: 1})
    # The order of the answer need not be that of the sentence.
    assert found("Al likes Bo", ("Bo", "PER"), ("Al", "PER"))[0] == [(0, 1, "PER"), (2, 3, "PER")]


def test_quotes_end_at_borders_of_tokens_and_blanks_do_not_count() -> None:
    assert found("the art of Bart", ("art", "LOC")) == ([(1, 2, "LOC")], {})
    assert found("Bart arts", ("art", "LOC")) == ([], {ABSENT: 1})
    assert found("Smith - Jones ( UK )", ("Smith-Jones (UK)", "PER"))[0] == [(0, 6, "PER")]
    assert found("caf\u00e9", ("cafe\u0301", "LOC"))[0] == [(0, 1, "LOC")]  # another form of the same letter
    assert found("Bo", ("Bo", "Person"), (" ", "PER"), ("Bo", " per ")) == ([(0, 1, "PER")], {UNKNOWN: 1, MALFORMED: 1})
    assert aligned(["", "Bo", ""], [{"text": "Bo", "type": "PER"}], TYPES)[0] == (Entity(start=1, end=2, type="PER"),)


def test_types_that_differ_by_case_stay_apart() -> None:
    quotes = [{"text": "a", "type": "gene"}, {"text": "b", "type": "GENE"}]
    entities, _ = aligned(["a", "b"], quotes, ("GENE", "gene"))
    assert [entity.type for entity in entities] == ["gene", "GENE"]
