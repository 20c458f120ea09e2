"""The commands `project ...`, `runs ...`, `audit`, `doctor` and `key`."""

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from core import audit_log, door
from core.audit_log import Line
from core.cli.options import FILE, several
from core.cli.terminal import echo, echo_json, in_words, json_option, note_spoilt, progress, remove_everything, report
from core.corpora.writers import write_file
from core.errors import ConfigError, ProjectError
from core.experiment import results
from core.files import on_disk
from core.paths import given_home
from core.projects import labels, machine, privacy, removals, run_comparison, runs, titles
from core.projects import view as projects
from core.projects.labels import Label
from core.runs.events import RunState
from core.runs.run import Run
from core.shown import count

BAD = 2  # exit status if a check is bad

WIDEST = 160  # maximum number of characters of a value in `runs show`

FINISHED = {"succeeded": "finished"}  # {stored state: word that users see}


@click.group("project")
def project_group() -> None:
    """List, make, rename, archive, export, import and remove projects."""


@project_group.command("list")
@json_option
def project_list(as_json: bool) -> None:
    """List all projects, oldest first. A star marks the project that commands use by default."""
    here = projects.current().slug
    rows = [{**project.as_dict(), "current": project.slug == here} for project in projects.listed()]
    if as_json:
        echo_json({"projects": rows})
    for row in [] if as_json else rows:
        echo(f"{'*' if row['current'] else ' '} {row['project']}{' (archived)' if row['archived'] else ''}")


@project_group.command("new")
@click.argument("name")
@json_option
def project_new(name: str, as_json: bool) -> None:
    """Make an empty project."""
    report(projects.new(name).as_dict(), as_json)


@project_group.command("rename")
@click.argument("project")
@click.argument("name")
@json_option
def project_rename(project: str, name: str, as_json: bool) -> None:
    """Rename a project. Its folder and addresses stay the same."""
    report(projects.rename(project, name).as_dict(), as_json)


@project_group.command("archive")
@click.argument("project")
@json_option
def project_archive(project: str, as_json: bool) -> None:
    """Hide a project in the app's project menu. Its content stays the same."""
    report(projects.archive(project).as_dict(), as_json)


@project_group.command("unarchive")
@click.argument("project")
@json_option
def project_unarchive(project: str, as_json: bool) -> None:
    """Show an archived project in the app's project menu again."""
    report(projects.archive(project, archived=False).as_dict(), as_json)


@project_group.command("export")
@click.argument("project")
@click.option("--output", required=True, type=FILE, help="The .zip file to write.")
@click.option("--with-weights", is_flag=True, help="Include models and sentence vectors.")
@json_option
def project_export(project: str, output: str, with_weights: bool, as_json: bool) -> None:
    """Write a project's corpora, selections, runs and results to one file, which another machine can import."""
    packed = projects.export(projects.find(project), Path(output), weights=with_weights)
    if packed.left_bytes:
        left = f"{count(packed.left_models, 'model')}, vectors of {count(packed.left_vectors, 'corpus', 'corpora')}"
        echo(f"note: left out: {left} ({packed.left_bytes / 1e6:,.1f} MB); --with-weights includes them", err=True)
    if packed.left_runs:
        echo(f"note: left out, because they are running: {', '.join(packed.left_runs)}", err=True)
    written = {
        "output": str(packed.file),
        "bytes": packed.size,
        "files": packed.files,
        "left_models": packed.left_models,
        "left_vectors": packed.left_vectors,
    }
    report({**written, "left_bytes": packed.left_bytes, "left_runs": list(packed.left_runs)}, as_json, str(packed.file))


@project_group.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--name", default="", help="New name for the project, if another project has its name.")
@json_option
def project_import(file: str, name: str, as_json: bool) -> None:
    """Import a project from a file that `project export` wrote. If the import fails, no project is made."""
    path = Path(file)
    try:
        # An error of the home's disk must not be reported as an error of the file.
        with path.open("rb") as opened, on_disk(given_home()):
            project = projects.bring_in(opened, path.name, name)
    except OSError as error:
        raise ProjectError(f"{path.name}: cannot be read ({error.strerror}); check its permissions.") from error
    report(project.as_dict(), as_json)


@project_group.command("remove")
@click.argument("project")
@json_option
def project_remove(project: str, as_json: bool) -> None:
    """Delete a project: its corpora, selections, runs and models."""
    doomed = projects.find(project)
    echo(f"note: deletes all data in {doomed.name}; original files, downloads and exported copies stay", err=True)
    if sys.stdin.isatty() and not as_json:
        click.confirm("Remove all of it?", abort=True, err=True)
    report({"removed": projects.remove(doomed).name}, as_json, "")


@click.command("audit")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="List only entries since this date or time (UTC): 2026-11-22 or 2026-11-22T09:30:00.",
)
@json_option
def audit_list(since: datetime | None, as_json: bool) -> None:
    """List who did what in all projects, oldest first: imports, views of sentences, exports, removals and runs.

    There is one log for all projects, so --project has no effect. Removals of projects are logged too. The log has no
    names of projects, because they may be names of clients.

    The log is audit.jsonl in the home. WINNOW_AUDIT=/a/path stores it elsewhere, WINNOW_AUDIT=off disables it.
    """
    path, lines = audit_log.place(), list(audit_log.lines(since))
    if spoilt := audit_log.spoilt():
        echo(f"note: {path}: {spoilt} of its lines cannot be read and are left out", err=True)
    if as_json:
        echo_json({"log": None if path is None else str(path), "lines": lines})
        return
    if path is None:
        echo("note: the audit log is off (WINNOW_AUDIT=off)", err=True)
    for line in lines:
        echo(_in_words(line))


