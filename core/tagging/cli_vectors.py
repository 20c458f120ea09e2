"""The commands `vectors add` and `vectors list`: external word vectors that taggers start from."""

from dataclasses import asdict
from pathlib import Path

import click

from core.cli.options import config_options
from core.cli.terminal import echo, echo_json, finish, json_option, progress
from core.projects import runs
from core.tagging import vectors_view as vectors

CONFIG = runs.KINDS["vectors-import"].config


@click.group("vectors")
def vectors_group() -> None:
    """External word vectors (word2vec, GloVe, fastText) that taggers start from."""


@vectors_group.command("add")
@click.argument("path", type=click.Path())
@config_options(CONFIG, leave_out=("path",))
@json_option
def vectors_add(path: str, as_json: bool, **values: object) -> None:
    """Read a text file of word vectors; `finetune`, `assist` and `experiment` take them as --imported-vectors NAME."""
    options = {name: value for name, value in values.items() if value is not None}
    finish(runs.execute("vectors-import", {"path": str(Path(path).absolute()), **options}, progress), as_json)


@vectors_group.command("list")
@json_option
def vectors_list(as_json: bool) -> None:
    """The word vectors that are here, newest first."""
    here = vectors.imported()
    if as_json:
        echo_json({"vectors": [{"run": run_id, **asdict(one)} for run_id, one in here.items()]})
        return
    for run_id, one in here.items():
        echo(f"{one.name}: {one.says} ({run_id})")
