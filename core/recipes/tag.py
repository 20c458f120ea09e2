"""`tag`: every sentence of a corpus through a tagger, once; scores, maps and tables share what it found."""

from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from core.artifacts import spans
from core.artifacts.spans import TagResult
from core.config import Config, option
from core.models.fingerprint import fingerprint
from core.recipes.base import Job
from core.recipes.parts.on_device import on_device
from core.reporter import Reporter
from core.runs.chunks import chunked
from core.selection.spans import flat
from core.text.cut import over_tokens, recut
from core.text.neighbours import in_context

CHUNK = 8192  # rows


class TagConfig(Config):
    """What to tag, and with what."""

    corpus: str = option(..., "The corpus to tag.", corpus=True)
    model: str = option(..., "Folder of a saved tagger.")
    constrained: bool = option(True, "Find only tag sequences that BIOES allows, however the tagger was trained.")
    weights: str = option("", "Hash of the tagger, so that another one in its place tags anew.", hidden=True)

    def settled(self) -> Self:
        """These options with the tagger's hash. Errors: ModelError if it is not here."""
        return self.model_copy(update={"weights": fingerprint(self.model)})


def run(config: TagConfig, job: Job) -> TagResult:
    """Artifacts: `spans.npy` `(m,)` of dtype `SPAN`, the entities found, sentence by sentence.

    Raw text is read in tokens cut as the tagger's training tokens were; entities are over the corpus's own.
    """
    from core.models.taggers import load_tagger

    corpus = job.corpus(config.corpus)
    raw = not corpus.labelled and corpus.tokens == "words"  # whoever cut the others knew why
    with on_device(job, alone=False):
        job.context.stage("loading the tagger")
        tagger = load_tagger(Path(config.model))
        tagger.crf.constrained = config.constrained

        def compute(start: int, stop: int, report: Reporter) -> npt.NDArray[np.void]:
            # A chunk's first and last sentences have neighbours too; with a word each, so many hold all that is read.
            first, last = max(start - tagger.context, 0), min(stop + tagger.context, len(corpus))
            kept = list(chain.from_iterable(corpus.batches(first, last)))
            cut = tagger.cut if raw else None
            sentences = in_context([recut(one, cut) for one in kept] if cut else kept, tagger.context)
            own, read = kept[start - first : stop - first], sentences[start - first : stop - first]
            predictions = tagger.predict(read, report)
            if cut:
                triples = zip(predictions, read, own, strict=True)
                predictions = [over_tokens(each, of.tokens, one.tokens) for each, of, one in triples]
            return flat(predictions, tagger.types, start)

        job.context.stage(f"finding entities in {corpus.name}")
        chunks = chunked(job.context, len(corpus), CHUNK, compute, "tag")
    records = np.concatenate([np.load(path) for path in chunks])
    spans.write(job.context.run, records)
    for path in chunks:
        path.unlink()
    return TagResult(types=list(tagger.types), sentences=len(corpus), entities=len(records))
