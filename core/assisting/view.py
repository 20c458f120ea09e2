"""Queries of the page Assisting and its commands: drift, sentences kept by a threshold, and F1 by threshold."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from core.assisting.assist import AssistResult, SweepPoint, points
from core.assisting.skl import Assisted, DriftRow, Mark
from core.corpora.corpus import Corpus
from core.corpora.writers import harmless, write_file
from core.errors import PathError
from core.projects.audit import exporting
from core.projects.home import kept_per_home, library, store
from core.results import IntArray
from core.runs import result as results
from core.runs.store import Run
from core.text.sentence import Sentence


def get(run_id: str) -> Assisted:
    """Return a finished `skl` run. Only its scores are cached, because its corpora may be renamed or removed."""
    assisted = _read(run_id)
    return replace(
        assisted,
        primary=library().recall(assisted.primary.fingerprint),
        assisting=library().recall(assisted.assisting.fingerprint, len(assisted.scores)),
    )


@kept_per_home(4)
def _read(run_id: str) -> Assisted:
    return Assisted.read(store().get(run_id), library())


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Number of assisting sentences that a threshold keeps.

    of: number of all assisting sentences. sharing_nothing: number of kept sentences that share no entity with the
    primary corpus, so that their score is 0.
    """

    threshold: float
    kept: int
    of: int
    sharing_nothing: int


def kept(run_id: str, threshold: float) -> Kept:
    """Count the sentences that a threshold keeps. The scores are read from the run."""
    assisted = get(run_id)
    rows = assisted.kept(threshold)
    alone = int((assisted.overlaps[rows] == 0).sum())
    return Kept(threshold=threshold, kept=len(rows), of=len(assisted.scores), sharing_nothing=alone)


@kept_per_home(4)
def _table(run_id: str) -> Sequence[DriftRow]:
    return get(run_id).table()


def drift(run_id: str, search: str = "", least_skl: float = 0.0, least_count: int = 1) -> list[DriftRow]:
    """Return the shared entities that match all conditions, largest SKL first.

    search: text that the entity must contain. least_skl: minimum SKL. least_count: minimum number of occurrences in
    each corpus.
    """
    return [
        row
        for row in _table(run_id)
        if search.lower() in row.entity
        and row.skl >= least_skl
        and min(row.in_primary, row.in_assisting) >= least_count
    ]


@exporting
def drift_csv(run_id: str, rows: Sequence[DriftRow]) -> bytes:
    """Return rows of `drift` as CSV. Cells that a spreadsheet would run as a formula are escaped."""
    return _csv(rows)


def _csv(rows: Sequence[DriftRow]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(asdict(rows[0]) if rows else ())
    writer.writerows([harmless(value) for value in asdict(row).values()] for row in rows)
    return text.getvalue().encode("utf-8-sig")


@exporting
def export_drift(run_id: str, path: Path) -> None:
    """Write all shared entities (`drift`) to a CSV file. Errors: PathError."""
    write_file(_csv(drift(run_id)), path)


def sentences(
    run_id: str, threshold: float, *, at_line: bool = True, n: int = 8
) -> tuple[list[tuple[float, Sentence, list[Mark]]], list[tuple[float, Sentence, list[Mark]]]]:
    """Return examples of kept and of dropped sentences, each as (score, sentence, shared entities).

    at_line: True for the sentences nearest to the threshold, False for those farthest from it. n: maximum number of
    sentences in each list. Sentences that share no entity are left out.
    """
    assisted = get(run_id)
    sharing = np.flatnonzero(assisted.overlaps > 0)
    order = sharing[np.argsort(assisted.scores[sharing], kind="stable")]
    cut = int((assisted.scores[order] < threshold).sum())
    inside, outside = order[:cut], order[cut:]
    near = (inside[::-1][:n], outside[:n]) if at_line else (inside[:n], outside[::-1][:n])
    return _examples(assisted, near[0]), _examples(assisted, near[1])


def _examples(assisted: Assisted, rows: IntArray) -> list[tuple[float, Sentence, list[Mark]]]:
    return [
        (float(assisted.scores[row]), sentence, assisted.marks(sentence))
        for row, sentence in zip(rows.tolist(), assisted.sentences(rows), strict=True)
    ]


def seal(run_id: str, threshold: float) -> Corpus:
    """Store the kept sentences as a corpus to train on. Errors: ConfigError if none is kept."""
    return get(run_id).seal(threshold, library())


@exporting
def export(run_id: str, threshold: float, path: Path) -> int:
    """Write the kept sentences as CoNLL (IOB2); return their number. Errors: ConfigError if none is kept."""
    return get(run_id).export(threshold, path)


def unshared_types(primary: Corpus, assisting: Corpus) -> list[str]:
    """Return the entity types that occur in only one of the two corpora, so that the user can map them."""
    return sorted(set(primary.types) ^ set(assisting.types))


def read_type_map(path: Path) -> tuple[str, ...]:
    """Return the OLD=NEW lines of a file. Empty lines and lines that begin with # are ignored. Errors: PathError."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PathError(f"{path}: the type map cannot be read ({why}); give a text file of OLD=NEW lines.") from error
    return tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def sweeps(run_id: str) -> list[Run]:
    """Return the `assist` runs that have the same corpora and SKL options as an `skl` run, newest first."""
    config = store().get(run_id).manifest.config
    return [
        run
        for run in store().list("assist")
        if all(run.manifest.config[name] == value for name, value in config.items())
    ]


def sweep_points(run_id: str, share: str) -> list[SweepPoint]:
    """Return F1 by threshold of a finished `assist` run. share: layers that both corpora share."""
    return points(results.read(store().get(run_id), AssistResult).rows, share)
