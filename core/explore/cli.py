"""The command `atlas`: a map as a folder for Embedding Atlas."""

from pathlib import Path

import click

from core.cli.options import FOLDER
from core.cli.terminal import json_option, report
from core.errors import ConfigError
from core.explore import atlas
from core.explore import view as maps
from core.selection import choices


@click.command("atlas")
@click.argument("choice")
@click.option("--output", required=True, type=FOLDER, help="A folder that does not exist yet.")
@json_option
def write_atlas(choice: str, output: str, as_json: bool) -> None:
    """Write the newest map of a selection, with its hand edits, as a folder that Embedding Atlas opens."""
    chosen = choices.find(choice)
    map_run = maps.of(chosen.id)
    if map_run is None:
        raise ConfigError(f"atlas: {chosen.id} has no map; make one with `map --selection {chosen.run}`.")
    folder = Path(output)
    if folder.exists():
        raise ConfigError(f"output: {folder.name!r} exists already; name a new folder.")
    atlas.export(map_run, folder)
    report({"map": map_run, "output": output, "open": atlas.command(folder)}, as_json, [output, atlas.command(folder)])
