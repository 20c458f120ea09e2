"""Characters of a stored sentence back to the text of the file that it was read from.

A corpus stores sentences as `words.clean` leaves them: composed (NFC), one blank for each run of white space. Places
of predictions are in the file's own text, so readers hand that text on with each sentence.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from core.text.words import nfc

_CHUNK = re.compile(r"\S+")
_LONGEST_LETTER = 60  # code points of a letter with its marks; no writing has as many


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a sentence was read.

    text: as the file has it: a line, a cell, a field, or CoNLL's tokens with a blank between them. start: character of
    `text` at which the sentence begins. line: of the file, from 1, on which `text` begins; of a table's row. at:
    characters of the file before `text`, None unless the file is plain text. lines: (character of `text`, line) of
    each token of CoNLL. file: its name in the folder or archive.
    """

    text: str
    file: str | None = None
    line: int | None = None
    start: int = 0
    at: int | None = None
    lines: Sequence[tuple[int, int]] = ()

    def line_at(self, character: int) -> int | None:
        """The line of the file on which a character of `text` stands."""
        if self.lines:
            return self.lines[max(bisect_right(self.lines, (character, 1 << 60)) - 1, 0)][1]
        breaks = self.text.count("\n", 0, character) if self.at is not None else 0
        return None if self.line is None else self.line + breaks


class Places:
    """Places of one sentence's characters in its source."""

    def __init__(self, text: str, source: Source) -> None:
        self._chunks = [match.span() for match in _CHUNK.finditer(text)]
        self._starts = [start for start, _ in self._chunks]
        self._text, self._source = text, source
        self._own = [match.span() for match in _CHUNK.finditer(source.text, source.start)]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Characters start to end (half-open) of the sentence as characters of the source's text."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, character: int) -> tuple[int, int]:
        """The characters of the source that one character of the sentence was made of.

        White space neither appears nor vanishes when a text is cleaned, so the n-th word of one is that of the other.
        """
        n = bisect_right(self._starts, character) - 1
        (start, end), (own_start, own_end) = self._chunks[n], self._own[n]
        chunk, own = self._text[start:end], self._source.text[own_start:own_end]
        if own.startswith(chunk):  # no letter was composed; the sentence may end within a word of the source
            return own_start + character - start, own_start + character - start + 1
        first, last = _composed(own, chunk)[character - start]
        return own_start + first, own_start + last


def _composed(own: str, chunk: str) -> list[tuple[int, int]]:
    """For each character of `chunk`, the characters of `own` that it was composed of."""
    places, at = list[tuple[int, int]](), 0
    for letter in _letters(own):
        composed = nfc(letter)
        places += [(at, at + len(letter))] * len(composed)
        at += len(letter)
    if len(places) < len(chunk):  # marks of a long run were parted by joiners: take the whole word
        return [(0, len(own))] * len(chunk)
    return places


def _letters(text: str) -> list[str]:
    """Parts of a word that are composed apart from each other."""
    letters = list[str]()
    for char in text:
        before = letters[-1] if letters else ""
        belongs = unicodedata.combining(char) or nfc(before + char) != nfc(before) + char
        if before and len(before) < _LONGEST_LETTER and belongs:
            letters[-1] += char
        else:
            letters.append(char)
    return letters
