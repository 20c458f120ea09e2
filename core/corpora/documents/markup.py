"""Read web pages, mails and RTF documents."""

import email
import email.policy
import re
from email.errors import MessageError
from email.message import EmailMessage
from html.parser import HTMLParser
from typing import BinaryIO

from core.corpora.documents.extract import Extract, Flow, Paragraph
from core.errors import ReadError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCKS = _words("""
    address article aside blockquote body br center dd details dialog dir div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol option p pre section summary table tbody td tfoot th
    thead title tr ul
""")
_SILENT = _words("script style head template noscript svg math iframe object select textarea button nav")
_MAIN = _words("main article")  # elements with the page's content; their start tags end unclosed elements of `_SILENT`
_VOID = _words("area base br col embed hr img input link meta source track wbr")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"""<\?xml[^>]{0,200}?encoding=["']([\w.:-]{1,40})""")
_MAX_HEADERS = 2_000
_NOTE, _BRACE = re.compile(r"\{(?:\\\*)?\\footnote\b"), re.compile(r"\\[\\{}]|[{}]")


class _Page(HTMLParser):
    def __init__(self, flow: Flow) -> None:
        super().__init__(convert_charrefs=True)
        self.flow, self._silent = flow, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _MAIN:
            self._silent.clear()
        if self._silent or tag in _SILENT or ("role", "navigation") in attrs:
            # Void elements have no end tag, so they do not stay open.
            if tag not in _VOID:
                self._silent.append(tag)
            return
        self._border(tag)
        if tag == "tr":
            self.flow.row()
        elif tag in ("td", "th"):
            self.flow.cell()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._silent:
            self._border(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            # The end tag of an element also closes the elements inside it that have no end tag.
            while tag in self._silent and self._silent.pop() != tag:
                pass
            return
        self._border(tag)
        if tag == "tr":
            self.flow.end_row()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.flow.add(data)

    def _border(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.flow.flush()


def read_html(file: BinaryIO, name: str, encoding: str | None = None) -> Extract:
    """Read a web page. encoding: encoding that the user requested, or None; see `decoded`. Errors: ReadError."""
    return Extract(_paragraphs(decoded(file.read(), encoding), name))


def _paragraphs(text: str, name: str) -> list[Paragraph]:
    flow = Flow(name)
    page = _Page(flow)
    page.feed(text)
    page.close()
    return flow.paragraphs()


def decoded(data: bytes, encoding: str | None) -> str:
    """Decode a web page with the first encoding that fits: UTF-8, `encoding`, the declared one, or Windows-1252."""
    named = _CHARSET.search(data[:4096]) or _XML_CHARSET.match(data[:400])
    marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    # UTF-8 comes before the declared encoding, because text in another encoding is hardly ever valid UTF-8.
    encodings = ["utf-16" if marked else "utf-8-sig", encoding or "", named[1].decode() if named else "", "cp1252"]
    for codec in encodings:
        try:
            return data.decode(codec)
        except (UnicodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


def read_eml(file: BinaryIO, name: str) -> Extract:
    """Read the subject and text of a mail. Attachments are not read, but a remark names them. Errors: ReadError."""
    data = file.read()
    if b":" not in data[:_MAX_HEADERS]:
        raise ReadError(name, None, "is not a mail, because it has no headers; give it the right extension (.txt).")
    try:
        return _mail(email.message_from_bytes(data, policy=email.policy.default), name)
    except (
        MessageError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        KeyError,
        RecursionError,
    ) as error:
        raise ReadError(name, None, "cannot be read as a mail; save it again as .eml, or its text as .txt.") from error


def _mail(mail: EmailMessage, name: str) -> Extract:
    flow = Flow(name)
    flow.add(str(mail.get("subject") or ""))
    flow.flush()
    body = mail.get_body(("plain", "html"))
    extract = Extract()
    if body is not None and body.get_content_subtype() == "html":
        extract.paragraphs = [*flow.paragraphs(), *_paragraphs(str(body.get_content()), name)]
    else:
        text = "" if body is None else str(body.get_content()).replace("\r\n", "\n")
        unquoted = re.sub(r"^(?:>[ \t]?)+", "", text, flags=re.MULTILINE)  # removes the > before quoted lines
        for block in re.split(r"\n[^\S\n]*\n", unquoted):
            flow.add(block)
            flow.flush()
        extract.paragraphs = flow.paragraphs()
    attached = [str(part.get_filename() or part.get_content_type()) for part in mail.iter_attachments()]
    if attached:
        names = ", ".join(attached[:5]) + (f" and {len(attached) - 5} more" if len(attached) > 5 else "")
        extract.remarks.append(
            f"{len(attached)} attachments were not read: {names}; save them as files in the mail's folder"
        )
    return extract


def read_rtf(file: BinaryIO, name: str) -> Extract:
    """Read an RTF document. Errors: ReadError."""
    from striprtf.striprtf import rtf_to_text

    try:
        # RTF is ASCII with escape sequences. If a file has other bytes too, decoding as latin-1 does not fail.
        text = rtf_to_text(_notes_last(file.read().decode("latin-1")), errors="replace")
    except (ValueError, LookupError, TypeError, IndexError, KeyError, AttributeError, OverflowError) as error:
        raise ReadError(name, None, "is damaged or was cut off; copy or save it again.") from error
    flow = Flow(name)
    for line in text.split("\n"):
        flow.add(line.strip("|").replace("|", "\t"))
        flow.flush()
    return Extract(flow.paragraphs())


def _notes_last(rtf: str) -> str:
    """Move the footnotes of an RTF document to its end, because striprtf skips footnotes within sentences."""
    text, notes, at = list[str](), list[str](), 0
    for note in _NOTE.finditer(rtf):
        if note.start() >= at:
            text.append(rtf[at : note.start()])
            at = _closed(rtf, note.start())
            notes.append("\\par {" + rtf[note.end() : at])
    whole = "".join([*text, rtf[at:]])
    last = whole.rfind("}") if "}" in whole else len(whole)
    return whole[:last] + "".join(notes) + whole[last:]


def _closed(rtf: str, start: int) -> int:
    """Return the position after the closing brace of the RTF group that opens at `start`."""
    depth = 0
    for brace in _BRACE.finditer(rtf, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return brace.end()
    return len(rtf)
