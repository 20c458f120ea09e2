"""The command `dictionary`."""

import os
from collections.abc import Callable, Mapping, Sequence

import click

from core.cli.options import Command, config_options, given, several
from core.cli.terminal import finish, json_option, progress
from core.dictionary.dictionary import DictionaryResult
from core.dictionary.view import add_typed, typed_list
from core.kinds import KINDS
from core.projects import runs
from core.projects.home import library
from core.runs.result import read
from core.runs.run import Run
from core.shown import count
from core.tagging.evaluations import OverSeeds


def list_option(option: str, *flags: str) -> Callable[[Command], Command]:
    """Return a click option that takes files with lists of names.

    flags: names of the click option; default `--list`. option: name of the option to which the lists are added.
    """
    return click.option(
        *(flags or ("--list",)),
        "lists",
        multiple=True,
        callback=_lists,
        metavar="FILE[=TYPE],...",
        help=f"Lists of names to add to {option}: .txt, .tsv, .csv or .pkl files. TYPE: type of all names without a "
        "type in the file.",
    )


def _lists(context: click.Context, param: click.Parameter, typed: Sequence[str]) -> tuple[str, ...]:
    """Return lists of names as `several` does, but do not split the name of an existing file at its commas."""
    here = {text for text in typed if os.path.isfile(typed_list(text)[0])}
    return tuple(each for text in typed for each in ([text] if text in here else several(context, param, [text])))


def with_lists(values: Mapping[str, object], option: str, lists: Sequence[str]) -> dict[str, object]:
    """Store lists of names as corpora. Return `values`, with these corpora added to the value of the option `option`.

    lists: FILE or FILE=TYPE for each list.
    """
    known = values.get(option, ())
    assert isinstance(known, tuple)
    return {**values, option: (*known, *map(add_typed, lists))}


@click.command()
@config_options(KINDS["dictionary"].config)
@list_option("--names")
@json_option
def dictionary(lists: Sequence[str], as_json: bool, **values: object) -> None:
    """Look names up in test sets and score the matches, to see how well lists of names work without labels."""
    options = given(with_lists(values, "names", lists), KINDS["dictionary"].config)
    run = runs.execute("dictionary", options, progress)
    finish(run, as_json, plain=lambda _: _lines(run))


def _lines(run: Run) -> list[str]:
    result = read(run, DictionaryResult)
    lines = [f"run         {run.id}", f"names       {result.names:,}, {result.ambiguous:,} of them with several types"]
    lines.append(f"seconds     {result.seconds:.1f} to look the names up in all test sets")
    if result.common:
        lines.append(f"left out    {count(result.common, 'name')}, more common outside of the domain")
    return [*lines, *test_lines(run, result.tests)]


def test_lines(run: Run, tests: Sequence[OverSeeds]) -> list[str]:
    """Return the scores of a run by test set and type, as lines of text."""
    lines = list[str]()
    for mark, test in zip(run.manifest.config["test"], tests, strict=True):
        lines.append(f"{library().find(mark).name}: score (F1) {test.mean:.2f}")
        width = max(9, *(len(line.type) for line in test.report)) if test.report else 9
        lines.append(f"  {'':<{width}} precision  recall      F1  entities  95% interval of F1")
        for line in test.report:
            low, high = test.intervals.get(line.type, (None, None))
            interval = "" if low is None else f"[{low:.1f}, {high:.1f}]"
            scores = f"{line.precision:9.2f} {line.recall:7.2f} {line.f1:7.2f} {line.support:9,}"
            lines.append(f"  {line.type:<{width}} {scores}  {interval}".rstrip())
    return lines
