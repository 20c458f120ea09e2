"""CoNLL columns: a token a line, its tag in the last column, an empty line after each sentence."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from core.corpora.formats.ledger import MAX_RAW, TOO_LONG, Ledger
from core.corpora.formats.sentences import Tagged, from_tags
from core.corpora.formats.source import BLOCK_BYTES, lines, open_stream
from core.errors import ReadError
from core.text.schemes import Detector, Scheme
from core.text.sentence import Sentence

MAX_LINE = 100_000  # bytes of a token and its columns
MAX_TOKENS = 50_000  # a longer "sentence" means that the empty lines are missing
_BLANKS = re.compile(r"[ \t]+")
_TAG = re.compile(r"O|[BIESLU]-\S+")


def read_conll(path: Path, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    """Sentences with entities. A bad line costs its own sentence only."""
    for block in _blocks(path, ledger):
        if block.fault:
            ledger.reject(*block.fault)
        else:
            yield from from_tags(block, scheme, ledger)


def detect(path: Path, ledger: Ledger, detector: Detector, limit: int | None = None) -> None:
    """Show every tag of the file (of its first `limit` sentences) to `detector`."""
    for block in islice(_blocks(path, ledger), limit):
        if not block.fault:
            detector.add(block.tags, block.places)


def looks_like_conll(head: str) -> bool:
    """Whether the lines have 2 to 4 columns, the last of them a tag (O among others, most begin with O, B-, I- ...)."""
    rows = [row for row in map(columns, head.splitlines()) if row]
    # The head may end within its last line.
    rows = rows[:-1] if len(rows) > 1 and not head.endswith("\n") else rows
    rows = [row for row in rows if row[0] != "-DOCSTART-"]
    if not rows:
        return False
    n_columns = Counter(map(len, rows)).most_common(1)[0][0]
    tagged = sum(len(row) == n_columns and bool(_TAG.fullmatch(row[-1])) for row in rows)
    return 2 <= n_columns <= 4 and tagged > 0.5 * len(rows)


def columns(line: str) -> list[str]:
    """The columns of a line; [] for an empty one. A tab separates if there is one, else blanks do."""
    line = line.rstrip(" \t\r\n")
    if not line:
        return []
    return [part.strip(" ") for part in line.split("\t")] if "\t" in line else _BLANKS.split(line.lstrip(" "))


def _n_columns(path: Path, encoding: str) -> int:
    with open_stream(path, encoding) as stream:
        head = stream.read(BLOCK_BYTES).decode("utf-8", "replace")
    counts: Counter[int] = Counter()
    first = 1
    for line, row in enumerate(map(columns, head.splitlines()), 1):
        if row and row[0] != "-DOCSTART-":
            counts[len(row)] += 1
            first = line if len(counts) == 1 else first
    if not counts:
        raise ReadError(path.name, None, "no token was found; expected a token and its tag on each line.")
    common = counts.most_common(1)[0][0]
    if not 2 <= common <= 4:
        raise ReadError(
            path.name,
            first,
            f"{common} column{'s' * (common > 1)}; CoNLL has 2 or 4 of them, token first and tag last, separated by"
            " tabs or blanks.",
        )
    return common


def _blocks(path: Path, ledger: Ledger) -> Iterator[Tagged]:
    expected = _n_columns(path, ledger.options.encoding)
    doc, stem, n_docs = ledger.doc, path.name.split(".")[0], 0
    block = Tagged(doc)
    with open_stream(path, ledger.options.encoding, ledger.tick) as stream:
        for line, raw, fits in lines(stream, MAX_LINE):
            try:
                row = columns(raw.decode()) if fits else ["#"]
            except UnicodeDecodeError as error:
                _add(block, line, ledger.not_decoded(line, error), raw)
                continue
            if not row or row[0] == "-DOCSTART-":
                if block.places:
                    yield block
                if row:
                    n_docs += 1
                    doc = f"{stem}:{n_docs}"
                block = Tagged(doc)
                continue
            if fits and not block.places and _is_comment(row, expected):
                continue  # a comment before a sentence
            problem = "" if fits else TOO_LONG.format(MAX_LINE)
            if fits and len(row) != expected:
                problem = f"{len(row)} column{'s' * (len(row) > 1)} where the file has {expected}"
            _add(block, line, problem, raw, row)
    if block.places:
        yield block


def _is_comment(row: list[str], expected: int) -> bool:
    """`# id = 7` before a sentence, but not the token # with its tag."""
    return row[0].startswith("#") and (len(row) != expected or (row[0] == "#" and not _TAG.fullmatch(row[-1])))


def _add(block: Tagged, line: int, problem: str, raw: bytes, row: list[str] | None = None) -> None:
    if len(block.tokens) >= MAX_TOKENS:
        problem = f"a sentence of more than {MAX_TOKENS:,} tokens; put an empty line after each sentence"
    elif row and not problem:
        block.tokens.append(row[0])
        block.tags.append(row[-1])
    if len(block.places) <= MAX_TOKENS:
        block.places.append(line)
    if problem and not block.fault:
        block.fault = (line, problem, raw[:MAX_RAW].decode("utf-8", "backslashreplace"))
