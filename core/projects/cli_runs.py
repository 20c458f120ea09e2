"""The commands `runs list`, `show`, `label`, `diff`, `curves`, `cancel`, `resume`, `remove`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from core.cli.options import FILE, several
from core.cli.terminal import echo, echo_json, in_words, json_option, note_spoilt, progress, remove_everything, report
from core.experiment import results
from core.projects import labels, removals, run_comparison, runs, titles
from core.projects.labels import Label
from core.runs.events import RunState
from core.runs.run import Run

WIDEST = 160  # characters of a value in `runs show`
FINISHED = {"succeeded": "finished"}  # the word of the pages


@click.group("runs")
def run_group() -> None:
    """List, show, name, compare, cancel, resume and remove runs."""
    note_spoilt()


@run_group.command("list")
@click.option("--tag", "tags", multiple=True, callback=several, help="Only runs with all of these tags.")
@click.option("--archived", is_flag=True, help="Include archived runs.")
@json_option
def runs_list(tags: Sequence[str], archived: bool, as_json: bool) -> None:
    """List runs, newest first, with names and tags."""
    rows = []
    for run in runs.listed():
        label = labels.label_of(run.id)
        if set(tags) <= set(label.tags) and (archived or not label.archived):
            state = runs.state(run.id).state
            about = {"run": run.id, "kind": run.manifest.kind, "state": state, "title": titles.title(run)}
            rows.append({**about, **_label(label)})
    if as_json:
        echo_json({"runs": rows})
    for row in [] if as_json else rows:
        label = labels.label_of(str(row["run"]))
        words = "  ".join(filter(None, (str(row["title"]), *_flags(label))))
        ended = FINISHED.get(str(row["state"]), str(row["state"]))
        echo(f"{row['run']:<36} {ended:<11} {words}".rstrip())


def _label(label: Label) -> dict[str, object]:
    return {
        "name": label.name,
        "tags": list(label.tags),
        "note": label.note,
        "pinned": label.pinned,
        "archived": label.archived,
    }


def _flags(label: Label) -> list[str]:
    flags = [name for name, holds in (("pinned", label.pinned), ("archived", label.archived)) if holds]
    return [part for part in (" ".join(f"#{tag}" for tag in label.tags), *flags) if part]


def _in_words(label: Label) -> str:
    return "  ".join(part for part in (label.name, *_flags(label)) if part)


@run_group.command("label")
@click.argument("run_id")
@click.option("--name", help="Name, instead of its title.")
@click.option("--tag", "tags", multiple=True, callback=several, help="Add a tag.")
@click.option("--untag", "untags", multiple=True, callback=several, help="Remove a tag.")
@click.option("--note", help="Note about the run.")
@click.option("--pin/--no-pin", default=None, help="Keep it at the top of the table.")
@click.option("--archive/--no-archive", default=None, help="Leave it out of lists; nothing is deleted.")
@json_option
def runs_label(
    run_id: str,
    *,
    name: str | None,
    tags: Sequence[str],
    untags: Sequence[str],
    note: str | None,
    pin: bool | None,
    archive: bool | None,
    as_json: bool,
) -> None:
    """Name, tag, pin or archive a run, or add a note. Its key and result stay the same."""
    kept = [tag for tag in labels.label_of(run_id).tags if tag not in untags]
    label = labels.change(run_id, name=name, tags=[*kept, *tags], note=note, pinned=pin, archived=archive)
    lines = [run_id, *(line for line in (_in_words(label), label.note) if line)]
    report({"run": run_id, **_label(label)}, as_json, lines)


@run_group.command("diff")
@click.argument("run_ids", metavar="RUNS...", nargs=-1, required=True, callback=several)
@json_option
def runs_diff(run_ids: Sequence[str], as_json: bool) -> None:
    """Show the options that differ between runs."""
    rows = run_comparison.differences(run_ids)
    result = {"runs": list(run_ids), "differences": {row.option: list(row.values) for row in rows}}
    lines = [f"{row.option:<28} {' | '.join(value or '-' for value in row.values)}" for row in rows]
    report(result, as_json, lines or "Their options are equal.")


@run_group.command("curves")
@click.argument("run_ids", metavar="RUNS...", nargs=-1, required=True, callback=several)
@click.option("--output", required=True, type=FILE, help="A .csv file.")
@json_option
def runs_curves(run_ids: Sequence[str], output: str, as_json: bool) -> None:
    """Write the curves of all trainings in RUNS: run, metric, type, seed, step, value."""
    Path(output).write_text(run_comparison.curves_csv(run_ids), encoding="utf-8")
    report({"runs": list(run_ids), "output": output}, as_json, output)


@run_group.command("show")
@click.argument("run_id")
@json_option
def runs_show(run_id: str, as_json: bool) -> None:
    """Show a run's state, options and result."""
    run, state = runs.get(run_id), runs.state(run_id)
    shown = {"run": run.id, "kind": run.manifest.kind, "state": state.state, "stage": state.stage, "error": state.error}
    shown["device"] = state.device
    result = run.result() if state.state == "succeeded" else {}
    whole = {**shown, "config": dict(run.manifest.config), "result": result, "notes": list(state.notes)}
    report(whole, as_json, None if as_json else _lines(run, state, result))


def _lines(run: Run, state: RunState, result: Mapping[str, object]) -> list[str]:
    """Return the lines to show: title, state, options that were set, result, and notes."""
    ended = FINISHED.get(state.state, state.state)
    about = {"run": run.id, "state": ended, "stage": state.stage, "device": state.device, "error": state.error}
    parts = {"Options": run_comparison.chosen(run.id), "Result": result}
    finding = results.finding(run.id) if run.manifest.kind == "experiment" and result else None
    lines = [titles.title(run), *_aligned({name: value for name, value in about.items() if value})]
    lines += ["", *finding.parts] if finding else []
    for heading, values in parts.items():
        lines += ["", heading, *_aligned(values, "  ")] if values else []
    return [*lines, *(["", "Notes"] if state.notes else []), *(f"  {note}" for note in state.notes)]


def _aligned(values: Mapping[str, object], indent: str = "") -> list[str]:
    width = max(map(len, values), default=0) + 2
    lines = {name: in_words(value) for name, value in values.items()}
    cut = {name: text if len(text) <= WIDEST else f"{text[:WIDEST]}…; --json shows all" for name, text in lines.items()}
    return [f"{indent}{name.replace('_', ' '):<{width}}{text}" for name, text in cut.items()]


@run_group.command("cancel")
@click.argument("run_id")
@json_option
def runs_cancel(run_id: str, as_json: bool) -> None:
    """Cancel a run and wait until it has stopped."""
    state = runs.stop(run_id).state
    report({"run": run_id, "state": state}, as_json, state)


@run_group.command("resume")
@click.argument("run_id")
@click.option("--agree", is_flag=True, help="Agree to the options of a run that was imported with a project.")
@json_option
def runs_resume(run_id: str, agree: bool, as_json: bool) -> None:
    """Resume a run where it was, in the foreground."""
    report({"run": run_id, **runs.go_on(run_id, progress, agreed=agree)}, as_json)


@run_group.command("remove")
@click.argument("run_id")
@click.option("--with-runs", is_flag=True, help="Also delete everything made from it: corpora, runs, models, exports.")
@json_option
def runs_remove(run_id: str, with_runs: bool, as_json: bool) -> None:
    """Delete a run and what it made, except what other runs need."""
    if with_runs:
        remove_everything(run_id, as_json)
        return
    _, freed = removals.removal_alone(run_id)
    removals.remove_run(run_id)
    report({"removed": run_id, "freed": freed}, as_json, "")
