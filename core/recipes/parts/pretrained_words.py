"""Options of the word vectors that a recurrent tagger begins with, and how those of two languages become one table."""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import field_validator

from core.config import Config, checked, option
from core.measures.wvv import WvvOptions

if TYPE_CHECKING:
    from core.models.word_features import Vectors


class WordVectorOptions(Config):
    """Options: of what text they are, and how they are learnt."""

    vectors: str = option("", "bilstm, charcnn: a corpus whose skip-gram vectors words begin with.", corpus=True)
    assisting_vectors: str = option(
        "",
        "A corpus in the assisting corpus's language: with share all its vectors join those of vectors in one table, "
        "for words which these lack; with sub-word the assisting corpus begins with its own.",
        corpus=True,
    )
    skipgram: dict[str, object] = option(
        {},
        "How word vectors are learnt: window=2, dimension=200, negative, min_count, skipgram_epochs.",
    )

    @field_validator("skipgram")
    @classmethod
    def _skipgram(cls, options: dict[str, object]) -> dict[str, object]:
        return checked("skipgram", options, WvvOptions)


def joined(own: "Vectors", other: "Vectors") -> "Vectors":
    """One table of both: a word that both have keeps its vector of `own`."""
    from core.models.word_features import Vectors

    known = set(own.words)
    rows = [row for row, word in enumerate(other.words) if word not in known]
    words = (*own.words, *(other.words[row] for row in rows))
    return Vectors(words=words, values=np.concatenate([own.values, other.values[rows]]), tokens=own.tokens)
