"""The commands `difficulty`, `rebuild`, `robustness` and `frontier`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from core.bias import view
from core.bias.result import logs, mentions_file, sentences_file
from core.bias.robustness import averages
from core.cli.options import CORPUS, FILE, config_options, given, several
from core.cli.terminal import artifact, echo, finish, json_option, progress, report
from core.dictionary.cli import list_option, with_lists
from core.errors import ConfigError
from core.experiment import deliver
from core.kinds import KINDS
from core.projects import runs
from core.runs.run import Run

DIFFICULTY, REBUILD, ROBUSTNESS = (KINDS[kind].config for kind in ("difficulty", "rebuild", "robustness"))
_OUTPUT = click.option(
    "--output",
    type=FILE,
    help="Write the sentences to this CoNLL file (IOB2), and a log of the edits next to it. For robustness, a second "
    "log lists every mention with its old and its new name.",
)


@click.command()
@config_options(DIFFICULTY)
@click.option("--output", type=FILE, help="Write the mentions to this .parquet file.")
@json_option
def difficulty(output: str | None, as_json: bool, **values: object) -> None:
    """Measure how many bits of information names and contexts give about entity types.

    The result has pointwise V-information (PVI) and name minus context (CEIM) for each mention, and V-information for
    the whole corpus.
    """
    if output:
        # Check the path now, because the run may take hours.
        if Path(output).suffix != ".parquet":
            raise ConfigError(f"{output}: mentions are written as Parquet; end the name in .parquet.")
        if not Path(output).absolute().parent.is_dir():
            raise ConfigError(f"{output}: its folder does not exist; create it first.")
    run = runs.execute("difficulty", given(values, DIFFICULTY), progress)
    finish(run, as_json, output, artifact(lambda run_id: mentions_file(runs.get(run_id))))


@click.command()
@config_options(REBUILD)
@_OUTPUT
@json_option
def rebuild(output: str | None, as_json: bool, **values: object) -> None:
    """Rebuild a training set with less informative names or more informative contexts.

    All methods except dataaug need a finished `difficulty` run.
    """
    _run("rebuild", given(values, REBUILD), output, as_json)


@click.command()
@config_options(ROBUSTNESS)
@list_option("--gazetteer", "--list", "--names")
@_OUTPUT
@json_option
def robustness(lists: Sequence[str], output: str | None, as_json: bool, **values: object) -> None:
    """Replace the names in a test set by unseen names, names of other types, or misspelt names.

    `frontier` compares F1 on the new and on the original test set.
    """
    _run("robustness", given(with_lists(values, "gazetteer", lists), ROBUSTNESS), output, as_json)


def _run(kind: str, options: Mapping[str, object], output: str | None, as_json: bool) -> None:
    if output and not Path(output).absolute().parent.is_dir():
        raise ConfigError(f"output: the folder of {output} does not exist; create it first.")
    finish(runs.execute(kind, options, progress), as_json, output, _write)


def _write(run: Run, output: str) -> Mapping[str, str]:
    files = logs(run)
    log_paths = {log: f"{output.removesuffix('.conll')}.{log}.jsonl" for log in files}
    deliver.take(run.id, {sentences_file(run): output, **{file: log_paths[log] for log, file in files.items()}})
    return {"output": output, **log_paths}


@click.command()
@click.argument("taggers_tested", metavar="RUNS...", nargs=-1, required=True, callback=several)
@click.option(
    "--train",
    type=CORPUS,
    default="",
    help="Labelled corpus whose names decide which mentions have an ambiguous type. Default: the training set that the "
    "robustness sets were made for. Without robustness sets, the training set of RUNS.",
)
@json_option
def frontier(taggers_tested: tuple[str, ...], train: str, as_json: bool) -> None:
    """Show F1 of finished `finetune` RUNS on each of their test sets, with and without mentions of ambiguous type."""
    rows = view.frontier(taggers_tested, runs.fingerprint_of(train, progress) if train else "")
    if as_json:
        report({"rows": [asdict(row) for row in rows], "average": averages(rows)}, as_json)
        return
    echo(f"{'run':<34}{'test set':<34}{'mentions':>9}{'F1':>8}{'sd':>7}{'ambiguous':>11}{'F1 without':>12}")
    for row in rows:
        sd = "" if row.sd is None else f"{row.sd:.2f}"
        echo(
            f"{row.run:<34}{row.name[:32]:<34}{row.mentions:>9,}{row.mean:>8.2f}{sd:>7}"
            f"{row.ambiguous:>11,}{row.certain_mean:>12.2f}"
        )
