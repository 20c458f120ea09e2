"""Read CoNLL-like files: one token and its tag per line, in columns, and an empty line after each sentence.

The number and order of columns differ between files. The tag column is recognised by values in a known spelling of tags
(`text.tag_styles`). Columns of token numbers, document names and parts of speech are ignored.

A line is split at tabs, or at blanks if it has no tab. Before the first token of a sentence, a line that begins with
`#` is a comment in two cases:
- It has a different number of columns than lines with tokens.
- Its first cell is `#` or begins with `# `, and its tag column has no tag.
Comments are skipped, but an annotator's name is read from them. Within a sentence, a comment is an error, and the
sentence is rejected. `-DOCSTART-` begins a document.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from core.corpora.annotators import is_annotator
from core.corpora.formats.ledger import MAX_RAW, TOO_LONG, Ledger, ReadOptions
from core.corpora.formats.sentences import Tagged, from_tags
from core.corpora.formats.source import BLOCK_BYTES, lines, open_stream, stem
from core.errors import OptionsError, ReadError
from core.text.schemes import Detector, Scheme
from core.text.sentence import Sentence
from core.text.tag_styles import Style, of_sentences, style_of

MOST_COLUMNS = 40
_LANGUAGE = re.compile(r"([a-z]{2,3}:)\S")
# Numbers of multiword tokens (3-4) and empty nodes (3.1) in CoNLL-U.
_RANGE = re.compile(r"\d{1,9}[-.]\d{1,9}")
# Word that marks the end of a sentence in the last column of HIPE files.
_ENDS = "EndOfSentence"
# First token of a document. A name may follow in the same cell: `-DOCSTART- (note 7)`.
_DOCUMENT = "-DOCSTART-"
ASK = "give the column of the entity tags with --tag-column"
Row = list[str]
# Maximum number of bytes in a line with a token and its tags.
MAX_LINE = 100_000
# Maximum number of tokens in a sentence; if there are more, empty lines are missing.
MAX_TOKENS = 50_000
# Minimum number of lines to recognise columns; fewer lines may be text that happens to have tabs.
_FEW = 5
# Number of sentences to show as examples when the user must choose the tag column.
_EXAMPLES = 3
_BLANKS = re.compile(r"[ \t]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Positions of a file's columns, from 0.

    n: number of columns. token, tag: columns of the tokens and the tags. number: column with the numbers of the tokens.
    style: spelling of the tags. header: names in the first line; () if this line is data. prefix: language code before
    every token. ends: column that marks the last token of a sentence. annotator: column with the annotator's name.
    others: further columns of tags, by number from 1 or by name. problem: why the tag column is in doubt, and what the
    user must do; "" if there is no doubt.
    """

    n: int
    token: int = 0
    tag: int = 1
    number: int | None = None
    style: Style
    header: tuple[str, ...] = ()
    prefix: str = ""
    ends: int | None = None
    annotator: int | None = None
    others: tuple[str, ...] = ()
    problem: str = ""

    @property
    def notes(self) -> list[str]:
        """Notes for the user on how the file's columns were interpreted."""
        notes = []
        if self.style.kind == "untyped":
            notes.append(self.style.note)
        if self.others:
            named = self.header[self.tag] if self.header else str(self.tag + 1)
            notes.append(further_note(named, self.others))
        return notes


def further_note(column: str, others: Sequence[str]) -> str:
    """Return a note that says which column is read as the tags and which are left out."""
    return (
        f"Column {column} is read as the tags. Tags in column {', '.join(others)} (nested or further annotations) are"
        " left out; to read them instead, use --tag-column."
    )


def layout_of(sentences: Sequence[Sequence[Row]], options: ReadOptions) -> Layout | None:
    """Return the layout of the columns, None if no column has tags.

    sentences: rows of the file's first block, without comments; rows may differ in length. options: only `tag_column`
    and `entity_type` are used.
    """
    counts = Counter(len(row) for sentence in sentences for row in sentence)
    if not counts:
        return None
    n = counts.most_common(1)[0][0]
    if not 2 <= n <= MOST_COLUMNS:
        return None
    fitting = [[row for row in sentence if len(row) == n] for sentence in sentences]
    fitting = [sentence for sentence in fitting if sentence]
    header = _header(fitting, n)
    if header:
        fitting = [fitting[0][1:], *fitting[1:]]
        fitting = [sentence for sentence in fitting if sentence]
    if not fitting:
        return None
    values = [[[row[at] for row in sentence] for sentence in fitting] for at in range(n)]
    styles = {at: style for at in range(n) if (style := _style(values[at], options))}
    asked = _asked(options.tag_column, header, n)
    tag, others, problem = _tags(styles, asked, header)
    if tag is None:
        return None
    style = styles.get(tag) or Style(kind="types")
    token = _token(values, {tag, *styles})
    if token is None:
        return None
    return Layout(
        n=n,
        token=token,
        tag=tag,
        style=style,
        number=next((at for at in range(n) if at not in styles and _counts(values[at])), None),
        header=header,
        prefix=_prefix(values[token]),
        ends=next((at for at in range(n) if any(_ENDS in value for row in values[at] for value in row)), None),
        annotator=next((at for at, name in enumerate(header) if is_annotator(name)), None),
        others=others,
        problem=problem,
    )


