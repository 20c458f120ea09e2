"""The command `difficulty`: what names and contexts tell of the types of a labelled corpus."""

from pathlib import Path

import click

from core.bias import view as bias
from core.cli.options import FILE, config_options, given
from core.cli.terminal import artifact, finish, json_option, progress
from core.errors import ConfigError
from core.projects import runs

DIFFICULTY = runs.KINDS["difficulty"].config


@click.command()
@config_options(DIFFICULTY)
@click.option("--output", type=FILE, help="Write the mentions: a .parquet file.")
@json_option
def difficulty(output: str | None, as_json: bool, **values: object) -> None:
    """Say in bits what names and what contexts tell of entity types.

    Pointwise V-information (PVI) and name minus context (CEIM) of every mention, V-information of all together.
    """
    if output:
        check_parquet(Path(output))
    run = runs.execute("difficulty", given(values, DIFFICULTY), progress)
    finish(run, as_json, output, artifact(bias.mentions_file))


def check_parquet(path: Path) -> None:
    """Before hours of work. Errors: ConfigError where `path` cannot become a Parquet file."""
    if path.suffix != ".parquet":
        raise ConfigError(f"{path}: mentions are written as Parquet; end the name in .parquet.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: its folder is not there; make it first.")
