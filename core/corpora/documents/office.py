"""Read Word and OpenDocument texts and Excel workbooks (XML in zip archives). Nothing is downloaded or executed."""

import errno
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import islice
from typing import Any, BinaryIO, TypedDict
from xml.sax import SAXException
from xml.sax.handler import ContentHandler, feature_namespaces
from zipfile import ZipFile

from defusedxml import DefusedXmlException
from defusedxml.sax import make_parser

from core.corpora.documents.extract import MAX_CHARACTERS, Extract, Flow, sound
from core.errors import ReadError

MAX_MEMBERS = 20_000
# Reject an archive as a zip bomb if it unpacks to over 200 times its size and to over 16 MiB.
MAX_RATIO, FREE = 200, 16 << 20
# Error numbers for problems with the disk or the path to write, which do not mean that the archive is damaged.
_NOT_ITS_FAULT = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EMFILE)
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)
MAX_XML = 512 << 20  # maximum size of all XML files in a document together, unpacked, in bytes
_WORD_BODY = "word/document.xml"
_WORD_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
ATTACK = (
    "declares XML entities or a document type, as attacks do; if you trust the file, save it again in the program"
    " that made it."
)
MACROS = "its macros were neither read nor run"
MAX_CELLS = 5_000_000
_COLUMNS = 1_000