def _style(column: Sequence[Row], options: ReadOptions) -> Style | None:
    counts = Counter(value for sentence in column for value in sentence)
    style = style_of(counts, type=options.entity_type) if options.entity_type else style_of(counts)
    return None if style and of_sentences(style, column) else style


def _asked(name: str, header: Sequence[str], n: int) -> int | None:
    if name in header:
        return header.index(name)
    return int(name) - 1 if name.isdecimal() and 1 <= int(name) <= n else None


def _tags(
    styles: dict[int, Style], asked: int | None, header: Sequence[str]
) -> tuple[int | None, tuple[str, ...], str]:
    """Return the tag column, the names of further tag columns, and why the tag column is in doubt ("" if it is not).

    styles: {column with tags: their spelling}. asked: column that the user requested, or None.
    """

    def named(at: int) -> str:
        return header[at] if header else str(at + 1)

    held = [at for at, style in styles.items() if style.entities]
    lettered = [at for at in held if styles[at].kind != "types"]
    held = lettered or held  # words without B- or I- are tags only if no other column has B- or I-
    syntax = [at for at in held if styles[at].syntax]
    held = [at for at in held if at not in syntax]
    if asked is not None:
        return asked, tuple(named(at) for at in held if at != asked), ""
    if not held:
        empty = [at for at in styles if at and at not in syntax]
        if syntax and not empty:
            return syntax[0], (), f"column {named(syntax[0])} has chunks or semantic roles, not entities; {ASK}"
        return (empty[-1] if empty else None), (), ""
    first, *further = held
    unlike = [at for at in further if not kin(styles[first], styles[at])]
    problem = ""
    if unlike:
        columns = " and ".join(named(at) for at in (first, *unlike))
        problem = f"columns {columns} have tags of different types; {ASK}"
    empty = [
        at for at, style in styles.items() if not style.entities and at > first and styles[first].kind == "letters"
    ]
    return first, tuple(named(at) for at in (*further, *empty)), problem


def kin(a: Style, b: Style) -> bool:
    """Return True if tag columns `a` and `b` share an entity type, or if `b` only tags components of entities.

    Only the part of a type before the first dot is compared: `loc` of `loc.adm.town`. Types of components begin with
    `comp`, for example `comp.name`.
    """
    stems = {kind.split(".")[0].lower() for kind in a.types}
    components = all(kind.lower().startswith("comp") for kind in b.types)
    return components or bool(stems & {kind.split(".")[0].lower() for kind in b.types})


def _header(sentences: Sequence[Sequence[Row]], n: int) -> tuple[str, ...]:
    """Return the column names in the first line; () if this line is data.

    The first line is a header if one cell is a usual name of a token column, and if the cell above the tags is not
    one of the tags.
    """
    first = sentences[0][0] if sentences else []
    if len(first) != n or not all(re.fullmatch(r"[^\W\d_][\w #.-]*", cell) for cell in first):
        return ()
    below = [[row[at] for sentence in sentences for row in sentence][1:] for at in range(n)]
    with_names = [at for at in range(n) if style_of(Counter([first[at], *below[at]]), bare=False) is None]
    without = [at for at in range(n) if below[at] and style_of(Counter(below[at]), bare=False) is not None]
    tagged = [at for at in without if at in with_names or first[at] not in ("O", "o")]
    strange = [at for at in tagged if first[at] not in below[at] and "-" not in first[at][1:2]]
    usual = {"token", "tokens", "word", "words", "text", "form"}
    return tuple(first) if strange and {cell.lower() for cell in first} & usual else ()


def _token(values: Sequence[Sequence[Row]], taken: set[int]) -> int | None:
    """Return the token column: the first without tags or token numbers that has several values per sentence.

    If there is no such column, return the first without tags, or else None. taken: columns with tags.
    """
    left = [at for at in range(len(values)) if at not in taken]
    words = [at for at in left if not _counts(values[at]) and not _is_per_sentence(values[at])]
    return next(iter(words or left), None)


