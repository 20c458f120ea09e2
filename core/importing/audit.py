"""`audit`: flags of one corpus's rows: duplicates, leaks of held-out data, too short, too long."""

import shutil
from contextlib import suppress

from core.config import Config, option
from core.corpora import hygiene
from core.importing.audit_result import AuditResult, write
from core.importing.phased import phases
from core.kind import About, Job, Kind
from core.runs.executors import together
from core.runs.executors.share import CLAIMS, Over
from core.shown import count


class Flagging(Config):
    """Options of which sentences count as too short, as too long, and as near duplicates."""

    min_tokens: int = option(5, "Sentences with fewer tokens are flagged too short.", unit="tokens", ge=0)
    max_tokens: int = option(128, "Sentences with more tokens are flagged too long.", unit="tokens", ge=1)
    near_words: float = option(
        0.9,
        "Sentences of up to 60 words are near duplicates if at least this share of their words is the same, in order.",
        ge=0.8,
        le=1.0,
    )


class AuditConfig(Flagging):
    """Options: the corpus to look through, and what must not be found in it."""

    corpus: str = option(..., "The corpus to look through.", corpus=True)
    held_out: tuple[str, ...] = option((), "Dev and test sets, whose sentences count as leaks.", corpus=True)


def run(config: AuditConfig, job: Job) -> AuditResult:
    """Artifacts: `audit/` (one byte of flags and one cluster number a row)."""
    flags = _flags(config, job)
    write(job.context.run, flags)
    for path in job.context.run.chunks.glob("*.npy"):
        path.unlink()
    shutil.rmtree(job.context.run.path / CLAIMS, ignore_errors=True)
    return AuditResult(
        flags=flags.counts, leak_rules=flags.leak_rules, near_rules=flags.near_rules, sentences=len(flags.mask)
    )


def help_along(config: AuditConfig, job: Job) -> None:
    """Make chunks that nobody else is at, beside the process that works on the run. Errors: Over at its end."""
    with suppress(FileNotFoundError):  # it was done sooner, and has taken them away
        _flags(config, job)
    raise Over


def _flags(config: AuditConfig, job: Job) -> hygiene.Audit:
    corpus = job.corpus(config.corpus)
    held_out = [job.corpus(reference) for reference in config.held_out]
    flagging = config.model_dump(include=set(Flagging.model_fields))
    with together():
        return hygiene.audit(corpus, held_out, job.context, **flagging, phases=phases(job.context))


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
