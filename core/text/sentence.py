"""One sentence and its entities, as labelled or as predicted."""

from dataclasses import dataclass, field
from hashlib import blake2b

from core.text.source import Source

PLACE = ("file", "page")  # columns of where a sentence stands


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Entity:
    """Words `start` to `end` (half-open, counted in tokens) are a `type`."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One record of a corpus.

    id: 16 hex digits, a hash of `text`, so that joins survive a second upload.
    text: as `words.clean` leaves it. entities: None where unlabelled, () where labelled and none present.
    doc: what the sentence came from (a document's name), where known. group: what the document is of (a kind of
    contract, a hospital), where a column of it was kept. file, page: where it stands in the documents of an import, by
    the file's name in its folder and from 1; of a workbook the page is the sheet. columns: what else its row says,
    name and value. source: the file's own text, known while the file is read; a corpus does not store it.
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
    def place(self) -> str:
        """File and page in words, "" where they are not known."""
        return place(self.file, self.page)


def place(file: object, page: object) -> str:
    """Place of a sentence in a document, in words: `a.pdf, page 3`; "" where that is not known."""
    if not file:
        return ""
    unit = "sheet" if str(file).lower().endswith((".xlsx", ".xlsm")) else "page"
    return str(file) if page is None else f"{file}, {unit} {page}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A tagger's entities of one sentence.

    confidence: the posterior probability of each entity (start, end and type as they are), 0 to 1.
    """

    entities: tuple[Entity, ...]
    confidence: tuple[float, ...]


def sentence_id(text: str) -> str:
    """16 hex digits (64 bits of blake2b) of a cleaned text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
