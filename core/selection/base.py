"""Base class of selection strategies. A strategy only returns one score per sentence, in its own unit.

The module `choose` then selects sentences by score, with the same rules (budgets, ties, flags) for all strategies.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from core.config import Config, option
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.reporter import Reporter, Silent
from core.results import BoolArray, FloatArray, IntArray, Prefer, Role, Rows
from core.selection.evidence import Arrays, Evidence, Parts, Spans
from core.text.sentence import Sentence

Reads = Literal["ids", "text", "vectors", "both", "spans"]
# mlm: the encoder after continued pre-training on T_C (B1 in SOURCES.md). ner: a tagger (B2 in SOURCES.md). prior: the
# encoder after continued pre-training on a sample of D_C.
Model = Literal["mlm", "ner", "prior"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sentences to score, with the data that the strategy uses.

    ids: `(n,)` uint64. sentences: the n sentences, or empty if the strategy uses only vectors or ids.
    vectors: `(n, d)` rows of length 1 (0 for an empty sentence), or None. spans: entities that each tagger predicts.
    ranks: `(n, k)` ranks in D_C by the k strategies of `Strategy.others` (see `choose.ranks`); None if k is 0.
    report: reporter for the progress of slow strategies within the batch.
    """

    ids: IntArray
    sentences: Sequence[Sentence] = ()
    vectors: FloatArray | None = None
    spans: Sequence[Spans] = ()
    ranks: FloatArray | None = None
    report: Reporter = field(default_factory=Silent)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A corpus, such as T_C or D_C, with the data that a strategy uses.

    vectors, norms: `(n, d)` and `(n,)`; a raw embedding is `vectors[i] * norms[i]`. Both are None if the strategy does
    not use vectors. keep: mask `(n,)` of the rows to learn from, which excludes test leaks. spans: entities that each
    tagger predicts. model: folder of the language model that was trained on the corpus, if the strategy needs one.
    ranks: `(n, k)`, see `Batch`.
    """

    corpus: Corpus
    vectors: Rows | None = None
    norms: FloatArray | None = None
    keep: BoolArray | None = None
    spans: Sequence[Spans] = ()
    model: Path | None = None
    ranks: FloatArray | None = None

    def batches(self, reads: Reads, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield rows `start` to `stop - 1` in order, at most `BLOCK` per batch, without reading other rows."""
        for ids, sentences in self.corpus.with_ids(start, stop, text=reads not in ("ids", "vectors")):
            rows = slice(start, start + len(ids))
            vectors = None if self.vectors is None else self.vectors[rows]
            spans = tuple(tagger_spans.part(rows.start, rows.stop) for tagger_spans in self.spans)
            ranks = None if self.ranks is None else self.ranks[rows]
            yield Batch(ids=ids, sentences=sentences, vectors=vectors, spans=spans, ranks=ranks)
            start = rows.stop

    def sentences(self) -> Iterator[Sentence]:
        """Yield the sentences that a strategy may learn from."""
        start = 0
        for batch in self.corpus.batches():
            for row, sentence in enumerate(batch, start):
                if self.keep is None or self.keep[row]:
                    yield sentence
            start += len(batch)

    def learnable_rows(self) -> IntArray:
        """Return the row numbers of the vectors that `learnable` returns, ascending."""
        assert self.norms is not None
        # An empty sentence has no direction. Its row of zeros would pull a mean towards zero.
        return np.flatnonzero(self.norms > 0 if self.keep is None else (self.norms > 0) & self.keep)

    def learnable(self) -> tuple[FloatArray, FloatArray]:
        """Return the unit vectors `(m, d)` and the norms `(m,)` of the rows in `keep` that are not empty, as float32.

        Errors: CorpusError if no row is left.
        """
        assert self.vectors is not None
        assert self.norms is not None
        rows = self.learnable_rows()
        if not len(rows):
            raise CorpusError(
                f"{self.corpus.name}: no sentence is left to learn from (all are empty or also in held-out data); "
                "give a task corpus with other sentences."
            )
        return np.asarray(self.vectors[rows], dtype=np.float32), np.asarray(self.norms[rows], dtype=np.float32)


class Strategy(ABC):
    """A method that scores the sentences of D_C and explains a score. All its code is in one file of `strategies/`.

    name: key of the strategy. unit: unit of the scores. prefer: "high" if high scores are best, else "low".
    in_short: description of the preferred sentences in a few words.
    topical: True if the score depends on the words of the sentence. False for random controls.
    needs: roles of the corpora that the strategy needs besides T_C and D_C.
    reads: data that `score` uses: ids only, sentences, embeddings, both, or sentences with predicted entities.
    models: models to train before scoring. If the strategy also uses embeddings, each model computes an embedding, and
    the embeddings are concatenated.
    summary, trust: sentences for the page: what the strategy does, and when to trust it.
    Options: class of the strategy's options. options: their values.
    """

    name: ClassVar[str]
    in_short: ClassVar[str]
    unit: ClassVar[str]
    prefer: ClassVar[Prefer] = "high"
    topical: ClassVar[bool] = True
    needs: ClassVar[frozenset[Role]] = frozenset()
    reads: ClassVar[Reads] = "text"
    models: ClassVar[frozenset[Model]] = frozenset()
    summary: ClassVar[str]
    trust: ClassVar[str]
    Options: ClassVar[type[Config]] = Config

    def __init__(self, options: Config, seed: int) -> None:
        self.options, self.seed = options, seed

    @classmethod
    def others(cls, options: Any) -> tuple[str, ...]:
        """Return the names of strategies that must score D_C first. Their ranks are in `Batch.ranks`."""
        return ()

    @classmethod
    def cascades(cls, options: Any) -> bool:
        """Return True if `select --cascade` supports these options. A cascade embeds only part of D_C."""
        return False

    @classmethod
    def sized(cls, options: Any, n: int) -> Any:
        """Return the options, with defaults that depend on the budget. n: number of sentences that it selects."""
        return options

    @abstractmethod
    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        """Fit the strategy. Called once, before `score`."""

    @abstractmethod
    def score(self, batch: Batch) -> FloatArray:
        """Return scores `(len(batch),)`; NaN if a score could not be computed.

        Each score depends only on the sentence and its ranks, so D_C can be scored in chunks of any size.
        """

    def learns_from(self, ids: IntArray) -> IntArray:
        """Return the rows of D_C whose vectors `prepare` reads, ascending. ids: the ids of D_C's sentences, `(n,)`."""
        return np.empty(0, dtype=np.int64)

    def without_vectors(self, ids: IntArray, texts: Sequence[str]) -> FloatArray | None:
        """Return the term of each score that needs no vectors, `(n,)`; None if there is no such term.

        Called after `prepare`. ids, texts: id and text of each sentence, `(n,)`.
        """
        return None

    def learned(self) -> Arrays:
        """Return the arrays that `explain` needs, which are stored with the scores. Called after `prepare`."""
        return {}

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return the terms of a score. Reads stored arrays, takes milliseconds and loads neither torch nor a model.

        Errors: KeyError or CorpusError if the data behind the score was removed.
        """
        return Parts(parts=[evidence.whole], notes=("This strategy's score has no parts.",))


class AdaptedOptions(Config):
    """Options of every strategy that needs trained models."""

    preset: Literal["quick", "paper"] = option(
        "quick", "Training of the strategy's models. quick: few epochs. paper: as in Mahapatra et al. 2022."
    )
    accumulation: int = option(
        1, "Micro-batches per training batch of these models. More micro-batches need less memory.", ge=1, le=4096
    )
