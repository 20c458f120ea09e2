"""Web pages, RTF, OpenDocument, Excel and mail: what we and other libraries read of documents whose text is known.

    pip install --target OTHERS trafilatura lxml_html_clean resiliparse selectolax beautifulsoup4 lxml inscriptis pyth3 \
        odfpy python-calamine mail-parser
    apt-get install --no-install-recommends libreoffice-writer-nogui libreoffice-calc-nogui
    apt-get download python3.11-doc && dpkg-deb -x python3.11-doc_*.deb PAGES
    python -m tests.lab.benchmarks.bench_formats --others OTHERS [--pages PAGES]

LibreOffice writes sentences of contracts (unlabeled/legal), two sentences with non-ASCII letters, a table of rents, a
footnote, a running head and a running foot as RTF, ODT, HTML and XLSX. This script writes a web page with navigation
around an article, and a mail that replies to another. PAGES has the pages of Python's tutorial, howtos and FAQ, with
their source. Each library reads in its own process, with OTHERS at the end of its import path.

A sentence is "whole" if the text that was read contains it letter by letter, apart from blanks, quotes and dashes. In
our text it must be within one paragraph. "Left" counts text that should not be read: navigation, head and foot, and the
mail that is quoted. "Entity of a file" tells what happens to an XML entity that names a file beside the document.
"""

import argparse
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import TypedDict
from xml.sax.saxutils import escape

MODULE = "tests.lab.benchmarks.bench_formats"
SENTENCES, PARAGRAPH = 400, 4
FOREIGN = (
    "Die Mieterin zahlt die Miete für den März bis zum dritten Werktag des Monats an Herrn Müller.",
    "Über die Übergabe in Łódź führen Frau Çelik und Herr Žižek ein Protokoll, das beide unterschreiben.",
)
NOTE = "This note stands at the foot of the first page and explains what a clause of the lease means."
HEAD, FOOT = "Running head of the lease", "Running foot of the lease"
AROUND = (
    "Home",
    "Terms of use",
    "Accept all cookies",
    "Most read",
    "Subscribe to our newsletter",
    "All rights reserved",
)
SPHINX = ("Previous topic", "Next topic", "Report a Bug", "Table of Contents", "Show Source", "Quick search")
QUOTED = "This is what the other party wrote last week and what this mail answers to."
SECRET = "zyxname-of-a-file-beside"
ENTITY = '<!DOCTYPE x [<!ENTITY beside SYSTEM "file://{}">]>'


COLUMNS = (
    *("document", "read by", "sentences whole", "in order", "table rows on a line"),
    *("surrounding text left in", "entity of a file", "failed", "CPU s", "peak MB"),
)


@dataclass(frozen=True, slots=True)
class Known:
    """The known content of documents of one kind. rows: of a table. left: text that should not be read."""

    paths: Sequence[Path]
    sentences: Sequence[str]
    rows: Sequence[str] = ()
    left: Sequence[str] = ()


def ours(path: Path) -> str:
    from core.corpora.documents import markup, office

    with path.open("rb") as file:
        if path.suffix == ".xlsx":
            book = office.read_xlsx(file, path.name)
            return "\n".join("\t".join(cell or "" for cell in row) for _, rows in book["sheets"] for _, row in rows)
        read = {".html": markup.read_html, ".rtf": markup.read_rtf, ".eml": markup.read_eml, ".odt": office.read_odt}
        return "\n".join(re.sub(r"\s*\n\s*", " ", each.text) for each in read[path.suffix](file, path.name).paragraphs)


def trafilatura(path: Path) -> str:
    from trafilatura import extract

    return extract(path.read_bytes()) or ""


def resiliparse(path: Path) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(path.read_text(encoding="utf-8"), main_content=True))


def selectolax(path: Path) -> str:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    tree.strip_tags(["script", "style"])
    return str(tree.body.text() if tree.body else "")


def soup(path: Path) -> str:
    from bs4 import BeautifulSoup

    return str(BeautifulSoup(path.read_bytes(), "html.parser").get_text())


def lxml_html(path: Path) -> str:
    from lxml import html

    return str(html.fromstring(path.read_bytes()).text_content())


