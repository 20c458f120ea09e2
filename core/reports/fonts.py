"""The fonts that PDFs and pictures embed (DejaVu Sans Condensed), and what they cannot set."""

import unicodedata
from functools import cache
from pathlib import Path

from core.shown import shown

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "fonts"
REGULAR, BOLD = FOLDER / "DejaVuSansCondensed.ttf", FOLDER / "DejaVuSansCondensed-Bold.ttf"
MISSING = "\u25a1"


@cache
def _glyphs() -> frozenset[int]:
    from fontTools.ttLib import TTFont

    with TTFont(REGULAR) as regular, TTFont(BOLD) as bold:
        return frozenset(regular.getBestCmap()) & frozenset(bold.getBestCmap())


def settable(text: str) -> str:
    """`text` on one line, `MISSING` for each character that the fonts lack, or that is written from right to left."""
    return "".join(
        char if ord(char) in _glyphs() and unicodedata.bidirectional(char) not in ("R", "AL") else MISSING
        for char in shown(text)
    )
