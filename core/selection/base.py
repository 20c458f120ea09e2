"""The contract of a selection strategy: one float a sentence, in its own unit, and nothing else.

Choosing (budgets, ties, hygiene, export) is shared by all strategies and lives in `choose`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from core.config import Config, option
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.reporter import Reporter, Silent
from core.results import BoolArray, FloatArray, IntArray, Prefer, Role, Rows
from core.selection.evidence import Arrays, Evidence, Parts, Spans
from core.text.sentence import Sentence

Reads = Literal["ids", "text", "vectors", "both", "spans"]
Model = Literal["mlm", "ner"]  # B1, a language model of T_C; B2, a tagger (SOURCES.md, B1 and B2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some sentences, as much of them as the strategy reads.

    ids: `(n,)` uint64. sentences: n of them, or none where the strategy reads vectors or ids alone.
    vectors: `(n, d)` rows of length 1 (0 for an empty sentence), or None. spans: each tagger's entities in them.
    report: for the progress through these n of a strategy that takes longer than a moment.
    """

    ids: IntArray
    sentences: Sequence[Sentence] = ()
    vectors: FloatArray | None = None
    spans: Sequence[Spans] = ()
    report: Reporter = field(default_factory=Silent)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A corpus with what a strategy may read of it.

    vectors, norms: `(n, d)` and `(n,)`; a raw embedding is `vectors[i] * norms[i]`. Both None where the
    strategy reads text. keep: `(n,)` rows that may be learnt from (a leaked test sentence may not). spans: the
    entities that each tagger found in it. model: the folder of the language model trained on it, where asked for.
    """

    corpus: Corpus
    vectors: Rows | None = None
    norms: FloatArray | None = None
    keep: BoolArray | None = None
    spans: Sequence[Spans] = ()
    model: Path | None = None

    def batches(self, reads: Reads, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Rows `start` to `stop` in order, at most `BLOCK` at a time; nothing of the others is read."""
        for ids, sentences in self.corpus.with_ids(start, stop, text=reads not in ("ids", "vectors")):
            rows = slice(start, start + len(ids))
            vectors = None if self.vectors is None else self.vectors[rows]
            spans = tuple(tagger_spans.part(rows.start, rows.stop) for tagger_spans in self.spans)
            yield Batch(ids=ids, sentences=sentences, vectors=vectors, spans=spans)
            start = rows.stop

    def sentences(self) -> Iterator[Sentence]:
        """Return the sentences that may be learnt from."""
        start = 0
        for batch in self.corpus.batches():
            for row, sentence in enumerate(batch, start):
                if self.keep is None or self.keep[row]:
                    yield sentence
            start += len(batch)

    def learnable_rows(self) -> IntArray:
        """Rows, ascending, that `learnable` gives the vectors of."""
        assert self.norms is not None
        # An empty sentence has no direction: as a row of zeros it would draw a mean towards nothing.
        return np.flatnonzero(self.norms > 0 if self.keep is None else (self.norms > 0) & self.keep)

    def learnable(self) -> tuple[FloatArray, FloatArray]:
        """`(m, d)` float32 vectors of length 1 and their `(m,)` norms: rows kept, empty sentences left out.

        Errors: CorpusError if none is left.
        """
        assert self.vectors is not None
        assert self.norms is not None
        rows = self.learnable_rows()
        if not len(rows):
            raise CorpusError(
                f"{self.corpus.name}: no sentence is left to learn from (all are empty or found in held-out data); "
                "give a task corpus with other sentences."
            )
        return np.asarray(self.vectors[rows], dtype=np.float32), np.asarray(self.norms[rows], dtype=np.float32)


class Strategy(ABC):
    """A way to score the sentences of D_C, and to explain a score: one file of `strategies/` holds all of it.

    name, unit: of its scores. prefer: which end of them is wanted. in_short: which sentences those are, in a few words.
    topical: whether scores go by what a sentence is about; a control or a yardstick such as length does not.
    needs: roles beside T_C and D_C.
    reads: whether `score` looks at ids alone, at sentences, at embeddings, at both, or at sentences and predicted
    entities.
    models: what is trained for it first; embeddings, if it reads them, are then these models', side by side.
    summary, trust: one sentence on what it does, one on when to trust it (shown on the page).
    Options: its options; `options` holds them.
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

    @abstractmethod
    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        """Learn what scoring needs. Called once, before `score`."""

    @abstractmethod
    def score(self, batch: Batch) -> FloatArray:
        """Return scores `(len(batch),)`. Each depends only on its own sentence; NaN if it could not be computed."""

    def learned(self) -> Arrays:
        """Return the arrays of a prepared strategy that `explain` needs; they are stored beside the scores."""
        return {}

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return the terms of a score from the stored arrays, in milliseconds, without torch or a model.

        Errors: KeyError or CorpusError where what it was made from is gone.
        """
        return Parts(parts=[evidence.whole], notes=("This strategy's score has no parts.",))


class AdaptedOptions(Config):
    """Options of every strategy that needs trained models."""

    preset: Literal["quick", "paper"] = option(
        "quick", "How the models it needs are trained: quick with few epochs, paper as Mahapatra et al. 2022."
    )
    accumulation: int = option(1, "Parts of a batch when they are trained: more take less memory.", ge=1, le=4096)
