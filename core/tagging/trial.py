"""Try taggers on a pasted text or a document: find its entities, and compare what two taggers found.

Pasted text is never written to disk, and no run is made. A file is on disk only while its reader needs it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, BinaryIO, Literal, cast

from core.corpora import split
from core.corpora.documents.extract import Extract, Paragraph
from core.corpora.documents.plain import paragraphs
from core.corpora.formats.documents import extracted
from core.corpora.formats.source import DOCUMENTS
from core.errors import ConfigError
from core.importing import uploads
from core.isolated import Isolated
from core.projects.home import store
from core.stats.mistakes import mistakes
from core.text.sentence import Entity
from core.text.source import Places, Source
from core.text.words import clean, token_places, tokenize
from core.training import saved_models as models

# Maximum number of characters of a text that are read, about 70 pages.
MOST = 200_000
# Extensions of the files that `read` accepts: text files, and all documents that an import reads, except workbooks.
ENDINGS = ("txt", *(ending[1:] for ending, (format, _) in DOCUMENTS.items() if format != "xlsx"))
# Time limit of the process that tags, in seconds.
SECONDS = 300
# Memory limit of the process that tags, in bytes. A large encoder takes 3 GB.
_MEMORY = 8 << 30
_process = Isolated("core.tagging.trial_process", "try a shorter text", SECONDS, memory=_MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to try taggers on.

    name: name of its file, "" if it was pasted. left_out: number of paragraphs that were left out because the text has
    more than `MOST` characters. cut: True if only the beginning of the first paragraph was read, for the same reason.
    blank: numbers of the pages of a PDF that have no text.
    """

    name: str
    paragraphs: tuple[Paragraph, ...]
    left_out: int = 0
    cut: bool = False
    blank: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """Entity in a text.

    paragraph: index of its paragraph, from 0. start, end: characters of the paragraph, `end` exclusive. confidence: 0
    to 1.
    """

    paragraph: int
    start: int
    end: int
    type: str
    confidence: float

    @property
    def place(self) -> tuple[int, int, int, str]:
        """Paragraph, start, end and type: equal for an entity that two taggers found."""
        return self.paragraph, self.start, self.end, self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Entities that one tagger found, in the order of the text. types: all entity types that the tagger knows."""

    types: tuple[str, ...]
    spans: tuple[Span, ...]


Difference = Literal["", "only here", "other type", "other border"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Entity that one tagger found, compared with the entities of another tagger.

    difference: "" if the other tagger found the same entity. other: the other tagger's entity that differs in type or
    border, or None.
    """

    span: Span
    difference: Difference
    other: Span | None


def ready() -> None:
    """Start the process that tags, and return at once. Importing modules in advance speeds up the first text."""
    _process.ready()


def pasted(text: str) -> Text:
    """Return the `Text` of a pasted string. Errors: ConfigError if the string is blank."""
    return _text("", Extract(paragraphs=paragraphs(text)))


def read(name: str, stream: BinaryIO, check: Callable[[], object] = lambda: None) -> Text:
    """Read a document or a text file in a separate process, and delete its copy on disk.

    check: function that is called every second, and may raise an error to stop. Errors: ReadError, ResourceError;
    ConfigError if the file has no text.
    """
    token = uploads.spool(name, stream)
    try:
        return _text(name, extracted(uploads.spooled(token), check))
    finally:
        uploads.discard(token)


def _text(name: str, extract: Extract) -> Text:
    kept, size = list[Paragraph](), 0
    for paragraph in extract.paragraphs:
        size += len(paragraph.text)
        if kept and size > MOST:
            break
        kept.append(Paragraph(paragraph.text[:MOST], paragraph.pages))
    if not kept:
        scanned = " Its pages may be scanned: recognise their text (OCR) first." if extract.blank else ""
        raise ConfigError(f"{name or 'the text'}: there is no text to read.{scanned}")
    left_out, cut = len(extract.paragraphs) - len(kept), len(extract.paragraphs[0].text) > MOST
    return Text(name=name, paragraphs=tuple(kept), left_out=left_out, cut=cut, blank=tuple(extract.blank))


