"""Export the entities that taggers found in a text: as a Word document with comments, a CSV table, or JSON."""

import csv as tables
import json as objects
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO, StringIO
from itertools import pairwise
from typing import TYPE_CHECKING

from core.corpora.documents.extract import sound
from core.corpora.writers import harmless
from core.projects.audit import exporting
from core.tagging.trial import Compared, Text

if TYPE_CHECKING:
    from docx.text.paragraph import Paragraph as WordParagraph
    from docx.text.run import Run as WordRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Row of an export: one entity that a tagger found.

    paragraph: number of its paragraph, from 1. start, end: characters of the paragraph, `end` exclusive. difference: ""
    if there is only one tagger, or if both taggers found the same entity.
    """

    tagger: str
    paragraph: int
    page: int | None
    start: int
    end: int
    text: str
    type: str
    confidence: float
    difference: str


@exporting
def csv(model_runs: Sequence[str], text: Text, sides: Sequence[Sequence[Compared]], names: Mapping[str, str]) -> bytes:
    """Return a CSV file with one row per entity and tagger. Text that looks like a formula is escaped.

    sides: entities of each run's tagger, in the order of `model_runs`. names: {run: name of its tagger}.
    """
    out = StringIO()
    writer = tables.DictWriter(out, list(Row.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    for row in _rows(model_runs, text, sides, names):
        writer.writerow({name: harmless(value) for name, value in asdict(row).items()})
    return out.getvalue().encode("utf-8-sig")  # Excel recognises UTF-8 only if the file has a byte order mark.


@exporting
def json(model_runs: Sequence[str], text: Text, sides: Sequence[Sequence[Compared]], names: Mapping[str, str]) -> bytes:
    """Return a JSON file with the paragraphs of the text and their entities. Arguments: see `csv`."""
    entities: list[list[dict[str, object]]] = [[] for _ in text.paragraphs]
    for row in _rows(model_runs, text, sides, names):
        entity = {name: value for name, value in asdict(row).items() if name not in ("paragraph", "page")}
        entities[row.paragraph - 1].append(entity)
    paragraphs = [
        {"page": each.page(0), "text": each.text, "entities": own}
        for each, own in zip(text.paragraphs, entities, strict=True)
    ]
    written = {"file": text.name or None, "taggers": [names[run] for run in model_runs], "paragraphs": paragraphs}
    return objects.dumps(written, ensure_ascii=False, indent=1).encode()


@exporting
def docx(model_runs: Sequence[str], text: Text, sides: Sequence[Sequence[Compared]], names: Mapping[str, str]) -> bytes:
    """Return the text as a Word document; each entity is highlighted and has a comment. Arguments: see `csv`.

    An entity that both taggers found has only one comment.
    """
    from docx import Document

    document, places = Document(), set[tuple[int, int, int, str]]()
    comments: dict[int, list[tuple[Compared, str]]] = {}
    for run, side in zip(model_runs, sides, strict=True):
        for one in side:
            shared = len(sides) == 2 and not one.difference
            if not shared or one.span.place not in places:
                author = " and ".join(names[each] for each in model_runs) if shared else names[run]
                comments.setdefault(one.span.paragraph, []).append((one, author))
                places.add(one.span.place)
    for number, paragraph in enumerate(text.paragraphs):
        written = document.add_paragraph()
        for runs, one, author in _highlighted(written, paragraph.text, comments.get(number, [])):
            document.add_comment(runs, _comment(one), author=sound(author), initials="")
    document.save(out := BytesIO())
    return out.getvalue()


def _rows(
    model_runs: Sequence[str], text: Text, sides: Sequence[Sequence[Compared]], names: Mapping[str, str]
) -> Iterator[Row]:
    for run, side in zip(model_runs, sides, strict=True):
        for one in side:
            span, paragraph = one.span, text.paragraphs[one.span.paragraph]
            yield Row(
                tagger=names[run],
                paragraph=span.paragraph + 1,
                page=paragraph.page(span.start),
                start=span.start,
                end=span.end,
                text=paragraph.text[span.start : span.end],
                type=span.type,
                confidence=span.confidence,
                difference=one.difference,
            )


def _comment(one: Compared) -> str:
    words = f"{one.span.type}, confidence {one.span.confidence:.0%}"
    if one.other:
        return sound(f"{words}. The other tagger: {one.other.type} ({one.difference}).")
    return sound(f"{words}. The other tagger found nothing here." if one.difference else words)


def _highlighted(
    written: "WordParagraph", text: str, comments: Sequence[tuple[Compared, str]]
) -> Iterator[tuple[list["WordRun"], Compared, str]]:
    """Add text to a Word paragraph, in pieces (Word runs) that end where an entity starts or ends.

    For each entity, highlight the Word runs that it covers. Yield these runs, the entity, and the author of its
    comment.
    """
    from docx.enum.text import WD_COLOR_INDEX

    spans = [one.span for one, _ in comments]
    borders = sorted({0, len(text), *(span.start for span in spans), *(span.end for span in spans)})
    runs = {start: written.add_run(text[start:end]) for start, end in pairwise(borders)}
    for one, author in comments:
        own = [run for start, run in runs.items() if one.span.start <= start < one.span.end]
        for run in own:
            run.font.highlight_color = WD_COLOR_INDEX.YELLOW
        yield own, one, author
