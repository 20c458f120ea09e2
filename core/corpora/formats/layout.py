"""Which columns of a CoNLL-like file hold the tokens and the tags, decided from its first block.

Columns differ in number and order. The tag column is the one whose values are tags in a known spelling
(`text.tag_styles`); token numbers, document names and parts of speech are neither tokens nor tags.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.corpora.annotators import is_annotator
from core.text.tag_styles import Style, of_sentences, style_of

if TYPE_CHECKING:
    from core.corpora.formats.ledger import ReadOptions

MOST_COLUMNS = 40
_LANGUAGE = re.compile(r"([a-z]{2,3}:)\S")
_RANGE = re.compile(r"\d{1,9}[-.]\d{1,9}")  # CoNLL-U's numbers of what is no token of its own
_ENDS = "EndOfSentence"  # HIPE's mark in its last column
ASK = "name the column of the entities with --tag-column"
Row = list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Places of a file's columns, from 0.

    n: number of columns. number: a column that numbers the tokens. header: the names in the first line, () if it is
    data. prefix: what every token begins with.
    ends: a column that marks the last token of a sentence. annotator: a column that names who labelled it.
    others: further columns of tags, by number from 1 or by name. problem: the question if the columns leave a doubt.
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
        """Notes for the user on how the columns were read."""
        notes = []
        if self.style.kind == "untyped":
            notes.append(self.style.note)
        if self.others:
            named = self.header[self.tag] if self.header else str(self.tag + 1)
            notes.append(further_note(named, self.others))
        return notes


def further_note(column: str, others: Sequence[str]) -> str:
    """Say which column of tags is read and which are left out."""
    return (
        f"Column {column} is read as the tags. Column {', '.join(others)} holds tags too (nested or further"
        " annotations) and is left out; read it with --tag-column."
    )


def layout_of(sentences: Sequence[Sequence[Row]], options: "ReadOptions") -> Layout | None:
    """Return the places of tokens and tags, None if no column holds tags.

    sentences: rows of the first block, without comments; rows may differ in length. options: `tag_column` and
    `entity_type` are respected.
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
        ends=next((at for at in range(n) if _marks_ends(values[at])), None),
        annotator=next((at for at, name in enumerate(header) if is_annotator(name)), None),
        others=others,
        problem=problem,
    )


def _style(column: Sequence[Row], options: "ReadOptions") -> Style | None:
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
    """(the tag column, further ones in words, a question if it is in doubt)."""

    def named(at: int) -> str:
        return header[at] if header else str(at + 1)

    held = [at for at, style in styles.items() if style.entities]
    lettered = [at for at in held if styles[at].kind != "types"]
    held = lettered or held  # beside tags with letters, a column of bare words names something else
    syntax = [at for at in held if styles[at].syntax]
    held = [at for at in held if at not in syntax]
    if asked is not None:
        return asked, tuple(named(at) for at in held if at != asked), ""
    if not held:
        empty = [at for at in styles if at and at not in syntax]
        if syntax and not empty:
            return syntax[0], (), f"column {named(syntax[0])} holds chunks or roles, not entities; {ASK}"
        return (empty[-1] if empty else None), (), ""
    first, *further = held
    unlike = [at for at in further if not kin(styles[first], styles[at])]
    problem = ""
    if unlike:
        columns = " and ".join(named(at) for at in (first, *unlike))
        problem = f"columns {columns} hold tags of different types; {ASK}"
    empty = [
        at for at, style in styles.items() if not style.entities and at > first and styles[first].kind == "letters"
    ]
    return first, tuple(named(at) for at in (*further, *empty)), problem


def kin(a: Style, b: Style) -> bool:
    """Return True if two columns annotate the same types, finer ones (`loc`, `loc.adm.town`) or their components."""
    stems = {kind.split(".")[0].lower() for kind in a.types}
    components = all(kind.lower().startswith("comp") for kind in b.types)
    return components or bool(stems & {kind.split(".")[0].lower() for kind in b.types})


def _header(sentences: Sequence[Sequence[Row]], n: int) -> tuple[str, ...]:
    """The names in the first line: words of which none occurs again in its column, the tag's among them."""
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
    """The first column that holds neither tags, nor numbers of tokens, nor one value per sentence."""
    left = [at for at in range(len(values)) if at not in taken]
    words = [at for at in left if not _counts(values[at]) and not _constant(values[at])]
    return next(iter(words or left), None)


def _counts(column: Sequence[Row]) -> bool:
    """Return True for a column that numbers the tokens of each sentence, or of the file."""
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
    # Ranges alone are no numbers of tokens but scores, such as 0.93.
    return n > 2 and fitting > ranges and fitting + ranges >= 0.95 * n


def _constant(column: Sequence[Row]) -> bool:
    long = [sentence for sentence in column if len(sentence) > 2]
    return bool(long) and sum(len(set(sentence)) == 1 for sentence in long) > 0.9 * len(long)


def _prefix(column: Sequence[Row]) -> str:
    """A language code that every token begins with (`en:Lyon`)."""
    counts = Counter(
        found.group(1) if (found := _LANGUAGE.match(value)) else "" for sentence in column for value in sentence
    )
    prefix, n = counts.most_common(1)[0]
    return prefix if prefix and n == counts.total() and n > 5 else ""


def _marks_ends(column: Sequence[Row]) -> bool:
    return any(_ENDS in value for sentence in column for value in sentence)


def ends(row: Row, layout: Layout) -> bool:
    """Return True if a row is marked as the last of its sentence."""
    return layout.ends is not None and _ENDS in row[layout.ends]


def repeats(row: Row, layout: Layout) -> bool:
    """Return True for CoNLL-U's lines that are no token of their own: `3-4 don't`, and empty nodes `3.1`."""
    return layout.number is not None and bool(_RANGE.fullmatch(row[layout.number]))