def _counts(column: Sequence[Row]) -> bool:
    """Return True if a column numbers the tokens of each sentence or of the whole file."""
    n = fitting = ranges = 0
    before = -1
    for sentence in column:
        for at, value in enumerate(sentence):
            n += 1
            if _RANGE.fullmatch(value):
                ranges += 1
                continue
            number = int(value) if value.isdecimal() and len(value) < 10 else -2
            fitting += number in (at, at + 1, before + 1)
            before = number
    # Scores such as 0.93 match `_RANGE` too. A column with more such values than integers does not number tokens.
    return n > 2 and fitting > ranges and fitting + ranges >= 0.95 * n


def _is_per_sentence(column: Sequence[Row]) -> bool:
    long = [sentence for sentence in column if len(sentence) > 2]
    return bool(long) and sum(len(set(sentence)) == 1 for sentence in long) > 0.9 * len(long)


def _prefix(column: Sequence[Row]) -> str:
    """Return the language code before every token, such as `en:` in `en:Lyon`; "" if there is none."""
    counts = Counter(
        found.group(1) if (found := _LANGUAGE.match(value)) else "" for sentence in column for value in sentence
    )
    prefix, n = counts.most_common(1)[0]
    return prefix if prefix and n == counts.total() and n > 5 else ""


def ends(row: Row, layout: Layout) -> bool:
    """Return True if a row is marked as the last row of its sentence."""
    return layout.ends is not None and _ENDS in row[layout.ends]


def repeats(row: Row, layout: Layout) -> bool:
    """Return True if a row is a multiword token (`3-4 don't`) or an empty node (`3.1`) of CoNLL-U."""
    return layout.number is not None and bool(_RANGE.fullmatch(row[layout.number]))


