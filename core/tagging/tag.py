"""`tag`: every sentence of a corpus through a tagger, once; scores, maps and tables share what it found."""

from functools import partial
from typing import Self

import numpy as np

from core.config import Config, option
from core.encoders.works import TagWork
from core.kind import About, Job, Kind
from core.models.fingerprint import fingerprint
from core.runs.executors import spread
from core.shown import count
from core.tagging import spans
from core.tagging.predictions import PredictResult
from core.tagging.spans import TagResult
from core.training.on_device import on_device

CHUNK = 8192  # rows


class TagConfig(Config):
    """Options: what to tag, and with what."""

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
    corpus = job.corpus(config.corpus)
    work = TagWork(corpus=corpus, model=config.model, constrained=config.constrained)
    device = partial(on_device, job, alone=False)
    chunks, about = spread(job.context, len(corpus), CHUNK, work, "tag", device=device)
    records = np.concatenate([np.load(path) for path in chunks])
    spans.write(job.context.run, records)
    for path in chunks:
        path.unlink()
    return TagResult(types=about["types"], sentences=len(corpus), entities=len(records))


def found_in_words(result: TagResult | PredictResult, _: About) -> str:
    """Return the number of entities of a finished `tag` or `predict` run, as a line."""
    return f"{count(result.entities, 'entity', 'entities')} in {count(result.sentences, 'sentence')}"


KIND = Kind(
    "tag",
    TagConfig,
    run,
    TagResult,
    title=lambda run: f"Find entities in {run.corpus(run.config['corpus'])}",
    outcome=found_in_words,
    page="Explore",
    command=None,
    helped=run,
)
