"""The commands `project ...` (list, new, rename, archive, export, import, remove), `audit`, `doctor`, `key`."""

import sys
from datetime import datetime
from pathlib import Path

import click

from core import door
from core.audit_log import Line
from core.cli.options import FILE
from core.cli.terminal import echo, echo_json, json_option, report
from core.errors import ProjectError
from core.projects import audit, machine, privacy
from core.projects import view as projects
from core.shown import count

BAD = 2  # exit status if a check is bad


@click.group("project")
def project_group() -> None:
    """List, make, rename, archive, export, import and remove projects."""


@project_group.command("list")
@json_option
def project_list(as_json: bool) -> None:
    """List all projects, oldest first. A star marks the one that commands use."""
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
    """Hide a project in the app's switch; nothing in it changes."""
    report(projects.archive(project).as_dict(), as_json)


@project_group.command("unarchive")
@click.argument("project")
@json_option
def project_unarchive(project: str, as_json: bool) -> None:
    """Show an archived project in the app's switch again."""
    report(projects.archive(project, archived=False).as_dict(), as_json)


@project_group.command("export")
@click.argument("project")
@click.option("--output", required=True, type=FILE, help="The file to write, a .zip.")
@click.option("--with-weights", is_flag=True, help="Include models and sentence vectors.")
@json_option
def project_export(project: str, output: str, with_weights: bool, as_json: bool) -> None:
    """Write a project's corpora, selections, runs and results into one file, for another machine."""
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
@click.option("--name", default="", help="New name, if the packed one is taken.")
@json_option
def project_import(file: str, name: str, as_json: bool) -> None:
    """Import a project from a file that `project export` wrote, completely or not at all."""
    path = Path(file)
    try:
        with path.open("rb") as opened:
            project = projects.bring_in(opened, path.name, name)
    except OSError as error:
        raise ProjectError(f"{path.name}: cannot be read ({error.strerror}); check its rights.") from error
    report(project.as_dict(), as_json)


@project_group.command("remove")
@click.argument("project")
@json_option
def project_remove(project: str, as_json: bool) -> None:
    """Delete a project: its corpora, selections, runs and models."""
    doomed = projects.find(project)
    echo(f"note: goes: all of {doomed.name}; stays: original files, downloads, exported copies", err=True)
    if sys.stdin.isatty() and not as_json:
        click.confirm("Remove all of it?", abort=True, err=True)
    report({"removed": projects.remove(doomed.name).name}, as_json, "")


@click.command("audit")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="From this day or moment on, UTC: 2026-11-22 or 2026-11-22T09:30:00.",
)
@json_option
def audit_list(since: datetime | None, as_json: bool) -> None:
    """List who did what, in every project: imports, looks, exports, removals and runs, oldest first.

    There is one log for all projects; --project has no effect. Removals of projects are in it, too. No line has the
    name of a project, because that may be a client's.

    The log is audit.jsonl in the home; WINNOW_AUDIT=/a/path puts it elsewhere, WINNOW_AUDIT=off writes none.
    """
    path, lines = audit.lines(since)
    if spoilt := audit.spoilt():
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
    help="Check who can read the stored data; exits 2 if a check is bad.",
)
@click.option("--on", help="Check a cluster, ray or ray:HOST:PORT: machines, bytes, privacy; exits 2 if refused.")
@json_option
def doctor(only_privacy: bool, on: str | None, as_json: bool) -> None:
    """Show what this machine has: versions, device, disk, the bundled encoder."""
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
@click.option("--port", default=8501, show_default=True, help="The app's port.")
@json_option
def key(port: int, as_json: bool) -> None:
    """Print the app's address with its key, for servers that cannot identify the user's account (WINNOW_DOOR)."""
    address = f"http://localhost:{port}/?key={door.key()}"
    report({"key": door.key(), "address": address}, as_json, address)
