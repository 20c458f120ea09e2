"""Import a shape as a person would: on the command line or on the page Corpora."""

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.cli.main import run_main
from core.corpora.corpus import Corpus
from core.corpora.proposal import UNUSED
from core.errors import OptionsError, ReadError, WinnowError
from core.importing import intake_view as intake
from core.importing import uploads
from core.importing import view as corpora
from core.importing.add import proposed_name
from core.importing.result import IntakeResult
from core.projects import runs
from core.runs.result import read as read_result
from core.runs.run import Run
from tests.imports.shape import Content


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of an import. added: sealed corpora. said: everything that the user could read."""

    code: int
    added: tuple[Corpus, ...]
    said: str


def write(files: Mapping[str, Content], folder: Path) -> Path:
    """Write the files below `folder`; return the path to import: the only file, or the folder."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(_bytes(content))
    return folder / next(iter(files)) if len(files) == 1 else folder


def flags(options: Mapping[str, str]) -> list[str]:
    """Return the options in the spelling of the command line."""
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]


def by_command(
    path: Path, options: Mapping[str, str], patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
) -> Outcome:
    """Run `python -m core corpus add PATH` in this process."""
    patch.setattr(sys, "argv", ["core", "corpus", "add", str(path), *flags(options)])
    captured.readouterr()
    code = run_main()
    out, err = captured.readouterr()
    return Outcome(code, tuple(corpora.listed()), f"{out}\n{err}")


def plain(text: str) -> str:
    """Return a text without white space, so that tokenisation does not matter."""
    return "".join(text.split())


def by_page(files: Mapping[str, Content], options: Mapping[str, str]) -> Outcome:
    """Make the calls of the page Corpora after a drop of files and a press of its button, without drawing the page.

    A person who gives options uses the form with all options. Otherwise, several files are imported as proposed.
    """
    said = list[str]()
    try:
        token = uploads.spool_all([(name, io.BytesIO(_bytes(content))) for name, content in files.items()])
        path = uploads.spooled(token)
        several = intake.is_several(path) and not options
        run = _proposed(path) if several else _form(path, options, said)
    except WinnowError as error:
        said += [str(error), *(error.examples if isinstance(error, OptionsError) else ())]
        return Outcome(2, tuple(corpora.listed()), "\n".join(said))
    imports = [each.run for each in read_result(runs.get(run.id), IntakeResult).parts] if several else [run.id]
    said += [_summary(runs.get(each)) for each in imports if each]
    return Outcome(0, tuple(each for each in corpora.listed() if not each.derived), "\n".join(said))


def _summary(run: Run) -> str:
    """Return the result and the notes of a finished import, which its report shows."""
    events, _ = run.events()
    return "\n".join([str(run.result()), *(str(event.data["text"]) for event in events if event.kind == "note")])


def _bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def _proposed(path: Path) -> Run:
    """Import as `pages.ui.corpora.imports` does: labelled files become the training set, others the task corpus."""
    proposal = intake.proposal([path])
    parts = {row.files[0]: "train" if row.labelled else "task" for row in proposal.rows if row.part != UNUSED}
    if not parts:
        raise ReadError(path.name, None, "; ".join(row.seen for row in proposal.rows))
    return runs.execute("intake", intake.options(proposal, [path], parts, move=True))


def _form(path: Path, options: Mapping[str, str], said: list[str]) -> Run:
    """Import with the proposed form of `pages.ui.corpora.imports`, changed by `options`."""
    encoding = options.get("encoding", "utf-8")
    preview = corpora.preview(path, encoding=encoding, part=options.get("part"))
    said += [problem.reason for problem in preview.problems]
    form: dict[str, object] = {
        "path": str(path),
        "name": proposed_name(path),
        "encoding": encoding,
        "move": True,
    }
    if preview.columns and preview.text_column is not None:
        form["text_column"] = preview.text_column
    if preview.scheme is not None and not preview.scheme.scheme and "scheme" not in options:
        raise ReadError(path.name, preview.scheme.where, preview.scheme.problem)
    return runs.execute("add", {**form, **options})
