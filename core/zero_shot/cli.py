"""The command `zero-shot`."""

import click

from core.cli.options import config_options, given
from core.cli.terminal import finish, json_option, progress
from core.dictionary.cli import test_lines
from core.kinds import KINDS
from core.projects import runs
from core.runs.result import read
from core.runs.run import Run
from core.zero_shot.zero_shot import ZeroShotResult


@click.command("zero-shot")
@config_options(KINDS["zero-shot"].config)
@json_option
def zero_shot(as_json: bool, **values: object) -> None:
    """Tag test sets with a ready model and score its entities, to see how well the model works without your labels.

    A ready model is a folder with a Hugging Face token classifier: config.json with its labels (id2label),
    model.safetensors, and tokenizer.json. This program does not fetch models. Download one by hand, for example
    dslim/bert-base-NER (PER, ORG, LOC and MISC in English news). The model is loaded without a connection, and no code
    in its folder runs.
    """
    run = runs.execute("zero-shot", given(values, KINDS["zero-shot"].config), progress)
    finish(run, as_json, plain=lambda _: _lines(run))


def _lines(run: Run) -> list[str]:
    result = read(run, ZeroShotResult)
    lines = [f"run         {run.id}", f"seconds     {result.seconds:.1f} to tag all test sets"]
    for name, least in result.thresholds.items():
        theirs = ", ".join(old for old, new in result.types.items() if new == name)
        how = "chosen on the dev set" if name in result.chosen else "not chosen on a dev set"
        lines.append(f"type        {name}, from the model's {theirs}; minimum confidence {least:g}, {how}")
    return [*lines, *test_lines(run, result.tests)]
