"""Sentences with the words of their document around them, for a tagger that reads those too.

SOURCES.md, Neighbouring sentences.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, islice

from core.text.sentence import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class InContext(Sentence):
    """A sentence in its document. before, after: words of the sentences around it, in their order."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def in_context(sentences: Sequence[Sentence], words: int) -> list[Sentence]:
    """Sentences in the order of their documents, each with up to `words` words of its neighbours on both sides.

    Neighbours are of the same document; a sentence of no known one has none.
    """
    if not words:
        return list(sentences)
    return [each for doc, group in groupby(sentences, lambda one: one.doc) for each in _within(list(group), words, doc)]


def _within(sentences: Sequence[Sentence], words: int, doc: str | None) -> Iterator[Sentence]:
    """The sentences of one document."""
    if doc is None:
        yield from sentences
        return
    for i, sentence in enumerate(sentences):
        behind = (word for k in range(i + 1, len(sentences)) for word in sentences[k].tokens)
        ahead = (word for k in range(i - 1, -1, -1) for word in reversed(sentences[k].tokens))
        own = {each.name: getattr(sentence, each.name) for each in fields(Sentence)}
        before = tuple(islice(ahead, words))[::-1]
        yield InContext(**own, before=before, after=tuple(islice(behind, words)))
