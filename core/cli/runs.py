"""The commands `runs list`, `show`, `cancel`, `resume`, `remove`; and `work`, by which a worker process begins."""

import os
import sys

import click

from core import facade
from core.cli.terminal import echo, echo_json, json_option, progress, remove_everything, report


@click.group()
def runs() -> None:
    """List, show, cancel, resume and remove runs."""


@runs.command("list")
@json_option
def runs_list(as_json: bool) -> None:
    """Every run, newest first."""
    rows = [{"run": run.id, "kind": run.manifest.kind, "state": facade.state(run.id).state} for run in facade.runs()]
    if as_json:
        echo_json({"runs": rows})
    for row in [] if as_json else rows:
        echo(f"{row['run']:<36} {row['state']}")


@runs.command("show")
@click.argument("run_id")
@json_option
def runs_show(run_id: str, as_json: bool) -> None:
    """A run's state, options and result."""
    run, state = facade.run(run_id), facade.state(run_id)
    shown = {"run": run.id, "kind": run.manifest.kind, "state": state.state, "stage": state.stage, "error": state.error}
    result = run.result() if state.state == "succeeded" else {}
    report({**shown, "config": dict(run.manifest.config), "result": result, "notes": list(state.notes)}, as_json)


@runs.command("cancel")
@click.argument("run_id")
@json_option
def runs_cancel(run_id: str, as_json: bool) -> None:
    """Ask a run to stop and wait until it has."""
    state = facade.stop(run_id).state
    report({"run": run_id, "state": state}, as_json, state)


@runs.command("resume")
@click.argument("run_id")
@json_option
def runs_resume(run_id: str, as_json: bool) -> None:
    """Go on with a run where it was, in the foreground."""
    report({"run": run_id, **facade.go_on(run_id, progress)}, as_json)


@runs.command("remove")
@click.argument("run_id")
@click.option("--with-runs", is_flag=True, help="With all that was made from it: corpora, runs, models, exports.")
@json_option
def runs_remove(run_id: str, with_runs: bool, as_json: bool) -> None:
    """Delete a run and what it made, but for what other runs need of it."""
    if with_runs:
        remove_everything(run_id, as_json)
        return
    facade.remove_run(run_id)
    report({"removed": run_id}, as_json, "")


@click.command(hidden=True)
@click.argument("run_id")
@click.option("--home", required=True)
def work(run_id: str, home: str) -> None:
    """What a worker process runs."""
    os.environ["WINNOW_HOME"] = home
    sys.exit(facade.work(run_id))
