"""Papers, manuals and licences typeset by others: how many sentences of their source each library reads whole.

    apt-get download texlive-publishers-doc && dpkg-deb -x texlive-publishers-doc_*.deb TEXLIVE
    python -m tests.lab.benchmarks.bench_papers_read [--texlive TEXLIVE | --papers DIR | --licences TEXLIVE]

TEXLIVE is the folder where the Debian package was unpacked; the documents in PAPERS are read from it. DIR holds your
own pairs NAME.pdf and NAME.tex. Nothing of them is stored. --licences reads licences, because they are contracts:
unpack the packages in LICENCES there too. Of a manual, only the pages with its licence are read; Debian has the text of
the licence in /usr/share/common-licenses.

Known sentences are plain prose of 60 to 400 characters, without LaTeX once comments, floats, headings and emphasis are
removed. A sentence is "whole" if the text that was read contains it letter by letter, apart from blanks and the kind of
quotes and dashes. The libraries' lines are joined by blanks. In our text it must be within one paragraph, because
sentences are split there. "In order" is the share of whole sentences in the longest sequence that has the order of the
source. Heads are lines that recur at the top or foot of pages.
"""

import argparse
import gzip
import re
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from core.corpora.split import sentences
from tests.lab.benchmarks.bench_documents import READERS, apart

OURS = next(iter(READERS))
ROOM = "usr/share/doc/texlive-doc/latex"
PAPERS = {
    "two columns": [
        "mnras/mnras_guide",
        "acmart/samples/sample-sigconf",
        "oup-authoring-template/oup-authoring-template",
        "jacow/JACoW_LaTeX_A4",
        "asmeconf/asmeconf-template",
        "asmejour/asmejour-template",
        "quantumarticle/quantum-template",
        "aguplus/aguplus",
        "revtex/sample/aps/apssamp",
        "ieeepes/ieeepes_doc",
    ],
    "one column": [
        "uspatent/PatentApplicationGuide",
        "aastex/sample631",
        "aiaa/author_guide",
        "revtex/auguide/auguide4-2",
        "cmpj/template",
        "prtec/PRTEC19-template",
        "spie/article",
        "toptesi/toptesi-it",
    ],
}
LICENCES = {  # {its PDF: (the package, its text)}
    "texlive-doc/latex/base/lppl.pdf": ("texlive-latex-base-doc", "usr/share/doc/texlive-doc/latex/base/lppl.txt.gz"),
    "texlive-doc/latex/gfdl/gfdl.pdf": ("texlive-publishers-doc", "GFDL-1.3"),
    "octave/octave.pdf": ("octave-doc", "GPL-3"),
    "libgcrypt20-doc/gcrypt.pdf.gz": ("libgcrypt20-doc", "LGPL-2.1"),
    "gnutls-doc/gnutls.pdf": ("gnutls-doc", "GFDL-1.3"),
}
APART = (
    "figure|table|tabular|longtable|equation|align|eqnarray|gather|multline|displaymath|math|array|verbatim|Verbatim"
    "|lstlisting|thebibliography|CCSXML|comment|filecontents|tikzpicture|picture"
)
ALIKE = str.maketrans(
    {**dict.fromkeys("“”„", '"'), **dict.fromkeys("‘’`", "'"), **dict.fromkeys("–—‐", "-"), "\u00ad": None}
)


class Counts(NamedTuple):
    """Counts of one document and library. seconds: CPU time. peak: memory in MB."""

    whole: int
    order: int
    left: int
    seconds: float
    peak: float


def plain(text: str) -> str:
    """Return the text with one kind of blank, quote and dash."""
    return re.sub("-+", "-", " ".join(text.replace("``", '"').replace("''", '"').translate(ALIKE).split()))


def known(tex: str) -> list[str]:
    """Return the sentences of plain prose in a LaTeX document, each once, in order."""
    body = tex.partition("\\begin{document}")[2].partition("\\end{document}")[0]
    body = re.sub(r"[ \t]*(?<!\\)%.*\n[ \t]*(?!\s)", " ", body)
    body = re.sub(r"(?<!\\)%.*", "", body)
    body = re.sub(rf"(?s)\\begin\{{({APART})\*?\}}.*?\\end\{{\1\*?\}}|\\\[.*?\\\]|\$\$.*?\$\$", "\n\n", body)
    body = re.sub(r"\\(?:label|index)\{[^{}]*\}|\\(?:noindent|indent|smallskip|medskip|bigskip|par)\b", "", body)
    body = re.sub(
        r"\\(?:begin|end|(?:sub)*section|(?:sub)?paragraph|chapter|caption|title)\*?(?:\[[^]]*\])?\{", "\n\n{", body
    )
    body = re.sub(r"\\item\b(?:\s*\[[^]]*\])?|\\\\", "\n\n", body)
    body = re.sub(r"\\(?:emph|text(?:it|bf|sl|rm|md|up))\{([^{}\\]*)\}|\{\\(?:em|it|bf|sl)\s+([^{}\\]*)(?:\\/)?\}",
                  lambda match: match[1] or match[2], body)  # fmt: skip
    return prose(re.sub(r"\\([%&#_])", r"\1", body))


def prose(body: str) -> list[str]:
    """Return the sentences of plain prose in a text, each once, in order."""
    texts = (plain(body[start:end]) for start, end in sentences(body))
    return list(dict.fromkeys(text for text in texts if re.fullmatch(r"[A-Z][^\\{}$~|\[\]]{58,398}[.!?]", text)))


