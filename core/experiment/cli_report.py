"""The command `report`: a finished experiment or study for people who never open Winnow."""

from dataclasses import replace
from pathlib import Path

import click

from core.cli.options import FILE
from core.cli.terminal import json_option, report
from core.experiment import reports


@click.command("report")
@click.argument("run_id")
@click.option("--output", required=True, type=FILE, help="A .pdf, .docx or .html file.")
@click.option("--firm", help="Who it is from; else as it was last given on Results, as are the next two.")
@click.option("--project", help="What it is about.")
@click.option("--author", help="Who answers for it.")
@click.option("--date", default=reports.today, help="The date on it; else today.")
@click.option("--examples/--no-examples", default=True, help="With three sentences of the test text.")
@json_option
def write_report(run_id: str, output: str, examples: bool, as_json: bool, **cover: str | None) -> None:
    """A finished experiment or study on two printed pages: PDF, DOCX or HTML."""
    given = {name: text for name, text in cover.items() if text is not None}
    reports.write(run_id, Path(output), replace(reports.last_cover(), **given), examples=examples)
    report({"output": output}, as_json)
