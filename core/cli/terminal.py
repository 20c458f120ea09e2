"""Output on the terminal: lines, JSON, the progress of a run, and its result."""

import errno
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import click

from core.errors import Cancelled, ResourceError
from core.experiment import deliver
from core.experiment.words import Finding
from core.files import disk_is_full
from core.paths import home
from core.projects import removals
from core.projects.view import unreadable
from core.runs.events import ENDINGS, Event, RunState, step
from core.runs.run import Run
from core.shown import shown, shown_json

Result = dict[str, object]
# Function that writes a run's output to the path that the user typed, and returns entries to add to the result.
Write = Callable[[Run, str], Mapping[str, str]]
# Share of the progress bar for all imports that a command needs.
_IMPORTS = 0.1
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")


def echo(*lines: str, err: bool = False, begin: str = "", end: str = "\n") -> None:
    """Print lines. Control characters in them are replaced, so that text cannot control the terminal or add lines.

    All output uses this function. err: True to print on stderr. begin, end: printed before and after the lines. They
    may have control characters, such as a carriage return that overwrites the previous line.
    """
    with _printing(err=err):
        click.echo(begin + "\n".join(map(shown, lines)) + end, nl=False, err=err)


def echo_json(value: object) -> None:
    """Print a JSON value on one line of stdout."""
    with _printing():
        click.echo(shown_json(json.dumps(value, ensure_ascii=False)))


def mute() -> None:
    """Discard all further output. At its end, Python writes the rest of its buffers, which fails in a closed pipe."""
    sys.stdout = sys.stderr = StringIO()


class OutputClosed(Cancelled):
    """The program that reads the output through a pipe, such as `head`, has ended."""


@contextmanager
def _printing(*, err: bool = False) -> Iterator[None]:
    """Handle errors of printing. Errors: OutputClosed; ResourceError if the disk of stdout is full.

    A run continues if its terminal was closed (EIO), as after `disown` and the end of an SSH session, and if its
    progress and notes (stderr) cannot be written.
    """
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed("the program that reads the output has ended.") from error
    except OSError as error:
        if not err and disk_is_full(error):
            raise ResourceError("stdout: its disk is full; free some space there and try again.") from error
        if not err and error.errno != errno.EIO:
            raise


class _Progress:
    """Shows the progress of a command's runs on stderr.

    On a terminal, one line shows a bar for the whole command, the part, the stage and the stage's count. Each event
    overwrites this line. If stderr is not a terminal, each part and each stage is printed on a separate line. Notes and
    devices are always printed on separate lines.
    """

    def __init__(self) -> None:
        self._part = self._stage = self._count = ""
        self._forget()

    def _forget(self) -> None:
        """Reset the progress bar for the next command."""
        self._state, self._before, self._after, self._reached = RunState(), 0.0, 1.0, 0.0

    def importing(self, event: Event) -> None:
        """Show an event of an import that the command needs first.

        All imports together fill the share `_IMPORTS` of the bar.
        """
        if event.kind == "started":
            self._after = self._reached + (_IMPORTS - self._reached) / 2
        self(event)

    def __call__(self, event: Event) -> None:
        """Show an event of a run."""
        data, width, line = event.data, shutil.get_terminal_size().columns - 1, ""
        self._follow(event)
        if event.kind == "note":
            echo(f"note: {data['text']:<{width}}", err=True, begin="\r")
        elif event.kind == "device":
            echo(f"{'on ' + data['text']:<{width}}", err=True, begin="\r")
        elif event.kind == "part":
            line = self._part
        elif event.kind == "stage":
            line = self._stage
        if sys.stderr.isatty():
            line = "" if event.kind in ENDINGS else self._line(width)
            echo(f"{line:<{width}}", err=True, begin="\r", end="\r" if event.kind in ENDINGS else "")
        elif line:
            echo(f"{line:<{width}}"[:width], err=True, begin="\r")

    def _follow(self, event: Event) -> None:
        """Update the shown part, stage and count, and the share of the command that is done."""
        data = event.data
        if event.kind == "started":
            self._before, self._state = self._reached, RunState()
        self._state = step(self._state, event)
        self._reached = max(self._reached, self._before + (self._after - self._before) * self._state.reached)
        if event.kind == "part":
            self._part, self._stage, self._count = f"[{data['number']} of {data['of']}] {data['name']}", "", ""
        elif event.kind == "stage":
            self._stage, self._count = data["name"], ""
        elif event.kind == "progress":
            of = f" of {data['total']:,}" if data["total"] else ""
            self._count = f" {data['done']:,}{of} {data['unit']}"
        elif event.kind in ENDINGS:
            self._part = self._stage = self._count = ""
            if event.kind == "succeeded" and self._after < 1:
                self._reached, self._after = self._after, 1.0  # An import has ended; the command's own run may follow.
            else:
                self._forget()

    def _line(self, width: int) -> str:
        """Return the line with bar, part, stage and count. A long stage is cut, so that the count stays visible."""
        if not (self._part or self._stage):
            return ""
        full = int(10 * self._reached)
        bar = f"[{'#' * full}{'-' * (10 - full)}] {self._reached:.0%} "
        head, room = ": ".join(filter(None, (self._part, self._stage))), width - len(bar) - len(self._count)
        return bar + (head if len(head) <= room else f"{head[: room - 1]}…") + self._count


