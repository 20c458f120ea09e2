"""Context of sentences: the nearest words of the same document, and none if the document is unknown."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.text.sentence import InContext, Sentence, in_context
from tests.conftest import sentence

DOCS = st.lists(st.tuples(st.sampled_from(["x", "y", None]), st.integers(0, 4)), max_size=12)


def rows(shape: list[tuple[str | None, int]]) -> list[Sentence]:
    """Make a sentence per (document, number of words); all words differ."""
    return [
        replace(sentence(""), tokens=tuple(f"w{i}.{k}" for k in range(n)), doc=doc, entities=())
        for i, (doc, n) in enumerate(shape)
    ]


@given(DOCS, st.integers(1, 9))
def test_neighbours_are_the_nearest_words_of_the_same_document(shape: list[tuple[str | None, int]], words: int) -> None:
    sentences = rows(shape)
    read = in_context(sentences, words)
    for i, (one, own) in enumerate(zip(read, sentences, strict=True)):
        assert (one.tokens, one.doc, one.entities, one.id) == (own.tokens, own.doc, own.entities, own.id)
        if own.doc is None:
            assert not isinstance(one, InContext)
            continue
        assert isinstance(one, InContext)
        first = last = i
        while first and sentences[first - 1].doc == own.doc:
            first -= 1
        while last + 1 < len(sentences) and sentences[last + 1].doc == own.doc:
            last += 1
        ahead = [word for each in sentences[first:i] for word in each.tokens]
        behind = [word for each in sentences[i + 1 : last + 1] for word in each.tokens]
        assert one.before == tuple(ahead[max(len(ahead) - words, 0) :])
        assert one.after == tuple(behind[:words])


def test_without_context_sentences_stay_unchanged() -> None:
    sentences = rows([("x", 2), ("x", 3)])
    assert in_context(sentences, 0) == sentences
    assert not any(isinstance(one, InContext) for one in in_context(sentences, 0))


def test_entities_can_be_replaced_in_context() -> None:
    one, _ = in_context(rows([("x", 2), ("x", 3)]), 5)
    changed = replace(one, entities=None)
    assert isinstance(changed, InContext)
    assert changed.after == ("w1.0", "w1.1", "w1.2")
