"""A sentence and its entities, labelled or predicted."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from itertools import groupby, islice

from core.text.source import Source

# Names of the columns with a sentence's place in its document.
PLACE = ("file", "page")
# Start and end of an entity, half-open.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Entity:
    """An entity of a type: the tokens from `start` up to, but not including, `end`."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A record of a corpus.

    id: 16 hex digits, a hash of `text`; equal texts have equal ids. text: text cleaned by `words.clean`. entities: None
    if unlabelled, () if labelled without entities. doc: name of the document, if known. group: value of the document's
    group column (such as a hospital or a kind of contract), if the import kept one. file, page: file name in the
    imported folder, and number of the page or sheet, from 1. columns: (name, value) of the table row's other columns.
    source: the file's original text, known only while the file is read; a corpus does not store it.
    """

    id: str
    tokens: tuple[str, ...]
    text: str
    entities: tuple[Entity, ...] | None = None
    doc: str | None = None
    group: str | None = None
    file: str | None = None
    page: int | None = None
    columns: tuple[tuple[str, str], ...] = ()
    source: Source | None = field(default=None, compare=False, repr=False)

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    @property
    def place(self) -> str:
        """File and page in words, such as `a.pdf, page 3`; "" if unknown."""
        return place(self.file, self.page)


def place(file: object, page: object) -> str:
    """Return a place in a document in words, such as `a.pdf, page 3`; "" if the file is unknown."""
    if not file:
        return ""
    unit = "sheet" if str(file).lower().endswith((".xlsx", ".xlsm")) else "page"
    return str(file) if page is None else f"{file}, {unit} {page}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Sentence):
    """An unlabelled sentence to store, whose tokens were counted by another process.

    `tokens` is empty. counted: number of tokens.
    """

    counted: int

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return self.counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired(Sentence):
    """A training sentence with a copy in which some entities have other names of their type.

    A tagger learns to represent the entity in the same way under both names. own: the sentence. other: the copy. pairs:
    for each renamed entity, its range of tokens in `own` and in `other`.
    """

    own: Sentence
    other: Sentence
    pairs: tuple[tuple[Place, Place], ...]

    @classmethod
    def of(cls, own: Sentence, other: Sentence, pairs: tuple[tuple[Place, Place], ...]) -> "Paired":
        return cls(
            id=own.id, tokens=own.tokens, text=own.text, entities=own.entities, own=own, other=other, pairs=pairs
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InContext(Sentence):
    """A sentence with words of the neighbouring sentences (SOURCES.md, Neighbouring sentences).

    before, after: words of the sentences before and after this sentence, in order.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial(Sentence):
    """A training sentence in which some tags are unknown (SOURCES.md, Pseudo-labels).

    unknown: indices of the tokens, outside of `entities`, whose tag is unknown.
    """

    unknown: frozenset[int] = frozenset()

    @classmethod
    def of(cls, own: Sentence, entities: tuple[Entity, ...], unknown: Iterable[int]) -> "Partial":
        return cls(id=own.id, tokens=own.tokens, text=own.text, entities=entities, unknown=frozenset(unknown))


def in_context(sentences: Sequence[Sentence], words: int) -> list[Sentence]:
    """Return the sentences with up to `words` words before and after each, from sentences of the same document.

    Sentences must be in the order of their documents. A sentence of an unknown document is returned unchanged.
    """
    if not words:
        return list(sentences)
    return [each for doc, group in groupby(sentences, lambda one: one.doc) for each in _within(list(group), words, doc)]


def _within(sentences: Sequence[Sentence], words: int, doc: str | None) -> Iterator[Sentence]:
    """Yield the sentences of one document with words of the neighbouring sentences."""
    if doc is None:
        yield from sentences
        return
    for i, sentence in enumerate(sentences):
        behind = (word for k in range(i + 1, len(sentences)) for word in sentences[k].tokens)
        ahead = (word for k in range(i - 1, -1, -1) for word in reversed(sentences[k].tokens))
        own = {each.name: getattr(sentence, each.name) for each in fields(Sentence)}
        before = tuple(islice(ahead, words))[::-1]
        yield InContext(**own, before=before, after=tuple(islice(behind, words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Entities that a tagger predicts in one sentence.

    confidence: posterior probability, 0 to 1, that start, end and type of each entity are right.
    """

    entities: tuple[Entity, ...]
    confidence: tuple[float, ...]


def sentence_id(text: str) -> str:
    """Return 16 hex digits (64 bits of blake2b) of a cleaned text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
