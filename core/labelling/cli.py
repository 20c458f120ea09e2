"""The command `label next`: the sentences to label next, printed or written for a labelling tool."""

from collections.abc import Mapping
from pathlib import Path

import click

from core.cli.options import FILE, config_options, given
from core.cli.terminal import finish, json_option, progress
from core.kinds import KINDS
from core.labelling import view
from core.labelling.tasks import TOOLS
from core.projects import runs
from core.projects.audit import note_look
from core.runs.run import Run


@click.group("label")
def label_group() -> None:
    """Find the sentences to label next."""


@label_group.command("next")
@config_options(KINDS["queue"].config)
@click.option("--output", type=FILE, help="Write the sentences to this file, for the tool of --tool.")
@click.option("--tool", type=click.Choice(list(TOOLS)), default="doccano", show_default=True, help="Labelling tool.")
@click.option("--suggestions/--no-suggestions", default=True, help="Write what the tagger finds, as suggestions.")
@json_option
def label_next(output: str | None, tool: str, suggestions: bool, as_json: bool, **values: object) -> None:
    """Queue the sentences of the domain corpus (D_C) whose labels are expected to help most.

    They are training sentences only: label dev and test sets at random, without suggestions, because suggestions bias
    the measure.
    """
    run = runs.execute("queue", given(values, KINDS["queue"].config), progress)

    def write(run: Run, output: str) -> Mapping[str, str]:
        view.export(run.id, Path(output), tool, suggestions=suggestions)
        return {"output": output}

    finish(run, as_json, output, write, plain=lambda _: _lines(run.id))


def _lines(run_id: str) -> list[str]:
    """Return two lines per sentence: its text, and what the tagger finds."""
    found = view.to_label(run_id)
    note_look([runs.get(run_id).manifest.inputs["domain"]])
    lines = []
    for number, task in enumerate(found, 1):
        tokens = task.sentence.tokens
        names = [f"{' '.join(tokens[e.start : e.end])} ({e.type})" for e in task.sentence.entities or ()]
        unsure = f"uncertainty {task.queued.uncertainty:.2f}: " if task.queued.uncertainty else ""
        lines.append(f"{number:>4}  {task.sentence.text}")
        lines += [f"      {unsure}{', '.join(names) or 'no entity found'}"] if unsure or names else []
    return lines
