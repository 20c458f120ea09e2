"""Exports of an experiment or study: tables, reports, models and files.

The decorator `exporting` records every export in the audit log.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from core import __version__
from core.corpora.writers import output_file, write_file
from core.errors import ConfigError, CorpusError, RunError
from core.experiment import result as leaderboard
from core.experiment import tables
from core.experiment.report.documents import (
    CorpusRow,
    Examples,
    Report,
    StudyReport,
    experiment_document,
    study_document,
)
from core.experiment.report.documents import examples as picked_examples
from core.experiment.report.parts import Cover, Document
from core.experiment.report.writers import docx, html, pdf
from core.experiment.result import ArmRow
from core.experiment.results import (
    answered,
    beside,
    board,
    corpus_name,
    finding,
    missing,
    sent_to,
    study_board,
    unfound_types,
    weakest_type,
)
from core.experiment.words import main as main_line
from core.experiment.words import overlap_in_short
from core.files import read_back, read_object, write_atomic
from core.importing.result import ROLES
from core.kind import overruled
from core.models.hub import NAMES, STATES, VOCABULARY, folder_of, states_of
from core.models.model_files import files
from core.paths import home
from core.project_list import COVER_FILE
from core.project_list import read as read_project
from core.projects.audit import exporting
from core.projects.home import library, store
from core.runs.store import Run
from core.shown_command import command
from core.tagging import result as taggers
from core.tagging.card import copy_without_rare_words, count_words
from core.tagging.result import TypeScores
from core.terms import TEST
from core.training import saved_models as models

if TYPE_CHECKING:
    import plotly.graph_objects as go

Format = Literal["html", "pdf", "docx"]
FORMATS: tuple[Format, ...] = ("pdf", "docx", "html")
# Kinds of runs that have a report.
REPORTED = ("experiment", "study")
# Maximum number of characters in a field of the report's cover.
LONGEST = 100


def exports() -> Path:
    """Return the folder for exports that are too large for a download."""
    folder = home() / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@exporting
def board_csv(run_id: str) -> bytes:
    """Return the table of an experiment or a study as CSV for spreadsheets."""
    return tables.as_csv(answered(run_id)).encode("utf-8-sig")


@exporting
def board_markdown(run_id: str) -> str:
    """Return the table of an experiment or a study as Markdown."""
    return tables.as_markdown(answered(run_id))


def model_folder(run_id: str) -> Path:
    """Return the folder of a `finetune` run's model. Errors: ConfigError if the model is missing."""
    run = store().get(run_id)
    if not models.is_here(run):
        raise ConfigError(f"{run_id}: {models.MISSING}")
    return models.folder(run)


def words_held(run_id: str) -> tuple[int, int]:
    """Return (number of words in the word list of a model, number of these that occur only once in its training text).

    Return (0, 0) if the model has no word list.
    """
    return count_words(model_folder(run_id))


@exporting
def copy_model(run_id: str, target: Path, *, rare: bool = True) -> None:
    """Copy the folder of a run's model to `target`. rare: include words that occur only once in its training text.

    Errors: ConfigError if the model is missing.
    """
    _copy_model(run_id, target, rare)


def _copy_model(run_id: str, target: Path, rare: bool) -> None:
    folder = model_folder(run_id)
    if "winnow" in (read_object(target / "config.json") or {}):
        # Remove the words and names of an earlier tagger in `target`, because this tagger cannot be loaded with them.
        for name in (VOCABULARY, NAMES):
            if not (folder / name).exists():
                (target / name).unlink(missing_ok=True)
        shutil.rmtree(target / STATES, ignore_errors=True)
    if rare:
        shutil.copytree(folder, target, dirs_exist_ok=True)
    else:
        copy_without_rare_words(folder, target)
    _bring_states(run_id, folder, target)