def read_conll(path: Path, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a file, with their entities. If a line is wrong, only its sentence is rejected."""
    for block in _blocks(path, ledger):
        if block.fault:
            ledger.reject(*block.fault)
        else:
            yield from from_tags(block, scheme, ledger)


def detect(path: Path, ledger: Ledger, detector: Detector, limit: int | None = None) -> None:
    """Pass the tags of the file, or of its first `limit` sentences, to `detector`, which finds the label scheme."""
    for block in islice(_blocks(path, ledger), limit):
        if not block.fault:
            detector.add(block.tags, block.places)


def looks_like_conll(head: str) -> bool:
    """Return True if the lines of `head`, a file's first block, have a column of entity tags in a known spelling."""
    lines = head.splitlines()
    # Drop the last line, because it may be incomplete.
    lines = lines[:-1] if len(lines) > 1 and not head.endswith("\n") else lines
    sentences = _first_sentences(lines)
    rows = [row for sentence in sentences for row in sentence]
    if not rows:
        return False
    n_columns, n = Counter(map(len, rows)).most_common(1)[0]
    # Reject prose, whose lines have different numbers of words.
    if not 2 <= n_columns <= MOST_COLUMNS or n <= 0.5 * len(rows):
        return False
    layout = layout_of(sentences, ReadOptions())
    # Accept tags without B- or I- only in the last column, because lines of prose may begin with O.
    if layout is None or (layout.style.kind in ("types", "untyped", "empty") and layout.tag != layout.n - 1):
        return False
    tagged = sum(len(row) == n_columns and layout.style.reads(row[layout.tag]) for row in rows)
    return tagged > 0.5 * len(rows)


def looks_like_columns(head: str, *, table: bool = False) -> bool:
    """Return True if the lines of `head`, a file's first block, are columns of single words, as in CoNLL files.

    Nearly all lines must have the same number of columns, separated by tabs. Columns may also be separated by blanks if
    there are empty lines, and if the last column has few different values, unlike in prose and lists of names.
    table: True if the file may be a table of texts; empty lines are then required for columns separated by tabs too.
    """
    lines = [line.rstrip("\r") for line in head.split("\n")[:-1]]
    gaps = any(not line.strip() for line in lines[1:-1])
    if table and not gaps:
        return False
    rows = [line.split("\t") for line in lines if line.strip()]
    if _same_width(rows):
        return sum(not any(" " in cell.strip() for cell in row) for row in rows) >= 0.95 * len(rows)
    words = [columns(line) for line in lines if line.strip() and "\t" not in line]
    few = max(2, len(words) // 4)
    return gaps and len(words) == len(rows) and _same_width(words) and len({row[-1] for row in words}) <= few


def _same_width(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if nearly all rows have the same number of cells, at least two."""
    n_columns, n = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    return len(rows) >= _FEW and n_columns > 1 and n >= 0.95 * len(rows)


def columns(line: str) -> list[str]:
    """Split a line into columns at tabs, or at blanks if it has no tab. Return [] for an empty line."""
    line = line.rstrip(" \t\r\n")
    if not line:
        return []
    if "\t" not in line:
        return _BLANKS.split(line.lstrip(" "))
    parts = line.split("\t")
    return [part.strip(" ") for part in parts] if " " in line else parts


def _first_sentences(lines: Iterable[str]) -> list[list[list[str]]]:
    """Return the rows of the first sentences, without comments and `-DOCSTART-`."""
    sentences: list[list[list[str]]] = [[]]
    for line in lines:
        row = columns(line)
        if not row or _begins_document(row):
            sentences.append([])
        elif sentences[-1] or not row[0].startswith("#") or len(row) == 2:
            sentences[-1].append(row)
    return [sentence for sentence in sentences if sentence]


def _begins_document(row: Row) -> bool:
    """Return True for `-DOCSTART-`, which a blank and a name may follow, False for a token such as `-DOCSTART-X`."""
    return row[0].partition(" ")[0] == _DOCUMENT


def layout(path: Path, options: ReadOptions) -> Layout:
    """Return the layout of a file's columns, from its first block.

    Errors: ReadError if no line has a token and a tag; OptionsError if the tag column is in doubt.
    """
    with open_stream(path, options.encoding) as stream:
        head = stream.read(BLOCK_BYTES).decode("utf-8", "replace")
    return _layout(path.name, head, options.scheme, options.tag_column, options.entity_type)


@lru_cache(maxsize=2)  # cached, because an import needs the layout for the preview, the scheme and the sentences
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
            f"{common} column{'s' * (common > 1)}, expected 2 or more with a token and its tag (CoNLL), separated by"
            " tabs or blanks.",
        )
    found = layout_of(sentences, options)
    examples = [" ".join("/".join(row) for row in sentence) for sentence in sentences[:_EXAMPLES]]
    if found is None:
        # If the user named a scheme or a column, the tags are read in any spelling.
        if options.scheme == "auto" and not options.tag_column:
            raise OptionsError(
                name,
                first,
                f"none of its {common} columns has entity tags (B-, I- and O, or types and O). Give the tag column with"
                " --tag-column (counted from 1), convert the file to a token and its tag per line, or read its lines"
                " as text with --format txt.",
                examples,
            )
        tag = int(options.tag_column) - 1 if options.tag_column.isdecimal() else common - 1
        found = Layout(n=common, tag=min(max(tag, 0), common - 1), style=Style(kind="types"))
    if found.problem and not options.tag_column:
        raise OptionsError(name, first, f"{found.problem}.", examples)
    return found


def names_annotators(path: Path, options: ReadOptions) -> bool:
    """Return True if the first block names annotators, in comments (`# annotator = Ana`) or in a column."""
    with open_stream(path, options.encoding) as stream:
        head = stream.read(BLOCK_BYTES).decode("utf-8", "replace")
    if any(annotator_in(line) for line in head.splitlines() if line.startswith("#")):
        return True
    return layout(path, options).annotator is not None


def annotator_in(line: str) -> str:
    """Return the annotator that a comment names; "" if it names none."""
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
    doc, named, n_docs = ledger.doc, ledger.doc or stem(path.name), 0
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
            # Fast path for lines after a sentence's first token, which are nearly all lines; it saves a quarter of the
            # time.
            inner = 0 < len(block.tokens) < MAX_TOKENS
            if usual and len(row) == n and inner and row[token] and not row[0].startswith(_DOCUMENT):
                block.tokens.append(row[token])
                block.tags.append(row[tag])
                block.places.append(line)
                continue
            if not row or _begins_document(row):
                if block.places:
                    yield block
                if row:
                    n_docs += 1
                    doc = f"{named}:{n_docs}"
                block = Tagged(doc, who=who)
                continue
            if fits and not block.places and _is_comment(row, found):
                who = block.who = annotator_in(text) or who  # also the annotator of all following sentences
                continue
            if header and tuple(row) == found.header:
                header = False
                continue
            problem = "" if fits else TOO_LONG.format(MAX_LINE)
            if fits and len(row) != found.n:
                n_cells = f"{len(row)} column{'s' * (len(row) > 1)}"
                problem = f"{n_cells}, expected {found.n} as in the rest of the file; complete the line"
            elif fits and (repeats(row, found) or _is_blank(text, row, found)):
                continue
            _add(block, line, problem, raw, row=None if problem else row, found=found)
            if not problem and found.ends is not None and ends(row, found):
                yield block
                block = Tagged(doc, who=who)
    if block.places:
        yield block


def _is_blank(text: str, row: list[str], found: Layout) -> bool:
    """Return True for a line whose token is a blank, which occurs in files with one character per line."""
    return not row[found.token] and text.startswith((" \t", "\u3000\t", "\u00a0\t"))


def _is_comment(row: list[str], found: Layout) -> bool:
    """Return True for a comment such as `# id = 7`, False for the token # with its tag.

    With tabs between columns, a comment such as `# newdoc<tab>7` may have as many cells as a token.
    """
    if not row[0].startswith("#"):
        return False
    return len(row) != found.n or (row[0].partition(" ")[0] == "#" and not found.style.reads(row[found.tag]))


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
