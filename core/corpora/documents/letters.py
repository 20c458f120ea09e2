"""Letters of a PDF that map to no character, as ligatures of some fonts do: counted, and restored from other words.

Such a letter is a character of a private use area, or U+FFFD, within a word. It is restored if exactly one ligature
makes the word one that the document spells out elsewhere.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from itertools import pairwise, product

from core.corpora.documents.extract import Extract, Paragraph

UNMAPPED = "\ufffd"
_LIGATURES = ("fi", "fl", "ff", "ffi", "ffl", "ft", "fft", "fj", "tt", "ti", "tti", "tf", "ct", "st", "sp", "Th", "Qu")
_MOST = 2  # different unmapped letters of one word that are tried together
_ENOUGH = 2  # different words that agree on a private character, before it is restored in all others
_HOLE = "\ufffd\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_HOLES = re.compile(f"[{_HOLE}]")
_BROKEN = re.compile(rf"(?=[\w{_HOLE}]*[^\W\d_])[\w{_HOLE}]*[{_HOLE}][\w{_HOLE}]*")
_WORD = re.compile(r"[^\W\d_]+")


def restore(extract: Extract) -> None:
    """Count the unmapped letters of a document and restore those that have one reading, in place."""
    words = Counter[str](word for each in extract.paragraphs for word in _BROKEN.findall(each.text))
    if not words:
        return
    whole = "\n".join(_BROKEN.sub(" ", each.text) for each in extract.paragraphs)
    readings = _readings(words, {word.lower() for word in _WORD.findall(whole)})
    for paragraph in extract.paragraphs:
        _rewrite(paragraph, readings)
    extract.unmapped = sum(n * len(_HOLES.findall(word)) for word, n in words.items())
    left = sum(n * len(_HOLES.findall(readings.get(word, word))) for word, n in words.items())
    extract.restored = extract.unmapped - left


def _readings(words: Mapping[str, int], known: Set[str]) -> dict[str, str]:
    """{word: as it is to be read}, of those that have one reading."""
    readings, letters = dict[str, str](), defaultdict[str, Counter[str]](Counter)
    for word in words:
        holes = list(dict.fromkeys(_HOLES.findall(word)))
        if len(holes) > _MOST:
            continue
        fitting = [
            dict(zip(holes, chosen, strict=True))
            for chosen in product(_LIGATURES, repeat=len(holes))
            if _filled(word, dict(zip(holes, chosen, strict=True))).lower() in known
        ]
        if len(fitting) == 1:
            readings[word] = _filled(word, fitting[0])
            for hole, ligature in fitting[0].items():
                letters[hole][ligature] += 1
    sure = {
        hole: next(iter(counts))
        for hole, counts in letters.items()
        if hole != UNMAPPED and len(counts) == 1 and counts.total() >= _ENOUGH
    }
    return {word: _filled(word, sure) for word in words if not sure.keys().isdisjoint(word)} | readings


def _filled(word: str, letters: Mapping[str, str]) -> str:
    return "".join(letters.get(letter, letter) for letter in word)


def _rewrite(paragraph: Paragraph, readings: Mapping[str, str]) -> None:
    """Put the readings into a paragraph; the places where its pages begin move along."""
    if not _HOLES.search(paragraph.text):
        return
    starts = [0, *(start for start, _ in paragraph.pages if start), len(paragraph.text)]
    parts = [paragraph.text[a:b] for a, b in pairwise(starts)]
    parts = [_BROKEN.sub(lambda found: readings.get(found[0], found[0]), part) for part in parts]
    moved = {start: sum(map(len, parts[:i])) for i, start in enumerate(starts)}
    paragraph.pages = [(moved[start], page) for start, page in paragraph.pages]
    paragraph.text = "".join(parts)
