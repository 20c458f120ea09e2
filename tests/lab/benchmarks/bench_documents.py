"""Documents and sentences: what each library reads of typeset contracts, and where sentences are split.

    python -m tests.lab.benchmarks.bench_documents [--pages N]

Sentences of contracts (unlabeled/legal) are typeset as PDF in one column and in two, with running heads, page numbers,
words hyphenated at line ends, and tables of rents. A third layout writes both columns line by line across the page, as
some programs do. The typeset text is known, so that what is read can be counted. Each library reads in its own process;
seconds are CPU time, memory is the peak. Word documents contain what lawyers' drafts contain: tracked changes,
footnotes, a text box. Sentences of tests/corpora/sentences_cut.txt are split by us and by pySBD, whose pieces are
located in the text.
"""

import argparse
import gzip
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TypedDict

from core.corpora.documents.extract import Extract
from core.corpora.documents.office import read_docx
from core.corpora.documents.pdf import read_pdf
from core.corpora.split import sentences
from tests import documents as make
from tests.lab.benchmarks.data import DATA

SIZE, LEADING, TOP, BOTTOM = 10, 12.5, 740, 80
LAYOUTS = ("one column", "two columns", "two, line by line")
HEAD, WIDTH = "Agreement of Acme Holdings Ltd.", 595
CUT = Path(__file__).resolve().parents[2] / "corpora" / "sentences_cut.txt"


