"""The fonts that PDFs and pictures embed: DejaVu Sans Condensed, in a PDF others where it lacks a script."""

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
LEFTWARDS = ("R", "AL")  # how Unicode calls letters that are written from right to left
# A word written from right to left in a line that goes to the right: what follows it goes on to the right. Without this
# mark fpdf2 puts a number or a bracket behind it on the wrong side.
_ENDS = re.compile("(?<=[\u0590-\u08ff])(?=\\s*[^\u0590-\u08ff\\s]|\\s*$)")
_MARK = "\u200e"
_PATIENCE = 5.0  # seconds


def settable(text: str) -> str:
    """`text` on one line, `MISSING` for each character that the fonts lack, or that is written from right to left."""
    ready = (char if ord(char) in body() and not leftwards(char) else MISSING for char in shown(text))
    return "".join(ready)


def leftwards(text: str) -> bool:
    """Whether any of it is written from right to left."""
    return any(unicodedata.bidirectional(char) in LEFTWARDS for char in text)


def visual_order(text: str) -> str:
    """A line as fpdf2 sets it in the right order: marks behind words that go to the left, where the line does not."""
    strong = next((kind for kind in map(unicodedata.bidirectional, text) if kind in ("L", *LEFTWARDS)), "L")
    return text if strong != "L" or not leftwards(text) else _ENDS.sub(_MARK, text)


def width(text: str, size: float, *, bold: bool) -> float:
    """Width of a line in the body's font, in the unit of its size."""
    return float(_of_a_hundred(bold).getlength(settable(text)) * size / 100)


@cache
def _of_a_hundred(bold: bool) -> "FreeTypeFont":
    from PIL import ImageFont

    return ImageFont.truetype(str(BOLD if bold else REGULAR), 100)


@cache
def body() -> frozenset[int]:
    """The characters that both DejaVu fonts have."""
    return glyphs(REGULAR, 0) & glyphs(BOLD, 0)


@cache
def glyphs(path: Path, number: int) -> frozenset[int]:
    """The characters of a font. number: which of a collection. Errors: OSError, and those of a spoilt font."""
    from fontTools.ttLib import TTFont

    with TTFont(path, fontNumber=number) as font:
        # A font of pictures, as those of emojis are, has no outlines to embed.
        return frozenset(font.getBestCmap() or ()) if {"glyf", "CFF "} & set(font.keys()) else frozenset()


def further(char: str) -> Iterator[tuple[Path, int]]:
    """Fonts with a character that the body's lack, the best first: ours, then those of this machine."""
    yield from ((path, 0) for path in FURTHER if ord(char) in glyphs(path, 0))
    yield from _of_this_machine(ord(char))


@cache
def _of_this_machine(code: int) -> tuple[tuple[Path, int], ...]:
    """Files of fonts that fontconfig knows, and their numbers within; nothing on a system without it."""
    words = ["fc-list", f":charset={code:x}:scalable=true:color=false", "file", "index", "style"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_PATIENCE)
        listed = re.findall(r"^(.+\.(?:ttf|otf|ttc)): :(?:style=(.*):)?index=(\d+)$", done.stdout, re.MULTILINE)
        # Upright and of usual weight before others; then by name, so that the same machine takes the same one again.
        plain = sorted(listed, key=lambda each: (not re.search("Regular|Book|Medium", each[1]), each))
        return tuple((Path(path), int(index) & 0xFFFF) for path, _, index in plain)
    return ()
