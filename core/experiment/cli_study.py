"""The command `study`: one claim on several tasks, what it will cost, what it could show, what came out."""

from collections.abc import Mapping
from pathlib import Path

import click

from core.cli.options import CORPUS, Command, config_options, several
from core.cli.terminal import echo, finish, json_option, progress, report
from core.experiment import studies
from core.experiment.cli import ExperimentProgress, typed_options
from core.importing.cli_check import run_anyway_option
from core.projects import runs
from core.projects.runs import Run
from core.shown import duration

CONFIG = runs.KINDS["study"].config
_INPUTS = ("train", "dev", "test")


def _inputs(command: Command) -> Command:
    """Make optional what a PLAN.yaml may say instead, so that click must not ask for it."""
    for name in reversed(_INPUTS):
        about = CONFIG.model_fields[name].description
        command = click.option(
            f"--{name}", type=CORPUS, multiple=True, callback=several, metavar="CORPUS,...", help=about
        )(command)
    return command


@click.command()
@click.argument("plan", required=False, type=click.Path(dir_okay=False))
@_inputs
@config_options(CONFIG, leave_out=_INPUTS)
@click.option("--plan-only", is_flag=True, help="Say what it will cost and could show, and do nothing.")
@run_anyway_option
@json_option
def study(plan: str | None, plan_only: bool, run_anyway: bool, as_json: bool, **values: object) -> None:
    """One claim on several tasks: did choosing help on these, and would it on others?

    \b
    PLAN.yaml holds the same options; what is typed goes before what it says.
    Lists of corpora are in one order: --train A,B --dev A,B --test A,B.
    """
    typed = typed_options(values)
    options = studies.read_plan(Path(plan), typed, progress) if plan else runs.with_corpora(CONFIG, typed, progress)
    run_study(options, plan_only=plan_only, run_anyway=run_anyway, as_json=as_json)


def run_study(
    options: Mapping[str, object], *, plan_only: bool = False, run_anyway: bool = False, as_json: bool = False
) -> Run | None:
    """Plan, print the cost and the chances, run, print the result. Return the run, None if it was only planned."""
    if not plan_only:
        runs.refuse_red("study", options, run_anyway=run_anyway)  # before this machine is timed
    for timing in studies.calibrations(options):
        runs.execute("calibrate", timing, progress)
    cost, foresight = studies.cost(options), studies.foresight(options)
    seconds = {name: cost.task(number) for number, name in enumerate(cost.names)}
    lines = [f"{name:<32} {duration(each) if each else 'finished':>9}" for name, each in seconds.items()]
    together = f"{'together':<32} {duration(cost.seconds):>9} on this {cost.device.upper()}, "
    sizes = f"{cost.memory_gb:.1f} GB of memory, {cost.disk_gb:.1f} GB of disk"
    words = [*lines, together + sizes, foresight.in_words()]
    if plan_only:
        report({**cost.as_json(), "chances": foresight.as_json()}, as_json, words)
        return None
    echo(*words, err=True)
    run = runs.execute("study", options, ExperimentProgress(), run_anyway=run_anyway)
    finish(run, as_json, plain=lambda _: studies.board_lines(run.id), finding=studies.finding(run.id))
    return run
