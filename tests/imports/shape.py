"""Shapes of exported files, and the right answer for each. The clauses, names and files are our own writing.

A clause is written once, with its mentions marked: `[PER Mara Lind] rents hall 7 in [LOC Lyon].` Helpers render it as
CoNLL columns or as character spans, and `read_right` derives the expected import from the same clauses.
"""

import csv
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from textwrap import dedent

Content = str | bytes
_MENTION = re.compile(r"\[([A-Za-z][\w-]*) ([^\]]+)\]")
_TOKEN = re.compile(r"[^\s.,;:?!¿।。]+|[.,;:?!¿।。]")


@dataclass(frozen=True, slots=True)
class Clause:
    """A sentence and its mentions as (start, end, type), in characters of `text`."""

    text: str
    spans: tuple[tuple[int, int, str], ...]

    @property
    def mentions(self) -> list[tuple[str, str]]:
        """(text, type) of each mention."""
        return [(self.text[start:end], kind) for start, end, kind in self.spans]

    def tokens(self, *, characters: bool = False) -> list[tuple[int, int]]:
        """Return start and end of each token: words and punctuation, or single characters."""
        pattern = re.compile(r"\S") if characters else _TOKEN
        borders = sorted({border for start, end, _ in self.spans for border in (start, end)})
        found = []
        for match in pattern.finditer(self.text):
            cuts = [match.start(), *(b for b in borders if match.start() < b < match.end()), match.end()]
            found += list(pairwise(cuts))
        return found

    def tagged(self, scheme: str = "BIO", *, characters: bool = False) -> list[tuple[str, str, str]]:
        """Return (token, position letter, type) per token; ("...", "O", "") outside mentions.

        scheme: letters for the first, inner, last and only token: BIO, BIOES, BILOU, BMES, IO.
        """
        rows = []
        for start, end in self.tokens(characters=characters):
            span = next((span for span in self.spans if span[0] <= start and end <= span[1]), None)
            letter = _letter(scheme, at_start=start == span[0], at_end=end == span[1]) if span else "O"
            rows.append((self.text[start:end], letter, span[2] if span else ""))
        return rows


def _letter(scheme: str, *, at_start: bool, at_end: bool) -> str:
    """Return the letter of a token in a mention, by its position."""
    first, inner, last, only = {
        "BIO": ("B", "I", "I", "B"),
        "BIOES": ("B", "I", "E", "S"),
        "BILOU": ("B", "I", "L", "U"),
        "BMES": ("B", "M", "E", "S"),
        "IO": ("I", "I", "I", "I"),
    }[scheme]
    if at_start and at_end:
        return only
    return first if at_start else last if at_end else inner


def clauses(marked: str) -> tuple[Clause, ...]:
    """Parse one clause per line."""
    return tuple(clause(line.strip()) for line in marked.strip().splitlines())


def clause(marked: str) -> Clause:
    text, spans, at = "", list[tuple[int, int, str]](), 0
    for match in _MENTION.finditer(marked):
        text += marked[at : match.start()]
        spans.append((len(text), len(text) + len(match[2]), match[1]))
        text, at = text + match[2], match.end()
    return Clause(text + marked[at:], tuple(spans))


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """The file is read correctly.

    sentences: number of sentences of the corpus. mentions: {type: texts}, compared without white space. labelled: False for
    plain text. says: patterns that the summary must match. texts: sentences that must be there. without: text that no
    sentence may contain, such as markup.
    """

    sentences: int
    mentions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labelled: bool = True
    says: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing is added, the exit code is 2, and the error matches each pattern: what is wrong and what to do."""

    patterns: tuple[str, ...]


def refused(*patterns: str) -> Refused:
    return Refused(patterns)


@dataclass(frozen=True, slots=True)
class Shape:
    """An export.

    report: the tool and version that it represents, or the public report that describes it. files: the files of one
    import; several files are a folder. options: import options that answer the one question that the file leaves open.
    asks: a pattern that the error matches without these options. It is "" if the import then takes a default and states
    it in the summary.
    """

    name: str
    report: str
    files: Mapping[str, Content]
    right: Right | Refused
    options: Mapping[str, str] = field(default_factory=dict)
    asks: str = ""


def read_right(
    given: Iterable[Clause],
    *,
    rename: Mapping[str, str] | Callable[[str], str] | None = None,
    labelled: bool = True,
    says: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Right:
    """Return the right answer for a file with exactly these clauses. rename: types in the spelling of the file."""
    given = list(given)
    mentions: dict[str, list[str]] = {}
    for each in given:
        for text, kind in each.mentions if labelled else ():
            name = kind if rename is None else rename(kind) if callable(rename) else rename.get(kind, kind)
            mentions.setdefault(name, []).append(text)
    return Right(sentences=len(given), mentions=mentions, labelled=labelled, says=says, without=without)


def conll(
    given: Iterable[Clause],
    row: str = "{token}\t{tag}",
    *,
    scheme: str = "BIO",
    tag: str = "{letter}-{type}",
    outside: str = "O",
    before: str = "",
    between: str = "\n",
    end: str = "\n",
    characters: bool = False,
) -> str:
    """Write columns, one token per line. row: may name {i} (from 1), {token}, {tag}, {pos}, {s} (sentence, from 1).

    before: a line in front of each sentence. between: end of a sentence. end: end of a line.
    """
    out = ""
    for s, each in enumerate(given, 1):
        if before:
            out += before.format(s=s, text=each.text) + end
        for i, (token, letter, kind) in enumerate(each.tagged(scheme, characters=characters), 1):
            written = outside if letter == "O" else tag.format(letter=letter, type=kind, low=letter.lower())
            pos = "NNP" if kind else "." if not token[0].isalnum() else "NN" if i % 3 else "VBZ"
            out += row.format(i=i, s=s, token=token, tag=written, pos=pos) + end
        out += between
    return out


def block(text: str) -> str:
    """Return the text of an indented literal without its first line break."""
    return dedent(text).lstrip("\n")


def tabs(text: str, separator: str = "\t") -> str:
    """Write columns. Each line of `text` is a sentence with " | " between tokens; a line that ends with "|" continues."""
    out = ""
    for line in block(text).rstrip().splitlines():
        rows = line.removesuffix("|").strip().split(" | ")
        out += "".join(re.sub(" +", separator, row) + "\n" for row in rows)
        out += "" if line[0] == "#" or line[-1] == "|" else "\n"
    return out


def written(rows: Iterable[Sequence[object]], separator: str = ",") -> str:
    """Write rows of a CSV file, quoted if needed."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue()


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_jsonl(rows: Iterable[object]) -> str:
    return "".join(as_json(row) + "\n" for row in rows)


def zipped(files: Mapping[str, Content]) -> bytes:
    """Pack files as a zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: Mapping[str, str]) -> bytes:
    """Pack files as a .tar.gz archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return out.getvalue()
