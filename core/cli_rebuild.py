"""The commands `rebuild`, `robustness` and `frontier`: other training sets, other test sets, and taggers on them."""

import shutil
from pathlib import Path
from typing import Any

import click

from core import facade
from core.cli import config_options, given, progress, report

REBUILD, ROBUSTNESS = facade.RECIPES["rebuild"].config, facade.RECIPES["robustness"].config
_OUTPUT = click.option(
    "--output", type=click.Path(dir_okay=False), help="Write the sentences: a CoNLL file (IOB2); beside it, the edits."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")


@click.command()
@config_options(REBUILD)
@_OUTPUT
@_JSON
def rebuild(output: str | None, as_json: bool, **values: Any) -> None:
    """Rebuild a training set so that names tell less or contexts more, by a finished `difficulty` run."""
    _run("rebuild", given(values, REBUILD), output, as_json)


@click.command()
@config_options(ROBUSTNESS)
@_OUTPUT
@_JSON
def robustness(output: str | None, as_json: bool, **values: Any) -> None:
    """Make a test set with unseen, foreign or misspelt names; report it beside the plain one (`frontier`)."""
    _run("robustness", given(values, ROBUSTNESS), output, as_json)


def _run(kind: str, options: dict[str, Any], output: str | None, as_json: bool) -> None:
    if output and not Path(output).absolute().parent.is_dir():
        raise facade.ConfigError(f"output: the folder of {output} is not there; make it first.")
    run = facade.execute(kind, options, progress)
    result = {"run": run.id, **run.result()}
    if output:
        log = Path(output).with_suffix(".edits.jsonl")
        shutil.copyfile(result["output"], output)
        shutil.copyfile(result["edits"], log)
        result |= {"output": output, "edits": str(log)}
    report(result, as_json)


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--train", default="", help="Whose names make a slot ambiguous; by default the first run's train.")
@_JSON
def frontier(runs: tuple[str, ...], train: str, as_json: bool) -> None:
    """The F1 of finished finetune RUNS on each of their tests, with and without ambiguous slots."""
    rows = facade.frontier(runs, train)
    if as_json:
        report({"rows": rows, "average": facade.frontier_averages(rows)}, as_json)
        return
    click.echo(f"{'run':<34}{'test set':<34}{'mentions':>9}{'F1':>8}{'sd':>7}{'ambiguous':>11}{'F1 without':>12}")
    for row in rows:
        sd = "" if row["sd"] is None else f"{row['sd']:.2f}"
        click.echo(
            f"{row['run']:<34}{row['name'][:32]:<34}{row['mentions']:>9,}{row['mean']:>8.2f}{sd:>7}"
            f"{row['ambiguous']:>11,}{row['certain_mean']:>12.2f}"
        )
