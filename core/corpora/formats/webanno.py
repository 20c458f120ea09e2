"""Read WebAnno TSV 3 and 2, the exports of INCEpTION and WebAnno.

Each line is a token. A layer is a kind of annotation, such as named entities, and each column is a feature of a layer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.corpora.formats.annotated import from_marks
from core.corpora.formats.ledger import Ledger
from core.corpora.formats.sentences import Mark, Tagged, from_tags
from core.corpora.formats.source import lines, open_stream
from core.errors import OptionsError, ReadError
from core.text.sentence import Sentence

MAX_LINE = 1_000_000  # maximum number of bytes of a line: a token and its columns, or a sentence's text
_TWO = re.compile(r"# [\w.$]{3,200} \| ")
_PLACE = re.compile(r"\d{1,9}-\d{1,9}(?:\.\d{1,9})?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WRITTEN = {"n": "\n", "t": "\t", "r": "\r"}
_PARTS = re.compile(r"((?:[^\\|]|\\.)*)(?:\||$)", re.DOTALL)
_NUMBERED = re.compile(r"(?<!\\)\[(\d{1,9})\]\Z")
# Layers without entities: parts of speech, lemmas, morphology, chunks, segments.
_OTHER = re.compile(
    r"\.(?:pos|POS|Lemma|Stem|MorphologicalFeatures|SurfaceForm|Chunk|Token|Sentence|TransformToken)$|\.POS"
)
_ENTITIES = "NamedEntity"
_FEATURES = ("value", "label", "type", "category", "entity", "class", "name")


@dataclass(slots=True)
class _Layer:
    """A layer of spans. features: names of its features, one column each. column: index of its first column."""

    name: str
    features: Sequence[str]
    column: int


@dataclass(slots=True)
class _Block:
    """A sentence. text: lines of its text. line: number of its first line. rows: (line number, cells) of each token."""

    text: list[str] = field(default_factory=list)
    line: int = 0
    rows: list[tuple[int, list[str]]] = field(default_factory=list)


def read_webanno(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences, with the spans of the layer NamedEntity if it has any, else of the only layer with spans."""
    with open_stream(path, ledger.options.encoding) as stream:
        start = stream.read(MAX_LINE).decode("utf-8", "replace")
    if not is_webanno(start.lstrip()):
        raise ReadError(path.name, 1, "does not begin like WebAnno TSV 2 or 3; export it as WebAnno TSV 3.")
    if _TWO.match(start.lstrip()):
        yield from _read_two(path, ledger)
        return
    layers = _layers(path, ledger)
    layer = _chosen(path, layers, ledger)
    for block in _blocks(path, ledger):
        text = "\n".join(block.text)
        tokens = _tokens(text, block, ledger)
        if tokens is not None:
            marks = list(_marks(layer, block, tokens)) if layer else []
            yield from from_marks(text, marks, block.line, ledger)


def _layers(path: Path, ledger: Ledger) -> list[_Layer]:
    """Return the span layers that the header declares."""
    found, column = list[_Layer](), 3
    for _, row in _rows(path, ledger):
        if not row.startswith(("#T_", "#FORMAT")):
            if row.strip() and not row.startswith("#"):
                break
            continue
        kind, _, rest = row.partition("=")
        if kind == "#FORMAT":
            continue
        name, *features = rest.split("|")
        if kind == "#T_SP" and not _OTHER.search(name):
            found.append(_Layer(name, features, column))
        column += max(len(features), 1)
    return found


def _chosen(path: Path, layers: Sequence[_Layer], ledger: Ledger) -> _Layer | None:
    """Return the layer of named entities. If it has no spans, return the only layer that has spans.

    Errors: OptionsError if several layers have spans, but the layer of named entities has none. ReadError if the file
    declares no layer of spans.
    """
    if not layers:
        reason = "it has no layer of spans; export a layer of named entities as WebAnno TSV 3."
        raise ReadError(path.name, 1, reason)
    used = dict[str, _Layer]()
    for block in _blocks(path, ledger):
        for _, cells in block.rows:
            used |= {layer.name: layer for layer in layers if any(_has(cell) for cell in _of(layer, cells))}
    entities = [layer for layer in layers if layer.name.rpartition(".")[2] == _ENTITIES]
    taken = entities[0] if entities and (entities[0].name in used or not used) else None
    if taken is None and len(used) > 1:
        names = ", ".join(name.rpartition(".")[2] for name in used)
        raise OptionsError(path.name, 1, f"several layers have spans ({names}); export only one of them.")
    taken = taken or next(iter(used.values()), layers[0])
    others = [name.rpartition(".")[2] for name in used if name != taken.name]
    if others and not ledger.panel:
        ledger.remark(
            f"only the layer {taken.name.rpartition('.')[2]} was read; other layers with spans: {', '.join(others)}"
        )
    return taken


def _of(layer: _Layer, cells: Sequence[str]) -> Sequence[str]:
    return cells[layer.column : layer.column + max(len(layer.features), 1)]