def inscriptis(path: Path) -> str:
    from inscriptis import get_text

    return str(get_text(path.read_text(encoding="utf-8")))


def striprtf(path: Path) -> str:
    from striprtf.striprtf import rtf_to_text

    return str(rtf_to_text(path.read_text(encoding="latin-1")))


def pyth(path: Path) -> str:
    from pyth.plugins.plaintext.writer import PlaintextWriter
    from pyth.plugins.rtf15.reader import Rtf15Reader

    with path.open("rb") as file:
        return str(PlaintextWriter.write(Rtf15Reader.read(file)).getvalue())


def odfpy(path: Path) -> str:
    from odf import teletype, text
    from odf.opendocument import load

    document = load(path)
    return "\n".join(
        teletype.extractText(each) for kind in (text.H, text.P) for each in document.getElementsByType(kind)
    )


def lxml_odt(path: Path) -> str:
    from lxml import etree

    with zipfile.ZipFile(path) as archive:
        tree = etree.fromstring(archive.read("content.xml"))
    return "\n".join("".join(each.itertext()) for each in tree.iter("{*}p", "{*}h"))


def openpyxl(path: Path) -> str:
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True, data_only=True)
    return "\n".join(
        "\t".join("" if cell is None else str(cell) for cell in row)
        for sheet in book.worksheets
        for row in sheet.iter_rows(values_only=True)
    )


def calamine(path: Path) -> str:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(str(path))
    rows = (row for name in book.sheet_names for row in book.get_sheet_by_name(name).to_python())
    return "\n".join("\t".join(map(str, row)) for row in rows)


def pandas(path: Path) -> str:
    from pandas import read_excel

    return "\n".join(
        "\t".join(map(str, row)) for sheet in read_excel(path, None, header=None).values() for row in sheet.to_numpy()
    )


def library_email(path: Path) -> str:
    import email
    import email.policy

    body = email.message_from_bytes(path.read_bytes(), policy=email.policy.default).get_body(("plain", "html"))
    return str(body.get_content()) if body else ""


def mail_parser(path: Path) -> str:
    import mailparser

    mail = mailparser.parse_from_bytes(path.read_bytes())
    return "\n".join([mail.subject, *(mail.text_plain or mail.text_html)])


class Reading(TypedDict):
    """texts: (text, "" or the type of the error) of each document. seconds: CPU time. peak: memory in MB."""

    texts: list[tuple[str, str]]
    seconds: float
    peak: float


OURS = "ours"
READERS: Mapping[str, Mapping[str, Callable[[Path], str]]] = {
    ".html": {
        OURS: ours,
        "trafilatura": trafilatura,
        "Resiliparse": resiliparse,
        "selectolax": selectolax,
        "BeautifulSoup": soup,
        "lxml": lxml_html,
        "inscriptis": inscriptis,
    },
    ".rtf": {OURS: ours, "striprtf alone": striprtf, "pyth3": pyth},
    ".odt": {OURS: ours, "odfpy": odfpy, "lxml": lxml_odt},
    ".xlsx": {OURS: ours, "openpyxl alone": openpyxl, "python-calamine": calamine, "pandas": pandas},
    ".eml": {OURS: ours, "email alone": library_email, "mail-parser": mail_parser},
}


def one(name: str, paths: Sequence[Path]) -> None:
    """Read in this process, which does nothing else; print texts and errors, seconds and peak memory."""
    texts, began = list[tuple[str, str]](), time.process_time()
    for path in paths:
        try:
            texts.append((READERS[path.suffix][name](path), ""))
        except Exception as error:  # noqa: BLE001  other libraries raise any error
            texts.append(("", type(error).__name__))
    # Not from getrusage, whose peak includes the memory of the parent process.
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1e3
    print("\n" + json.dumps({"texts": texts, "seconds": time.process_time() - began, "peak": peak}))


def apart(name: str, paths: Sequence[Path], others: Path) -> Reading:
    words = [sys.executable, "-W", "ignore", "-m", MODULE, "--others", str(others), "--one", name, *map(str, paths)]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    reading: Reading = json.loads(out.splitlines()[-1])
    return reading