def find(model_runs: Sequence[str], text: Text, check: Callable[[], object] = lambda: None) -> dict[str, Found]:
    """Return {run: entities that its tagger finds in the text}.

    model_runs: ids of `finetune` runs. check: function that is called every second, and may raise an error to stop.
    Errors: ConfigError if a model is missing; ModelError; ResourceError if the taggers take more than `SECONDS`.
    """
    folders = [models.folder(run) for run in map(store().get, model_runs) if models.is_here(run)]
    if len(folders) < len(model_runs):
        raise ConfigError("a tagger's model is no longer in this project; choose another tagger.")
    pieces = [
        (number, start, clean(each.text[start:end]), each.text[start:end])
        for number, each in enumerate(text.paragraphs)
        for start, end in split.sentences(each.text)
    ]
    texts = [cleaned for _, _, cleaned, _ in pieces]
    answer = _process.ask(text.name or "the text", check, models=list(map(str, folders)), texts=texts)
    found = dict[str, Found]()
    for run, told in zip(model_runs, cast(list[Any], answer), strict=True):
        spans = (
            span
            for (number, start, cleaned, own), entities in zip(pieces, told["spans"], strict=True)
            for span in _spans(number, start, cleaned, own, entities)
        )
        found[run] = Found(types=tuple(told["types"]), spans=tuple(spans))
    return found


def _spans(number: int, at: int, cleaned: str, own: str, entities: Iterable[Sequence[Any]]) -> Iterable[Span]:
    """Yield the entities of one sentence as spans of characters of its paragraph.

    number: index of the paragraph. at: character of the paragraph at which the sentence begins. own: the sentence's
    text in the paragraph. cleaned: cleaned text of the sentence, which was tagged. entities: first token, end token,
    type and confidence of each entity.
    """
    if not entities:
        return
    places, tokens = Places(cleaned, Source(text=own)), token_places(cleaned, tokenize(cleaned))
    for first, end, type, confidence in entities:
        start, stop = places.span(tokens[first][0], tokens[end - 1][1])
        yield Span(paragraph=number, start=at + start, end=at + stop, type=type, confidence=confidence)


def kept(side: Iterable[Compared], types: Collection[str], least: float) -> list[Compared]:
    """Return the entities of one tagger that have one of these types and at least the confidence `least`.

    Compare the taggers before: an entity that is left out must not look as if its tagger had found nothing there.
    """
    return [one for one in side if one.span.type in types and one.span.confidence >= least]


def compared(found: Sequence[Found]) -> list[list[Compared]]:
    """Return a list of entities per tagger, for one or two taggers. With two, mark the entities that differ."""
    sides = [each.spans for each in found]
    if len(sides) == 1:
        return [[Compared(span=span, difference="", other=None) for span in sides[0]]]
    a, b = (
        {number: {_entity(span): span for span in spans} for number, spans in groupby(side, lambda one: one.paragraph)}
        for side in sides
    )
    differing = [dict[Span, Compared](), dict[Span, Compared]()]
    for number in {**a, **b}:
        of_a, of_b = a.get(number, {}), b.get(number, {})
        for one in mistakes(of_a, of_b):
            pair = of_a.get(one.gold) if one.gold else None, of_b.get(one.guess) if one.guess else None
            for mine, its, known in ((pair[0], pair[1], differing[0]), (pair[1], pair[0], differing[1])):
                if mine:
                    known[mine] = Compared(span=mine, difference=_DIFFERENCES[one.kind], other=its)
    return [
        [known.get(span, Compared(span=span, difference="", other=None)) for span in side]
        for side, known in zip(sides, differing, strict=True)
    ]


_DIFFERENCES: Mapping[str, Difference] = {
    "missed": "only here",
    "invented": "only here",
    "wrong type": "other type",
    "wrong border": "other border",
}


def _entity(span: Span) -> Entity:
    return Entity(start=span.start, end=span.end, type=span.type)
