"""The command `check`: the data check of a project, or of the corpora that are named."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeVar

import click

from core.cli.options import config_options, given
from core.cli.terminal import echo, json_option, report
from core.importing import checks

Command = TypeVar("Command", bound=Callable[..., object])
RED = 2  # exit status, as of any input that cannot be used
run_anyway_option = click.option(
    "--run-anyway", is_flag=True, help="Start although the data check has red items; the run notes them."
)


@click.command()
@config_options(checks.CheckConfig)
@json_option
@click.pass_context
def check(context: click.Context, /, as_json: bool, **values: object) -> None:
    """Check the data of the project before anything runs: one line per item, green, amber or red.

    Ends with status 2 if an item is red.

    \b
    python -m core check --task T.txt --domain D.txt --budget 20%
    """
    found = checks.of_project(given(values, checks.CheckConfig))
    level = checks.worst(found)
    result = {"level": level, "checks": [asdict(one) for one in found]}
    report(result, as_json, in_lines(found) or ["Nothing to check: the project has no corpora in use."])
    if level == "red":
        context.exit(RED)


def in_lines(found: Sequence[checks.Check]) -> list[str]:
    """One line per item, red first, with the cure below an amber or a red one."""
    lines = []
    for one in sorted(found, key=lambda one: -checks.LEVELS.index(one.level)):
        lines.append(f"{one.level:<6} {one.sentence}")
        if one.level != "green":
            lines.append(f"       {one.cure}: {one.command}")
    return lines


def warn(found: Sequence[checks.Check]) -> None:
    """Print the amber and red items on stderr."""
    if lines := in_lines([one for one in found if one.level != "green"]):
        echo(*lines, err=True)
