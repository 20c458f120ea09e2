"""The commands `prevalence`, `select`, `map` and `export`: how much to choose; choose S_C, lay it out, write it."""

from collections.abc import Mapping
from pathlib import Path

import click

from core.cli.options import config_options, given
from core.cli.terminal import artifact, finish, json_option, progress, report
from core.facade import maps, prevalence, regions, runs, selections
from core.facade.runs import Run
from core.facade.selections import Format

_format = click.option(
    "--format",
    type=click.Choice(selections.FORMATS),
    help="What to write, whatever the output is called; else its ending says so, and without one it is a folder.",
)


@click.command("prevalence")
@config_options(runs.RECIPES["prevalence"].config)
@json_option
def count_alike(as_json: bool, **values: object) -> None:
    """How many sentences of D_C are like T_C's, as a range: what a budget can hope for."""
    run = runs.execute("prevalence", given(values, runs.RECIPES["prevalence"].config), progress)
    finish(run, as_json, plain=lambda _: [prevalence.in_words(prevalence.result(run.id))])


@click.command()
@config_options(runs.RECIPES["select"].config)
@click.option("--output", type=click.Path(), help="Write S_C: a .txt, .jsonl, .parquet or .csv file, or a folder.")
@_format
@json_option
def select(output: str | None, format: Format | None, as_json: bool, **values: object) -> None:
    """Score D_C and select the sentences worth pre-training on.

    \b
    --option NAME=VALUE sets a strategy's own option (`--option query=k-means`).
    """
    if output and not format:
        selections.format_of(Path(output))  # refuses what it cannot write before hours of work, not after them
    options = given(values, runs.RECIPES["select"].config)

    def write(run: Run, output: str) -> Mapping[str, str]:
        config = run.manifest.config
        return {"output": str(selections.export(run.id, config["budget"], config["keep"], Path(output), format))}

    finish(runs.execute("select", options, progress), as_json, output, write)


@click.command("map")
@config_options(runs.RECIPES["map"].config)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the map: a .parquet file.")
@json_option
def map_selection(output: str | None, as_json: bool, **values: object) -> None:
    """Lay out T_C, selected and filtered sentences of a `select` run, for 4_Explore, Embedding Atlas or a notebook."""
    options = given(values, runs.RECIPES["map"].config)
    run = runs.execute("map", maps.options(str(options["selection"])) | options, progress)
    finish(run, as_json, output, artifact(maps.table_file))


@click.command()
@click.argument("run_id")
@click.option("--output", type=click.Path(), required=True, help="A file (.txt .jsonl .parquet .csv) or a folder.")
@_format
@click.option("--budget", help="Another budget than the one kept on the page or the run's own; nothing is scored.")
@click.option("--region", help="Instead what was picked on its map, by its name in the page's address: lasso:5e0c91ab.")
@json_option
def export(
    run_id: str, *, output: str, format: Format | None, budget: str | None, region: str | None, as_json: bool
) -> None:
    """Write a selection, its hand edits counted."""
    keep, path = runs.get(run_id).manifest.config["keep"], Path(output)
    budget = budget or selections.kept_budget(run_id)
    if region:
        written = str(regions.write_region(run_id, region, path, format, budget))
    else:
        written = str(selections.export(run_id, budget, keep, path, format))
    report({"run": run_id, "output": written}, as_json, written)
