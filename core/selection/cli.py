"""The commands `prevalence`, `select`, `map` and `export`: how much to choose; choose S_C, lay it out, write it."""

from collections.abc import Mapping
from pathlib import Path

import click

from core.cli.options import FILE, config_options, given
from core.cli.terminal import artifact, finish, json_option, progress, report
from core.corpora import remote
from core.explore import regions
from core.explore import view as maps
from core.importing.cli import run_anyway_option
from core.projects import runs
from core.projects.runs import Run
from core.selection import choices
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.view import Format

_format = click.option(
    "--format",
    type=click.Choice(selections.FORMATS),
    help="What to write, whatever the output is called; else its ending says so, and without one it is a folder.",
)


@click.command("prevalence")
@config_options(runs.KINDS["prevalence"].config)
@json_option
def count_alike(as_json: bool, **values: object) -> None:
    """Estimate how many sentences of the domain corpus (D_C) are like the task corpus (T_C), as a range.

    It is what a budget can hope for.
    """
    run = runs.execute("prevalence", given(values, runs.KINDS["prevalence"].config), progress)
    finish(run, as_json, plain=lambda _: [prevalence.in_words(prevalence.result(run.id))])


@click.command()
@config_options(runs.KINDS["select"].config)
@click.option(
    "--output",
    type=click.Path(),
    help="Write the selection (S_C): a .txt, .jsonl, .parquet or .csv file, or a folder, here or at s3://, gs://, hdfs://.",
)
@_format
@run_anyway_option
@json_option
def select(output: str | None, format: Format | None, run_anyway: bool, as_json: bool, **values: object) -> None:
    """Score the domain corpus (D_C) and select the sentences worth pre-training on.

    \b
    --option NAME=VALUE sets a strategy's own option (`--option query=k-means`).
    """
    if output and not format:  # what cannot be written is refused before hours of work, not after them
        selections.format_of(Path(remote.named(output)))
    if output and remote.is_address(output):
        remote.reach(output)
    options = given(values, runs.KINDS["select"].config)

    def write(run: Run, output: str) -> Mapping[str, str]:
        config = run.manifest.config
        with remote.outgoing(output) as path:
            selections.export(run.id, config["budget"], config["keep"], path, format)
        return {"output": remote.named(output)}

    finish(runs.execute("select", options, progress, run_anyway=run_anyway), as_json, output, write)


@click.command("map")
@config_options(runs.KINDS["map"].config)
@click.option("--output", type=FILE, help="Write the map: a .parquet file.")
@json_option
def map_selection(output: str | None, as_json: bool, **values: object) -> None:
    """Map the task corpus (T_C), selected and filtered sentences of a `select` run.

    For the page Explore, Embedding Atlas or a notebook.
    """
    options = given(values, runs.KINDS["map"].config)
    run = runs.execute("map", maps.options(str(options["selection"])) | options, progress)
    finish(run, as_json, output, artifact(maps.table_file))


@click.command()
@click.argument("choice")
@click.option(
    "--output", type=click.Path(), required=True, help="A file (.txt .jsonl .parquet .csv) or a folder; s3:// too."
)
@_format
@click.option("--budget", help="Another budget than the selection's own; nothing is scored.")
@click.option("--region", help="Instead what was picked on its map, by its name in the page's address: lasso:5e0c91ab.")
@json_option
def export(
    choice: str, *, output: str, format: Format | None, budget: str | None, region: str | None, as_json: bool
) -> None:
    """Write a selection, its hand edits counted: by its id, its name, or the id of its `select` run."""
    wanted, written = choices.find(choice), remote.named(output)
    keep, budget = runs.get(wanted.run).manifest.config["keep"], budget or wanted.budget
    with remote.outgoing(output) as path:
        if region:
            regions.write_region(wanted.id, region, path, format, budget)
        else:
            selections.export(wanted.id, budget, keep, path, format)
    report({"run": wanted.run, "choice": wanted.id, "output": written}, as_json, written)
