"""Similarity: a finished run's table and what follows from it, the user's guess, and what measures predict."""

import json
from collections.abc import Sequence
from pathlib import Path

from core.errors import ConfigError, PathError, ReadError
from core.experiment.result import ExperimentResult, of_most_text
from core.files import write_atomic
from core.projects.audit import exporting
from core.projects.home import store
from core.runs.result import read
from core.runs.store import is_run_id
from core.similarity.agreement import Agreement as Agreement
from core.similarity.agreement import Split as Split
from core.similarity.grid import Grid
from core.similarity.grid import Lead as Lead
from core.similarity.measures import MEASURES as MEASURES
from core.similarity.measures import symbol as symbol
from core.similarity.measures import title as title
from core.similarity.predictive import Advised as Advised
from core.similarity.predictive import Choice as Choice
from core.similarity.predictive import Outcomes, regrets
from core.similarity.predictive import Rule as Rule
from core.similarity.result import CurvePoint as CurvePoint
from core.similarity.result import SimilarityResult as SimilarityResult
from core.similarity.result import SimilarityRow as SimilarityRow
from core.similarity.result import advise, as_csv, closest_first, grid_of
from core.similarity.result import best_value as best_value
from core.similarity.worth import Coefficient as Coefficient
from core.similarity.worth import Effect as Effect
from core.similarity.worth import Judgement as Judgement
from core.similarity.worth import Trained, judge, narrowed, own_outcomes
from core.similarity.worth import judge_table as judge_table

_EXAMPLE = Path(__file__).resolve().parents[2] / "assets" / "dai2019-table3.csv"


def result(run_id: str) -> SimilarityResult:
    """A finished `similarity` run's result. Errors: RunError."""
    return read(store().get(run_id), SimilarityResult)


def rows(run_id: str, target: str | None = None) -> list[SimilarityRow]:
    """`measurements` of a finished run, of one target or of all; the closest source first."""
    return closest_first([row for row in result(run_id).measurements if target in (None, row.target)])


def recommendation(run_id: str, target: str) -> str:
    """Recommend a source in one sentence, with its uncertainty; own experiments on these sources have their say."""
    grid = _grid(run_id)
    past = [regret for outcomes in own_f1(run_id) for regret in regrets(grid, outcomes)]
    return advise(grid, grid.targets.index(target), result(run_id).leads, past)


def own_f1(run_id: str) -> list[Outcomes]:
    """Outcomes of finished experiments whose arms began from this run's sources, for its targets.

    A target is an experiment's T_C or, where that has none, the text of its L_C.
    """
    compared = result(run_id)
    target_of = {fingerprint: name for name, marks in compared.targets.items() for fingerprint in marks}
    names = {mark: name for name, marks in compared.sources.items() for mark in (name, *marks)}
    boards = []
    for run in store().list("experiment", state="succeeded"):
        inputs = run.manifest.inputs
        target = next((target_of[inputs[role]] for role in ("task", "train") if inputs.get(role) in target_of), None)
        if target:
            board = of_most_text(read(run, ExperimentResult).leaderboard)
            boards.append((target, [Trained(arm=row.arm, source=row.source, f1=row.micro_f1) for row in board]))
    return own_outcomes(_grid(run_id), boards, names)


def judge_own(run_id: str, measures: Sequence[str] = ()) -> Judgement | None:
    """`judge_table` of the user's own finished experiments; None where there are none on these sources."""
    outcomes = own_f1(run_id)
    return judge(narrowed(_grid(run_id), "that run", measures), outcomes) if outcomes else None


def judge_named(reference: str, measures: Sequence[str] = ()) -> Judgement:
    """The same of a file, or of the experiments on a `similarity` run's sources. Errors: RunError, PathError,
    ReadError, ConfigError."""
    if not is_run_id(reference):
        return _judge_file(Path(reference), measures)
    if own := judge_own(reference, measures):
        return own
    raise ConfigError(
        f"{reference}: no finished experiment has variants vectors:SOURCE or lm:SOURCE of its sources, with one of its "
        "targets as the task corpus or the labelled data; make one first."
    )


def _judge_file(path: Path, measures: Sequence[str]) -> Judgement:
    try:
        return judge_table(path.read_text(encoding="utf-8-sig"), path.name, measures)
    except OSError as error:
        raise PathError(f"{path}: cannot be read ({error.strerror or error}); check the path.") from error
    except UnicodeDecodeError as error:
        raise ReadError(path.name, None, "is not UTF-8 text; save it as UTF-8.") from error


def example_table() -> str:
    """Dai et al. 2019, Table 3, from print."""
    return _EXAMPLE.read_text(encoding="utf-8")


@exporting
def table_csv(run_id: str) -> str:
    """The whole table for a spreadsheet, no cell of it a formula."""
    return _csv(run_id)


def _csv(run_id: str) -> str:
    return as_csv(rows(run_id))


@exporting
def export(run_id: str, path: Path) -> Path:
    """The table as .csv, or everything that is known as .json. Errors: ConfigError for another ending."""
    check_output(path)
    if path.suffix.lower() == ".csv":
        write_atomic(path, _csv(run_id).encode("utf-8-sig"))
    else:
        write_atomic(path, json.dumps(store().get(run_id).result(), ensure_ascii=False, indent=1).encode())
    return path


def check_output(path: Path) -> None:
    """Errors: ConfigError, asked before minutes of work, not after them."""
    if path.suffix.lower() not in (".csv", ".json"):
        raise ConfigError(f"output: {path.name!r} ends in neither .csv nor .json; choose one of them.")


def _grid(run_id: str) -> Grid:
    return grid_of(rows(run_id))
