"""Generate the sentences of the sample sets from grammars, which are written in a small notation:

== rule            begins a rule; every following line is one alternative; `#` begins a comment line
<rule>             one alternative of the rule; drawn up to eight times, until its text is new to the sentence
{a|b|}             a, b or nothing
<2..90/4>          a whole number from 2 up to 90 in steps of 4; a comma before the > groups thousands
[TYPE words]       an entity
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from core.text.words import clean, tokenize

_PIECE = re.compile(r"[{}|]|<[^<>]+>|[^{}|<>]+")
_NUMBER = re.compile(r"<(\d+)\.\.(\d+)(?:/(\d+))?(,)?>")
_MARK = re.compile(r"\[([A-Z]+) ([^\]]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One generated sentence.

    tags: one IOB2 tag per token. topic: rule that generated the sentence. template: topic and number of the
    alternative, such as `loan/3`.
    """

    text: str
    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    topic: str
    template: str


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[tuple["_Part", ...], ...]


@dataclass(frozen=True, slots=True)
class _Number:
    low: int
    high: int
    step: int
    grouped: bool


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str


_Part = str | _Choice | _Number | _Rule


class Grammar:
    """Grammar rules, read from files. The method `line` generates one sentence."""

    def __init__(self, files: list[Path], rng: Random) -> None:
        self.rng = rng
        self.rules: dict[str, list[tuple[_Part, ...]]] = {}
        self._decks: dict[str, list[int]] = {}
        for file in files:
            self._read(file)

    def line(self, topic: str) -> Line:
        """Return a sentence of the rule `topic`. An alternative is used again only after all others were used."""
        deck = self._decks.setdefault(topic, [])
        if not deck:
            deck.extend(shuffled(range(len(self.rules[topic])), self.rng))
        number = deck.pop()
        marked = _tidy(self._expand(self.rules[topic][number], {}))
        return mark(marked, topic=topic, template=f"{topic}/{number}")

    def productions(self, topic: str, names: Collection[str] = ()) -> list[str]:
        """Return sentences that together use every alternative of every rule, choice and number range of `topic`.

        names: rules of which only two alternatives are used, such as rules for names. Each template gives three sets of
        sentences, which combine its parts in different ways.
        """
        known: dict[str, list[str]] = {}
        columns = [[self._each(part, names, known) for part in parts] for parts in self.rules[topic]]
        marked = (text for row in columns for shift in range(3) for text in _side_by_side(row, shift))
        return [_MARK.sub(r"\2", _tidy(text)) for text in marked]

    def _each(self, part: _Part, names: Collection[str], known: dict[str, list[str]]) -> list[str]:
        """Return texts that together use every alternative of `part`. known: cache, {rule: its texts}."""
        match part:
            case str():
                return [part]
            case _Number(low, high, step, grouped):
                ends = dict.fromkeys((low, low + (high - low) // step * step))
                return [f"{end:,}" if grouped else str(end) for end in ends]
            case _Choice(options):
                return self._of_all(options, names, known)
            case _Rule(name):
                if name not in known:
                    texts = self._of_all(self.rules[name], names, known)
                    known[name] = texts[:2] if name in names else texts
                return known[name]

    def _of_all(
        self, options: Iterable[tuple[_Part, ...]], names: Collection[str], known: dict[str, list[str]]
    ) -> list[str]:
        rows = ([self._each(part, names, known) for part in parts] for parts in options)
        return [text for row in rows for text in (_side_by_side(row, 0) or [""])]

    def _read(self, file: Path) -> None:
        rule: list[tuple[_Part, ...]] = []
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("== "):
                rule = self.rules.setdefault(line[3:], [])
            elif line and not line.startswith("# "):
                rule.append(_parse(_PIECE.findall(line)[::-1])[0])

    def _expand(self, parts: tuple[_Part, ...], used: dict[str, set[str]]) -> str:
        out = []
        for part in parts:
            match part:
                case str():
                    out.append(part)
                case _Choice(options):
                    out.append(self._expand(options[pick(len(options), self.rng)], used))
                case _Number(low, high, step, grouped):
                    value = low + step * pick((high - low) // step + 1, self.rng)
                    out.append(f"{value:,}" if grouped else str(value))
                case _Rule(name):
                    out.append(self._fresh(name, used))
        return "".join(out)

    def _fresh(self, name: str, used: dict[str, set[str]]) -> str:
        options = self.rules[name]
        # Accept a repetition after eight draws, because a rule can have fewer alternatives than a sentence needs.
        for _ in range(8):
            words = self._expand(options[pick(len(options), self.rng)], used)
            if words not in used.setdefault(name, set()):
                break
        used[name].add(words)
        return words


def _side_by_side(columns: Sequence[Sequence[str]], shift: int) -> list[str]:
    """Return rows of a table: row i joins the i-th texts of all columns. Shorter columns are repeated.

    shift: column k begins with its text of index shift * k instead of 0.
    """
    longest = max(map(len, columns), default=0)
    return ["".join(texts[(i + shift * k) % len(texts)] for k, texts in enumerate(columns)) for i in range(longest)]


def pick(n: int, rng: Random) -> int:
    """Draw a number from 0 to n-1 with `random()`.

    Unlike other methods of `Random`, it gives the same sequence in every Python version.
    """
    return int(rng.random() * n)


def shuffled(items: range, rng: Random) -> list[int]:
    """Return `items` in random order (Fisher-Yates with `pick`). The order is the same in every Python version."""
    order = list(items)
    for i in range(len(order) - 1, 0, -1):
        j = pick(i + 1, rng)
        order[i], order[j] = order[j], order[i]
    return order


def mark(marked: str, *, topic: str, template: str) -> Line:
    """Return the tokens and tags of a marked text such as `Paid by [PARTY Oakline Ltd].`, as a `Line`."""
    tokens: list[str] = []
    tags: list[str] = []
    end = 0
    for entity in _MARK.finditer(marked):
        outside, inside = tokenize(marked[end : entity.start()]), tokenize(entity[2])
        tokens += outside + inside
        tags += ["O"] * len(outside) + [f"B-{entity[1]}"] + [f"I-{entity[1]}"] * (len(inside) - 1)
        end = entity.end()
    rest = tokenize(marked[end:])
    text = _MARK.sub(r"\2", marked)
    # Entities must begin and end at token borders. Otherwise the tags would not fit the tokens after the plain text
    # is imported.
    assert tuple(tokens) + rest == tokenize(text)
    return Line(text=text, tokens=tokenize(text), tags=tuple(tags + ["O"] * len(rest)), topic=topic, template=template)


def _parse(pieces: list[str]) -> tuple[tuple[_Part, ...], str]:
    """Parse up to the next `|` or `}`. Return the parsed parts, and this character ("" at the end of the line).

    pieces: pieces of the line in reverse order. Parsed pieces are removed from the list.
    """
    parts: list[_Part] = []
    while pieces:
        piece = pieces.pop()
        if piece in "|}":
            return tuple(parts), piece
        if piece == "{":
            options, end = [], "|"
            while end == "|":
                option, end = _parse(pieces)
                options.append(option)
            assert end == "}"
            parts.append(_Choice(tuple(options)))
        elif number := _NUMBER.fullmatch(piece):
            parts.append(_Number(int(number[1]), int(number[2]), int(number[3] or 1), bool(number[4])))
        else:
            parts.append(_Rule(piece[1:-1]) if piece[0] == "<" else piece)
    return tuple(parts), ""


def _tidy(marked: str) -> str:
    """Return a marked text with corrected blanks, full stops, articles (a, an) and capitals."""
    marked = clean(marked)
    marked = re.sub(r"(?<! ) ++(?=[],.;:?!)])", "", marked)
    marked = re.sub(r"\.(\]?)\.$", r".\1", marked)
    marked = re.sub(r"\b([Aa]) (?=(?:[aeiou](?!ni|se|ri)|8|11\b|18\b))(?!one\b|eu)", r"\1n ", marked)
    marked = re.sub(r"(?<=\w\? )[a-z]", lambda match: match[0].upper(), marked)
    return re.sub(r'^(\[[A-Z]+ )?("?)([a-zø])', lambda match: f"{match[1] or ''}{match[2]}{match[3].upper()}", marked)
