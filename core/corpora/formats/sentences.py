"""Make `Sentence`s from the text, tokens, tags or spans of a row, and count every repair.

Annotation tools count offsets in different units. `fitted` finds the unit with which all annotated texts match.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, islice, pairwise

from core.corpora import split
from core.corpora.formats.ledger import Ledger
from core.corpora.formats.source import MAX_TEXT
from core.text.schemes import Scheme, TagError, decode, repairs
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.source import Source
from core.text.words import clean, nfc

ANOTHER = "labelled by several annotators; the labels of another annotator are kept"
_MARKS = 60  # maximum number of combining marks on one letter; real scripts have far fewer

# (start, end) of a part of a text, in characters, half-open
Region = tuple[int, int]
# Function from a tool's offset to the index of a character; -1 if outside the text.
Reading = Callable[[int], int]

# The possible positions of up to 50 rejected annotations are searched in a text. If more annotations are rejected, the
# whole text counts as lost.
_MOST_MISFITS = 50
_BLANKS = re.compile(r"(?:\s|\\[nrt])+")  # In quotes, Label Studio writes a line break as the two characters \n.


@dataclass(frozen=True, slots=True)
class Span:
    """Entity of a `type` from character `start` to `end` (half-open)."""

    start: int
    end: int
    type: str


def from_text(raw: str, line: int, doc: str | None, ledger: Ledger, at: int | None = None) -> Iterable[Sentence]:
    """Return the sentences of a row of plain text: one, or several if rows are split; () if it has no usable text.

    doc: name of the document. at: number of characters before the row in a .txt file, None for other files.
    """
    text = clean(raw)
    report = ledger.report
    if not text:
        report.empty += 1
        return ()
    if "\0" in text or len(text) > MAX_TEXT or (not text.isascii() and unfit(text)):
        ledger.reject(
            line,
            unfit(text) or f"NUL bytes, or more than {MAX_TEXT:,} characters; remove the bytes or divide the text",
            raw,
        )
        return ()
    report.read += 1
    report.kept += 1
    if ledger.options.split:
        return _split(raw, doc or f"{ledger.file}:{line}", ledger, Source(text=raw, file=ledger.file, line=line, at=at))
    report.sentences += 1
    source = Source(text=raw, file=ledger.file, line=line, at=at) if ledger.sources else None
    return (Sentence(id=sentence_id(text), tokens=ledger.cut(text), text=text, doc=doc, source=source),)


def _split(raw: str, doc: str, ledger: Ledger, source: Source) -> Iterator[Sentence]:
    for start, end in split.sentences(raw):
        text = clean(raw[start:end])
        ledger.report.sentences += 1
        here = replace(source, start=start)
        yield Sentence(id=sentence_id(text), tokens=ledger.cut(text), text=text, doc=doc, source=here)


def unfit(text: str) -> str:
    """Return why `text` cannot be stored as UTF-8, "" if it can. Some tools write only half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "half of a surrogate pair, which is not a character; remove it"
    return ""


@dataclass(slots=True)
class Tagged:
    """A tagged sentence as the file stores it.

    places: line of each token. fault: first reason why the sentence cannot be used, as (line, reason, raw text), or
    None. who: name of the annotator, None if the file names none. text: the sentence as written, "" if the file has
    only tokens; it is stored if it consists of the tokens, with or without a blank between them.
    """

    doc: str | None
    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    fault: tuple[int, str, str] | None = None
    who: str | None = None
    text: str = ""


