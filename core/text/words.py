"""Words of running text, one rule for every measure and strategy, in every script."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Literal

Tokens = Literal["words", "blanks"]

_WORD = re.compile(r"\w+|[^\w\s]")
_ALNUM = re.compile(r"\w+")
_LONG = 1_000  # characters; marks of a shorter text are in order within a millisecond
_UNSPACED = (  # code points of the scripts that write no blanks between words
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
    "\u3040-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Hiragana, Katakana
    "\u0e00-\u0e7f\u0e80-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"  # Myanmar, Khmer
)
_OF_UNSPACED = re.compile(f"[{_UNSPACED}]")
_LETTER = re.compile(rf"(?=\w)[{_UNSPACED}]")
# What comparing leaves out: characters that show nothing (Cf, variation selectors, the joiner of `nfc`), marks of
# Latin, Greek and Cyrillic that no composed letter has, the points of Hebrew, the vowels and the stretch of Arabic.
_SILENT = re.compile(
    "[\u00ad\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08ff]"
)
# None of them is a mark, shows nothing or belongs to a script without blanks: most text of Europe is quickly done.
_HARD = re.compile(
    "[^\0-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0590\u1e00-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2bff]"
)
# A treebank's tokens: "did n't", "can not", "-LRB-".
_TREEBANK = re.compile(r"(?<=\w) (?=n['’]t\b)|(?<=\bcan) (?=not\b)|-[lr][rcs]b-")
_DIGITS = re.compile(r"\d \d")
# A number in folded text: digits of any script with the Latin letters on them (12a, b12), or a Roman numeral.
_NUMBER = re.compile(
    r"(?<![a-z])[a-z]*+\d[\da-z]*+|\b(?=[ivxlcdm])m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})\b"
)
_INNER_BLANKS = re.compile(r"(?<!\d) | (?!\d)")


def clean(text: str) -> str:
    """NFC, every run of white space one blank, none at the ends: the text a corpus stores."""
    return " ".join(nfc(text).split())


def nfc(text: str) -> str:
    """Composed characters, in time that grows with the text alone.

    Putting a run of marks in order takes the square of its length (minutes for a megabyte of accents), so a long text
    gets a joiner after every thirtieth mark of a run, as Unicode's stream-safe format does (UAX 15, section 13).
    """
    return _normal("NFC", text)


def _normal(form: Literal["NFC", "NFKC"], text: str) -> str:
    if text.isascii():
        return text
    # Short texts are left exactly as the form has them: a joiner would be a change nobody asked for.
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
    r"""Runs of `\w` with the marks on them, and single other characters, Unicode, in order (SOURCES.md, Words).

    A letter of a script without blanks between words is a token. Labelled data keeps its own tokens; this is for text
    that came without.
    """
    return tuple((_patterns()[0] if _is_hard(text) else _WORD).findall(text))


def cutter(tokens: Tokens) -> Callable[[str], tuple[str, ...]]:
    """Cutter of a text: `tokenize` for words; for blanks, what they separate, as in text that came tokenised."""
    return tokenize if tokens == "words" else _between_blanks


def _between_blanks(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def unspaced(text: str) -> bool:
    """Whether a script without blanks between words is in it: Han, Kana, Thai, Lao, Khmer or Myanmar."""
    return not text.isascii() and _LETTER.search(text) is not None


def in_unspaced(char: str) -> bool:
    """Return True for a letter of such a script, and for a mark that belongs to one (a vowel or tone of Thai)."""
    return unspaced(char) or (_sign(char) and _OF_UNSPACED.match(char) is not None)


def letters(text: str) -> int:
    """Number of tokens in it that are single letters of a script without blanks."""
    return 0 if text.isascii() else len(_LETTER.findall(text))


def is_alphanumeric(word: str) -> bool:
    """Whether it has letters and digits alone, whatever marks are on them."""
    return word.isalnum() or (not word.isascii() and "".join(char for char in word if not _sign(char)).isalnum())


def fold(text: str) -> str:
    """Lower-cased words alone, joined by blanks: for comparing, never for storing.

    Full-width and other compatible forms are one (NFKC), what shows nothing is left out, so are vowel points and the
    dot that tells Turkish letters apart; a treebank's "did n't" and brackets are as in plain text. A letter of a script
    without blanks is a word.
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
    """The numbers of a folded text in order, digits as ASCII: sentences with different ones state different facts.

    Digits of all scripts, Chinese numerals (within words, too) and Roman ones, which are written in Latin letters.
    """
    found = [_in_ascii(match[0]) for match in _NUMBER.finditer(folded) if match[0]]
    if not folded.isascii():
        found += [f"{unicodedata.numeric(char):g}" for char in folded if char.isnumeric() and not char.isdecimal()]
    return tuple(found)


def _in_ascii(number: str) -> str:
    return number if number.isascii() else "".join(str(unicodedata.decimal(char, char)) for char in number)


def joined(folded: str) -> str:
    """A folded text without its blanks, but for those between digits: two texts with equal ones are the same sentence.

    So a text meets itself cut into tokens, whoever cut it.
    """
    if _DIGITS.search(folded):
        return _INNER_BLANKS.sub("", folded)
    return folded.replace(" ", "")


def _plain(lowered: str) -> str:
    """Without what a treebank's tokens add; most texts hold none of it, and are left in no time."""
    if " n't" in lowered or "b-" in lowered or "can not" in lowered or " n’t" in lowered:
        return _TREEBANK.sub(lambda match: " " if match[0] != " " else "", lowered)
    return lowered


def _is_hard(text: str) -> bool:
    return not text.isascii() and _HARD.search(text) is not None


def _sign(char: str) -> bool:
    """Whether it belongs to the letter before it (a mark) or shows nothing (a format character)."""
    return unicodedata.category(char)[0] == "M" or unicodedata.category(char) == "Cf"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns beyond ASCII: of tokens, of folded words, and of blanks that part a mark from its letter.

    Labelled Thai, Lao, Khmer and Burmese may come cut into single code points, marks apart from their letters.
    """
    # Made when first needed: looking at so many characters takes 20 ms, and English text never asks.
    signs = "".join(_ranges(n for n in chain(range(0xAD, 0x20000), range(0xE0000, 0xE0200)) if _sign(chr(n))))
    letter, word = rf"(?=\w)[{_UNSPACED}][{signs}]*+", rf"[^\W{_UNSPACED}](?:[^\W{_UNSPACED}]++|[{signs}]++)*+"
    # A sign that follows none is the next token's; only one that stands alone is a token, so that none is lost.
    token = re.compile(rf"[{signs}]*+(?:{letter}|{word}|[^\w\s{signs}][{signs}]*+)|[{signs}]+")
    # Signs may stand behind a blank that somebody put into a word: they are of a word all the same.
    gap = re.compile(rf"(?<=[{_UNSPACED}])\s+(?=[{signs}])")
    return token, re.compile(rf"[{signs}]*+(?:{letter}|{word})"), gap


def _ranges(points: Iterable[int]) -> Iterator[str]:
    """Ascending code points as the ranges of a character class."""
    start = stop = -1
    for point in chain(points, (-1,)):
        if point != stop:
            if start >= 0:
                yield f"{chr(start)}-{chr(stop - 1)}"
            start = point
        stop = point + 1
