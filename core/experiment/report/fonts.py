"""The fonts that PDFs and pictures embed: DejaVu Sans Condensed, and in a PDF others for scripts that it lacks."""

import re
import subprocess
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from core.shown import shown

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

FOLDER = Path(__file__).resolve().parents[3] / "assets" / "fonts"
REGULAR, BOLD = FOLDER / "DejaVuSansCondensed.ttf", FOLDER / "DejaVuSansCondensed-Bold.ttf"
FURTHER = (FOLDER / "NotoSansDevanagari-Regular.ttf",)
MISSING = "\u25a1"
LEFTWARDS = ("R", "AL")  # Unicode's classes of letters that are written from right to left
# In a line that runs to the right, the text after a right-to-left word runs to the right again. Without a mark, fpdf2
# puts a number or a bracket after that word on the wrong side.
_ENDS = re.compile("(?<=[\u0590-\u08ff])(?=\\s*[^\u0590-\u08ff\\s]|\\s*$)")
_MARK = "\u200e"
_PATIENCE = 5.0  # seconds


def settable(text: str) -> str:
    """Return `text` on one line, with `MISSING` for characters that the fonts lack or that run from right to left."""
    ready = (char if ord(char) in body() and not leftwards(char) else MISSING for char in shown(text))
    return "".join(ready)


def leftwards(text: str) -> bool:
    """Return True if any character is written from right to left."""
    return any(unicodedata.bidirectional(char) in LEFTWARDS for char in text)


def visual_order(text: str) -> str:
    """Add marks after right-to-left words in a left-to-right line, so that fpdf2 keeps the right order."""
    strong = next((kind for kind in map(unicodedata.bidirectional, text) if kind in ("L", *LEFTWARDS)), "L")
    return text if strong != "L" or not leftwards(text) else _ENDS.sub(_MARK, text)


def width(text: str, size: float, *, bold: bool) -> float:
    """Return the width of a line in the body's font, in the unit of its size."""
    return float(_of_a_hundred(bold).getlength(settable(text)) * size / 100)


@cache
def _of_a_hundred(bold: bool) -> "FreeTypeFont":
    from PIL import ImageFont

    return ImageFont.truetype(str(BOLD if bold else REGULAR), 100)


@cache
def body() -> frozenset[int]:
    """Return the characters that both DejaVu fonts have."""
    return glyphs(REGULAR, 0) & glyphs(BOLD, 0)


@cache
def glyphs(path: Path, number: int) -> frozenset[int]:
    """Return the characters of a font. number: index in a collection. Errors: OSError, and those of a damaged font."""
    from fontTools.ttLib import TTFont

    with TTFont(path, fontNumber=number) as font:
        # Fonts of pictures, such as emojis, have no outlines to embed.
        return frozenset(font.getBestCmap() or ()) if {"glyf", "CFF "} & set(font.keys()) else frozenset()


def further(char: str) -> Iterator[tuple[Path, int]]:
    """Yield fonts with a character that the body's fonts lack: first ours, then those of this machine."""
    yield from ((path, 0) for path in FURTHER if ord(char) in glyphs(path, 0))
    yield from _of_this_machine(ord(char))


@cache
def _of_this_machine(code: int) -> tuple[tuple[Path, int], ...]:
    """Return the fonts with a character that fontconfig knows, as (file, index); () on a system without it."""
    words = ["fc-list", f":charset={code:x}:scalable=true:color=false", "file", "index", "style"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_PATIENCE)
        listed = re.findall(r"^(.+\.(?:ttf|otf|ttc)): :(?:style=(.*):)?index=(\d+)$", done.stdout, re.MULTILINE)
        # Upright fonts of regular weight first; then by name, so that the choice is reproducible.
        plain = sorted(listed, key=lambda each: (not re.search("Regular|Book|Medium", each[1]), each))
        return tuple((Path(path), int(index) & 0xFFFF) for path, _, index in plain)
    return ()