def texts() -> Iterator[str]:
    """Yield sentences of contracts, with punctuation attached to words."""
    with gzip.open(DATA / "unlabeled" / "legal.txt.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            text = re.sub(r" ([.,;:)!?%])", r"\1", line.strip()).replace("( ", "(")
            if 60 < len(text) < 400 and text[0].isupper() and text.endswith(".") and text.isascii() and "`" not in text:
                yield text


def rents(page: int) -> list[tuple[str, str, str]]:
    """Return the rows of the table on a page."""
    return [(f"Flat {page}.{i}", f"{700 + 35 * i},00 EUR", f"{i} May 2021") for i in range(1, 6)]


def typeset(path: Path, layout: str, pages: int) -> dict[str, list[str]]:
    """Write a PDF. Return {sentences: each once, divided: words that are hyphenated at a line end}."""
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.pdfgen.canvas import Canvas

    canvas, source, random = Canvas(str(path)), texts(), Random(7)
    columns = [(60.0, 475.0)] if layout == "one column" else [(60.0, 225.0), (310.0, 225.0)]
    per_column = int((TOP - BOTTOM - 90) / LEADING)
    known: dict[str, list[str]] = {"sentences": [], "divided": []}
    width = columns[0][1]

    def broken() -> Iterator[str]:
        """Yield the lines of paragraphs with four sentences each."""
        while True:
            some = [next(source) for _ in range(4)]
            known["sentences"] += some
            line = ""
            for word in " ".join(some).split():
                if stringWidth(f"{line} {word}", "Helvetica", SIZE) <= width:
                    line = f"{line} {word}".strip()
                    continue
                at = next((n for n in range(len(word) - 3, 3, -1)
                           if stringWidth(f"{line} {word[:n]}-", "Helvetica", SIZE) <= width), 0)  # fmt: skip
                if word.isalpha() and word.islower() and len(word) > 7 and at and random.random() < 0.7:
                    known["divided"].append(word)
                    yield f"{line} {word[:at]}-"
                    line = word[at:]
                else:
                    yield line
                    line = word
            yield line

    lines = broken()
    for number in range(1, pages + 1):
        canvas.setFont("Helvetica", SIZE)
        canvas.drawString(60, 800, HEAD)
        canvas.drawString(290, 40, str(number))
        filled = [[next(lines) for _ in range(per_column)] for _ in columns]
        places = [
            (x, TOP - LEADING * i, text)
            for (x, _), column in zip(columns, filled, strict=True)
            for i, text in enumerate(column)
        ]
        if layout == "two, line by line":
            places.sort(key=lambda place: (-place[1], place[0]))
        for x, y, text in places:
            canvas.drawString(x, y, text)
        for i, row in enumerate(rents(number)):
            for x, cell in zip((60, 220, 400), row, strict=True):
                canvas.drawString(x, 140 - LEADING * i, cell)
        canvas.showPage()
    canvas.save()
    return {name: words[:-8] for name, words in known.items()}  # the last ones may not be on any page


def ours(path: Path) -> str:
    return _text(read_pdf(io.BytesIO(path.read_bytes()), path.name))


def _text(extract: Extract) -> str:
    return "\n".join(paragraph.text for paragraph in extract.paragraphs)


def pdfium(path: Path) -> str:
    import pypdfium2

    with pypdfium2.PdfDocument(path) as document:
        return "\n".join(page.get_textpage().get_text_range() for page in document)


def pypdf(path: Path) -> str:
    import pypdf as library

    return "\n".join(page.extract_text() for page in library.PdfReader(path).pages)


def pdfplumber(path: Path) -> str:
    import pdfplumber as library

    with library.open(path) as document:
        return "\n".join(page.extract_text() for page in document.pages)


def pdfminer(path: Path) -> str:
    from pdfminer.high_level import extract_text

    return str(extract_text(path))


READERS: dict[str, Callable[[Path], str]] = {
    "ours, on PDFium": ours,
    "pypdfium2": pdfium,
    "pypdf": pypdf,
    "pdfminer.six": pdfminer,
    "pdfplumber": pdfplumber,
}


class Reading(TypedDict):
    """The text that a library read. seconds: CPU time. peak: memory in MB."""

    text: str
    seconds: float
    peak: float


def one(name: str, path: Path) -> None:
    """Read in this process, which does nothing else; print text, seconds and peak memory."""
    READERS[name](path)  # warm up: imports and fonts
    began = time.process_time()
    text = READERS[name](path)
    # Not from getrusage, whose peak includes the memory of the parent process.
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1e3
    print(json.dumps({"text": text, "seconds": time.process_time() - began, "peak": peak}))


def apart(name: str, path: Path) -> Reading:
    """Read in a separate process."""
    words = [sys.executable, "-W", "ignore", "-m", "tests.lab.benchmarks.bench_documents", "--one", name, str(path)]
    reading: Reading = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return reading


def pdfs(pages: int, folder: Path) -> None:
    print("| layout | read by | sentences whole | hyphenated words rejoined | heads and numbers left | table rows whole "
          "| CPU ms per page | peak MB |\n|---|---|---:|---:|---:|---:|---:|---:|")  # fmt: skip
    for layout in LAYOUTS:
        path = folder / f"{layout}.pdf"
        known = typeset(path, layout, pages)
        for name in READERS:
            read = apart(name, path)
            lines = [" ".join(line.split()) for line in read["text"].splitlines()]
            flat = " ".join(" ".join(lines).split())
            whole = sum(sentence in flat for sentence in known["sentences"]) / len(known["sentences"])
            mended = sum(flat.count(word) >= known["divided"].count(word) for word in known["divided"])
            left = flat.count(HEAD) + sum(line.isdigit() for line in lines)
            rows = sum(" ".join(row) in lines for number in range(1, pages + 1) for row in rents(number))
            print(
                f"| {layout} | {name} | {whole:.1%} | {mended / len(known['divided']):.1%} | {left} of {2 * pages} "
                f"| {rows / len(rents(1)) / pages:.0%} | {1000 * read['seconds'] / pages:.1f} | {read['peak']:.0f} |",
                flush=True,
            )


PARTS = {
    "tracked insertion": "inserted words",
    "tracked deletion left out": "deleted words",
    "footnote": "a note below",
    "text box": "words in a box",
    "table row on one line": "Rent 900 EUR",
}


def word_documents() -> None:
    """Print what is read of a draft, by us and by python-docx as in its documentation (paragraphs, then tables)."""
    import docx

    body = (
        "<w:p><w:r><w:t>A clause </w:t></w:r><w:ins><w:r><w:t>inserted words</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>deleted words</w:delText></w:r></w:del></w:p>"
        '<w:p><w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox><w:txbxContent><w:p><w:r>'
        "<w:t>words in a box</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>"
        "<w:tbl><w:tr>" + "".join(f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in ("Rent", "900 EUR"))
        + "</w:tr></w:tbl>"
    )  # fmt: skip
    notes = (
        f"<w:footnotes {make.W}><w:footnote><w:p><w:r><w:t>a note below</w:t></w:r></w:p></w:footnote></w:footnotes>"
    )
    kinds = "http://schemas.openxmlformats.org"
    types = (
        f'<Types xmlns="{kinds}/package/2006/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    relations = (
        f'<Relationships xmlns="{kinds}/package/2006/relationships"><Relationship Id="r1" Target="word/document.xml" Type='
        f'"{kinds}/officeDocument/2006/relationships/officeDocument"/></Relationships>'
    )
    long = [text for text, _ in zip(texts(), range(4_000), strict=False)]
    data = make.docx(long, body=body, more={"word/footnotes.xml": notes, "_rels/.rels": relations})
    data = make.zipped({**_members(data), "[Content_Types].xml": types})

    def by_library() -> str:
        document = docx.Document(io.BytesIO(data))
        rows = ("\t".join(cell.text for cell in row.cells) for table in document.tables for row in table.rows)
        return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *rows])

    print(
        f"\n| Word draft of {len(long):,} paragraphs | "
        + " | ".join(PARTS)
        + " | CPU s |\n|---|"
        + "---|" * len(PARTS)
        + "---:|"
    )
    for name, read in (
        ("ours, on defusedxml", lambda: _text(read_docx(io.BytesIO(data), "a.docx"))),
        ("python-docx", by_library),
    ):
        began = time.process_time()
        text = " ".join(read().split())  # type: ignore[no-untyped-call]
        marks = ("yes" if (words in text) != ("left out" in part) else "no" for part, words in PARTS.items())
        print(f"| {name} | {' | '.join(marks)} | {time.process_time() - began:.2f} |")


