"""Words of running text, one rule for every measure and strategy."""

import re
import unicodedata
from functools import cache

_WORD = re.compile(r"\w+|[^\w\s]")
_ALNUM = re.compile(r"\w+")
_LONG = 1_000  # characters; marks of a shorter text are in order within a millisecond
_UNSPACED = (  # code points of the scripts that write no blanks between words
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
    "\u3040-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Hiragana, Katakana
    "\u0e00-\u0e7f\u0e80-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"  # Myanmar, Khmer
)
_LETTER = re.compile(rf"(?=\w)[{_UNSPACED}]")
_COUNTED = re.compile(rf"(?=\w)[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s{_UNSPACED}]")


def clean(text: str) -> str:
    """NFC, every run of white space one blank, none at the ends: the text a corpus stores."""
    return " ".join(nfc(text).split())


def nfc(text: str) -> str:
    """Composed characters, in time that grows with the text alone.

    Putting a run of marks in order takes the square of its length (minutes for a megabyte of accents), so a long text
    gets a joiner after every thirtieth mark of a run, as Unicode's stream-safe format does (UAX 15, section 13).
    """
    if text.isascii():
        return text
    # Short texts are left exactly as NFC has them: a joiner would be a change nobody asked for.
    if len(text) > _LONG:
        text = _runs_of_marks().sub(lambda run: "\u034f".join(_thirties(run[0])), text)
    return unicodedata.normalize("NFC", text)


def _thirties(marks: str) -> list[str]:
    return [marks[i : i + 30] for i in range(0, len(marks), 30)]


@cache
def _runs_of_marks() -> re.Pattern[str]:
    marks = "".join(char for char in map(chr, range(0x300, 0x20000)) if unicodedata.combining(char))
    return re.compile(f"[{marks}]{{31,}}")


def tokenize(text: str) -> tuple[str, ...]:
    r"""Runs of `\w` and single other marks, Unicode, in order (SOURCES.md, Words).

    Labelled data keeps its own tokens; this is for text that came without.
    """
    return tuple(_WORD.findall(text))


def unspaced(text: str) -> bool:
    """Whether a script without blanks between words is in it: Han, Kana, Thai, Lao, Khmer or Myanmar."""
    return not text.isascii() and _LETTER.search(text) is not None


def length(text: str) -> int:
    """Tokens as `tokenize` has them, but every letter of a script without blanks counts as one (its signs do not)."""
    return len(_COUNTED.findall(text))


def fold(text: str) -> str:
    """Lower-cased words alone, joined by blanks: two texts that fold alike are the same sentence."""
    return " ".join(_ALNUM.findall(text.casefold()))