def contract() -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return sentences and the rows of a table."""
    from tests.lab.benchmarks.bench_documents import rents, texts

    return [*FOREIGN, *(text for text, _ in zip(texts(), range(SENTENCES), strict=False))], rents(1)


def paragraphs(sentences: Sequence[str]) -> list[str]:
    return [" ".join(sentences[i : i + PARAGRAPH]) for i in range(0, len(sentences), PARAGRAPH)]


def flat(sentences: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the contract as LibreOffice's flat XML, with a head and a foot, a footnote and a table."""
    names = ("office", "style", "text", "table")
    space = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)
    note = (
        '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>'
        f"{NOTE}</text:p></text:note-body></text:note>"
    )
    cells = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in rows
    )
    prose = [f"<text:p>{escape(each)}{'' if i else note}</text:p>" for i, each in enumerate(paragraphs(sentences))]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {space} office:version="1.2" '
        'office:mimetype="application/vnd.oasis.opendocument.text"><office:automatic-styles><style:page-layout '
        'style:name="pl"><style:page-layout-properties/><style:header-style/><style:footer-style/></style:page-layout>'
        '</office:automatic-styles><office:master-styles><style:master-page style:name="Standard" '
        f'style:page-layout-name="pl"><style:header><text:p>{HEAD}</text:p></style:header><style:footer><text:p>{FOOT}'
        "</text:p></style:footer></style:master-page></office:master-styles><office:body><office:text>"
        f'{"".join(prose)}<table:table table:name="t"><table:table-column table:number-columns-repeated="3"/>{cells}'
        "</table:table></office:text></office:body></office:document>"
    )


