"""Tag schemes: round trips, repairs compared with a second definition, golden sequences, and ambiguity."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.text.schemes import SCHEMES, Scheme, TagError, decode, encode, propose, repairs
from core.text.sentence import Entity

Spans = tuple[tuple[Entity, ...], int]  # entities, touching ones among them, and the number of tokens


@st.composite
def spans(draw: st.DrawFn) -> Spans:
    at, found = 0, list[Entity]()
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["PER", "LOC", "B-CELL"])), max_size=6)
    ):
        found.append(Entity(start=at + gap, end=at + gap + length, type=kind))
        at += gap + length
    return tuple(found), at + draw(st.integers(0, 2))


def merged(entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """Join touching entities of one type, which IO cannot separate."""
    out: list[Entity] = []
    for e in entities:
        if out and out[-1].end == e.start and out[-1].type == e.type:
            out[-1] = Entity(start=out[-1].start, end=e.end, type=e.type)
        else:
            out.append(e)
    return tuple(out)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=50)
@given(data=spans())
def test_encoding_and_decoding_keep_the_entities(scheme: Scheme, data: Spans) -> None:
    entities, n = data
    expected = merged(entities) if scheme == "io" else entities
    assert decode(encode(entities, n, scheme), scheme) == (expected, 0)
    assert decode(encode(entities, n, scheme), scheme, strict=True) == (expected, 0)


@given(data=spans())
def test_iob2_converts_to_bioes_and_bilou_by_the_specification(data: Spans) -> None:
    """The definition looks at the next tag and its type."""
    entities, n = data
    tags = encode(entities, n, "iob2")
    padded = [*tags, "O"]
    for i, tag in enumerate(tags):
        goes_on = padded[i + 1] == "I-" + tag[2:]
        if tag[0] == "B" and not goes_on:
            padded[i] = "S-" + tag[2:]
        if tag[0] == "I" and not goes_on:
            padded[i] = "E-" + tag[2:]
    assert padded[:n] == encode(entities, n, "bioes")
    bilou = [{"S": "U", "E": "L"}.get(t[0], t[0]) + t[1:] for t in encode(entities, n, "bioes")]
    assert bilou == encode(entities, n, "bilou")


ANY = {
    "iob1": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "iob2": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "bioes": ["O", "B-X", "I-X", "E-X", "S-X", "I-Y", "E-Y"],
    "bilou": ["O", "B-X", "I-X", "L-X", "U-X", "I-Y", "L-Y"],
    "io": ["O", "I-X", "X", "Y"],
}


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=50)
@given(data=st.data())
def test_any_tags_are_decoded_completely_and_repairs_are_counted(scheme: Scheme, data: st.DataObject) -> None:
    tags = data.draw(st.lists(st.sampled_from(ANY[scheme]), max_size=8))
    entities, repaired = decode(tags, scheme)
    covered = {i for e in entities for i in range(e.start, e.end)}
    assert covered == {i for i, tag in enumerate(tags) if tag != "O"}
    assert all(tags[i].removeprefix("I-")[-1] == e.type for e in entities for i in range(e.start, e.end))
    assert repaired == len(repairs(tags, scheme))
    if scheme != "io":
        again = encode(entities, len(tags), scheme)
        assert repaired == sum(a != b for a, b in zip(tags, again, strict=True))
        assert decode(again, scheme) == (entities, 0)
    well_formed, _ = decode(tags, scheme, strict=True)
    assert set(well_formed) <= set(entities)


def test_an_inside_tag_without_a_beginning_starts_a_span() -> None:
    assert decode(["O", "I-LOC", "I-LOC", "I-PER"], "iob2") == (
        (Entity(start=1, end=3, type="LOC"), Entity(start=3, end=4, type="PER")),
        2,
    )
    assert repairs(["O", "I-LOC", "I-LOC", "I-PER"], "iob2") == [1, 3]
    assert decode(["I-LOC", "B-LOC", "I-PER"], "iob1")[1] == 0


@pytest.mark.parametrize(
    ("tags", "scheme", "index"),
    [("O PER", "iob2", 1), ("S-PER", "iob2", 0), ("O O E-X", "bilou", 2), ("B-X", "io", 0), ("B-", "iob1", 0)],
)
def test_a_tag_outside_the_scheme_is_named(tags: str, scheme: Scheme, index: int) -> None:
    tag = tags.split()[index]
    shown = tag if re.fullmatch("[A-Z]-[A-Z]+", tag) else "the value in the tag column"  # it may be a word of the text
    with pytest.raises(TagError, match=shown) as caught:
        decode(tags.split(), scheme)
    assert caught.value.index == index
    assert (f"'{tag}'" in str(caught.value)) == (shown == tag)


def test_entities_that_overlap_or_leave_the_sentence_are_refused() -> None:
    one = Entity(start=0, end=2, type="X")
    with pytest.raises(ValueError, match="overlaps"):
        encode([one, Entity(start=1, end=3, type="X")], 3, "iob2")
    with pytest.raises(ValueError, match="leaves"):
        encode([one], 1, "iob2")


@pytest.mark.parametrize(
    ("sentences", "candidates"),
    [
        (["B-X I-X O", "B-X"], ("iob2",)),
        (["O O"], ("iob2",)),
        (["X X O", "Y"], ("io",)),
        (["B-X E-X O S-X", "O"], ("bioes",)),
        (["B-X L-X O U-X", "O"], ("bilou",)),
        (["S-X"], ("bioes",)),
        (["I-X O I-Y"], ("iob1",)),  # without a B, IOB1, IOB2 with repairs and IO give the same entities
        (["I-X B-X"], ("iob1", "iob2")),
        (["B-X I-X O", "O I-X"], ("iob1", "iob2")),  # IOB2 with a fault, or IOB1 with one
        (["B-X I-Y"], ("iob1", "iob2")),
        (["B-X L-X", "B-X E-X"], ()),
        (["B-X O", "S-X"], ()),
        (["X O X", "B-X"], ()),
    ],
)
def test_tags_determine_the_possible_schemes(sentences: list[str], candidates: tuple[Scheme, ...]) -> None:
    proposal = propose([s.split() for s in sentences])
    assert proposal.candidates == candidates
    assert proposal.scheme == (candidates[0] if len(candidates) == 1 else None)
    assert bool(proposal.problem) == (len(candidates) != 1)


@given(st.lists(spans(), min_size=1, max_size=5), st.sampled_from(SCHEMES))
def test_encoded_tags_are_recognised_or_asked_about(data: list[Spans], scheme: Scheme) -> None:
    if not any(entities for entities, _ in data):
        return
    proposal = propose([encode(entities, n, scheme) for entities, n in data])
    if scheme == "iob1" and not proposal.scheme:
        assert proposal.candidates == ("iob1", "iob2")
        assert proposal.where is not None
    else:
        assert proposal.scheme == ("iob1" if scheme == "io" else scheme)


def test_the_first_ambiguous_sentence_is_named() -> None:
    proposal = propose([["B-X"], ["O"], ["O", "I-X"]])
    assert proposal.where == 2
    assert "'I-X' cannot follow 'O'" in proposal.problem