def _has(cell: str) -> bool:
    return cell not in ("_", "")


def _rows(path: Path, ledger: Ledger) -> Iterator[tuple[int, str]]:
    with open_stream(path, ledger.options.encoding) as stream:
        for line, raw, fits in lines(stream, MAX_LINE):
            if not fits:
                raise ReadError(path.name, line, f"a line of more than {MAX_LINE:,} bytes; export it again.")
            yield line, raw.decode("utf-8", "replace").rstrip("\r\n")


def _blocks(path: Path, ledger: Ledger) -> Iterator[_Block]:
    """Yield the sentences. A sentence begins with lines of text (#Text=), followed by one row per token."""
    block = _Block()
    for line, row in _rows(path, ledger):
        if row.startswith("#Text="):
            if block.rows:
                yield block
                block = _Block()
            block.line = block.line or line
            block.text.append(_unescaped(row.removeprefix("#Text=")))
        elif _PLACE.match(row) and "\t" in row:
            block.line = block.line or line
            block.rows.append((line, row.split("\t")))
    if block.rows:
        yield block


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _WRITTEN.get(found[1], found[1]), text)


def _tokens(text: str, block: _Block, ledger: Ledger) -> list[tuple[int, int]] | None:
    """Return (start, end) of each row's token in the text. If a token is missing, reject the sentence and return None.

    A part of a token (numbered 1-2.1) is searched from the start of the whole token (numbered 1-2).
    """
    found, at, start = list[tuple[int, int]](), 0, 0
    for line, cells in block.rows:
        token, part = _unescaped(cells[2]) if len(cells) > 2 else "", "." in cells[0]
        begin = text.find(token, start if part else at)
        if begin < 0 or not token:
            ledger.reject(
                line, f"token {cells[0]} does not occur in the text of its sentence; export the file again", text
            )
            return None
        if not part:
            start, at = begin, begin + len(token)
        found.append((begin, begin + len(token)))
    return found


def _marks(layer: _Layer, block: _Block, tokens: Sequence[tuple[int, int]]) -> Iterator[Mark]:
    """Yield the spans of a layer in one sentence.

    Rows whose values end with the same number in brackets form one span. A value without a number is a span of one
    token.
    """
    spans: dict[object, tuple[int, int, int, str]] = {}
    feature = _feature(layer, block)
    for (line, cells), (start, end) in zip(block.rows, tokens, strict=True):
        columns = _of(layer, cells)
        if not columns or not any(map(_has, columns)):
            continue
        for i, (value, number) in enumerate(_values(columns[min(feature, len(columns) - 1)])):
            key: object = number if number else (line, i)
            first, last, where, known = spans.get(key, (start, end, line, value))
            spans[key] = (min(first, start), max(last, end), where, known)
    for first, last, line, value in spans.values():
        yield Mark(((first, last),), value, None, line)


def _feature(layer: _Layer, block: _Block) -> int:
    """Return the index of the feature with the entity type: one with a usual name, else the first with a value."""
    names = [name.rpartition(".")[2] for name in layer.features]
    usual = next((names.index(name) for name in _FEATURES if name in names), None)
    if usual is not None:
        return usual
    columns = zip(*(_of(layer, cells) for _, cells in block.rows), strict=False)
    valued = (i for i, cells in enumerate(columns) if any(value for cell in cells for value, _ in _values(cell)))
    return next(valued, 0)


def _values(cell: str) -> Iterator[tuple[str, str]]:
    """Yield (value, number in brackets) of each annotation in a cell; "" for a missing value or number."""
    if not _has(cell):
        return
    for found in _PARTS.finditer(cell):
        if not found[0]:
            continue
        numbered = _NUMBERED.search(found[1])
        value, number = (found[1][: numbered.start()], numbered[1]) if numbered else (found[1], "")
        yield ("" if value == "*" else _unescaped(value)), number


def is_webanno(start: str) -> bool:
    """Return True if a file begins like WebAnno TSV 3 or 2."""
    return start.startswith("#FORMAT=WebAnno TSV 3") or bool(_TWO.match(start))


def _read_two(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of WebAnno TSV 2: lines `# layer | feature`, then one token per line with tags in columns."""
    layers, block, column = list[str](), Tagged(ledger.doc), 2
    for line, row in _rows(path, ledger):
        cells = row.split("\t")
        if row.lstrip().startswith("#") and "|" in row and not block.places:
            name, *features = [part.strip() for part in row.lstrip(" #").split("|")]
            layers += [name] * len(features)
            column = 2 + next((i for i, each in enumerate(layers) if each.endswith(_ENTITIES)), 0)
        elif _PLACE.match(row) and len(cells) > column:
            tag = cells[column]
            block.tokens.append(cells[1])
            block.tags.append("O" if tag in ("_", "O", "") else tag)
            block.places.append(line)
        elif block.places:
            yield from from_tags(block, "iob2", ledger)
            block = Tagged(ledger.doc)
    if block.places:
        yield from from_tags(block, "iob2", ledger)
