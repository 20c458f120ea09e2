"""The words that a recurrent tagger's folder holds, and a copy without those that its training text has only once.

vocabulary.json lists the words, those seen once at their end; model.safetensors has a vector a word in that order.
"""

import json
import shutil
from pathlib import Path
from typing import NotRequired, TypedDict

from core.files import read_json
from core.models.hub import VOCABULARY, WEIGHTS
from core.training import saved_models as models

HELD = (
    "`vocabulary.json` holds every word of the training text, also those seen once (names among them), and those of "
    "the word vectors that it began with: whoever is given this folder can read them. Results offers a copy without "
    "the words seen once, as does `python -m core finetune ... --output FOLDER --without-rare-words`."
)
LEFT_OUT = (
    "`vocabulary.json` holds the words that the training text has at least twice, and those of the word vectors that "
    "it began with: whoever is given this folder can read them. Words seen once were left out and are read as the "
    "unknown word, so this copy may score a little less than is said above."
)


class Vocabulary(TypedDict):
    """The words of one kind of input. rare: words at the end that are trained as the unknown one; once: seen once."""

    words: list[str]
    rare: int
    once: NotRequired[int]


def held(folder: Path) -> tuple[int, int]:
    """Words of the training text that a tagger's folder holds, and how many of them were seen once; (0, 0): none."""
    if not (folder / VOCABULARY).exists():
        return 0, 0
    vocabularies = _read(folder)
    return sum(len(each["words"]) for each in vocabularies), sum(map(_once, vocabularies))


def copy_without(folder: Path, target: Path) -> None:
    """Copy a tagger's folder to `target` without the words seen once; one without a word list as it is."""
    shutil.copytree(folder, target, dirs_exist_ok=True)
    if (folder / VOCABULARY).exists():
        _shorten(folder, target)
        models.write_card(target, models.read_card(folder).replace(HELD, LEFT_OUT))


def _shorten(folder: Path, target: Path) -> None:
    from safetensors.numpy import load_file, save_file  # the app's process loads no torch

    vocabularies, weights = _read(folder), load_file(folder / WEIGHTS)
    for index, vocabulary in enumerate(vocabularies):
        n = len(vocabulary["words"]) - _once(vocabulary)
        name = f"towers.{index}.words.trained.weight"
        weights[name] = weights[name][: 1 + n].copy()  # the unknown word is the first
        vocabulary |= {"words": vocabulary["words"][:n], "rare": 0, "once": 0}
    (target / VOCABULARY).write_text(json.dumps(vocabularies, ensure_ascii=False), encoding="utf-8")
    save_file(weights, target / WEIGHTS)


def _read(folder: Path) -> list[Vocabulary]:
    vocabularies: list[Vocabulary] = read_json(folder / VOCABULARY)
    return vocabularies


def _once(vocabulary: Vocabulary) -> int:
    return max(int(vocabulary.get("once", 0)), int(vocabulary["rare"]))  # an older folder counts the rare ones alone
