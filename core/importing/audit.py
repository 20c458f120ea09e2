"""`audit`: flag rows of a corpus that are duplicates, leaks of held-out data, too short or too long.

`learnable` returns a corpus without leaks. Every run that trains on text uses it (SOURCES.md, Leaks).
"""

from collections.abc import Sequence

import numpy as np

from core.config import Config, option
from core.corpora import hygiene
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.importing.result import AuditResult, read_audit, write_audit
from core.kind import About, Job, Kind
from core.results import BoolArray
from core.shown import count

LEARNABLE = " without held-out sentences"  # appended to a corpus's name after its test leaks were removed


class Flagging(Config):
    """Limits for flagging a sentence as too short, too long, or a near duplicate."""

    min_tokens: int = option(5, "Sentences with fewer tokens are flagged too short.", unit="tokens", ge=0)
    max_tokens: int = option(128, "Sentences with more tokens are flagged too long.", unit="tokens", ge=1)
    near_words: float = option(
        0.9,
        "Sentences of up to 60 words are near duplicates if at least this share of words is equal, in the same order.",
        ge=0.8,
        le=1.0,
    )


class AuditConfig(Flagging):
    """Options of an `audit` run: the corpus to check, and the held-out data that must not occur in it."""

    corpus: str = option(..., "The corpus to check.", corpus=True)
    held_out: tuple[str, ...] = option(
        (), "Dev and test sets; sentences of the corpus that also occur in them are flagged as leaks.", corpus=True
    )


def run(config: AuditConfig, job: Job) -> AuditResult:
    """Flag every row of the corpus. Artifact: `audit/`, with one byte of flags and one cluster number per row."""
    held_out = [job.corpus(reference) for reference in config.held_out]
    flagging = config.model_dump(include=set(Flagging.model_fields))
    flags = hygiene.audit(job.corpus(config.corpus), held_out, job.context, **flagging)
    write_audit(job.context.run, flags)
    return AuditResult(
        flags=flags.counts, leak_rules=flags.leak_rules, near_rules=flags.near_rules, sentences=len(flags.mask)
    )


def learnable_rows(reference: str, held_out: Sequence[str], job: Job) -> BoolArray | None:
    """Return a mask (n,) of the rows that are not leaks of `held_out`; None if nothing is held out."""
    if not held_out:
        return None
    run = job.child("audit", corpus=reference, held_out=tuple(held_out), **Flagging().model_dump())
    keep: BoolArray = ~read_audit(run).has("leak")
    return keep


def learnable(reference: str, held_out: Sequence[str], job: Job) -> Corpus:
    """Return the corpus without leaks of `held_out`: unchanged if it has none, otherwise stored as a new corpus.

    Errors: CorpusError if every row is a leak.
    """
    corpus = job.corpus(reference)
    keep = learnable_rows(reference, held_out, job)
    if keep is None or keep.all():
        return corpus
    if not keep.any():
        raise CorpusError(
            f"{corpus.name}: every sentence is in held-out data, so none is left to train on. Give a corpus with other "
            "sentences, or train on the task corpus if transductive training is allowed."
        )
    n = int((~keep).sum())
    job.context.note(
        f"{count(n, 'sentence')} of {corpus.name} {'is' if n == 1 else 'are'} in held-out data and left out."
    )
    name = f"{corpus.name}{LEARNABLE}"
    return job.library.subset(corpus, np.flatnonzero(keep), name=name, origin={"from": corpus.fingerprint})


def _outcome(result: AuditResult, _: About) -> str:
    flagged = [f"{n:,} {name.replace('_', ' ')}" for name, n in result.flags.items() if n]
    return f"{count(result.sentences, 'sentence')} checked: {', '.join(flagged) or 'nothing to flag'}"


KIND = Kind(
    "audit",
    AuditConfig,
    run,
    AuditResult,
    title=lambda run: f"Check {run.corpus(run.config['corpus'])} for duplicates and leaks",
    outcome=_outcome,
    page="Corpora",
    command=None,
    here=True,
)
