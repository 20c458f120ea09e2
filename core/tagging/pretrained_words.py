"""Options of the word vectors that a recurrent tagger begins with, and how those of two languages become one table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import field_validator

from core.config import Config, checked, option
from core.encoders.vectors import alike_words, find_import, mean_cosine, read_words
from core.errors import ConfigError
from core.kind import Job
from core.paths import home
from core.runs.store import RunStore
from core.similarity.wvv import WvvOptions
from core.tagging.evaluations import WithVector
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from core.models.word_features import Vectors

IMPORTED = ("imported_vectors", "imported_assisting_vectors")


class WordVectorOptions(Config):
    """Options: of what text they are, and how they are learnt; or which imported ones."""

    vectors: str = option("", "bilstm, charcnn: a corpus whose skip-gram vectors words begin with.", corpus=True)
    assisting_vectors: str = option(
        "",
        "A corpus in the assisting corpus's language: with share all its vectors join those of vectors in one table, "
        "for words which these lack; with sub-word the assisting corpus begins with its own.",
        corpus=True,
    )
    imported_vectors: str = option(
        "",
        "In place of vectors: word vectors that `vectors add` read, by name or run id.",
    )
    imported_assisting_vectors: str = option("", "The same in place of assisting_vectors.")
    skipgram: dict[str, object] = option(
        {},
        "How word vectors are learnt: window=2, dimension=200, negative, min_count, skipgram_epochs.",
    )

    def settled(self) -> Self:
        """Options with the ids of imports. Errors: ConfigError for a name that none has."""
        references = {name: getattr(self, name) for name in IMPORTED if getattr(self, name)}
        ids = {name: find_import(name, text, RunStore(home()))[0] for name, text in references.items()}
        return super().settled().model_copy(update=ids)

    @field_validator("skipgram")
    @classmethod
    def _skipgram(cls, options: dict[str, object]) -> dict[str, object]:
        return checked("skipgram", options, WvvOptions)

    @property
    def own_words(self) -> str:
        """Source of the vectors that words begin with: a corpus, or an import; "" where they begin at random."""
        return self.vectors or self.imported_vectors

    @property
    def assisting_words(self) -> str:
        """The same of an assisting corpus's words."""
        return self.assisting_vectors or self.imported_assisting_vectors

    def check_words(self) -> None:
        """Errors: ConfigError where a word would begin with two vectors."""
        for learnt, imported in zip(("vectors", "assisting_vectors"), IMPORTED, strict=True):
            if getattr(self, learnt) and getattr(self, imported):
                raise ConfigError(f"{learnt}, {imported}: a word begins with one vector; choose one of the two.")


def word_vectors(config: WordVectorOptions, job: Job) -> "tuple[Vectors | None, Vectors | None]":
    """Learn, as runs of their own, or read the vectors of the words and of an assisting corpus's words.

    Errors: CorpusError; ConfigError where the two are not as long.
    """
    own, other = (
        read_words(job.child("vectors", corpus=corpus, **config.skipgram))
        if corpus
        else read_words(RunStore(job.home).get(imported))
        if imported
        else None
        for corpus, imported in (
            (config.vectors, config.imported_vectors),
            (config.assisting_vectors, config.imported_assisting_vectors),
        )
    )
    if own and other and own.values.shape[1] != other.values.shape[1]:
        raise ConfigError(
            f"assisting_vectors: have {other.values.shape[1]} numbers a word, and those of vectors "
            f"{own.values.shape[1]}; take two of one length (skipgram dimension=N)."
        )
    return own, other


def joined(own: "Vectors", other: "Vectors") -> "Vectors":
    """One table of both: a word that both have keeps its vector of `own`."""
    from core.models.word_features import Vectors

    known = set(own.words)
    rows = [row for row, word in enumerate(other.words) if word not in known]
    words = (*own.words, *(other.words[row] for row in rows))
    return Vectors(words=words, values=np.concatenate([own.values, other.values[rows]]), tokens=own.tokens)


def with_vector(
    vectors: "Vectors | None", train: Sequence[Sentence], tests: Sequence[Sequence[Sentence]], job: Job
) -> WithVector | None:
    """Count what begins with a pretrained vector, and say it; None where nothing does."""
    from core.models.word_features import share_with_vector

    if vectors is None:
        return None
    shares = WithVector(
        train=share_with_vector(train, vectors, each_once=True),
        tests=[share_with_vector(test, vectors) for test in tests],
        mean_cosine=mean_cosine(vectors.values),
    )
    job.context.note(" ".join(filter(None, [shares.words, alike_words(shares.mean_cosine)])))
    return shares
