"""The commands `experiment`, `demo`, `study` and `report`."""

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from core.cli.options import CORPUS, FILE, Command, config_options, several
from core.cli.terminal import echo, finish, json_option, progress, report
from core.experiment import deliver, results, view
from core.experiment import view as experiments
from core.experiment.cost import Cost
from core.experiment.view import Shorter
from core.importing.cli import run_anyway_option
from core.projects import removals, runs
from core.projects.runs import Event, Run
from core.shown import duration

CONFIG = runs.KINDS["experiment"].config
_INPUTS = ("task", "train", "dev", "test")


def _inputs(command: Command) -> Command:
    """Make options optional that PLAN.yaml may give instead."""
    for name in reversed(_INPUTS):
        command = click.option(f"--{name}", type=CORPUS, help=CONFIG.model_fields[name].description)(command)
    return command


@click.command()
@click.argument("plan", required=False, type=click.Path(dir_okay=False))
@_inputs
@config_options(CONFIG, leave_out=_INPUTS)
@click.option("--labels", type=click.IntRange(1), help="Train on this number of random labelled sentences.")
@click.option("--plan-only", is_flag=True, help="Print what it will cost and can detect, and do nothing.")
@run_anyway_option
@json_option
def experiment(
    plan: str | None, labels: int | None, plan_only: bool, run_anyway: bool, as_json: bool, **values: object
) -> None:
    """Variants (arms) x budgets x seeds: what to read, borrow or rebuild, and was it worth it?

    \b
    PLAN.yaml holds the same options; typed options take precedence.
    Lists take commas (`--arms none,random,knn`), further options of a stage
    NAME=VALUE (`--pretrain epochs=4`, `--strategies knn.neighbours=10`).
    """
    typed = typed_options(values)
    options = experiments.read_plan(Path(plan), typed, progress) if plan else runs.with_corpora(CONFIG, typed, progress)
    if labels:
        options = experiments.on_fewer_labels(options, labels)
    run_experiment(options, plan_only=plan_only, run_anyway=run_anyway, as_json=as_json)


@click.command()
@json_option
def demo(as_json: bool) -> None:
    """Run the legal sample from task corpus (T_C) and domain corpus (D_C) to a verdict, in 15 minutes or less."""
    echo("Contracts of our own writing: does pre-training on selected sentences help to find parties and", err=True)
    echo(
        "dates in them? Three variants with three replicates each: selection, pre-training and tagger are repeated,",
        err=True,
    )
    echo("so that the effect of the seed shows. It takes 15 minutes or less on two cores of this machine.", err=True)
    run = run_experiment(experiments.demo(), as_json=as_json)
    if run and not as_json:
        echo("See it with `make app` on the page Results; the whole table is in the run's folder.")


def run_experiment(
    options: Mapping[str, object], *, plan_only: bool = False, run_anyway: bool = False, as_json: bool = False
) -> Run | None:
    """Plan, print the cost, run, print the leaderboard. Return the run, or None if it was only planned."""
    if not plan_only:
        runs.refuse_red("experiment", options, run_anyway=run_anyway)  # before timing this machine
    known = {run.id for run in runs.listed("calibrate")}
    for encoder in ("", *experiments.encoders(options)):
        measured = runs.execute("calibrate", experiments.calibration(options, encoder), progress)
        if (
            measured.id in known and experiments.calibrated(measured.id).busy
        ):  # time it again, because it may be idle now
            removals.remove_run(measured.id)
            runs.execute("calibrate", experiments.calibration(options, encoder), progress)
    planned, foresight = experiments.cost(options), experiments.foresight(options)
    shorter = experiments.shorter(options)
    cost = (*in_figures(planned, shorter), *foresight.in_words().split("\n"))
    if plan_only:
        fewer = {"labels": shorter.labels, "hours": shorter.seconds / 3600} if shorter else None
        whole = {**planned.as_json(), "smallest_difference": foresight.as_json(), "shorter": fewer}
        report(whole, as_json, cost)
        return None
    echo(*cost, err=True)
    run = runs.execute("experiment", options, ExperimentProgress(), run_anyway=run_anyway)
    finish(run, as_json, plain=lambda _: deliver.board_lines(run.id), finding=results.finding(run.id))
    return run


def typed_options(values: Mapping[str, object]) -> dict[str, object]:
    """Return typed options in the shape of the config. Errors: ConfigError."""
    options = {name: value for name, value in values.items() if value not in (None, ())}
    typed = {stage: options.pop(stage, ()) for stage in experiments.STAGES}
    lines = [f"{stage}.{text}" for stage, texts in typed.items() if isinstance(texts, tuple) for text in texts]
    return options | experiments.stage_options(lines)