def _members(data: bytes) -> dict[str, bytes]:
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def by_pysbd(text: str, language: str) -> set[int]:
    import pysbd

    ends, at = set[int](), 0
    for piece in pysbd.Segmenter(language=language, clean=False).segment(text):
        start = text.find(piece.strip(), at)
        if start >= 0:
            at = start + len(piece.strip())
            ends.add(at)
    return ends


def boundaries() -> None:
    documents = dict[str, list[str]]()
    for line in CUT.read_text(encoding="utf-8").splitlines():
        if re.match(r"# \w\w[: ]", line):
            documents[line] = []
        elif line and not line.startswith("#"):
            documents[next(reversed(documents))].append(line)
    print(
        "\n| sentences | boundaries | ours: missed | wrong | F1 | pySBD: missed | wrong | F1 |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    groups = {"en": "# en", "de": "# de", "es": "# es", "fresh ones of all three": " fresh: ", "all": "# "}
    for group, mark in groups.items():
        n, counts = 0, {"ours": [0, 0], "pysbd": [0, 0]}
        for heading, by_hand in documents.items():
            if mark in heading:
                text = " ".join(by_hand)
                ends = {sum(map(len, by_hand[:i])) + i - 1 for i in range(1, len(by_hand))}
                n += len(ends)
                cuts = {"ours": {end for _, end in sentences(text)}, "pysbd": by_pysbd(text, heading[2:4])}
                for name, cut in cuts.items():
                    counts[name][0] += len(ends - cut)
                    counts[name][1] += len(cut - ends - {len(text)})
        cells = (
            f"{missed} | {wrong} | {2 * (n - missed) / (2 * (n - missed) + missed + wrong):.3f}"
            for missed, wrong in counts.values()
        )
        print(f"| {group} | {n} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one[0], Path(given.one[1]))
        return
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        pdfs(given.pages, Path(folder))
    word_documents()
    boundaries()


if __name__ == "__main__":
    main()