def longest_rise(numbers: list[int]) -> int:
    """Return the length of the longest increasing subsequence."""
    ends = list[int]()
    for number in numbers:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
    return len(ends)


def heads(path: Path) -> tuple[int, re.Pattern[str]]:
    """Return (number of pages, pattern of running heads): lines that recur among the first or last two of pages."""
    import pypdfium2

    counted = Counter[str]()
    with pypdfium2.PdfDocument(path) as document:
        for page in document:
            lines = [plain(line) for line in page.get_textpage().get_text_range().splitlines() if line.strip()]
            counted.update({re.sub(r"\d+", "#", line) for line in (*lines[:2], *lines[-2:])})
        n = len(document)
    recurring = [key for key, count in counted.items() if count >= max(3, n // 8) and len(key) > 5]
    return n, re.compile("|".join(re.escape(key).replace("\\#", r"\d+") for key in recurring) or r"(?!)")


def licences(unpacked: Path, folder: Path) -> dict[Path, list[str]]:
    """Write the pages of each licence to a PDF in `folder`; return {PDF: sentences of the licence}."""
    import pypdfium2

    texts = dict[Path, list[str]]()
    for name, (_, text) in LICENCES.items():
        common = Path("/usr/share/common-licenses") / text
        known_of_it = prose(source(common if common.exists() else unpacked / text))
        data = inflated(unpacked / "usr/share/doc" / name)
        with pypdfium2.PdfDocument(data) as document, pypdfium2.PdfDocument.new() as part:
            pages = [plain(page.get_textpage().get_text_range()) for page in document]
            counts = [sum(text in page for text in known_of_it) for page in pages]
            first = last = counts.index(max(counts))
            # One or two pages in between may contain no whole sentence.
            while any(counts[max(first - 3, 0) : first]):
                first -= 1
            while any(counts[last + 1 : last + 4]):
                last += 1
            part.import_pages(document, list(range(first, last + 1)))
            path = folder / f"{Path(name).name.partition('.')[0]}, {text.rpartition('/')[2].partition('.txt')[0]}.pdf"
            part.save(path)
        texts[path] = known_of_it
    return texts


def inflated(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def source(path: Path) -> str:
    """Return the content of a text file, or of the .tex file beside a PDF, which Debian compresses if it is long."""
    if path.suffix == ".pdf":
        zipped = path.with_suffix(".tex.gz")
        path = zipped if zipped.exists() else path.with_suffix(".tex")
    return inflated(path).decode("utf-8", "replace")


def read_by(name: str, path: Path, texts: list[str], head: re.Pattern[str]) -> tuple[Counts, list[str]]:
    """Return (counts of the text that a reader read, sentences that it missed)."""
    read = apart(name, path)
    lines = [plain(line) for line in read["text"].splitlines()]
    flat = (" \n " if name == OURS else " ").join(lines)
    places = {text: at for text in texts if (at := flat.find(text)) >= 0}
    left = len(head.findall(flat)) + sum(line.isdigit() and len(line) < 4 for line in lines)
    counts = Counts(len(places), longest_rise(list(places.values())), left, read["seconds"], read["peak"])
    return counts, [text for text in texts if text not in places]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--texlive", type=Path)
    where.add_argument("--papers", type=Path)
    where.add_argument("--licences", type=Path)
    parser.add_argument("--missed", action="store_true", help="print the sentences that we miss, and no table")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.licences:
            documents = {"licences": licences(given.licences, Path(folder))}
        else:
            places = (
                {"all": sorted(given.papers.glob("*.pdf"))}
                if given.papers
                else {name: [given.texlive / ROOM / f"{each}.pdf" for each in some] for name, some in PAPERS.items()}
            )
            documents = {kind: {path: known(source(path)) for path in paths} for kind, paths in places.items()}
        (missed if given.missed else table)(documents)


def missed(documents: Mapping[str, Mapping[Path, list[str]]]) -> None:
    for path, texts in (pair for some in documents.values() for pair in some.items()):
        print(f"\n{path.stem}", *read_by(OURS, path, texts, heads(path)[1])[1], sep="\n  ")


def table(documents: Mapping[str, Mapping[Path, list[str]]]) -> None:
    print("| document | pages | sentences |", " | ".join(READERS), "|\n|---|---:|---:|" + "---:|" * len(READERS))
    all_of = dict[tuple[str, str], list[Counts]]()
    sizes = Counter[str]()
    for kind, path, texts in ((kind, *pair) for kind, some in documents.items() for pair in some.items()):
        n_pages, head = heads(path)
        sizes.update({kind: len(texts), f"{kind}, pages": n_pages})
        cells = list[str]()
        for name in READERS:
            counts, _ = read_by(name, path, texts, head)
            all_of.setdefault((kind, name), []).append(counts)
            cells.append(f"{counts.whole / len(texts):.0%}")
        print(f"| {path.stem} | {n_pages} | {len(texts)} | {' | '.join(cells)} |", flush=True)
    print("\n| documents | read by | sentences whole | in order | heads and numbers left | CPU ms per page | peak MB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for (kind, name), read in all_of.items():
        whole, ms = sum(each.whole for each in read), 1000 * sum(each.seconds for each in read)
        print(
            f"| {kind} | {name} | {whole / sizes[kind]:.1%} | {sum(each.order for each in read) / max(whole, 1):.1%} "
            f"| {sum(each.left for each in read)} | {ms / sizes[f'{kind}, pages']:.1f} "
            f"| {max(each.peak for each in read):.0f} |"
        )


if __name__ == "__main__":
    main()