def _bring_states(run_id: str, folder: Path, target: Path) -> None:
    """Add the encoder whose frozen states a recurrent tagger reads, unless the tagger knows it by a public name.

    Without this copy, the tagger could be loaded only on this machine, and its config.json would name a folder of it.
    folder: the run's model. target: its copy. Errors: ConfigError if the encoder is missing; those of `folder_of`,
    because an imported tagger may name any folder.
    """
    config: dict[str, Any] = read_object(folder / "config.json") or {}
    layout = config.get("winnow", {}).get("layout", {})
    named = states_of(folder, layout.get("states", ""))
    encoder = Path(named).expanduser()
    if not named or not (encoder.is_absolute() or encoder.is_dir()):
        return
    if not encoder.is_dir():
        raise ConfigError(f"{run_id}: the encoder whose states this tagger reads is missing; copy {encoder} back.")
    there = files(folder_of(str(encoder)))
    (target / STATES).mkdir()
    for file in there:
        shutil.copyfile(file, target / STATES / file.name)
    layout["states"] = STATES
    write_atomic(target / "config.json", json.dumps(config, indent=1).encode())


@exporting
def export_model(run_id: str, *, rare: bool = True) -> Path:
    """Copy a run's model to the folder of exports and return the path of the copy.

    rare: as in `copy_model`. Errors: ConfigError if the model is missing.
    """
    target = exports() / f"{run_id}-model{'' if rare else '-without-rare-words'}"
    draft = target.with_name(f".{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    _copy_model(run_id, draft, rare)
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    return target


@exporting
def zip_model(run_id: str, *, rare: bool = True) -> bytes:
    """Return a run's model as a .zip. rare: as in `copy_model`. Errors: ConfigError if the model is missing."""
    with TemporaryDirectory(prefix=f".{run_id}-", dir=exports()) as folder:
        _copy_model(run_id, Path(folder) / "model", rare)
        return Path(shutil.make_archive(str(Path(folder) / "packed"), "zip", Path(folder) / "model")).read_bytes()


@exporting
def figure_page(run_id: str, figure: "go.Figure") -> bytes:
    """Return a figure of a run as one self-contained HTML page."""
    return bytes(figure.to_html(include_plotlyjs=True).encode())


@exporting
def take_bytes(run_id: str, path: Path) -> bytes:
    """Return the content of a run's file, for a download. Errors: those of `read_back`."""
    with read_back(path):
        return path.read_bytes()


@exporting
def take(run_id: str, copies: Mapping[Path, str]) -> None:
    """Copy files and folders of a run. copies: {path of the file or folder: path of its copy}.

    Errors: PathError if a copy cannot be written.
    """
    for source, target in copies.items():
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            with source.open("rb") as file, output_file(Path(target)) as copy:
                shutil.copyfileobj(file, copy)


def board_lines(run_id: str) -> list[str]:
    """Return the lines of the Markdown table that an experiment or a study stored."""
    with read_back(path := leaderboard.file(store().get(run_id), "md")):
        return leaderboard.without_number(path.read_text(encoding="utf-8")).split("\n")


@exporting
def report(run_id: str, suffix: Format = "html", cover: Cover | None = None, *, examples: bool = False) -> bytes:
    """Return the report of a finished experiment or study: one page for decision-makers and one technical page.

    cover: by default the cover of the last report, with today's date. examples: include three sentences of the test
    set; off by default, because users send reports to others. Errors: ConfigError if the run is of another kind or has
    not finished.
    """
    run = store().get(run_id)
    if run.manifest.kind not in REPORTED or run.state().state != "succeeded":
        raise ConfigError(
            f"{run_id}: is not a finished experiment or study; name a run that is, because only these have a report."
        )
    cover = cover or last_cover()
    config = run.manifest.config
    reported: dict[str, Any] = {
        "corpora": [_corpus_row(role, fingerprint) for role, fingerprint in run.manifest.inputs.items()],
        "encoder": config["encoder"],
        "preset": config["preset"],
        "command": command(run.manifest.kind, config),
        "begun": f"{run.manifest.kind.capitalize()} {run_id}, "
        f"started {run.manifest.created[:16].replace('T', ' ')} UTC.",
        "finding": finding(run_id),
        "version": run.manifest.versions.get("winnow", __version__),
        "missing": missing(run_id),
        "overruled": overruled(run),
        "sent_to": sent_to(run_id),
        "sample": read_project(home()).sample,
    }
    if run.manifest.kind == "study":
        document = study_document(StudyReport(result=study_board(run_id), **reported), cover)
    else:
        document = experiment_document(_of_experiment(run, examples, reported), cover)
    write: Mapping[Format, Callable[[Document], bytes]] = {
        "html": lambda document: html(document).encode(),
        "pdf": pdf,
        "docx": docx,
    }
    return write[suffix](document)


def write_report(run_id: str, path: Path, cover: Cover, *, examples: bool = False) -> None:
    """Write a report in the format that the extension of `path` names. Errors: ConfigError, also those of `report`."""
    suffix = next((each for each in FORMATS if path.suffix.lower() == f".{each}"), None)
    if suffix is None:
        raise ConfigError(f"{path}: not a format for reports; use a name that ends in .{', .'.join(FORMATS)}.")
    write_file(report(run_id, suffix, cover, examples=examples), path)


def last_cover() -> Cover:
    """Return the cover that `keep_cover` stored in this project, with today's date; an empty cover if there is none."""
    kept = read_object(home() / COVER_FILE) or {}
    texts = {name: text[:LONGEST] for name in ("firm", "project", "author") if isinstance(text := kept.get(name), str)}
    return Cover(**texts, date=today())


def keep_cover(cover: Cover) -> None:
    """Store firm, project and author of a cover for the next report of this project."""
    home().mkdir(parents=True, exist_ok=True)
    if (undated := replace(cover, date="")) != replace(last_cover(), date=""):
        write_atomic(home() / COVER_FILE, json.dumps(asdict(undated), ensure_ascii=False, indent=1).encode())


def today() -> str:
    """Return today's date, as a report prints it."""
    now = datetime.now(UTC).astimezone()
    return f"{now.day} {now:%B %Y}"


def _of_experiment(run: Run, examples: bool, reported: Mapping[str, Any]) -> Report:
    summary, config = board(run.id), run.manifest.config
    rows = summary.leaderboard
    main = main_line(summary)
    base = leaderboard.baseline(main, rows) if main else None
    return Report(
        **reported,
        rows=rows,
        main=main,
        task=corpus_name(config["test"]),
        types=_types(base, main),
        examples=_examples(base, main) if examples else None,
        seeds=config["seeds"][: summary.planned.replicates if summary.planned else None],
        hours=sum(summary.hours.values()),
        unfound=unfound_types(run.id),
        weakest=weakest_type(run.id),
        planned=summary.planned.why if summary.planned else "",
        overlap=" ".join(filter(None, (summary.overlap_words, summary.ceiling_words))),
        overlap_in_short=overlap_in_short(summary),
        multipliers=summary.multipliers.words if summary.multipliers else "",
        beside=beside(run.id),
        more_labels=summary.more_labels,
        cheapest=summary.cheapest.words if summary.cheapest else "",
    )


def _types(base: ArmRow | None, main: ArmRow | None) -> list[TypeScores]:
    """Return the scores of baseline and main variant per entity type; [] if a variant or a file is missing."""
    with suppress(RunError, CorpusError):
        if base and main:
            # If halves are swapped, replicates have different test sets. Take only the first replicate.
            lines = [row.finetunes[:1] if row.halves_runs else row.finetunes for row in (base, main)]
            return taggers.by_type(*([store().get(run) for run in line] for line in lines))
    return []


def _examples(base: ArmRow | None, main: ArmRow | None) -> Examples | None:
    """Return test sentences with the predictions of both variants' first taggers; None if a file is missing."""
    with suppress(RunError, CorpusError):
        if base and main:
            a, b = store().get(base.finetune_run), store().get(main.finetune_run)
            first = [run.manifest.config["seeds"][0] for run in (a, b)]
            return picked_examples(taggers.side_by_side(a, first[0], b, first[1], library()))
    return None


def _corpus_row(role: str, fingerprint: str) -> CorpusRow:
    named = {
        **{part: term.named for part, term in ROLES.items()},
        "also_test": f"further {TEST.word}s",
        "holdout": "held out",
        "sources": "a source",
        "assisting": "an assisting corpus",
        "transfer": "a labelled corpus to train on first",
        "gazetteer": "a list of names",
        "dictionary": "a list of names",
        "distant": "a list of names",
        "unlabelled": "unlabelled sentences to train on",
    }
    role = role.partition(".")[0]
    sentences = 0
    with suppress(CorpusError):
        sentences = len(library().find(fingerprint))
    return CorpusRow(
        role=named.get(role, role), name=corpus_name(fingerprint), sentences=sentences, fingerprint=fingerprint
    )