def web_page(sentences: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the contract as an article of a web site, with navigation, banner and footer around it."""
    table = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    first, second, third, fourth, fifth, last = AROUND
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>A lease</title><script>var a = "{second}";</script>'
        f"</head><body><div class='cookie-banner'><p>{third}</p></div><header><nav><ul><li><a href='/'>{first}</a></li>"
        f"<li><a href='/t'>{second}</a></li></ul></nav></header><main><article><h1>A lease</h1>"
        + "".join(f"<p>{escape(each)}</p>" for each in paragraphs(sentences))
        + f"<table>{table}</table></article></main><aside><h2>{fourth}</h2><form><p>{fifth}</p></form></aside>"
        f"<footer><p>{last}</p></footer></body></html>"
    )


def mail(sentences: Sequence[str]) -> bytes:
    """Return the contract as a mail that replies to another, with an HTML alternative and an attachment."""
    text = "\n\n".join(paragraphs(sentences))
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Übergabe der Wohnung", "a@example.org", "b@example.org"
    message.set_content(
        f"{text}\n\nOn Monday the other party wrote:\n> {QUOTED}\n-- \nA signature\n", cte="quoted-printable"
    )
    message.add_alternative("".join(f"<p>{escape(each)}</p>" for each in paragraphs(sentences)), subtype="html")
    message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="lease.pdf")
    return bytes(message)


def written(folder: Path) -> dict[str, Known]:
    """Write documents here and with LibreOffice; return {kind of document: its known content}."""
    sentences, rows = contract()
    table = [" ".join(row) for row in rows]
    (folder / "site.html").write_text(web_page(sentences, rows), encoding="utf-8")
    (folder / "mail.eml").write_bytes(mail(sentences))
    (folder / "lease.fodt").write_text(flat(sentences, rows), encoding="utf-8")
    (folder / "cells.csv").write_text(
        "".join(f'{i},"{text.replace(chr(34), chr(34) * 2)}"\n' for i, text in enumerate(sentences)), encoding="utf-8"
    )
    for source, ending in (("lease.fodt", "rtf"), ("lease.fodt", "odt"), ("lease.fodt", "html"), ("cells.csv", "xlsx")):
        command = ["soffice", "--headless", f"-env:UserInstallation=file://{folder}/profile", "--convert-to", ending]
        command += ["--infilter=CSV:44,34,UTF8"] * (ending == "xlsx")
        subprocess.run([*command, "--outdir", str(folder), str(folder / source)], check=True, capture_output=True)
    around, noted = (HEAD, FOOT), [*sentences, NOTE]
    return {
        "a site's page": Known([folder / "site.html"], sentences, table, AROUND),
        "HTML of LibreOffice": Known([folder / "lease.html"], noted, table, around),
        "RTF of LibreOffice": Known([folder / "lease.rtf"], noted, table, around),
        "ODT of LibreOffice": Known([folder / "lease.odt"], noted, table, around),
        "XLSX of LibreOffice": Known([folder / "cells.xlsx"], sentences),
        "a mail that answers": Known([folder / "mail.eml"], sentences, (), (QUOTED, "A signature")),
    }


def sphinx(unpacked: Path) -> Known:
    """Return Python's pages and the plain sentences of their source."""
    from tests.lab.benchmarks.bench_papers_read import prose

    root = unpacked / "usr/share/doc/python3.11/html"
    sources = sorted(path for room in ("tutorial", "howto", "faq") for path in (root / "_sources" / room).glob("*.txt"))
    texts = [
        re.sub(r"(?m)^(\.\. .*|\w.*\n[=*~-]{3,})$", "\n", source.read_text(encoding="utf-8")) for source in sources
    ]
    known = [text for each in texts for text in prose(each) if not re.search(r"[`*:<>_=]", text)]
    pages = [root / str(source.relative_to(root / "_sources")).replace(".rst.txt", ".html") for source in sources]
    return Known(pages, known, (), SPHINX)


def attacks(folder: Path) -> list[Path]:
    """Write documents whose XML has an entity that names a file beside them; return their paths."""
    (folder / "beside.txt").write_text(SECRET)
    head = ENTITY.format(folder / "beside.txt")
    made = list[Path]()
    for source, part in (("lease.odt", "content.xml"), ("cells.xlsx", "xl/sharedStrings.xml")):
        out = io.BytesIO()
        with zipfile.ZipFile(folder / source) as archive, zipfile.ZipFile(out, "w") as copy:
            for name in archive.namelist():
                data = archive.read(name)
                if name == part:
                    xml = data.decode("utf-8")
                    at = xml.index("?>") + 2 if xml.startswith("<?xml") else 0
                    data = (xml[:at] + head + xml[at:].replace(FOREIGN[0], "&beside;", 1)).encode()
                copy.writestr(name, data)
        made.append(folder / f"attack{Path(source).suffix}")
        made[-1].write_bytes(out.getvalue())
    return made


def fate(text: str, error: str) -> str:
    """Return what happened to an entity that names a file."""
    return "refused" if error else "the file is read" if SECRET in text else "left out"


def line(what: str, name: str, known: Known, read: Reading, met: str) -> str:
    from tests.lab.benchmarks.bench_papers_read import longest_rise, plain

    texts = read["texts"]
    lines = [plain(each) for text, _ in texts for each in text.splitlines()]
    flat = (" \n " if name == OURS else " ").join(lines)
    wanted = list(map(plain, known.sentences))
    places = [at for text in wanted if (at := flat.find(text)) >= 0]
    rows = f"{sum(row in lines for row in known.rows)} of {len(known.rows)}" if known.rows else ""
    n_left = sum(flat.count(text) for text in known.left)
    failed = ", ".join(error for _, error in texts if error)
    return (
        f"| {what} | {name} | {len(places) / len(wanted):.1%} | {longest_rise(places) / max(len(places), 1):.1%} | {rows} "
        f"| {n_left if known.left else ''} | {met} | {failed} | {read['seconds']:.2f} | {read['peak']:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--others", type=Path, required=True)
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path.append(str(given.others))
    if given.one:
        one(given.one[0], list(map(Path, given.one[1:])))
        return
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with tempfile.TemporaryDirectory() as folder:
        documents = written(Path(folder))
        if given.pages:
            documents["Python's pages"] = sphinx(given.pages)
        forged = {path.suffix: path for path in attacks(Path(folder))}
        for what, known in documents.items():
            suffix = known.paths[0].suffix
            for name in READERS[suffix]:
                met = ""
                if attack := forged.get(suffix):
                    [[text, error]] = apart(name, [attack], given.others)["texts"]
                    met = fate(text, error)
                print(line(what, name, known, apart(name, known.paths, given.others), met), flush=True)


if __name__ == "__main__":
    main()
