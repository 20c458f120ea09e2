"""Clean text of any script, split it into words, and normalise it for comparisons.

All measures and strategies use the rules of this module.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Literal

from core.errors import CorpusError

Tokens = Literal["words", "blanks"]

_WORD = re.compile(r"\w+|[^\w\s]")
_ALNUM = re.compile(r"\w+")
# Number of characters up to which any text is normalised within a millisecond, even if it consists of marks.
_LONG = 1_000
# Code points of scripts without blanks between words: Han; Hiragana and Katakana; Thai and Lao; Myanmar and Khmer.
_UNSPACED = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
    "\u3040-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u0e00-\u0e7f\u0e80-\u0eff"
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"
)
_OF_UNSPACED = re.compile(f"[{_UNSPACED}]")
_LETTER = re.compile(rf"(?=\w)[{_UNSPACED}]")
# Ignored in comparisons: invisible characters (Cf, variation selectors, the joiner of `nfc`), combining marks of Latin,
# Greek and Cyrillic without a composed letter, Hebrew points, Arabic vowels and the Arabic elongation.
_SILENT = re.compile(
    "[\u00ad\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08ff]"
)
# Text without these characters has no marks, no invisible characters and no script without blanks, so a fast path
# handles it.
_HARD = re.compile(
    "[^\0-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0590\u1e00-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2bff]"
)
# What `_plain` changes in a treebank's text: "did n't", "can not", "-LRB-".
_TREEBANK = re.compile(r"(?<=\w) (?=n['’]t\b)|(?<=\bcan) (?=not\b)|-[lr][rcs]b-")
_DIGITS = re.compile(r"\d \d")
# A number in folded text: digits of any script with adjacent Latin letters (12a, b12), or a Roman numeral.
_NUMBER = re.compile(
    r"(?<![a-z])[a-z]*+\d[\da-z]*+|\b(?=[ivxlcdm])m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})\b"
)
_INNER_BLANKS = re.compile(r"(?<!\d) | (?!\d)")
# Text counts as tokenised if it has at least 20 punctuation marks, and at least 90% of them follow a space.
_LEAST, _EVIDENT = 20, 0.9
# Commas and final full stops, before which no language writes a blank. French writes a blank before other marks, and
# other full stops may belong to abbreviations.
_MARK = re.compile(r"[,\u060c](?= |$)|[\u3001\u3002\uff0c]|(?<!\.)\.$")


def clean(text: str) -> str:
    """Return text as a corpus stores it: in NFC, with one blank per run of white space, and no blank at the ends."""
    return " ".join(nfc(text).split())


def nfc(text: str) -> str:
    """Return the text in NFC (characters composed with their marks), in linear time.

    Plain NFC takes quadratic time to sort a run of marks (minutes for a megabyte of accents). In a long text, a joiner
    is therefore inserted after each 30 marks, as in Unicode's stream-safe format (UAX 15, section 13).
    """
    return _normal("NFC", text)


def _normal(form: Literal["NFC", "NFKC"], text: str) -> str:
    if text.isascii():
        return text
    # Short texts are fast without joiners, so they get plain NFC or NFKC.
    if len(text) > _LONG:
        text = _runs_of_marks().sub(lambda run: "\u034f".join(_thirties(run[0])), text)
    return unicodedata.normalize(form, text)


def _thirties(marks: str) -> list[str]:
    return [marks[i : i + 30] for i in range(0, len(marks), 30)]


@cache
def _runs_of_marks() -> re.Pattern[str]:
    marks = "".join(char for char in map(chr, range(0x300, 0x20000)) if unicodedata.combining(char))
    return re.compile(f"[{marks}]{{31,}}")


def tokenize(text: str) -> tuple[str, ...]:
    r"""Return the tokens of a text: runs of `\w` with their marks, and single other characters (SOURCES.md, Words).

    Each letter of a script without blanks between words is a token. Labelled data has its own tokens and is not
    tokenised again.
    """
    return tuple((_patterns()[0] if _is_hard(text) else _WORD).findall(text))


def cutter(tokens: Tokens) -> Callable[[str], tuple[str, ...]]:
    """Return the tokenizer: `tokenize` for "words", a split at blanks for "blanks" (text that is tokenised)."""
    return tokenize if tokens == "words" else _between_blanks


def _between_blanks(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def token_places(text: str, tokens: Iterable[str]) -> list[tuple[int, int]]:
    """Return start and end of each token, in characters. Errors: CorpusError if a token is not in the text."""
    places, at = list[tuple[int, int]](), 0
    for token in tokens:
        start = text.find(token, at)
        if start < 0:
            raise CorpusError("a sentence's tokens are not in its text; import the file again.")
        at = start + len(token)
        places.append((start, at))
    return places


def unspaced(text: str) -> bool:
    """Return True if the text has a letter of a script without blanks: Han, Kana, Thai, Lao, Khmer or Myanmar."""
    return not text.isascii() and _LETTER.search(text) is not None


def in_unspaced(char: str) -> bool:
    """Return True for a letter of a script without blanks, or for a mark on such a letter, as in Thai."""
    return unspaced(char) or (_sign(char) and _OF_UNSPACED.match(char) is not None)


def letters(text: str) -> int:
    """Return the number of letters of scripts without blanks. Each of these letters is a token."""
    return 0 if text.isascii() else len(_LETTER.findall(text))


def is_alphanumeric(word: str) -> bool:
    """Return True if a word has only letters and digits, and marks on them."""
    return word.isalnum() or (not word.isascii() and "".join(char for char in word if not _sign(char)).isalnum())


def fold(text: str) -> str:
    """Return the words of a text in lower case, joined by blanks, to compare texts. The result is never stored.

    Compatible forms such as full-width letters are unified (NFKC). Invisible characters, vowel points and the dot of
    the Turkish i are ignored. A treebank's "did n't" and "-LRB-" are read as "didn't" and a bracket. Each letter of a
    script without blanks is a word.
    """
    if text.isascii():
        return " ".join(_ALNUM.findall(_plain(text.lower())))
    folded = _normal("NFKC", text).casefold().replace("ı", "i")
    if not _is_hard(folded):
        return " ".join(_ALNUM.findall(_plain(folded)))
    _, word, gap = _patterns()
    folded = gap.sub("", _SILENT.sub("", _normal("NFKC", folded)))
    return " ".join(word.findall(_plain(folded)))


def numbers(folded: str) -> tuple[str, ...]:
    """Return the numbers of a folded text in ASCII digits. Sentences whose numbers differ are not duplicates.

    Numbers are digits of all scripts, Roman numerals, and Chinese numerals, which come last in the result.
    """
    found = [_in_ascii(match[0]) for match in _NUMBER.finditer(folded) if match[0]]
    if not folded.isascii():
        found += [f"{unicodedata.numeric(char):g}" for char in folded if char.isnumeric() and not char.isdecimal()]
    return tuple(found)


def _in_ascii(number: str) -> str:
    return number if number.isascii() else "".join(str(unicodedata.decimal(char, char)) for char in number)


def joined(folded: str) -> str:
    """Return a folded text without blanks, except between digits. Texts with equal results are the same sentence.

    The result does not depend on how the text was tokenised.
    """
    if _DIGITS.search(folded):
        return _INNER_BLANKS.sub("", folded)
    return folded.replace(" ", "")


def _plain(lowered: str) -> str:
    """Return a lower-case text without a treebank's tokenisation: "did n't" becomes "didn't"."""
    if " n't" in lowered or "b-" in lowered or "can not" in lowered or " n’t" in lowered:
        return _TREEBANK.sub(lambda match: " " if match[0] != " " else "", lowered)
    return lowered


