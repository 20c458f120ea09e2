"""Labels of ready models: spellings, entities and their exact confidence against an enumeration, and the user's types."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ConfigError, ModelError
from core.text.schemes import decode
from core.text.sentence import Entity
from core.zero_shot.labels import Labels, mapping

SPELLINGS = (  # (labels, tags, scheme, labels that count as outside)
    (("O", "B-PER", "I-PER"), ("O", "B-PER", "I-PER"), "iob2", ()),
    (("I-PER", "B-PER", "O"), ("I-PER", "B-PER", "O"), "iob2", ()),
    (("B-PER", "I-PER"), ("B-PER", "I-PER"), "iob2", ()),
    (("O", "S-x", "B-x", "I-x", "E-x"), ("O", "S-x", "B-x", "I-x", "E-x"), "bioes", ()),
    (("O", "U-x", "B-x", "I-x", "L-x"), ("O", "U-x", "B-x", "I-x", "L-x"), "bilou", ()),
    (("O", "PERSON", "ORG", "E-MAIL"), ("O", "I-PERSON", "I-ORG", "I-E-MAIL"), "io", ()),
    (("O", "b-per", "i-per"), ("O", "B-PER", "I-PER"), "iob2", ()),
    (("O", "B_PER", "I_PER"), ("O", "B-PER", "I-PER"), "iob2", ()),
    (("O", "B-PER", "I-PER", "[PAD]", "X"), ("O", "B-PER", "I-PER"), "iob2", ("[PAD]", "X")),
    (("O", "B-date of birth", "I-date of birth"), ("O", "B-date of birth", "I-date of birth"), "iob2", ()),
)


@pytest.mark.parametrize(("names", "tags", "scheme", "special"), SPELLINGS)
def test_labels_are_read_in_usual_spellings(
    names: tuple[str, ...], tags: tuple[str, ...], scheme: str, special: tuple[str, ...]
) -> None:
    labels = Labels.read("m", names)
    assert (labels.tags, labels.scheme, labels.special) == (tags, scheme, special)
    assert len(labels.column) == len(names)


def test_several_outputs_of_one_tag_add_up() -> None:
    """Our own taggers have an output per BIOES tag, under names in IOB2."""
    labels = Labels.read("m", ("O", "B-x", "I-x", "I-x", "B-x"))
    assert (labels.tags, labels.column) == (("O", "B-x", "I-x"), (0, 1, 2, 2, 1))
    # No single output is more probable than O, but both for B-x together are.
    prediction = labels.entities(np.array([[0.4, 0.3, 0.0, 0.0, 0.3]]))
    assert prediction.entities == (Entity(start=0, end=1, type="x"),)
    assert prediction.confidence == (0.6,)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("LABEL_0", "LABEL_1", "LABEL_2"), "not tags of entities"),
        (("NOUN", "VERB", "ADJ", "O"), "not tags of entities"),
        (("positive", "negative"), "not tags of entities"),
        (("O", "S-x", "E-x", "U-x", "L-x"), "mix BIOES"),
        (("O",), "names 1 labels"),
        (("O", "B-\x1b[2J"), "cannot be printed"),
        (("O", "B-" + "x" * 200), "more than 100 characters"),
    ],
)
def test_labels_that_are_no_entity_tags_are_refused(names: tuple[str, ...], why: str) -> None:
    with pytest.raises(ModelError, match=why):
        Labels.read("m", names)


SCHEMES = (
    ("O", "B-x", "I-x", "B-y", "I-y"),
    ("O", "S-x", "B-x", "I-x", "E-x"),
    ("O", "U-x", "B-x", "I-x", "L-x", "U-y"),
    ("O", "ORG", "LOC"),
)


@pytest.mark.parametrize("names", SCHEMES)
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), sharp=st.sampled_from([0.5, 2.0, 6.0]))
def test_confidence_is_the_sum_over_all_tag_sequences_with_the_entity(
    names: tuple[str, ...], seed: int, n: int, sharp: float
) -> None:
    labels = Labels.read("m", names)
    scores = np.exp(sharp * np.random.default_rng(seed).normal(size=(n, len(names))))
    probabilities = scores / scores.sum(1, keepdims=True)
    found = labels.entities(probabilities)
    best = [labels.tags[i] for i in probabilities.argmax(1)]
    assert found.entities == decode(best, labels.scheme)[0]
    expected = dict.fromkeys(found.entities, 0.0)
    for sequence in product(range(len(names)), repeat=n):
        weight = float(np.prod([probabilities[word, column] for word, column in enumerate(sequence)]))
        for entity in decode([names[column] for column in sequence], labels.scheme)[0]:
            if entity in expected:
                expected[entity] += weight
    assert found.confidence == pytest.approx(list(expected.values()), abs=1e-6)


def test_types_map_to_equal_names_or_as_the_user_says() -> None:
    types = ["LOC", "MISC", "ORG", "PER"]
    assert mapping(types, {"per", "Loc"}, {}) == {"LOC": "Loc", "MISC": "", "ORG": "", "PER": "per"}
    assert mapping(types, {"per", "PER"}, {}) == {"LOC": "", "MISC": "", "ORG": "", "PER": "PER"}
    given = {"b-per": "person", "org": "person", "LOC": ""}
    assert mapping(types, {"person", "LOC"}, given) == {"LOC": "", "MISC": "", "ORG": "person", "PER": "person"}
    assert mapping(["I-net", "x"], {"i-net"}, {"x": "i-net"}) == {"I-net": "i-net", "x": "i-net"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"PERS": "person"}, "'PERS' is not a type of the model; its types are LOC, PER"),
        ({"PER": "persn"}, "'persn' is not a type of the test or dev set; choose among DATE, person"),
        ({"B-PER": "person", "I-PER": "DATE"}, "'PER' is mapped to"),
        ({}, r"no type of the model \(LOC, PER\) is mapped to one of yours \(DATE, person\)"),
        ({"PER": ""}, "no type of the model"),
    ],
)
def test_wrong_type_maps_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        mapping(["LOC", "PER"], {"person", "DATE"}, given)
