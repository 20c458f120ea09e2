"""Works of the kinds of run whose chunks may be made by any process: to embed, to tag, to score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from core import cards
from core.corpora.corpus import BLOCK, Corpus
from core.encoders import vectors
from core.models.devices import Precision
from core.reporter import Reporter
from core.results import FloatArray, Role
from core.runs.chunks import About, Opened, Part
from core.selection.base import Batch, Source, Strategy
from core.selection.spans import flat
from core.text.cut import over_tokens, recut
from core.text.neighbours import in_context
from core.text.sentence import Sentence


@dataclass(frozen=True, kw_only=True)
class EmbedWork:
    """A corpus's sentences to vectors. options: of `Encoder.load`."""

    corpus: Corpus
    encoder: str
    options: Mapping[str, Any]
    card: bool = True
    exact: bool = False

    @property
    def stage(self) -> str:
        return f"embedding {self.corpus.name}"

    def read(self, start: int, stop: int, about: About) -> list[str]:
        return self.corpus.texts(start, stop)

    def open(self, report: Reporter) -> Opened:
        from core.models.encoder import Encoder

        report.stage(f"loading the encoder {self.encoder}")
        encoder = Encoder.load(self.encoder, **self.options)
        return Opened(
            compute=lambda pieces, report: vectors.shard(*encoder.encode_cut(pieces, report)),
            ahead=encoder.cut,
            about={"dimension": encoder.dimension},
        )

    def device(self) -> tuple[str, str]:
        return _granted(self.options["precision"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Neighbourhood:
    """Sentences `first` on of a corpus, of which those from `start` are to be tagged, `n` of them."""

    sentences: Sequence[Sentence]
    first: int
    start: int
    n: int


@dataclass(frozen=True, kw_only=True)
class TagWork:
    """A corpus's sentences to their entities, flat. model: the tagger's folder, which workers see at the same path."""

    corpus: Corpus
    model: str
    constrained: bool
    card: bool = True
    exact: bool = False

    @property
    def stage(self) -> str:
        return f"finding entities in {self.corpus.name}"

    def read(self, start: int, stop: int, about: About) -> _Neighbourhood:
        # A chunk's first and last sentences have neighbours too; with a word each, so many hold all that is read.
        first, last = max(start - about["context"], 0), min(stop + about["context"], len(self.corpus))
        kept = list(chain.from_iterable(self.corpus.batches(first, last)))
        return _Neighbourhood(sentences=kept, first=first, start=start, n=stop - start)

    def open(self, report: Reporter) -> Opened:
        from core.models.taggers import load_tagger

        report.stage("loading the tagger")
        tagger = load_tagger(Path(self.model))
        tagger.crf.constrained = self.constrained
        raw = not self.corpus.labelled and self.corpus.tokens == "words"  # whoever cut the others knew why
        cut = tagger.cut if raw else None

        def compute(rows: _Neighbourhood, report: Reporter) -> Any:
            kept, own = rows.sentences, slice(rows.start - rows.first, rows.start - rows.first + rows.n)
            read = in_context([recut(one, cut) for one in kept] if cut else kept, tagger.context)[own]
            predictions = tagger.predict(read, report)
            if cut:
                triples = zip(predictions, read, kept[own], strict=True)
                predictions = [over_tokens(each, of.tokens, one.tokens) for each, of, one in triples]
            return flat(predictions, tagger.types, rows.start)

        return Opened(compute=compute, about={"types": list(tagger.types), "context": tagger.context})

    def device(self) -> tuple[str, str]:
        return _granted()


@dataclass(kw_only=True)
class ScoreWork:
    """D_C's sentences to a strategy's scores.

    sources: what a strategy whose model is loaded where it scores is prepared from there; None: it is prepared.
    """

    strategy: Strategy
    domain: Source
    sources: Mapping[Role, Source] | None
    exact: bool = False

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "domain": Source(corpus=self.domain.corpus)}  # whose rows are read where the home is

    @property
    def stage(self) -> str:
        return f"scoring {self.domain.corpus.name}"

    @property
    def card(self) -> bool:
        return self.sources is not None

    def read(self, start: int, stop: int, about: About) -> list[Batch]:
        return list(self.domain.batches(self.strategy.reads, start, stop))

    def open(self, report: Reporter) -> Opened:
        if self.sources is not None:
            report.stage(f"preparing {self.strategy.name}")
            self.strategy.prepare(self.sources, report)
        return Opened(compute=self._scores)

    def device(self) -> tuple[str, str]:
        return _granted() if self.card else ("processors", cards.processor())

    def _scores(self, batches: Sequence[Batch], report: Reporter) -> FloatArray:
        parts, n = list[FloatArray](), sum(map(len, batches))
        for batch in batches:
            done = len(parts) * BLOCK
            parts.append(self.strategy.score(replace(batch, report=Part(report, done, n, "sentences"))))
            report.progress(done + len(batch), n, "sentences")
            report.check()
        return np.concatenate(parts)


def _granted(precision: Precision = "auto") -> tuple[str, str]:
    """Device of a worker, in words, and the machine's name: the engine gave it a device that nobody else has."""
    from core.models import devices
    from core.models.transfer import without_reading_masks

    device = devices.pick_device()
    if device.type == "cuda":
        without_reading_masks()
    words = devices.in_words(device, devices.pick_dtype(precision, device, frozen=True))
    return words, devices.name_of(device)
