"""Letters of a PDF that map to no character, as ligatures of some fonts do: counted, and restored from other words.

Such a letter is a character of a private use area, or U+FFFD, within a word. It is restored if exactly one ligature
makes the word one that the document, or another document of the same import, spells out elsewhere.
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
_RUN = re.compile(rf"[\w{_HOLE}]+")
_WORD, _LETTER = re.compile(r"[^\W\d_]+"), re.compile(r"[^\W\d_]")


def restore(extract: Extract) -> None:
    """Count the unmapped letters of a document and restore those that have one reading, in place."""
    words = Counter[str](word for each in extract.paragraphs for word in _broken(each.text))
    if words:
        left = _restored(extract, words, vocabulary(extract))
        extract.unmapped = _n_holes(words)
        extract.restored = extract.unmapped - left


def restore_from(extract: Extract, known: Set[str]) -> None:
    """Restore what `restore` left, by lower-case words of other documents."""
    words = Counter[str](word for each in extract.paragraphs for word in _broken(each.text))
    if words:
        extract.restored = extract.unmapped - _restored(extract, words, vocabulary(extract) | known)


def vocabulary(extract: Extract) -> set[str]:
    """Lower-case words of a document in which all letters are known."""
    texts = (
        _RUN.sub(lambda run: " " if _is_broken(run[0]) else run[0], text) if _HOLES.search(text) else text
        for text in (each.text for each in extract.paragraphs)
    )
    return {word.lower() for text in texts for word in _WORD.findall(text)}


def _restored(extract: Extract, words: Counter[str], known: Set[str]) -> int:
    """Restore what has one reading; how many letters are left."""
    readings = _readings(words, known)
    for paragraph in extract.paragraphs:
        _rewrite(paragraph, readings)
    return _n_holes(Counter({readings.get(word, word): n for word, n in words.items()}))


def _n_holes(words: Counter[str]) -> int:
    return sum(n * len(_HOLES.findall(word)) for word, n in words.items())


def _broken(text: str) -> list[str]:
    """Words with an unmapped letter."""
    return [run for run in _RUN.findall(text) if _is_broken(run)] if _HOLES.search(text) else []


def _is_broken(run: str) -> bool:
    return bool(_HOLES.search(run) and _LETTER.search(run))


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
    parts = [_RUN.sub(lambda found: readings.get(found[0], found[0]), part) for part in parts]
    moved = {start: sum(map(len, parts[:i])) for i, start in enumerate(starts)}
    paragraph.pages = [(moved[start], page) for start, page in paragraph.pages]
    paragraph.text = "".join(parts)
