"""Words of running text, one rule for every measure and strategy."""

import re
import unicodedata

_WORD = re.compile(r"\w+|[^\w\s]")
_ALNUM = re.compile(r"\w+")


def clean(text: str) -> str:
    """NFC, every run of white space one blank, none at the ends: the text a corpus stores."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def tokenize(text: str) -> tuple[str, ...]:
    r"""Runs of `\w` and single other marks, Unicode, in order (SPEC A0).

    Labelled data keeps its own tokens; this is for text that came without.
    """
    return tuple(_WORD.findall(text))


def fold(text: str) -> str:
    """Lower-cased words alone, joined by blanks: two texts that fold alike are the same sentence."""
    return " ".join(_ALNUM.findall(text.casefold()))
