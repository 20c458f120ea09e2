"""CoNLL-like columns: one token per line, its tag in one of the columns, an empty line after each sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from core.corpora.annotators import is_annotator
from core.corpora.formats.layout import MOST_COLUMNS, Layout, ends, layout_of, repeats
from core.corpora.formats.ledger import MAX_RAW, TOO_LONG, Ledger, ReadOptions
from core.corpora.formats.sentences import Tagged, from_tags
from core.corpora.formats.source import BLOCK_BYTES, lines, open_stream
from core.errors import OptionsError, ReadError
from core.text.schemes import Detector, Scheme
from core.text.sentence import Sentence
from core.text.tag_styles import Style

MAX_LINE = 100_000  # bytes of a token and its columns
MAX_TOKENS = 50_000  # a longer "sentence" means that the empty lines are missing
_FEW = 5  # rows of columns; fewer may be text that happens to have tabs
_EXAMPLES = 3  # sentences that a question shows
_BLANKS = re.compile(r"[ \t]+")


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
    """Return True if the lines are columns of which one holds entity tags in a known spelling."""
    lines = head.splitlines()
    # The head may end within its last line.
    lines = lines[:-1] if len(lines) > 1 and not head.endswith("\n") else lines
    sentences = _first_sentences(lines)
    rows = [row for sentence in sentences for row in sentence]
    if not rows:
        return False
    n_columns, n = Counter(map(len, rows)).most_common(1)[0]
    # Prose has no constant number of words per line; one column of bare words beside "O" is not enough evidence.
    if not 2 <= n_columns <= MOST_COLUMNS or n <= 0.5 * len(rows):
        return False
    layout = layout_of(sentences, ReadOptions())
    # Prose has an O at a line's beginning; only letters before types are evidence enough in any column.
    if layout is None or (layout.style.kind in ("types", "untyped", "empty") and layout.tag != layout.n - 1):
        return False
    tagged = sum(len(row) == n_columns and layout.style.reads(row[layout.tag]) for row in rows)
    return tagged > 0.5 * len(rows)


def looks_like_columns(head: str, *, table: bool = False) -> bool:
    """Return True if nearly every line holds the same number of single words: tokens, but no tags.

    Tabs part the words; blanks do if empty lines part sentences and the last column has few different values, which
    prose and lists of names do not have. table: whether the file may be a table, which has no empty lines.
    """
    lines = [line.rstrip("\r") for line in head.split("\n")[:-1]]
    gaps = any(not line.strip() for line in lines[1:-1])
    if table and not gaps:
        return False
    rows = [line.split("\t") for line in lines if line.strip()]
    if _constant(rows):
        return sum(not any(" " in cell.strip() for cell in row) for row in rows) >= 0.95 * len(rows)
    words = [columns(line) for line in lines if line.strip() and "\t" not in line]
    few = max(2, len(words) // 4)
    return gaps and len(words) == len(rows) and _constant(words) and len({row[-1] for row in words}) <= few


def _constant(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if nearly all rows have one number of cells, at least two."""
    n_columns, n = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    return len(rows) >= _FEW and n_columns > 1 and n >= 0.95 * len(rows)


def columns(line: str) -> list[str]:
    """The columns of a line; [] for an empty one. A tab separates if there is one, else blanks do."""
    line = line.rstrip(" \t\r\n")
    if not line:
        return []
    if "\t" not in line:
        return _BLANKS.split(line.lstrip(" "))
    parts = line.split("\t")
    return [part.strip(" ") for part in parts] if " " in line else parts


def _first_sentences(lines: Iterable[str]) -> list[list[list[str]]]:
    """Rows of the first sentences, without comments and `-DOCSTART-`."""
    sentences: list[list[list[str]]] = [[]]
    for line in lines:
        row = columns(line)
        if not row or row[0] == "-DOCSTART-":
            sentences.append([])
        elif sentences[-1] or not row[0].startswith("#") or len(row) == 2:
            sentences[-1].append(row)
    return [sentence for sentence in sentences if sentence]


def layout(path: Path, options: ReadOptions) -> Layout:
    """Return the columns of a file, decided from its first block.

    Errors: ReadError if no line holds a token and a tag; OptionsError if the column of the tags is not plain.
    """
    with open_stream(path, options.encoding) as stream:
        head = stream.read(BLOCK_BYTES).decode("utf-8", "replace")
    return _layout(path.name, head, options.scheme, options.tag_column, options.entity_type)


