"""`audit`: flag rows of a corpus as duplicates, leaks of held-out data, too short or too long.

Also `learnable`: a corpus without its leaks, for every run that learns from text (SOURCES.md, Leaks).
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

import numpy as np

from core import cards
from core.config import Config, option
from core.corpora import hygiene
from core.corpora.corpus import Corpus
from core.corpora.phases import Array, Phase, Phases
from core.errors import CorpusError
from core.importing.result import AuditResult, read_audit, write_audit
from core.kind import About, Job, Kind
from core.reporter import Reporter
from core.results import BoolArray
from core.runs.chunks import About as ChunkAbout
from core.runs.chunks import Opened
from core.runs.context import RunContext
from core.runs.executors import spread, together
from core.runs.executors.share import CLAIMS, Over
from core.shown import count


class Flagging(Config):
    """Limits beyond which a sentence is too short, too long, or a near duplicate."""

    min_tokens: int = option(5, "Sentences with fewer tokens are flagged too short.", unit="tokens", ge=0)
    max_tokens: int = option(128, "Sentences with more tokens are flagged too long.", unit="tokens", ge=1)
    near_words: float = option(
        0.9,
        "Sentences of up to 60 words are near duplicates if at least this share of their words is the same, in order.",
        ge=0.8,
        le=1.0,
    )


class AuditConfig(Flagging):
    """Options of an `audit` run: the corpus to check, and the held-out data that must not occur in it."""

    corpus: str = option(..., "The corpus to check.", corpus=True)
    held_out: tuple[str, ...] = option((), "Dev and test sets, whose sentences count as leaks.", corpus=True)


def run(config: AuditConfig, job: Job) -> AuditResult:
    """Flag every row. Artifacts: `audit/` (one byte of flags and one cluster number per row)."""
    flags = _flags(config, job)
    write_audit(job.context.run, flags)
    for path in job.context.run.chunks.glob("*.npy"):
        path.unlink()
    shutil.rmtree(job.context.run.path / CLAIMS, ignore_errors=True)
    return AuditResult(
        flags=flags.counts, leak_rules=flags.leak_rules, near_rules=flags.near_rules, sentences=len(flags.mask)
    )


def help_along(config: AuditConfig, job: Job) -> None:
    """Compute unclaimed chunks of a run that another process owns. Errors: Over when the run is done."""
    with suppress(FileNotFoundError):  # the owner finished first and deleted the chunks
        _flags(config, job)
    raise Over


def _flags(config: AuditConfig, job: Job) -> hygiene.Audit:
    corpus = job.corpus(config.corpus)
    held_out = [job.corpus(reference) for reference in config.held_out]
    flagging = config.model_dump(include=set(Flagging.model_fields))
    with together():
        return hygiene.audit(corpus, held_out, job.context, **flagging, phases=_phases(job.context))


@dataclass(kw_only=True)
class _PhaseWork:
    """One phase: read on the machine that has the corpus, compute on any."""

    phase: Phase
    card: bool = False
    exact: bool = True

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "phase": replace(self.phase, read=_elsewhere)}

    @property
    def stage(self) -> str:
        return self.phase.stage

    def read(self, start: int, stop: int, about: ChunkAbout) -> object:
        return self.phase.read(start, stop)

    def open(self, report: Reporter) -> Opened:
        return Opened(compute=self.phase.compute)

    def device(self) -> tuple[str, str]:
        return "processors", cards.processor()


def _phases(context: RunContext) -> Phases:
    """Return a function that computes a phase of the join as chunks of the run.

    Several processes share the chunks, and a resumed run reuses them.
    """

    def computed(phase: Phase) -> Iterator[Array]:
        if not phase.n:
            return
        paths, _ = spread(
            context,
            phase.n,
            phase.size,
            _PhaseWork(phase=phase),
            phase.name,
            device=nullcontext,
            unit=phase.unit,
            sent=phase.sent,
            last=False,
        )
        yield from (np.load(path, mmap_mode="r") for path in paths)

    return computed


def _elsewhere(start: int, stop: int) -> object:
    raise AssertionError(f"items {start} to {stop} can only be read on the machine that has the corpus")


def learnable_rows(reference: str, held_out: Sequence[str], job: Job) -> BoolArray | None:
    """Return a mask of the rows that are no leak of `held_out`, shape (n,); None if nothing is held out."""
    if not held_out:
        return None
    run = job.child("audit", corpus=reference, held_out=tuple(held_out), **Flagging().model_dump())
    keep: BoolArray = ~read_audit(run).has("leak")
    return keep


def learnable(reference: str, held_out: Sequence[str], job: Job) -> Corpus:
    """Return the corpus or, if rows of it are leaks, its other rows sealed as a new corpus.

    Errors: CorpusError if nothing is left.
    """
    corpus = job.corpus(reference)
    keep = learnable_rows(reference, held_out, job)
    if keep is None or keep.all():
        return corpus
    if not keep.any():
        raise CorpusError(
            f"{corpus.name}: every sentence is in held-out data, so none is left to learn from; give a corpus with "
            "other sentences (the task corpus may be learnt from transductively, if that is allowed)."
        )
    job.context.note(f"{int((~keep).sum()):,} sentences of {corpus.name} are in held-out data and are not learnt from.")
    name = f"{corpus.name} without held-out sentences"
    return job.library.subset(corpus, np.flatnonzero(keep), name=name, origin={"from": corpus.fingerprint})


def _outcome(result: AuditResult, _: About) -> str:
    flagged = [f"{n:,} {name.replace('_', ' ')}" for name, n in result.flags.items() if n]
    return f"Of {count(result.sentences, 'sentence')}: {', '.join(flagged) or 'nothing to flag'}"


KIND = Kind(
    "audit",
    AuditConfig,
    run,
    AuditResult,
    title=lambda run: f"Check {run.corpus(run.config['corpus'])} for duplicates and leaks",
    outcome=_outcome,
    page="Corpora",
    command=None,
    helped=help_along,
)
