"""Small documents of every format, written by hand, because no library writes the faults that tests need."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from openpyxl import Workbook

Placed = tuple[float, float, str]  # points from the lower left corner, text
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)


def pdf(pages: Sequence[Sequence[Placed]], *, n_pages: int | None = None, encrypted: bool = False) -> bytes:
    """Make a PDF with text in Helvetica 10. n_pages: number of copies of the first page."""
    count = n_pages or len(pages)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        words = "".join(f"BT /F 10 Tf {x} {y} Td ({_literal(text)}) Tj ET\n" for x, y, text in lines)
        objects.append(f"<< /Length {len(words)} >>\nstream\n{words}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >>"
            f" /Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    while len(kids) < count:
        objects.append(objects[4])
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {count} /Kids [{' '.join(kids)}] >>"
    lock = ""
    if encrypted:
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /P -44 /O <{'41' * 32}> /U <{'42' * 32}> >>")
        lock = f" /Encrypt {len(objects)} 0 R /ID [<{'43' * 16}> <{'43' * 16}>]"
    return _file(objects, lock)


def _file(objects: Sequence[str], lock: str = "") -> bytes:
    """Make a PDF of numbered objects; the first is its catalog."""
    out, places = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return (
        out + f"{end}trailer << /Size {len(objects) + 1} /Root 1 0 R{lock} >>\nstartxref\n{len(out)}\n%%EOF\n".encode()
    )


def pdf_mapped(lines: Sequence[str], code: int, mapped: str) -> bytes:
    """Make a page of these lines in a font whose character map maps the byte `code` to `mapped` (UTF-16 in hex)."""
    shown = "".join(f"BT /F 10 Tf 60 {760 - 28 * i} Td ({_literal(line)}) Tj ET\n" for i, line in enumerate(lines))
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        "1 begincodespacerange <00> <FF> endcodespacerange\n"
        f"1 beginbfchar <{code:02X}> <{mapped}> endbfchar\n1 beginbfrange <20> <7E> <0020> endbfrange\n"
        "endcmap end end"
    )
    return _file(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> /Contents 5 0 R >>",
            f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
            f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream",
        ]
    )


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def lines(texts: Sequence[str], left: float = 60, top: float = 760) -> list[Placed]:
    """Place lines below each other, 14 points apart."""
    return [(left, top - 14 * i, text) for i, text in enumerate(texts)]


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def docx(paragraphs: Sequence[str], *, body: str = "", head: str = "", more: Mapping[str, str | bytes] = {}) -> bytes:
    """Make a DOCX. body: XML after the paragraphs. head: text before the root element. more: further members."""
    inside = "".join(f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>" for text in paragraphs)
    xml = f'<?xml version="1.0"?>{head}<w:document {W}><w:body>{inside}{body}</w:body></w:document>'
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": xml, **more})


def odt(paragraphs: Sequence[str], *, body: str = "", head: str = "") -> bytes:
    inside = "".join(f"<text:p>{escape(text)}</text:p>" for text in paragraphs)
    xml = f"{head}<office:document-content {_ODF}><office:body><office:text>{inside}{body}</office:text></office:body></office:document-content>"
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": xml})


def xlsx(*sheets: Sequence[Sequence[object]]) -> bytes:
    book = Workbook()
    for i, rows in enumerate(sheets):
        sheet = book.active if i == 0 else book.create_sheet()
        assert sheet is not None
        for row in rows:
            sheet.append(list(row))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def html(body: str) -> bytes:
    return f"<!DOCTYPE html><html><head><title>A lease</title><style>p {{}}</style></head><body>{body}</body></html>".encode()


def eml(text: str, *, attached: str = "") -> bytes:
    head = "From: a@example.org\r\nTo: b@example.org\r\nSubject: The lease\r\nMIME-Version: 1.0\r\n"
    if not attached:
        return f"{head}Content-Type: text/plain; charset=utf-8\r\n\r\n{text}".encode()
    return (
        f'{head}Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n'
        f'{text}\r\n--x\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename="{attached}"\r\n\r\n'
        "%PDF-1.4\r\n--x--\r\n"
    ).encode()


def rtf(paragraphs: Sequence[str]) -> bytes:
    return ("{\\rtf1\\ansi " + "\\par ".join(paragraphs) + "}").encode("ascii")