def _is_hard(text: str) -> bool:
    return not text.isascii() and _HARD.search(text) is not None


def _sign(char: str) -> bool:
    """Return True for a combining mark or an invisible format character."""
    return unicodedata.category(char)[0] == "M" or unicodedata.category(char) == "Cf"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns for non-ASCII text: a token, a folded word, and blanks between a letter and its mark.

    Such blanks occur in labelled Thai, Lao, Khmer and Burmese text that is split into single code points.
    """
    # The patterns are compiled on first use, because classifying all characters takes 20 ms and English text does not
    # need them.
    signs = "".join(_ranges(n for n in chain(range(0xAD, 0x20000), range(0xE0000, 0xE0200)) if _sign(chr(n))))
    letter, word = rf"(?=\w)[{_UNSPACED}][{signs}]*+", rf"[^\W{_UNSPACED}](?:[^\W{_UNSPACED}]++|[{signs}]++)*+"
    # A mark without a letter before it belongs to the next token; a lone mark is a token, so that none is lost.
    token = re.compile(rf"[{signs}]*+(?:{letter}|{word}|[^\w\s{signs}][{signs}]*+)|[{signs}]+")
    # A mark after a blank still belongs to the letter before the blank.
    gap = re.compile(rf"(?<=[{_UNSPACED}])\s+(?=[{signs}])")
    return token, re.compile(rf"[{signs}]*+(?:{letter}|{word})"), gap


def _ranges(points: Iterable[int]) -> Iterator[str]:
    """Yield ascending code points as ranges for a character class of a regular expression."""
    start = stop = -1
    for point in chain(points, (-1,)):
        if point != stop:
            if start >= 0:
                yield f"{chr(start)}-{chr(stop - 1)}"
            start = point
        stop = point + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Counts of punctuation marks that show whether a text is already tokenised.

    n: number of commas and final full stops. spaced: number of these marks that follow a blank.
    """

    n: int
    spaced: int

    @property
    def tokens(self) -> Tokens:
        """How to tokenise this text; see `cutter`."""
        return "blanks" if self.n >= _LEAST and self.spaced >= _EVIDENT * self.n else "words"

    @property
    def why(self) -> str:
        """The reason for the value of `tokens`, as part of a sentence."""
        if self.n < _LEAST:
            return f"{self.n} commas and final full stops in its first rows are too few to decide"
        return f"{self.spaced / self.n:.0%} of {self.n:,} commas and final full stops in its first rows follow a blank"


def marks(texts: Iterable[str]) -> Marks:
    """Return the counts of commas and final full stops in cleaned texts."""
    n = spaced = 0
    for text in texts:
        for mark in _MARK.finditer(text):
            n += 1
            spaced += text[: mark.start()].endswith(" ")
    return Marks(n=n, spaced=spaced)
