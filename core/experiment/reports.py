"""Reports of finished experiments and studies, for people who never open Winnow."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from core import __version__
from core.errors import ConfigError, CorpusError, RunError
from core.experiment import report as printed
from core.experiment import result as leaderboard
from core.experiment import studies
from core.experiment import words as findings
from core.experiment.report import CorpusRow, Document
from core.experiment.report import Cover as Cover
from core.experiment.result import ArmRow
from core.experiment.results import board, corpus_name, finding, missing, unfound_types
from core.experiment.words import overlap_in_short
from core.files import read_object, write_atomic
from core.importing.view import ROLES
from core.project_list import COVER_FILE
from core.projects.audit import exporting
from core.projects.home import home, library, store
from core.shown_command import command
from core.tagging import result as taggers
from core.tagging.result import TypeScores
from core.terms import TEST

Format = Literal["html", "pdf", "docx"]
FORMATS: tuple[Format, ...] = ("pdf", "docx", "html")
KINDS = ("experiment", "study")
LONGEST = 100  # characters of a field of the cover


@exporting
def report(run_id: str, suffix: Format = "html", cover: Cover | None = None, *, examples: bool = True) -> bytes:
    """Write a finished experiment or study on two pages: one for who trains no models, one for who does.

    cover: firm, project, author and date; without one what was kept of the last, and today. examples: with three
    sentences of the test set.
    Errors: ConfigError for a run of another kind, or one that has not finished.
    """
    run = store().get(run_id)
    if run.manifest.kind not in KINDS or run.state().state != "succeeded":
        raise ConfigError(f"{run_id}: reports are of finished experiments and studies; this is neither.")
    cover = cover or last_cover()
    document = _study(run_id, cover) if run.manifest.kind == "study" else _experiment(run_id, cover, examples)
    write: Mapping[Format, Callable[[Document], bytes]] = {
        "html": lambda document: printed.html(document).encode(),
        "pdf": printed.pdf,
        "docx": printed.docx,
    }
    return write[suffix](document)


def write(run_id: str, path: Path, cover: Cover, *, examples: bool = True) -> None:
    """Write a report as what the file's ending says. Errors: ConfigError for another ending, and as `report`."""
    suffix = next((each for each in FORMATS if path.suffix.lower() == f".{each}"), None)
    if suffix is None:
        raise ConfigError(f"{path}: a report cannot be written as that; let it end in .{', .'.join(FORMATS)}.")
    write_atomic(path, report(run_id, suffix, cover, examples=examples))


def last_cover() -> Cover:
    """Read what `keep_cover` kept in this project, dated today; only the date where that is nothing, or spoilt."""
    kept = read_object(home() / COVER_FILE) or {}
    texts = {name: text[:LONGEST] for name in ("firm", "project", "author") if isinstance(text := kept.get(name), str)}
    return Cover(**texts, date=today())


def keep_cover(cover: Cover) -> None:
    """Keep who reports and on what, but not when, for this project's next report."""
    home().mkdir(parents=True, exist_ok=True)
    if (undated := replace(cover, date="")) != replace(last_cover(), date=""):
        write_atomic(home() / COVER_FILE, json.dumps(asdict(undated), ensure_ascii=False, indent=1).encode())


def today() -> str:
    """The day, as a report prints it."""
    now = datetime.now(UTC).astimezone()
    return f"{now.day} {now:%B %Y}"


def _experiment(run_id: str, cover: Cover, examples: bool) -> Document:
    run, summary = store().get(run_id), board(run_id)
    config = run.manifest.config
    rows = summary.leaderboard
    main = findings.main(summary)
    base = leaderboard.baseline(main, rows) if main else None
    report = printed.Report(
        rows=rows,
        main=main,
        task=corpus_name(config["test"]),
        types=_types(base, main),
        examples=_examples(base, main) if examples else None,
        corpora=[_corpus_row(role, fingerprint) for role, fingerprint in run.manifest.inputs.items()],
        encoder=config["encoder"],
        preset=config["preset"],
        seeds=config["seeds"][: summary.planned.replicates if summary.planned else None],
        hours=sum(summary.hours.values()),
        command=command("experiment", config),
        begun=_begun(run_id),
        finding=finding(run_id),
        version=run.manifest.versions.get("winnow", __version__),
        missing=missing(run_id),
        unfound=unfound_types(run_id),
        planned=summary.planned.why if summary.planned else "",
        overlap=" ".join(filter(None, (summary.overlap_words, summary.ceiling_words))),
        overlap_in_short=overlap_in_short(summary),
        multipliers=summary.multipliers.words if summary.multipliers else "",
    )
    return printed.experiment_document(report, cover)


def _begun(run_id: str) -> str:
    run = store().get(run_id)
    created = run.manifest.created[:16].replace("T", " ")
    return f"{run.manifest.kind.capitalize()} {run_id}, begun {created} UTC."


def _types(base: ArmRow | None, main: ArmRow | None) -> list[TypeScores]:
    """Scores by type without and with what was tried; none where their files are gone."""
    with suppress(RunError, CorpusError):
        if base and main:
            return taggers.by_type(*([store().get(run) for run in _same_test(row)] for row in (base, main)))
    return []


def _same_test(row: ArmRow) -> Sequence[str]:
    """The runs of a line that have one test set: all its replicates, unless halves are swapped."""
    return row.finetunes[:1] if row.halves_runs else row.finetunes


def _examples(base: ArmRow | None, main: ArmRow | None) -> printed.Examples | None:
    """Examples by the first tagger of each; None where their files or the test set are gone."""
    with suppress(RunError, CorpusError):
        if base and main:
            a, b = store().get(base.finetune_run), store().get(main.finetune_run)
            first = [run.manifest.config["seeds"][0] for run in (a, b)]
            return printed.examples(taggers.side_by_side(a, first[0], b, first[1], library()))
    return None


def _study(run_id: str, cover: Cover) -> Document:
    run = store().get(run_id)
    config = run.manifest.config
    report = printed.StudyReport(
        result=studies.board(run_id),
        corpora=[_corpus_row(role, fingerprint) for role, fingerprint in run.manifest.inputs.items()],
        encoder=config["encoder"],
        preset=config["preset"],
        command=command("study", config),
        begun=_begun(run_id),
        finding=studies.finding(run_id),
        version=run.manifest.versions.get("winnow", __version__),
        missing=missing(run_id),
    )
    return printed.study_document(report, cover)


def _corpus_row(role: str, fingerprint: str) -> CorpusRow:
    named = {
        **{part: term.named for part, term in ROLES.items()},
        "also_test": f"further {TEST.word}s",
        "holdout": "held out",
        "sources": "a source",
        "assisting": "labels to borrow",
        "gazetteer": "a list of names",
    }
    role = role.partition(".")[0]
    sentences = 0
    with suppress(CorpusError):
        sentences = len(library().find(fingerprint))
    return CorpusRow(
        role=named.get(role, role), name=corpus_name(fingerprint), sentences=sentences, fingerprint=fingerprint
    )
