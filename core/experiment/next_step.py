"""Propose the next step after an experiment: use its cheapest variant, or find it by a larger experiment."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.experiment import foresight, results
from core.experiment import view as experiments
from core.experiment.cheapest import MOST_TIMES
from core.experiment.config import ExperimentConfig
from core.experiment.result import ArmRow
from core.experiment.words import line_name
from core.kind import Options
from core.projects import runs
from core.projects import view as projects
from core.projects.home import kept_per_home
from core.shown import duration
from core.shown_command import command

# tagger: use the variant's tagger. label: label more sentences. suggest: label more sentences, with the entities that a
# reference variant finds as suggestions. experiment: repeat the experiment with more replicates.
Goal = Literal["tagger", "label", "suggest", "experiment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """A next step after an experiment.

    words: label of the button that starts the step.
    run: id of the run that the step uses: the run of a tagger, of a reference variant, or of the experiment.
    command: command line for the step; "" if there is none.
    """

    goal: Goal
    words: str
    run: str
    command: str


def next_steps(run_id: str) -> Sequence[NextStep]:
    """Return a step for each variant that the result names as the cheapest, else a larger experiment to find it.

    Return () if the experiment compared no costs, if no feasible number of replicates would be enough, or if runs or
    corpora are missing. Errors: RunError.
    """
    board = results.board(run_id)
    if board.cheapest and (named := board.cheapest.lines):
        here = {run.id for run in runs.listed()}
        rows = {line_name(row): row for row in board.leaderboard if row.finetune_run in here}
        estimated = {line.arm for line in board.more_labels}
        uses = {name: _use(rows[name], name, run_id) for name in named if name in rows}
        uses |= {name: _label(run_id) for name in named if name in estimated}
        return list(uses.values())
    return [_decide(run_id, options)] if (options := deciding_options(run_id)) else ()


def deciding_options(run_id: str) -> Options:
    """Return the options of the larger experiment that would find the cheapest variant; {} if there is none.

    Also return {} for a run that only another person allowed to send sentences to another computer.
    Errors: RunError, ConfigError.
    """
    board = results.board(run_id)
    way = board.cheapest
    if way is None or way.lines or not 1 < way.times <= MOST_TIMES or results.removed_inputs(run_id):
        return {}
    if results.allowed_by_another(run_id):
        return {}
    given = runs.get(run_id).manifest.config
    config = ExperimentConfig.parse(dict(given))
    # A plan that ended early has fewer replicates than seeds.
    done = board.planned.replicates if board.planned else len(config.seeds)
    changed = foresight.with_replicates(config, way.times * done)
    return {**given, "seeds": changed.seeds, "looks": changed.looks}


def _use(row: ArmRow, name: str, run_id: str) -> NextStep:
    if row.person_seconds:
        return _label(run_id)
    found = runs.get(row.finetune_run)
    if row.reference:
        words = f"Label with what {name} finds"
        return NextStep(goal="suggest", words=words, run=found.id, command=_label_command(run_id, suggest=found.id))
    line = ["python", "-m", "core", *projects.option(), "predict", "new.txt", "--model", found.id]
    return NextStep(goal="tagger", words=f"Use the tagger of {name}", run=found.id, command=shlex.join(line))


def _label(run_id: str) -> NextStep:
    return NextStep(goal="label", words="Label more sentences", run=run_id, command=_label_command(run_id))


def _label_command(run_id: str, **options: str) -> str:
    given: Mapping[str, object] = runs.get(run_id).manifest.config
    texts = {role: given[role] for role in ("task", "domain", "train", "dev") if given.get(role)}
    return command("queue", {**texts, **options}) if {"task", "domain"} <= texts.keys() else ""


def _decide(run_id: str, options: Options) -> NextStep:
    seconds = _seconds(run_id, tuple(run.id for run in runs.listed(state="succeeded")))
    takes = f" ({duration(seconds)})" if seconds else ""
    words = f"Decide it with {len(ExperimentConfig.parse(options).seeds):,} replicates{takes}"
    return NextStep(goal="experiment", words=words, run=run_id, command=command("experiment", options))


@kept_per_home(8)
def _seconds(run_id: str, finished: tuple[str, ...]) -> float | None:
    """Return the remaining seconds of the larger experiment; None if the speed of this machine was not measured.

    finished: ids of all finished runs, so that another finished run invalidates the cached value.
    """
    cost = experiments.cost_if_known(deciding_options(run_id))
    return cost.wall if cost else None
