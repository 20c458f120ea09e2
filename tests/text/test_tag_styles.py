"""Every spelling of tags is translated into the same entities; other columns are not tags."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.schemes import decode, encode
from core.text.sentence import Entity
from core.text.tag_styles import UNTYPED, Style, style_of

TYPES = ("PER", "LOC", "Body Part", "cell_line", "person-other")


def read(sentences: list[list[str]]) -> Style:
    style = style_of(Counter(tag for tags in sentences for tag in tags))
    assert style is not None
    return style


@st.composite
def labelled(draw: st.DrawFn) -> list[tuple[int, list[Entity]]]:
    """Draw sentences whose entities do not touch; the first has one, so that every scheme can write them."""
    sentences = []
    for number in range(draw(st.integers(1, 6))):
        at, entities = 1, []
        for _ in range(draw(st.integers(0 if number else 1, 3))):
            length = draw(st.integers(1, 3))
            entities.append(Entity(start=at, end=at + length, type=draw(st.sampled_from(TYPES))))
            at += length + 1
        sentences.append((at + 1, entities))
    return sentences


def spelt(tag: str, how: str) -> str:
    if tag == "O":
        return {"digit": "0", "lower": "o", "dash": "-", "underscore": "_"}.get(how, "O")
    letter, _, kind = tag.partition("-")
    match how:
        case "lower":
            return tag.lower()
        case "suffix":
            return f"{kind}-{letter}"
        case "dash":
            return f"{kind}_{letter}"
        case "point":
            return f"{letter}.{kind}"
        case "bar":
            return f"{letter}|{kind}"
        case "middle":
            return tag.replace("I-", "M-", 1) if letter == "I" else tag
    return tag


@given(
    labelled(),
    st.sampled_from(["iob2", "bioes", "bilou"]),
    st.sampled_from(["usual", "lower", "suffix", "dash", "point", "bar", "digit", "underscore"]),
)
def test_every_spelling_gives_the_same_entities(data: list[tuple[int, list[Entity]]], scheme: str, how: str) -> None:
    written = [[spelt(tag, how) for tag in encode(entities, n, scheme)] for n, entities in data]  # type: ignore[arg-type]
    style = read(written)
    for tags, (_, entities) in zip(written, data, strict=True):
        spans, repaired = decode(style.sentence(tags), scheme)  # type: ignore[arg-type]
        expected = [(e.start, e.end, e.type.upper() if how == "lower" else e.type) for e in entities]
        assert [(e.start, e.end, e.type) for e in spans] == expected
        assert repaired == 0


@given(labelled())
def test_middle_tags_are_read_as_inside_tags_of_bioes(data: list[tuple[int, list[Entity]]]) -> None:
    written = [[spelt(tag, "middle") for tag in encode(entities, n, "bioes")] for n, entities in data]
    style = read(written)
    for tags, (n, entities) in zip(written, data, strict=True):
        assert style.sentence(tags) == encode(entities, n, "bioes")


def test_tags_without_a_type_have_one_type() -> None:
    style = read([["B", "O", "B", "I", "O"]])
    assert (style.kind, style.type) == ("untyped", UNTYPED)
    assert style.sentence(["B", "I", "O"]) == ["B-ENTITY", "I-ENTITY", "O"]
    named = style_of({"B": 2, "I": 1, "O": 5}, type="DISEASE")
    assert named is not None
    assert named.sentence(["B", "O"]) == ["B-DISEASE", "O"]


def test_types_without_prefixes_need_o_beside_them() -> None:
    style = style_of({"O": 20, "PERSON": 3, "location-GPE": 2})
    assert style is not None
    assert style.kind == "types"
    assert style.types == {"PERSON", "location-GPE"}
    assert not style.reads("weather")
    assert style_of({"PERSON": 3, "LOC": 2}) is None


@pytest.mark.parametrize(
    "values",
    [
        ["DT", "NN", "VBZ", "JJ", "O"],  # a part of speech O beside others is no type
        ["1", "2", "3", "4"],
        ["the", "rent", "is", "due"],
        [str(i) for i in range(20_000)],
        ["_", "_", "Case=Nom", "_"],
        ["0", "17", "-3"],
    ],
)
def test_other_columns_are_not_tags(values: list[str]) -> None:
    assert style_of(Counter(values)) is None


def test_brackets_are_read_by_their_outermost_pair() -> None:
    style = read([["(PERSON*", "*)", "*", "(GPE)"], ["(ORG*", "(GPE)", "*)"]])
    assert style.sentence(["(PERSON*", "*)", "*", "(GPE)"]) == ["B-PERSON", "I-PERSON", "O", "B-GPE"]
    assert style.sentence(["(ORG*", "(GPE)", "*)", "*"]) == ["B-ORG", "I-ORG", "I-ORG", "O"]


def test_a_tag_among_features_is_read() -> None:
    style = read([["name=B-PER|SpaceAfter=No", "name=I-PER", "_", "SpaceAfter=No", "name=O"]])
    assert style.sentence(["name=B-PER", "name=I-PER", "_", "SpaceAfter=No"]) == ["B-PER", "I-PER", "O", "O"]


@pytest.mark.parametrize("types", [{"NP", "VP"}, {"ARG0", "V", "ARGM-TMP"}, {"TOP", "S", "NP"}])
def test_chunks_and_roles_are_syntax(types: set[str]) -> None:
    style = style_of({"O": 9, **{f"B-{kind}": 2 for kind in types}})
    assert style is not None
    assert style.syntax


@pytest.mark.parametrize("outside", ["O", "o"])
def test_tags_after_a_sample_without_entities_are_read_in_their_own_spelling(outside: str) -> None:
    style = style_of({outside: 1000})
    assert style is not None
    assert style.sentence(["b-per", "i-per", outside]) == ["B-PER", "I-PER", "O"]
    assert style.sentence(["B_PER", "M.LOC", "B-PER", "PERSON", outside]) == ["B-PER", "I-LOC", "B-PER", "PERSON", "O"]
