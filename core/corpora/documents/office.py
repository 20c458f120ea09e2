"""Word and OpenDocument texts: XML in a zip archive, read as a stream, with nothing fetched and nothing run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO
from xml.sax import SAXException
from xml.sax.handler import ContentHandler, feature_namespaces
from zipfile import ZipFile

from defusedxml import DefusedXmlException
from defusedxml.sax import make_parser

from core.corpora.documents.extract import Extract, Flow
from core.corpora.documents.zipped import opened_zip
from core.errors import ReadError

MAX_XML = 512 << 20  # bytes of all parts in XML
_WORD_BODY = "word/document.xml"
_WORD_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
ATTACK = (
    "declares entities or a document type, as an attack by XML does; save it anew in its own program if it is to be"
    " trusted."
)
MACROS = "its macros were neither read nor run"


@dataclass(frozen=True)
class _Rules:
    """Elements by their names without prefix. paragraphs, rows, cells: what they are; text: those whose text counts;
    marks: what an element stands for; skipped: what is left out with all in it; page: what begins a page."""

    paragraphs: tuple[str, ...]
    rows: str
    cells: str
    text: tuple[str, ...]
    marks: Mapping[str, str]
    skipped: frozenset[str]
    page: str


# Tracked insertions are read, deletions are not; the pages are those of the last layout, where the file has it.
_WORD = _Rules(
    paragraphs=("p",),
    rows="tr",
    cells="tc",
    text=("t",),
    marks={"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"},
    skipped=frozenset({"del", "moveFrom", "Fallback", "pPrChange", "rPrChange"}),
    page="lastRenderedPageBreak",
)
# Comments are left out; a note stands before the end of its paragraph.
_OPEN_DOCUMENT = _Rules(
    paragraphs=("p", "h"),
    rows="table-row",
    cells="table-cell",
    text=("p", "h"),
    marks={"s": " ", "tab": "\t", "line-break": "\n"},
    skipped=frozenset({"tracked-changes", "annotation", "note-citation", "sequence-decls", "forms"}),
    page="soft-page-break",
)


class _Handler(ContentHandler):
    """The text of one part."""

    def __init__(self, flow: Flow, rules: _Rules) -> None:
        super().__init__()
        self.flow, self.rules, self.pages = flow, rules, 1
        self._skipped = self._within = 0

    def startElementNS(self, name: tuple[str | None, str], qname: str | None, attrs: object) -> None:
        local, rules = name[1], self.rules
        if self._skipped or local in rules.skipped:
            self._skipped += 1
            return
        self._within += local in rules.text
        if local in rules.paragraphs:
            self.flow.begin()
        elif local == rules.rows:
            self.flow.row()
        elif local == rules.cells:
            self.flow.cell()
        elif local == rules.page:
            self.pages += 1
            self.flow.page = self.pages
        elif mark := rules.marks.get(local):
            self.flow.say(mark)

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:
        local, rules = name[1], self.rules
        if self._skipped:
            self._skipped -= 1
            return
        self._within -= local in rules.text
        if local in rules.paragraphs:
            self.flow.end()
        elif local == rules.rows:
            self.flow.end_row()

    def characters(self, content: str) -> None:
        if not self._skipped and self._within:
            self.flow.say(content)


def read_docx(file: BinaryIO, name: str) -> Extract:
    """A Word document (.docx, .docm, .dotx). Errors: ReadError."""
    with opened_zip(file, name, MAX_XML, ".xml") as archive:
        names = set(archive.namelist())
        if _WORD_BODY not in names:
            raise ReadError(name, None, "is a zip archive but no Word document; name it by what it is.")
        parts = [_WORD_BODY, *(part for part in _WORD_NOTES if part in names)]
        extract = _extract(archive, parts, _WORD, name)
        if any(part.endswith("vbaProject.bin") for part in names):
            extract.remarks.append(MACROS)
        return extract


def read_odt(file: BinaryIO, name: str) -> Extract:
    """An OpenDocument text. Errors: ReadError."""
    with opened_zip(file, name, MAX_XML, ".xml") as archive:
        names = set(archive.namelist())
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise ReadError(name, None, "is protected by a password; save it without one.")
        if "content.xml" not in names:
            raise ReadError(name, None, "is a zip archive but no OpenDocument text; name it by what it is.")
        extract = _extract(archive, ["content.xml"], _OPEN_DOCUMENT, name)
        if any(part.startswith(("Basic/", "Scripts/")) for part in names):
            extract.remarks.append(MACROS)
        return extract


def _extract(archive: ZipFile, parts: list[str], rules: _Rules, name: str) -> Extract:
    flow, pages = Flow(name), 1
    flow.page = 1
    for part in parts:
        handler = _Handler(flow, rules)
        parser = make_parser()
        parser.forbid_dtd = True
        parser.setFeature(feature_namespaces, True)
        parser.setContentHandler(handler)
        try:
            parser.parse(archive.open(part))
        except DefusedXmlException as error:
            raise ReadError(name, None, ATTACK) from error
        except SAXException as error:
            raise ReadError(
                name, None, f"its {part} is damaged or was cut off; copy it again, or save it anew."
            ) from error
        pages = max(pages, handler.pages)
    extract = Extract(flow.paragraphs(), pages if pages > 1 else None)
    for paragraph in [] if pages > 1 else extract.paragraphs:
        paragraph.pages = []  # one page, or none was kept
    return extract
