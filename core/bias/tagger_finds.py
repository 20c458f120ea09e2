"""What a tagger found in a corpus, name by name, from a finished run."""

from collections.abc import Iterator
from itertools import chain

from core.bias.finds import Find
from core.errors import Unfinished
from core.kind import Job
from core.runs.store import RunStore
from core.tagging import predictions, spans

KINDS = ("predict", "tag")


def finds(reference: str, job: Job) -> Iterator[Find]:
    """Every entity that a `predict` or `tag` run found. Errors: RunError; Unfinished for any other run."""
    run = RunStore(job.home).get(reference)
    if run.manifest.kind not in KINDS or run.state().state != "succeeded":
        raise Unfinished(f"finds: {reference} is no finished run of predict or tag; tag a corpus of the domain first.")
    if run.manifest.kind == "predict":
        for line in predictions.lines(run):
            for named in line.entities:
                yield line.tokens[named.start : named.end], named.type, named.confidence
        return
    tagged, corpus = spans.read(run), job.corpus(run.manifest.inputs["corpus"])
    for row, sentence in enumerate(chain.from_iterable(corpus.batches())):
        sure = tagged.part(row, row + 1).records["confidence"].tolist()
        for entity, confidence in zip(tagged.entities(row), sure, strict=True):
            yield sentence.tokens[entity.start : entity.end], entity.type, confidence
