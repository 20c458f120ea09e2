"""Map characters of a stored sentence to the text of its file.

A corpus stores cleaned sentences (`words.clean`): in NFC, with one blank for each run of white space. Predictions,
however, are exported with positions in the file's original text. Readers can therefore add the original text to each
sentence (`Source`).
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from core.text.words import nfc

_CHUNK = re.compile(r"\S+")
_LONGEST_LETTER = 60  # maximum number of code points of a letter with its marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The place of a sentence in its file, with the original text around it.

    text: original text: a line, a cell, a field, or the tokens of a CoNLL sentence joined by blanks. start: index of
    the character of `text` at which the sentence begins. line: line or table row, from 1, at which `text` begins. at:
    number of characters in the file before `text`; None if the file is not plain text. lines: for each CoNLL token,
    (index of its first character in `text`, its line in the file). file: name in the folder or archive.
    """

    text: str
    file: str | None = None
    line: int | None = None
    start: int = 0
    at: int | None = None
    lines: Sequence[tuple[int, int]] = ()

    def line_at(self, character: int) -> int | None:
        """Return the line of the file that contains a character of `text`; None if the line is unknown."""
        if self.lines:
            return self.lines[max(bisect_right(self.lines, (character, 1 << 60)) - 1, 0)][1]
        breaks = self.text.count("\n", 0, character) if self.at is not None else 0
        return None if self.line is None else self.line + breaks


class Places:
    """Maps ranges of characters of a sentence to ranges of its original text."""

    def __init__(self, text: str, source: Source) -> None:
        self._chunks = [match.span() for match in _CHUNK.finditer(text)]
        self._starts = [start for start, _ in self._chunks]
        self._text, self._source = text, source
        self._own = [match.span() for match in _CHUNK.finditer(source.text, source.start)]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range [start, end) of the original text for a range [start, end) of the sentence."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, character: int) -> tuple[int, int]:
        """Return the range of the original text from which a character of the sentence was composed (NFC).

        Cleaning does not split or join words, so the n-th word is the same in both texts.
        """
        n = bisect_right(self._starts, character) - 1
        (start, end), (own_start, own_end) = self._chunks[n], self._own[n]
        chunk, own = self._text[start:end], self._source.text[own_start:own_end]
        # NFC changed nothing here, so characters correspond one to one. `own` is longer than `chunk` if the sentence
        # ends within a word.
        if own.startswith(chunk):
            return own_start + character - start, own_start + character - start + 1
        first, last = _composed(own, chunk)[character - start]
        return own_start + first, own_start + last


def _composed(own: str, chunk: str) -> list[tuple[int, int]]:
    """Return, for each character of `chunk`, the range of `own` from which it was composed."""
    places, at = list[tuple[int, int]](), 0
    for letter in _letters(own):
        composed = nfc(letter)
        places += [(at, at + len(letter))] * len(composed)
        at += len(letter)
    # `nfc` has inserted joiners into a long run of marks, so use the whole word.
    if len(places) < len(chunk):
        return [(0, len(own))] * len(chunk)
    return places


def _letters(text: str) -> list[str]:
    """Return the parts of a word that NFC composes independently: letters with their marks."""
    letters = list[str]()
    for char in text:
        before = letters[-1] if letters else ""
        belongs = unicodedata.combining(char) or nfc(before + char) != nfc(before) + char
        if before and len(before) < _LONGEST_LETTER and belongs:
            letters[-1] += char
        else:
            letters.append(char)
    return letters
