"""The commands `runs list`, `show`, `cancel`, `resume`, `remove`."""

import click

from core.cli.terminal import echo, echo_json, json_option, note_spoilt, progress, remove_everything, report
from core.facade import removals, runs


@click.group("runs")
def run_group() -> None:
    """List, show, cancel, resume and remove runs."""
    note_spoilt()


@run_group.command("list")
@json_option
def runs_list(as_json: bool) -> None:
    """Every run, newest first."""
    rows = [{"run": run.id, "kind": run.manifest.kind, "state": runs.state(run.id).state} for run in runs.listed()]
    if as_json:
        echo_json({"runs": rows})
    for row in [] if as_json else rows:
        echo(f"{row['run']:<36} {row['state']}")


@run_group.command("show")
@click.argument("run_id")
@json_option
def runs_show(run_id: str, as_json: bool) -> None:
    """A run's state, options and result."""
    run, state = runs.get(run_id), runs.state(run_id)
    shown = {"run": run.id, "kind": run.manifest.kind, "state": state.state, "stage": state.stage, "error": state.error}
    shown["device"] = state.device
    result = run.result() if state.state == "succeeded" else {}
    report({**shown, "config": dict(run.manifest.config), "result": result, "notes": list(state.notes)}, as_json)


@run_group.command("cancel")
@click.argument("run_id")
@json_option
def runs_cancel(run_id: str, as_json: bool) -> None:
    """Ask a run to stop and wait until it has."""
    state = runs.stop(run_id).state
    report({"run": run_id, "state": state}, as_json, state)


@run_group.command("resume")
@click.argument("run_id")
@json_option
def runs_resume(run_id: str, as_json: bool) -> None:
    """Go on with a run where it was, in the foreground."""
    report({"run": run_id, **runs.go_on(run_id, progress)}, as_json)


@run_group.command("remove")
@click.argument("run_id")
@click.option("--with-runs", is_flag=True, help="With all that was made from it: corpora, runs, models, exports.")
@json_option
def runs_remove(run_id: str, with_runs: bool, as_json: bool) -> None:
    """Delete a run and what it made, but for what other runs need of it."""
    if with_runs:
        remove_everything(run_id, as_json)
        return
    removals.remove_run(run_id)
    report({"removed": run_id}, as_json, "")
