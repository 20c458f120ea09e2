"""Queries of pages and commands on `similarity` runs: table, recommendation, and how well the measures predict F1."""

import json
from collections.abc import Sequence
from pathlib import Path

from core.corpora.writers import write_file
from core.errors import ConfigError, PathError, ReadError, RunError
from core.experiment.arms import NONE
from core.experiment.result import ArmRow, ExperimentResult, of_most_text
from core.projects.audit import exporting
from core.projects.home import store
from core.runs.result import read
from core.runs.store import is_run_id
from core.similarity.grid import Grid
from core.similarity.predictive import Outcomes, regrets
from core.similarity.result import SimilarityResult, SimilarityRow, advise, as_csv, closest_first, grid_of
from core.similarity.worth import ARM, Judgement, Trained, judge, judge_table, narrowed, own_outcomes

EXAMPLE = Path(__file__).resolve().parents[2] / "assets" / "dai2019-table3.csv"  # Table 3 of Dai et al. 2019


def rows(run_id: str, target: str | None = None) -> list[SimilarityRow]:
    """Return the `measurements` of a finished run, the closest source first. target: None for all targets."""
    measured = read(store().get(run_id), SimilarityResult).measurements
    return closest_first([row for row in measured if target in (None, row.target)])


def recommendation(run_id: str, target: str) -> str:
    """Return a sentence that recommends a source for a target, and says how certain the recommendation is.

    Finished experiments on the sources of this run are taken into account.
    """
    grid = _grid(run_id)
    past = [regret for outcomes in own_f1(run_id) for regret in regrets(grid, outcomes)]
    return advise(grid, grid.targets.index(target), read(store().get(run_id), SimilarityResult).leads, past)


def own_f1(run_id: str) -> list[Outcomes]:
    """Return the F1 of finished experiments that used this run's sources and one of its targets.

    The target of an experiment is its task corpus, or else its training set.
    """
    compared = read(store().get(run_id), SimilarityResult)
    target_of = {fingerprint: name for name, marks in compared.targets.items() for fingerprint in marks}
    # No experiment trains on joined sources, and the F1 of one of them is not that of all.
    alone = {name: marks[0] for name, marks in compared.sources.items() if len(marks) == 1}
    names = {mark: name for name, fingerprint in alone.items() for mark in (name, fingerprint)}
    boards = []
    for run in store().list("experiment", state="succeeded"):
        inputs = run.manifest.inputs
        target = next((target_of[inputs[role]] for role in ("task", "train") if inputs.get(role) in target_of), None)
        if target:
            board = of_most_text(read(run, ExperimentResult).leaderboard)
            trained = [
                Trained(arm=row.arm, source=row.source, f1=row.micro_f1, taggers=_taggers(row))
                for row in board
                if row.arm == NONE or ARM.fullmatch(row.arm)
            ]
            boards.append((target, trained))
    return own_outcomes(_grid(run_id), boards, names)


def _taggers(row: ArmRow) -> list[str]:
    """Return a text per F1 of a variant: the options and the seeds with which this tagger was trained.

    The ids of runs are not enough. For `none` and `vectors:SOURCE`, one run trains the taggers of all seeds, so an
    experiment with a further seed, or with a further test set, trains the earlier taggers again in another run.
    """
    keys = list[str]()
    for run_id in row.finetunes:
        try:
            config = dict(store().get(run_id).manifest.config)
        except RunError:  # The run was removed.
            keys += [f"{run_id} {n}" for n in range(len(row.micro_f1) // len(row.finetunes))]
            continue
        seeds, test = config.pop("seeds"), config.pop("test")
        options = json.dumps([config, test[:1]], sort_keys=True)
        keys += [f"{options} {seeds[at : at + row.taggers]}" for at in range(0, len(seeds), row.taggers)]
    return keys if len(keys) == len(row.micro_f1) else []


def judge_own(run_id: str, measures: Sequence[str] = ()) -> Judgement | None:
    """Test the measures of a run on the user's finished experiments; None if no experiment used the run's sources.

    measures: the measures to test; all if empty.
    """
    outcomes = own_f1(run_id)
    return judge(narrowed(_grid(run_id), "that run", measures), outcomes) if outcomes else None


def judge_named(reference: str, measures: Sequence[str] = ()) -> Judgement:
    """Test measures on a file with a table of measures and F1, or on the experiments with a run's sources.

    reference: path of the file, or id of a `similarity` run. Errors: RunError, PathError, ReadError, ConfigError.
    """
    if is_run_id(reference):
        if (kind := store().get(reference).manifest.kind) != "similarity":
            raise ConfigError(f"{reference}: is a run of the kind {kind}; give a finished similarity run, or a table.")
        if own := judge_own(reference, measures):
            return own
        raise ConfigError(
            f"{reference}: no finished experiment has a variant vectors:SOURCE or lm:SOURCE with a source of this run, "
            "and a target of this run as task corpus or training set. Run such an experiment first."
        )
    path = Path(reference)
    try:
        return judge_table(path.read_text(encoding="utf-8-sig"), path.name, measures)
    except OSError as error:
        raise PathError(f"{path}: cannot be read ({error.strerror or error}); check the path.") from error
    except UnicodeDecodeError as error:
        raise ReadError(path.name, None, "is not UTF-8 text; save it as UTF-8.") from error


@exporting
def table_csv(run_id: str) -> str:
    """Return the whole table of a run as CSV. Cells that a spreadsheet would run as a formula are escaped."""
    return as_csv(rows(run_id))


@exporting
def export(run_id: str, path: Path) -> Path:
    """Write the table of a run to a .csv file, or its whole result to a .json file. Return the path.

    Errors: ConfigError for another ending.
    """
    check_output(path)
    if path.suffix.lower() == ".csv":
        write_file(as_csv(rows(run_id)).encode("utf-8-sig"), path)
    else:
        write_file(json.dumps(store().get(run_id).result(), ensure_ascii=False, indent=1).encode(), path)
    return path


def check_output(path: Path) -> None:
    """Raise ConfigError unless an output file ends in .csv or .json. Called before the run starts."""
    if path.suffix.lower() not in (".csv", ".json"):
        raise ConfigError(f"output: {path.name!r} must end in .csv or .json.")


def _grid(run_id: str) -> Grid:
    return grid_of(rows(run_id))