class ExperimentProgress:
    """Prints progress on stderr: variant and stage, k of n, the total time left; below it the progress of the step."""

    def __init__(self) -> None:
        self._left: float | None = None
        self._since = time.monotonic()

    def __call__(self, event: Event) -> None:
        data = event.data
        if event.kind == "metric" and data["name"] == "seconds_left":
            self._left, self._since = data["value"], time.monotonic()
        elif event.kind == "stage" and data["name"].startswith("["):
            echo(f"{data['name']}{self._time_left()}", err=True, begin="\r")
        elif event.kind == "progress" and sys.stderr.isatty() and data["total"]:
            share = f"{data['done'] / data['total']:4.0%}"
            line = f"  {share} of {data['total']:,} {data['unit']}{self._time_left()}   "
            echo(line, err=True, begin="\r", end="")
        elif event.kind == "note" and not data["text"].startswith("waiting"):
            progress(event)

    def _time_left(self) -> str:
        if self._left is None:
            return ""
        return f", about {duration(max(self._left - (time.monotonic() - self._since), 1))} left of all"


def in_figures(planned: Cost, shorter: Shorter | None = None) -> list[str]:
    """Return a line per variant, the total, and a shorter plan if there is one."""
    lines = [f"{name:<32} {duration(seconds) if seconds else 'finished':>9}" for name, seconds in planned.lines.items()]
    total = f"{'together':<32} {duration(planned.seconds):>9} on this {planned.device.upper()}, "
    if planned.at_once > 1:
        lines.append(f"{f'with {planned.at_once} cards at once':<32} {duration(planned.wall):>9}")
    fewer = f"with {shorter.labels:,} of your labels" if shorter else ""
    offer = [f"{fewer:<32} {duration(shorter.seconds):>9}; add --labels {shorter.labels}"] if shorter else []
    return [*lines, f"{total}{planned.memory_gb:.1f} GB of memory, {planned.disk_gb:.1f} GB of disk", *offer]


STUDY = runs.KINDS["study"].config
_SPLITS = ("train", "dev", "test")


def _splits(command: Command) -> Command:
    """Make options optional that PLAN.yaml may give instead."""
    for name in reversed(_SPLITS):
        about = STUDY.model_fields[name].description
        command = click.option(
            f"--{name}", type=CORPUS, multiple=True, callback=several, metavar="CORPUS,...", help=about
        )(command)
    return command


@click.command()
@click.argument("plan", required=False, type=click.Path(dir_okay=False))
@_splits
@config_options(STUDY, leave_out=_SPLITS)
@click.option("--plan-only", is_flag=True, help="Print what it will cost and can detect, and do nothing.")
@run_anyway_option
@json_option
def study(plan: str | None, plan_only: bool, run_anyway: bool, as_json: bool, **values: object) -> None:
    """One claim on several tasks: did the selection help on these, and would it on others?

    \b
    PLAN.yaml holds the same options; typed options take precedence.
    Lists of corpora are in one order: --train A,B --dev A,B --test A,B.
    """
    typed = typed_options(values)
    options = (
        experiments.read_plan(Path(plan), typed, progress, STUDY) if plan else runs.with_corpora(STUDY, typed, progress)
    )
    run_study(options, plan_only=plan_only, run_anyway=run_anyway, as_json=as_json)


def run_study(
    options: Mapping[str, object], *, plan_only: bool = False, run_anyway: bool = False, as_json: bool = False
) -> Run | None:
    """Plan, print cost and chances, run, print the result. Return the run, or None if it was only planned."""
    if not plan_only:
        runs.refuse_red("study", options, run_anyway=run_anyway)  # before this machine is timed
    for timing in view.study_calibrations(options):
        runs.execute("calibrate", timing, progress)
    cost, foresight = view.study_cost(options), view.study_foresight(options)
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
    finish(run, as_json, plain=lambda _: deliver.board_lines(run.id), finding=results.finding(run.id))
    return run


@click.command("report")
@click.argument("run_id")
@click.option("--output", required=True, type=FILE, help="A .pdf, .docx or .html file.")
@click.option("--firm", help="Firm on the cover; by default that of the last report, as for the next two.")
@click.option("--project", help="Project on the cover.")
@click.option("--author", help="Author on the cover.")
@click.option("--date", default=deliver.today, help="Date on the cover; by default today.")
@click.option("--examples/--no-examples", default=True, help="Include three sentences of the test set.")
@json_option
def write_report(run_id: str, output: str, examples: bool, as_json: bool, **cover: str | None) -> None:
    """Write a report of a finished experiment or study on two pages: PDF, DOCX or HTML."""
    given = {name: text for name, text in cover.items() if text is not None}
    deliver.write_report(run_id, Path(output), replace(deliver.last_cover(), **given), examples=examples)
    report({"output": output}, as_json)