progress = _Progress()


def note_spoilt() -> None:
    """Print a note for each unreadable file of the project, so that users know that a printed list is incomplete."""
    for file in unreadable():
        echo(f"note: this file cannot be read, so its content is left out: {file.relative_to(home())}", err=True)


def report(result: Mapping[str, object], as_json: bool, plain: str | Sequence[str] | None = None) -> None:
    """Print a result on stdout: one JSON object if `as_json`, else one line per key.

    plain: lines to print instead of one line per key; "" to print nothing.
    """
    if as_json:
        echo_json(result)
        return
    if plain is not None:
        if plain:
            echo(*([plain] if isinstance(plain, str) else plain))
        return
    for name, value in result.items():
        echo(f"{name:<12} {in_words(value)}")


def in_words(value: object) -> str:
    """Format a value for people, without braces and quotes. For a list of lists or mappings, give only its length."""
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(item)}" for key, item in value.items()) or "-"
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping | list | tuple) for item in value):
            return f"{len(value):,} entr{'y' if len(value) == 1 else 'ies'}; --json shows them"
        return ", ".join(map(in_words, value)) or "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def remove_everything(reference: str, as_json: bool) -> None:
    """Remove a corpus or run and everything made from it.

    First print a note that counts everything to remove. On a terminal, the user must confirm the removal.
    """
    doomed = removals.removal(reference)
    echo(
        f"note: this will remove {doomed.in_words}; original files, downloads and copies in other folders stay",
        err=True,
    )
    if sys.stdin.isatty() and not as_json and not doomed.active:
        click.confirm("Remove all of it?", abort=True, err=True)
    gone = removals.remove_everything(reference)
    names = {"corpora": [each.fingerprint for each in gone.corpora], "runs": [each.id for each in gone.runs]}
    report({"removed": reference, **names}, as_json, "")


def finish(
    run: Run,
    as_json: bool,
    output: str | None = None,
    write: Write | None = None,
    *,
    plain: Callable[[Result], Sequence[str]] | None = None,
    finding: Finding | None = None,
) -> Result:
    """Print a finished run's result and return it.

    output, write: if `output` is given, `write` is first called with the run and this path. plain: function that
    returns the lines to print for a result, unless `as_json`. finding: verdict in words, printed last.
    """
    result = {"run": run.id, **run.result()}
    if finding:
        result["finding"] = asdict(finding)
    if output and write:
        result |= write(run, output)
    lines = [*plain(result), *(finding.parts if finding else ())] if plain and not as_json else None
    report(result, as_json, lines)
    return result


def artifact(find: Callable[[str], Path]) -> Write:
    """Return a function that copies an artifact of a run to the path that the user typed.

    find: function that returns the file or folder of the artifact, given the run's id.
    """

    def write(run: Run, output: str) -> Mapping[str, str]:
        deliver.take(run.id, {find(run.id): output})
        return {"output": output}

    return write
