"""Scores that a dictionary adds to a tagger's emissions (SOURCES.md, Dictionary).

names.json      {"case_sensitive": bool, "names": {type: [name, ...]}}; blanks join the words of a name
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from core.files import read_back, write_atomic
from core.models.crf import bioes_tags
from core.models.hub import NAMES
from core.text.names import Dictionary
from core.text.schemes import encode
from core.text.sentence import Sentence

STRENGTH = 2.0  # weight of the prior in `fit`, as a number of words that have the dictionary's tag


class NameFeatures(nn.Module):
    """Gives each word a score per tag of the tagger, depending on the word's BIOES tag in the dictionary's prediction.

    tags: the k BIOES tags of the tagger. All scores are 0 before `fit`.
    """

    def __init__(self, dictionary: Dictionary, tags: Sequence[str]) -> None:
        super().__init__()
        self.dictionary, self.tags = dictionary, tuple(tags)
        self.own = bioes_tags(sorted(set(dictionary.types.values())))
        self._index = {tag: i for i, tag in enumerate(self.own)}
        self.scores = nn.Embedding(len(self.own), len(self.tags))
        nn.init.zeros_(self.scores.weight)
        self._tagged = lru_cache(10_000)(self._tags)  # cached, because every epoch reads the same sentences

    def rows(self, sentences: Sequence[Sentence]) -> Tensor:
        """Return the index of each word's tag in the dictionary's prediction, `(b, l)`; padding has the tag O."""
        found = [self._tagged(sentence.tokens) for sentence in sentences]
        rows = np.full((len(found), max(map(len, found))), self._index["O"])
        for row, tags in zip(rows, found, strict=True):
            row[: len(tags)] = tags
        return torch.from_numpy(rows)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores of each word's k tags, `(b, l, k)`. rows: the result of the method `rows`."""
        scores: Tensor = self.scores(rows)
        return scores

    def fit(self, train: Iterable[Sentence]) -> None:
        """Set each score to log p(tag | dictionary's tag) - log p(tag), estimated on the training set.

        If the scores started at 0, the encoder would memorise a small training set before the scores changed much.
        """
        index, seen = {tag: i for i, tag in enumerate(self.tags)}, Counter[tuple[int, int]]()
        for sentence in train:
            gold = encode(sentence.entities or (), len(sentence.tokens), "bioes")
            seen.update(zip(self._tagged(sentence.tokens), (index[tag] for tag in gold), strict=True))
        counts = np.zeros((len(self.own), len(self.tags)))
        for at, n in seen.items():
            counts[at] = n
        usual = (counts.sum(axis=0) + 1) / (counts.sum() + len(self.tags))
        given = (counts + STRENGTH * usual) / (counts.sum(axis=1, keepdims=True) + STRENGTH)
        with torch.no_grad():
            self.scores.weight.copy_(torch.from_numpy(np.log(given / usual)))

    def write(self, folder: Path) -> None:
        """Write the dictionary to `folder`; the scores are a part of the tagger's weights."""
        names = defaultdict[str, list[str]](list)
        for key, type in self.dictionary.types.items():
            names[type].append(" ".join(key))
        stored = {"case_sensitive": self.dictionary.case_sensitive, "names": names}
        write_atomic(folder / NAMES, json.dumps(stored, ensure_ascii=False).encode())

    @classmethod
    def read(cls, folder: Path, tags: Sequence[str]) -> Self | None:
        """Return the dictionary in a tagger's folder; None if there is none. Errors: CorpusError."""
        if not (path := folder / NAMES).is_file():
            return None
        with read_back(path):
            stored = json.loads(path.read_text(encoding="utf-8"))
            types = {tuple(name.split(" ")): type for type, names in stored["names"].items() for name in names}
            return cls(Dictionary(types, case_sensitive=bool(stored["case_sensitive"])), tags)

    def _tags(self, tokens: Sequence[str]) -> tuple[int, ...]:
        found = [match.entity for match in self.dictionary.find(tokens)]
        return tuple(self._index[tag] for tag in encode(found, len(tokens), "bioes"))