def from_tags(row: Tagged, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    """Yield a tagged sentence, or reject it. A token with a blank inside is split into several tokens."""
    tokens, tags, places = row.tokens, row.tags, row.places
    raw = "\n".join(f"{token}\t{tag}" for token, tag in zip(tokens, tags, strict=False))
    try:
        entities, n_wrong = decode(tags, scheme)
    except TagError as error:
        ledger.reject(places[error.index], str(error), raw)
        return
    reasons: list[tuple[int, str]] = []
    if n_wrong:
        first = repairs(tags, scheme)[0]
        before = tags[first - 1] if first else "the start"
        reasons.append((first, f"tag {tags[first]!r} after {before!r} is out of order in {scheme.upper()}"))
        if not ledger.options.repair:
            ledger.reject(places[first], f"{reasons[0][1]}; correct the tag, or allow repairs", raw)
            return
    parts = [clean(token).split(" ") for token in tokens]
    flat = tuple(part for pieces in parts for part in pieces)
    text = written if _consists_of(flat, written := clean(row.text)) else " ".join(flat)
    if "" in flat or "\0" in text or unfit(text):
        place = places[parts.index([""])] if "" in flat else places[0]
        ledger.reject(
            place,
            "an empty token; write the token or remove the line"
            if "" in flat
            else unfit(text) or "NUL bytes, so not text; remove them",
            raw,
        )
        return
    if len(flat) > len(tokens):
        reasons.append((next(i for i, pieces in enumerate(parts) if len(pieces) > 1), "a token with a blank inside"))
        at = list(accumulate(map(len, parts), initial=0))
        entities = tuple(Entity(start=at[e.start], end=at[e.end], type=e.type) for e in entities)
    if ledger.panel:
        labels = frozenset((((entity.start, entity.end),), entity.type) for entity in entities)
        if not ledger.panel.takes(text, labels, row.who, ledger.listed):
            ledger.skip(places[0], ANOTHER)
            return
    if reasons:
        n_wrong += sum(len(pieces) > 1 for pieces in parts)
        ledger.repair(places[min(reasons)[0]], n_wrong, "; ".join(reason for _, reason in reasons))
    _keep(ledger)
    source = _source_of_tokens(tokens, places, ledger) if ledger.sources else None
    yield Sentence(id=sentence_id(text), tokens=flat, text=text, entities=entities, doc=row.doc, source=source)


def _consists_of(tokens: Sequence[str], text: str) -> bool:
    """Return True if the text is these tokens in this order, with at most one blank before each."""
    end = 0
    for token in tokens:
        start = end + text.startswith(" ", end)
        if not text.startswith(token, start):
            return False
        end = start + len(token)
    return end == len(text)


def _source_of_tokens(tokens: Sequence[str], places: Sequence[int], ledger: Ledger) -> Source:
    starts = accumulate((len(token) + 1 for token in tokens), initial=0)
    lines = tuple(zip(starts, places, strict=False))
    return Source(text=" ".join(tokens), file=ledger.file, line=places[0], lines=lines)


def _keep(ledger: Ledger, sentences: int = 1) -> None:
    ledger.report.read += 1
    ledger.report.kept += 1
    ledger.report.sentences += sentences


def from_spans(
    text: str,
    spans: Sequence[Span],
    line: int | None,
    ledger: Ledger,
    *,
    by_line: bool = False,
    cut_too: bool = False,
    lost: Sequence[Region] = (),
) -> Iterator[Sentence]:
    """Yield the sentences of a text with character spans. Tokens are cut where a span begins or ends.

    White space at the ends of a span is removed. If spans overlap, only the longest is kept, or the first of equally
    long spans. Both changes are counted, and so are tokens that had to be cut. A sentence that lost an annotation is
    not fully labelled. It is counted, and left out unless the option `keep_lost` is set.
    by_line: True to end sentences at line breaks. cut_too: True to split the text into sentences, even without the
    option `split`. lost: regions of annotations that could not be read.
    """
    if len(text) > MAX_TEXT or "\0" in text or unfit(text):
        ledger.reject(
            line,
            unfit(text) or f"NUL bytes, or more than {MAX_TEXT:,} characters; remove the bytes or divide the text",
            text,
        )
        return
    if not text.strip():
        ledger.report.empty += 1
        return
    spans, unsound = _sound(text, spans, line, ledger)
    composed, spans, gone = _composed(text, spans, line, ledger)
    regions = [(_moved(text, start), _moved(text, end)) for start, end in (*lost, *unsound, *gone)]
    raw, text = text, composed
    spans, n_cut = _trim(text, spans)
    spans, overlapping = _longest(spans, line, ledger)
    all_pieces = list(_pieces(text, spans, ledger.options.split or cut_too, by_line))
    pieces = all_pieces if ledger.options.keep_lost else _gold(all_pieces, [*regions, *overlapping])
    ledger.report.lost += len(all_pieces) - len(pieces)
    if not pieces:
        ledger.reject(
            line, "every sentence lost an annotation, so none is fully labelled; correct the annotations", text
        )
        return
    _keep(ledger, len(pieces))
    starts = [span.start for span in spans]
    for start, end in pieces:
        inside = spans[bisect_left(starts, start) : bisect_left(starts, end)]
        tokens, entities, more_cut = _tokens(text, start, end, inside, ledger)
        n_cut += more_cut
        stored = clean(text[start:end])
        source = Source(text=raw, file=ledger.file, line=line, start=start)
        yield Sentence(
            id=sentence_id(stored),
            tokens=tokens,
            text=stored,
            entities=entities,
            doc=ledger.doc or (f"{ledger.file}:{line}" if len(all_pieces) > 1 else None),
            # If Unicode composition (NFC) changed the text, `start` is wrong in the raw text. Leave the source out.
            source=source if ledger.sources and (raw == text or len(all_pieces) == 1) else None,
        )
    if n_cut:
        ledger.repair(line, n_cut, "a span began or ended within a word or on white space; the word was cut there")


def _gold(pieces: Sequence[Region], lost: Sequence[Region]) -> list[Region]:
    """Return the pieces of text in which no annotation was lost. lost: regions of lost annotations."""
    if not lost:
        return list(pieces)
    starts = [start for start, _ in pieces]
    hit = set[int]()
    for start, end in lost:
        first = max(bisect_right(starts, start) - 1, 0)
        hit.update(range(first, max(bisect_left(starts, end), first + 1)))
    return [piece for i, piece in enumerate(pieces) if i not in hit]


def _sound(text: str, spans: Sequence[Span], line: int | None, ledger: Ledger) -> tuple[list[Span], list[Region]]:
    """Return the valid spans, each once, and the regions of the rejected spans."""
    kept, lost = list[Span](), list[Region]()
    for span in dict.fromkeys(spans):
        if not 0 <= span.start < span.end <= len(text):
            ledger.reject_span(
                line,
                f"a span from {span.start} to {span.end} is outside of the text of {len(text)} characters; "
                "correct the offsets",
            )
            lost.append((0, len(text)))
        elif not text[span.start : span.end].strip():
            ledger.reject_span(line, f"a span of only white space from {span.start} to {span.end}; correct the offsets")
            lost.append((span.start, span.end))
        elif not span.type or unfit(span.type):
            ledger.reject_span(line, f"a span from {span.start} to {span.end} without a type; add the type")
            lost.append((span.start, span.end))
        else:
            kept.append(span)
    return kept, lost


def _moved(text: str, at: int) -> int:
    """Return the position of character `at` of `text` after Unicode composition (NFC) of the text."""
    return at if text.isascii() else len(nfc(text[:at]))


def _trim(text: str, spans: Sequence[Span]) -> tuple[list[Span], int]:
    trimmed = []
    for span in spans:
        piece = text[span.start : span.end]
        left, right = len(piece) - len(piece.lstrip()), len(piece) - len(piece.rstrip())
        trimmed.append(Span(span.start + left, span.end - right, span.type))
    return trimmed, sum(a != b for a, b in zip(spans, trimmed, strict=True))


def _composed(
    text: str, spans: Sequence[Span], line: int | None, ledger: Ledger
) -> tuple[str, list[Span], list[Region]]:
    """Return the text in NFC, the spans in it, and the regions of rejected spans, which cover only combining marks."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text, list(spans), []
    moved: dict[int, int] = {}
    done, length = 0, 0  # characters of `text` composed so far, and length of the result
    for at in sorted({x for s in spans for x in (s.start, s.end)}):
        start = at  # start of the letter to which a combining mark at `at` belongs; text before it is composed alone
        while done < start and at - start < _MARKS and start < len(text) and _joins(text[start]):
            start -= 1
        length += len(nfc(text[done:start]))
        done, moved[at] = start, length + len(nfc(text[start:at]))
    composed, new, lost = nfc(text), list[Span](), list[Region]()
    for span in spans:
        start, end = moved[span.start], moved[span.end]
        if composed[start:end].strip():
            new.append(Span(start, end, span.type))
        else:
            what = (
                f"a span from {span.start} to {span.end} that covers only the accent of a letter; correct the offsets"
            )
            ledger.reject_span(line, what)
            lost.append((span.start, span.end))
    return composed, new, lost


def _joins(char: str) -> bool:
    """Return True if NFC may join a character with the one before it: a combining mark, or a part of Hangul."""
    return unicodedata.category(char).startswith("M") or "\u1161" <= char <= "\u11c2"


def _longest(spans: Sequence[Span], line: int | None, ledger: Ledger) -> tuple[list[Span], list[Region]]:
    """Drop overlapping spans. Return the other spans, sorted by start, and the regions of the dropped ones.

    Among overlapping spans, the longest is kept.
    """
    lost: list[Region] = []
    # The kept spans are sorted and do not overlap. A new, shorter span can therefore only overlap its two neighbours.
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start - s.end, s.start, s.type)):
        place = bisect_left(kept, span.start, key=lambda k: k.start)
        neighbours = kept[max(place - 1, 0) : place + 1]
        overlapped = next((k for k in neighbours if span.start < k.end and k.start < span.end), None)
        if overlapped is None:
            kept.insert(place, span)
        else:
            ledger.reject_span(
                line,
                f"{span.type} from {span.start} to {span.end} overlaps the {overlapped.type} from {overlapped.start} to"
                f" {overlapped.end}, which is at least as long; keep one of them",
            )
            lost.append((span.start, span.end))
    return kept, lost


def _pieces(text: str, spans: Sequence[Span], split_too: bool, by_line: bool) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence. No sentence ends within a span. spans: sorted by start, not overlapping."""
    borders = [end for _, end in split.sentences(text)] if split_too else []
    if by_line:
        borders = sorted({*borders, *(i for i, char in enumerate(text) if char == "\n")})
    start = 0
    for border in (*borders, len(text)):
        before = bisect_left(spans, border, key=lambda span: span.start) - 1  # last span that begins before the border
        crossed = before >= 0 and border < spans[before].end
        if not crossed and text[start:border].strip():
            yield start, border
            start = border


def _tokens(
    text: str, start: int, end: int, spans: Sequence[Span], ledger: Ledger
) -> tuple[tuple[str, ...], tuple[Entity, ...], int]:
    """Return the tokens of `text[start:end]`, the spans as entities, and the number of span borders within words."""
    tokens: list[str] = []
    borders = sorted({x for span in spans for x in (span.start, span.end)})
    # {start of a token in `text`: index of the token}
    first: dict[int, int] = {}
    # {end of a token in `text`: index of the token + 1}
    last: dict[int, int] = {}
    at, cut = start, 0
    for token in ledger.cut(text[start:end]):
        begin = text.index(token, at)
        at = begin + len(token)
        inner = borders[bisect_right(borders, begin) : bisect_left(borders, at)]
        cut += len(inner)
        for low, high in zip((begin, *inner), (*inner, at), strict=True):
            first[low], last[high] = len(tokens), len(tokens) + 1
            tokens.append(text[low:high])
    entities = tuple(Entity(start=first[span.start], end=last[span.end], type=span.type) for span in spans)
    return tuple(tokens), entities, cut


@dataclass(frozen=True, slots=True)
class Mark:
    """An annotation as an annotation tool has stored it.

    fragments: (start, end) of each fragment, in the tool's own offsets. quote: the annotated text, None if the file
    does not have it. line: line of the annotation; None if it is the line of the annotated text. name: name of the
    annotation in the file, for example T1.
    """

    fragments: tuple[tuple[int, int], ...]
    type: str
    quote: str | None = None
    line: int | None = None
    name: str = ""


def fitted(text: str, marks: Sequence[Mark], line: int | None, ledger: Ledger) -> tuple[list[Span], list[Region]]:
    """Return the annotations as spans in characters of `text`, and the regions of lost annotations.

    Offsets may count characters, UTF-16 units or UTF-8 bytes, a line end as one or two characters, and a byte order
    mark before the text. The first way of counting with which every quoted text matches is used. If none matches,
    offsets are taken for characters, and annotations whose quoted text differs are rejected.
    Without quoted texts, offsets count UTF-16 units if they cut words as characters, and cut none as UTF-16 units.
    """
    quoted = [mark for mark in marks if mark.quote is not None]
    readings = _readings(text) if quoted else islice(_readings(text), 1 + (max(text, default="") > "\uffff"))
    fits = partial(_all_fit, text, quoted) if quoted else partial(_all_whole, text, marks)
    first = next(readings)
    believed = first if fits(first) else next(filter(fits, readings), first)
    spans, lost, sought, n_misfits = list[Span](), list[Region](), set[str](), 0
    for mark in marks:
        where = [(believed(start), believed(end)) for start, end in mark.fragments]
        reason = _misfit(text, mark, where)
        if reason:
            ledger.reject_span(mark.line or line, reason)
            n_misfits += 1
            if n_misfits <= _MOST_MISFITS:
                lost += _regions(text, mark, where, sought)
            else:
                lost.append((0, len(text)))
        else:
            spans.append(Span(where[0][0], where[-1][1], mark.type))
    return spans, lost


def _misfit(text: str, mark: Mark, where: Sequence[Region]) -> str:
    """Return why an annotation is not a span of `text`, "" if it is. where: its fragments in characters of `text`."""
    name = f"{mark.name}: " if mark.name else ""
    (start, end), n = (mark.fragments[0][0], mark.fragments[-1][1]), len(text)
    if any(not 0 <= a < b <= n for a, b in where):
        return f"{name}a span from {start} to {end} is outside of the text of {n} characters; correct the offsets"
    if not _fits(text, mark, where):
        return f"{name}the text from {start} to {end} is not the annotated one; the offsets must fit this version of it"
    gaps = [text[a_end:b_start] for (_, a_end), (b_start, _) in pairwise(where)]
    if any(gap.strip() for gap in gaps) or any(a[1] > b[0] for a, b in pairwise(where)):
        return f"{name}the annotation is discontinuous; mark one run of characters"
    return ""


def _regions(text: str, mark: Mark, where: Sequence[Region], sought: set[str]) -> Iterator[Region]:
    """Yield the regions that a lost annotation may belong to: its offsets, and every occurrence of its quoted text.

    If its offsets are outside the text, yield the whole text. where: its fragments, in characters of `text`. sought:
    quoted texts that were searched before and are not searched again.
    """
    if any(not 0 <= a <= b <= len(text) for a, b in where):
        yield 0, len(text)
        return
    yield where[0][0], where[-1][1]
    if mark.quote and mark.quote not in sought and not _fits(text, mark, where):
        sought.add(mark.quote)
        yield from _places(text, mark.quote)


def _places(text: str, quote: str) -> Iterator[Region]:
    """Yield (start, end) of each occurrence of `quote`, without overlaps."""
    at = text.find(quote)
    while at >= 0:
        yield at, at + len(quote)
        at = text.find(quote, at + len(quote))


def _all_fit(text: str, quoted: Sequence[Mark], reading: Reading) -> bool:
    return all(_fits(text, mark, [(reading(a), reading(b)) for a, b in mark.fragments]) for mark in quoted)


def _all_whole(text: str, marks: Sequence[Mark], reading: Reading) -> bool:
    """Return True if no annotation begins or ends within a word or with white space."""
    where = [(reading(a), reading(b)) for mark in marks for a, b in mark.fragments]
    return all(
        0 <= a < b and text[a:b] == text[a:b].strip() and not _is_within(text, a) and not _is_within(text, b)
        for a, b in where
    )


def _is_within(text: str, at: int) -> bool:
    """Return True if a position is between two letters or digits, or between a letter and its accent."""
    before, after = text[max(at - 1, 0) : at], text[at : at + 1]
    return (before.isalnum() and after.isalnum()) or (after != "" and _joins(after))


def _fits(text: str, mark: Mark, where: Sequence[Region]) -> bool:
    if mark.quote is None:
        return True
    if any(a < 0 or b < 0 for a, b in where):
        return False
    return _plain(" ".join(text[a:b] for a, b in where)) == _plain(mark.quote)


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", nfc(text)).strip()


def _readings(text: str) -> Iterator[Reading]:
    yield _characters(text)
    if not text.isascii():
        if max(text) > "\uffff":
            yield _counted(text, [1 + (char > "\uffff") for char in text])
        yield _counted(text, [len(char.encode("utf-8", "surrogatepass")) for char in text])
    if "\r\n" in text:  # a tool may count \r\n as one character
        yield _counted(text, [int(char != "\r" or text[i + 1 : i + 2] != "\n") for i, char in enumerate(text)])
    elif "\n" in text:  # a tool may count \n as \r\n
        yield _counted(text, [1 + (char == "\n") for char in text])
    yield lambda offset: offset - 1 if 1 <= offset <= len(text) + 1 else -1  # a tool may count a byte order mark


def _characters(text: str) -> Reading:
    n = len(text)
    return lambda offset: offset if 0 <= offset <= n else -1


def _counted(text: str, units: Sequence[int]) -> Reading:
    """Return a function that converts a tool's offsets to indices of characters.

    units: number of units that the tool counts for each character of `text`.
    """
    index = {total: i for i, total in enumerate(accumulate(units, initial=0))}
    return lambda offset: index.get(offset, -1)