def _in_words(line: Line) -> str:
    what = [*line.get("corpora", ()), *line.get("runs", ())]
    words = [str(line.get(name, "?")) for name in ("time", "account", "action", "origin")]
    return f"{words[0]}  {words[1]:<12} {words[2]:<7} {words[3]:<13} {' '.join(map(str, what))}"


@click.command()
@click.option(
    "--privacy",
    "only_privacy",
    is_flag=True,
    help="Check who can read the stored data. The exit status is 2 if a check is bad.",
)
@click.option("--on", help="Check a cluster (ray or ray:HOST:PORT). The exit status is 2 if it cannot be used.")
@json_option
def doctor(only_privacy: bool, on: str | None, as_json: bool) -> None:
    """Show this machine's versions, cores, memory, device and disk."""
    if on:
        cluster = machine.checked_cluster(on)
        report(cluster.as_json(), as_json, cluster.lines)
        if cluster.bad:
            sys.exit(BAD)
        return
    if not only_privacy:
        report(machine.doctor(), as_json)
        return
    checks = privacy.checks()
    plain = [f"{check.verdict:<5} {check.name:<10} {check.says}" for check in checks]
    report({"checks": [check.as_dict() for check in checks]}, as_json, plain)
    if any(check.verdict == "bad" for check in checks):
        sys.exit(BAD)


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8501, show_default=True, help="The app's port.")
@json_option
def key(port: int, as_json: bool) -> None:
    """Print the app's address with its key. The server asks for the key if it cannot see which account connects."""
    address = f"http://localhost:{port}/?key={door.key()}"
    report({"key": door.key(), "address": address}, as_json, address)


@click.group("runs")
def run_group() -> None:
    """List, show, name, compare, cancel, resume and remove runs."""
    note_spoilt()


@run_group.command("list")
@click.option("--tag", "tags", multiple=True, callback=several, help="List only runs that have all of these tags.")
@click.option("--archived", is_flag=True, help="Include archived runs.")
@json_option
def runs_list(tags: Sequence[str], archived: bool, as_json: bool) -> None:
    """List runs, newest first, with names and tags."""
    rows = []
    for run in runs.listed():
        label = labels.read(run)
        if set(tags) <= set(label.tags) and (archived or not label.archived):
            state = runs.state(run.id).state
            about = {"run": run.id, "kind": run.manifest.kind, "state": state, "title": titles.title(run)}
            rows.append({**about, **_label(label)})
    if as_json:
        echo_json({"runs": rows})
    for row in [] if as_json else rows:
        label = labels.read(runs.get(str(row["run"])))
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


def _label_in_words(label: Label) -> str:
    return "  ".join(part for part in (label.name, *_flags(label)) if part)


@run_group.command("label")
@click.argument("run_id")
@click.option("--name", help="Name to show instead of the run's title.")
@click.option("--tag", "tags", multiple=True, callback=several, help="Add a tag.")
@click.option("--untag", "untags", multiple=True, callback=several, help="Remove a tag.")
@click.option("--note", help="Note about the run.")
@click.option("--pin/--no-pin", default=None, help="Keep the run at the top of the table.")
@click.option("--archive/--no-archive", default=None, help="Leave the run out of lists. Nothing is deleted.")
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
    """Name, tag, pin or archive a run, or add a note. The run's key and result stay the same."""
    if both := sorted({*tags} & {*untags}):
        raise ConfigError(f"tag {both[0]!r}: --tag adds it and --untag removes it; give one of them.")
    kept = [tag for tag in labels.read(runs.get(run_id)).tags if tag not in untags]
    label = labels.change(run_id, name=name, tags=[*kept, *tags], note=note, pinned=pin, archived=archive)
    lines = [run_id, *(line for line in (_label_in_words(label), label.note) if line)]
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
    """Write the training curves of RUNS to a table with the columns run, metric, type, seed, step, value."""
    write_file(run_comparison.curves_csv(run_ids).encode(), Path(output))
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
    """Return the lines of `runs show`: title, state, verdict, options other than the default, result, and notes."""
    ended = FINISHED.get(state.state, state.state)
    about = {"run": run.id, "state": ended, "stage": state.stage, "device": state.device, "error": state.error}
    parts = {"Options": run_comparison.chosen(run.id), "Result": result}
    finding = results.finding(run.id) if run.manifest.kind in ("experiment", "study") and result else None
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
    report({"run": run_id, "state": state}, as_json, FINISHED.get(state, state))


@run_group.command("resume")
@click.argument("run_id")
@click.option("--agree", is_flag=True, help="Agree to the options of an imported run, which another person chose.")
@json_option
def runs_resume(run_id: str, agree: bool, as_json: bool) -> None:
    """Resume a run where it stopped, in this process."""
    report({"run": run_id, **runs.go_on(run_id, progress, agreed=agree)}, as_json)


@run_group.command("remove")
@click.argument("run_id")
@click.option(
    "--with-runs",
    is_flag=True,
    help="Also delete everything that was made from the run: corpora, runs, models, exports.",
)
@json_option
def runs_remove(run_id: str, with_runs: bool, as_json: bool) -> None:
    """Delete a run and the runs that it started, except runs that other runs need."""
    if with_runs:
        remove_everything(run_id, as_json)
        return
    _, freed = removals.removal_alone(run_id)
    removals.remove_run(run_id)
    report({"removed": run_id, "freed": freed}, as_json, "")
