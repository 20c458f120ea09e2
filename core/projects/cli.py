"""The commands `project list`, `new`, `rename`, `archive`, `unarchive`, `export`, `import`, `remove`."""

import sys
from pathlib import Path

import click

from core.cli.options import FILE
from core.cli.terminal import echo, echo_json, json_option, report
from core.errors import ProjectError
from core.projects import view as projects
from core.shown import count


@click.group("project")
def project_group() -> None:
    """List, make, rename, archive, export, import and remove projects."""


@project_group.command("list")
@json_option
def project_list(as_json: bool) -> None:
    """Every project, oldest first; the one that commands are about is marked."""
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
    """Make an empty project. What was here before there were projects is "My first project"."""
    report(projects.new(name).as_dict(), as_json)


@project_group.command("rename")
@click.argument("project")
@click.argument("name")
@json_option
def project_rename(project: str, name: str, as_json: bool) -> None:
    """Call a project otherwise. Its folder and its addresses stay."""
    report(projects.rename(project, name).as_dict(), as_json)


@project_group.command("archive")
@click.argument("project")
@json_option
def project_archive(project: str, as_json: bool) -> None:
    """Take a project off the app's switch; nothing in it changes."""
    report(projects.archive(project).as_dict(), as_json)


@project_group.command("unarchive")
@click.argument("project")
@json_option
def project_unarchive(project: str, as_json: bool) -> None:
    """Put a project back."""
    report(projects.archive(project, archived=False).as_dict(), as_json)


@project_group.command("export")
@click.argument("project")
@click.option("--output", required=True, type=FILE, help="The file to write, a .zip.")
@click.option("--with-weights", is_flag=True, help="Take models and vectors of sentences along.")
@json_option
def project_export(project: str, output: str, with_weights: bool, as_json: bool) -> None:
    """Write a project's corpora, selections, runs and results into one file, for another machine."""
    packed = projects.export(projects.find(project), Path(output), weights=with_weights)
    if packed.left_bytes:
        left = f"{count(packed.left_models, 'model')}, vectors of {count(packed.left_vectors, 'corpus', 'corpora')}"
        echo(f"note: left out: {left} ({packed.left_bytes / 1e6:,.1f} MB); --with-weights takes them along", err=True)
    if packed.left_runs:
        echo(f"note: left out, since they are at work: {', '.join(packed.left_runs)}", err=True)
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
@click.option("--name", default="", help="What to call it, where its own name is taken.")
@json_option
def project_import(file: str, name: str, as_json: bool) -> None:
    """Make a project of a file that `project export` wrote; wholly, or not at all."""
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