@contextmanager
def opened_zip(file: BinaryIO, name: str, most: int, ending: str = "") -> Iterator[zipfile.ZipFile]:
    """Open an archive for a `with` block.

    most: maximum unpacked size of all files with the extension `ending` together, in bytes.
    Errors, also from code within the block: ReadError if the archive has a password, is a zip bomb or is damaged;
    OSError if an unpacked file cannot be written.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _bounded(archive, name, most, ending)
            yield archive
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno in _NOT_ITS_FAULT:
            raise
        raise ReadError(name, None, "is damaged or was cut off; copy or save it again.") from error


def _bounded(archive: zipfile.ZipFile, name: str, most: int, ending: str) -> None:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise ReadError(name, None, f"has {len(members):,} files, more than {MAX_MEMBERS:,}; divide it.")
    if any(member.flag_bits & 1 for member in members):
        raise ReadError(name, None, "is protected by a password; save it without one.")
    wanted = [member for member in members if member.filename.endswith(ending)]
    unpacked, packed = (
        (sum(sizes) for sizes in zip(*((m.file_size, m.compress_size) for m in wanted), strict=True))
        if wanted
        else (0, 0)
    )
    if unpacked > most:
        raise ReadError(name, None, f"unpacks to {unpacked:,} bytes, more than {most:,}; divide it.")
    if unpacked > FREE and unpacked > MAX_RATIO * packed:
        raise ReadError(
            name,
            None,
            f"unpacks to more than {MAX_RATIO} times its size ({packed:,} bytes), as a zip bomb does; if you trust it,"
            " unpack it yourself.",
        )


@dataclass(frozen=True)
class _Rules:
    """Names of XML elements, without prefix, that a reader treats specially.

    paragraphs, rows, cells: elements that are paragraphs, table rows and cells. text: elements whose text is read.
    marks: {element: character that replaces it}. skipped: elements that are left out with their content. page: element
    at the start of a page.
    """

    paragraphs: tuple[str, ...]
    rows: str
    cells: str
    text: tuple[str, ...]
    marks: Mapping[str, str]
    skipped: frozenset[str]
    page: str


# Tracked insertions are read, tracked deletions are not. Page numbers come from page breaks that Word has stored.
_WORD = _Rules(
    paragraphs=("p",),
    rows="tr",
    cells="tc",
    text=("t",),
    marks={"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"},
    skipped=frozenset({"del", "moveFrom", "Fallback", "pPrChange", "rPrChange"}),
    page="lastRenderedPageBreak",
)
# Comments are left out. A footnote or endnote becomes a paragraph before the paragraph to which it belongs.
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
    """Passes the text of one XML file to a `Flow`, which collects the paragraphs."""

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
            self.flow.add(mark)

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
            self.flow.add(content)


def read_docx(file: BinaryIO, name: str) -> Extract:
    """Read a Word document (.docx, .docm, .dotx). Errors: ReadError."""
    with opened_zip(file, name, MAX_XML, ".xml") as archive:
        names = set(archive.namelist())
        if _WORD_BODY not in names:
            raise ReadError(
                name, None, "is a zip archive, not a Word document; give it the right extension (for example .zip)."
            )
        parts = [_WORD_BODY, *(part for part in _WORD_NOTES if part in names)]
        extract = _extract(archive, parts, _WORD, name)
        if any(part.endswith("vbaProject.bin") for part in names):
            extract.remarks.append(MACROS)
        return extract


def read_odt(file: BinaryIO, name: str) -> Extract:
    """Read an OpenDocument text. Errors: ReadError."""
    with opened_zip(file, name, MAX_XML, ".xml") as archive:
        names = set(archive.namelist())
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise ReadError(name, None, "is protected by a password; save it without one.")
        if "content.xml" not in names:
            raise ReadError(
                name,
                None,
                "is a zip archive, not an OpenDocument text; give it the right extension (for example .zip).",
            )
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
            raise ReadError(name, None, f"its {part} is damaged or was cut off; copy or save it again.") from error
        pages = max(pages, handler.pages)
    extract = Extract(flow.paragraphs(), pages if pages > 1 else None)
    if pages == 1:  # the document has one page, or stores no page breaks
        for paragraph in extract.paragraphs:
            paragraph.pages = []
    return extract


class Workbook(TypedDict):
    """Cells of a workbook.

    sheets: (name, rows) of each sheet. A row is (row number from 1, cells); empty rows are left out.
    remarks: notes on content that was left out.
    """

    sheets: list[tuple[str, list[tuple[int, list[str | None]]]]]
    remarks: list[str]


def read_xlsx(file: BinaryIO, name: str, most: int | None = None) -> Workbook:
    """Read the cells of a workbook. most: number of rows to read per sheet, None for all. Errors: ReadError."""
    from openpyxl import load_workbook

    with opened_zip(file, name, MAX_XML, ".xml") as archive:
        names = archive.namelist()
        if "xl/workbook.xml" not in names:
            raise ReadError(
                name, None, "is a zip archive, not an Excel workbook; give it the right extension (for example .zip)."
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Read the values that Excel has stored for formulas, and do not follow links to other files.
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = [(sheet.title, _rows(sheet, name, most)) for sheet in book.worksheets]
    except ReadError:
        raise
    except Exception as error:  # openpyxl raises many kinds of errors (zip, XML, types, dates)
        if _forbidden(error):
            raise ReadError(name, None, ATTACK) from error
        raise ReadError(name, None, "is damaged or was cut off; copy or save it again.") from error
    macros = [MACROS] if any(part.endswith("vbaProject.bin") for part in names) else []
    return {"sheets": sheets, "remarks": macros}


def _forbidden(error: BaseException | None) -> bool:
    """Return True if an error was caused by XML that defusedxml refused. openpyxl wraps this cause in other errors."""
    return error is not None and (isinstance(error, DefusedXmlException) or _forbidden(error.__context__))


def _rows(sheet: Any, name: str, most: int | None) -> list[tuple[int, list[str | None]]]:
    rows, cells, room = list[tuple[int, list[str | None]]](), 0, MAX_CHARACTERS
    for number, values in enumerate(islice(sheet.iter_rows(values_only=True), most), 1):
        row = [_text(value) for value in values[:_COLUMNS]]
        while row and row[-1] is None:
            row.pop()
        cells += len(row)
        room -= sum(len(cell or "") for cell in row)
        if cells > MAX_CELLS or room < 0:
            raise ReadError(
                name,
                None,
                f"has a sheet of more than {MAX_CELLS:,} cells or {MAX_CHARACTERS:,} characters; save it as .csv.",
            )
        if row:
            rows.append((number, row))
    return rows


def _text(value: object) -> str | None:
    """Return the value of a cell as text; None for an empty cell."""
    if value is None:
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return sound(str(value)) or None