@lru_cache(maxsize=2)  # an import asks for it at its first look, for the scheme and for the sentences
def _layout(name: str, head: str, scheme: str, tag_column: str, entity_type: str) -> Layout:
    options = ReadOptions(scheme=scheme, tag_column=tag_column, entity_type=entity_type)
    lines = head.splitlines()
    sentences = _first_sentences(lines)
    counts = Counter(len(row) for sentence in sentences for row in sentence)
    if not counts:
        raise ReadError(name, None, "no token was found; expected a token and its tag on each line.")
    common = counts.most_common(1)[0][0]
    first = next((number for number, line in enumerate(lines, 1) if (row := columns(line)) and len(row) == common), 1)
    if not 2 <= common <= MOST_COLUMNS:
        raise ReadError(
            name,
            first,
            f"{common} column{'s' * (common > 1)}; CoNLL has 2 or more of them, with a token and its tag, separated by"
            " tabs or blanks.",
        )
    found = layout_of(sentences, options)
    examples = [" ".join("/".join(row) for row in sentence) for sentence in sentences[:_EXAMPLES]]
    if found is None:
        # A scheme that was asked for says that the last column holds tags, whatever they look like.
        if options.scheme == "auto" and not options.tag_column:
            raise OptionsError(
                name,
                first,
                f"none of its {common} columns holds entity tags (B-, I- and O, or types and O). Give the column of the"
                " tags with --tag-column (counted from 1), convert the file to a token and its tag per line, or read"
                " its lines as text with --format txt.",
                examples,
            )
        tag = int(options.tag_column) - 1 if options.tag_column.isdecimal() else common - 1
        found = Layout(n=common, tag=min(max(tag, 0), common - 1), style=Style(kind="types"))
    if found.problem and not options.tag_column:
        raise OptionsError(name, first, f"{found.problem}.", examples)
    return found


def names_annotators(path: Path, options: ReadOptions) -> bool:
    """Return True if the first block names annotators: in comments (`# annotator = Ana`) or in a named column."""
    with open_stream(path, options.encoding) as stream:
        head = stream.read(BLOCK_BYTES).decode("utf-8", "replace")
    if any(annotator_in(line) for line in head.splitlines() if line.startswith("#")):
        return True
    return layout(path, options).annotator is not None


def annotator_in(line: str) -> str:
    """Annotator that a comment names, "" if it names none."""
    key, _, value = line.lstrip("# \t").replace(":", "=", 1).partition("=")
    return value.strip() if is_annotator(key) else ""


def _blocks(path: Path, ledger: Ledger) -> Iterator[Tagged]:
    found = layout(path, ledger.options)
    ledger.note(found.notes)
    translate = found.style.sentence
    for block in _sentences(path, ledger, found):
        block.tags = translate(block.tags)
        yield block


def _sentences(path: Path, ledger: Ledger, found: Layout) -> Iterator[Tagged]:
    doc, stem, n_docs = ledger.doc, path.name.split(".")[0], 0
    block, header = Tagged(doc), bool(found.header)
    n, token, tag = found.n, found.token, found.tag
    usual = found.number is None and found.ends is None and not (header or found.prefix)
    who: str | None = None
    with open_stream(path, ledger.options.encoding, ledger.tick) as stream:
        for line, raw, fits in lines(stream, MAX_LINE):
            try:
                text = raw.decode() if fits else ""
            except UnicodeDecodeError as error:
                _add(block, line, ledger.not_decoded(line, error), raw)
                continue
            row = columns(text) if fits else ["#"]
            # Nearly all lines are a further token; the general path below takes a third longer.
            if usual and len(row) == n and 0 < len(block.tokens) < MAX_TOKENS and row[token] and row[0] != "-DOCSTART-":
                block.tokens.append(row[token])
                block.tags.append(row[tag])
                block.places.append(line)
                continue
            if not row or row[0] == "-DOCSTART-":
                if block.places:
                    yield block
                if row:
                    n_docs += 1
                    doc = f"{stem}:{n_docs}"
                block = Tagged(doc, who=who)
                continue
            if fits and not block.places and _is_comment(row, found):
                who = block.who = annotator_in(text) or who  # holds for the sentences below, too
                continue
            if header and tuple(row) == found.header:
                header = False
                continue
            problem = "" if fits else TOO_LONG.format(MAX_LINE)
            if fits and len(row) != found.n:
                problem = f"{len(row)} column{'s' * (len(row) > 1)} where the file has {found.n}"
            elif fits and (repeats(row, found) or _is_blank(text, row, found)):
                continue
            _add(block, line, problem, raw, row=None if problem else row, found=found)
            if not problem and found.ends is not None and ends(row, found):
                yield block
                block = Tagged(doc, who=who)
    if block.places:
        yield block


def _is_blank(text: str, row: list[str], found: Layout) -> bool:
    """Return True for a blank that has a line of its own, as in files of one character per line."""
    return not row[found.token] and text.startswith((" \t", "\u3000\t", "\u00a0\t"))


def _is_comment(row: list[str], found: Layout) -> bool:
    """`# id = 7` before a sentence, but not the token # with its tag."""
    if not row[0].startswith("#"):
        return False
    return len(row) != found.n or (row[0] == "#" and not found.style.reads(row[found.tag]))


def _add(
    block: Tagged, line: int, problem: str, raw: bytes, *, row: list[str] | None = None, found: Layout | None = None
) -> None:
    if len(block.tokens) >= MAX_TOKENS:
        problem = f"a sentence of more than {MAX_TOKENS:,} tokens; put an empty line after each sentence"
    elif row and found and not problem:
        token = row[found.token]
        block.tokens.append(token.removeprefix(found.prefix) if found.prefix else token)
        block.tags.append(row[found.tag])
        block.who = row[found.annotator] if found.annotator is not None else block.who
    if len(block.places) <= MAX_TOKENS:
        block.places.append(line)
    if problem and not block.fault:
        block.fault = (line, problem, raw[:MAX_RAW].decode("utf-8", "backslashreplace"))
