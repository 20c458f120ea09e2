"""Whether a text came tokenised: how its commas and full stops stand."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core.text.words import Tokens

_LEAST, _EVIDENT = 20, 0.9  # marks, and the share of them that stands apart, from which on a text came tokenised
# What all writing puts right behind a word; French has a blank before its other marks, abbreviations keep their dots.
_MARK = re.compile(r"[,\u060c](?= |$)|[\u3001\u3002\uff0c]|(?<!\.)\.$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """n: commas, and full stops at a text's end. spaced: those with a blank before them."""

    n: int
    spaced: int

    @property
    def tokens(self) -> Tokens:
        """The rule that such text is to be cut by."""
        return "blanks" if self.n >= _LEAST and self.spaced >= _EVIDENT * self.n else "words"

    @property
    def why(self) -> str:
        """Its reason, the part of a sentence."""
        if self.n < _LEAST:
            return f"{self.n} commas and final full stops in its first rows are too few to tell more"
        return f"{self.spaced / self.n:.0%} of {self.n:,} commas and final full stops in its first rows stand apart"


def marks(texts: Iterable[str]) -> Marks:
    """Marks of cleaned texts."""
    n = spaced = 0
    for text in texts:
        for mark in _MARK.finditer(text):
            n += 1
            spaced += text[: mark.start()].endswith(" ")
    return Marks(n=n, spaced=spaced)
