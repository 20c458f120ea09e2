"""The command `llm`."""

import click

from core.cli.options import config_options, given
from core.cli.terminal import finish, json_option, progress
from core.dictionary.cli import test_lines
from core.kinds import KINDS
from core.llm.asking import in_words
from core.llm.llm import LlmResult
from core.projects import runs
from core.runs.result import read
from core.runs.run import Run


@click.command()
@config_options(KINDS["llm"].config)
@json_option
def llm(as_json: bool, **values: object) -> None:
    """Ask a language model that you run (Ollama, vLLM, llama.cpp) to tag test sets, and score what it finds.

    Each request shows the model a few sentences of your training set. Sentences stay on this computer, unless you allow
    another host with --allow-host.
    """
    run = runs.execute("llm", given(values, KINDS["llm"].config), progress)
    finish(run, as_json, plain=lambda _: _lines(run))


def _lines(run: Run) -> list[str]:
    result = read(run, LlmResult)
    lost, missing = sum(result.dropped.values()), sum(result.unanswered.values())
    return [
        f"run         {run.id}",
        f"answers     {result.sentences - missing:,} of {result.sentences:,} sentences"
        + (f"; without: {in_words(result.unanswered)}" if missing else ""),
        f"quotes      {result.quotes:,}, {result.quotes - lost:,} of them aligned to their sentences"
        + (f"; dropped: {in_words(result.dropped)}" if lost else ""),
        f"seconds     {result.seconds:.1f} that the model took for all test sets",
        *test_lines(run, result.tests),
    ]
