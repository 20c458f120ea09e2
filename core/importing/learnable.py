"""What of T_C may be learnt from: everything but sentences that were held out (SOURCES.md, Leaks)."""

from collections.abc import Sequence

import numpy as np

from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.importing.audit import Flagging
from core.importing.audit_result import read
from core.kind import Job
from core.results import BoolArray


def learnable_rows(reference: str, held_out: Sequence[str], job: Job) -> BoolArray | None:
    """`(n,)` the rows of a corpus that leak nothing of `held_out`; None where nothing is held out."""
    if not held_out:
        return None
    run = job.child("audit", corpus=reference, held_out=tuple(held_out), **Flagging().model_dump())
    keep: BoolArray = ~read(run).has("leak")
    return keep


def learnable(reference: str, held_out: Sequence[str], job: Job) -> Corpus:
    """The corpus itself or, where rows of it leak, what is left of it, sealed as a corpus of its own.

    Errors: CorpusError if nothing is left.
    """
    corpus = job.corpus(reference)
    keep = learnable_rows(reference, held_out, job)
    if keep is None or keep.all():
        return corpus
    if not keep.any():
        raise CorpusError(
            f"{corpus.name}: every sentence of it is in held-out data, so none is left to learn from; give a corpus "
            "with sentences of its own (the task corpus may be learnt from transductively, where that is allowed)."
        )
    job.context.note(f"{int((~keep).sum()):,} sentences of {corpus.name} are in held-out data and are not learnt from.")
    name = f"{corpus.name} without held-out sentences"
    return job.library.subset(corpus, np.flatnonzero(keep), name=name, origin={"from": corpus.fingerprint})
