"""Neither the app log, a worker log nor the events of a run quote text of the user."""

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core import work as worker_process
from core.errors import for_the_log
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.project_list import shared_home
from core.projects import runs
from core.runs.context import RunContext
from core.runs.store import RunStore
from core.runs.worker import execute
from pages.ui import frame
from tests.conftest import Command
from tests.pages.drawing import opened
from tests.word_search import holding

NAMES = [f"Zyxname{i}" for i in range(20)]
WORD = NAMES[7]  # a traceback shows code, so no line of code has the word


def invalid() -> None:
    int(WORD)


def missing_key() -> None:
    dict[str, str]()[WORD]


def missing_file() -> None:
    Path(f"/uploads/{WORD}.txt").read_bytes()


def no_letter() -> None:
    f"{WORD} \ud800".encode()


def one_out_of_another() -> None:
    try:
        invalid()
    except ValueError as error:
        raise RuntimeError("shapes differ") from error


QUOTING = (invalid, missing_key, missing_file, no_letter, one_out_of_another)


@pytest.mark.parametrize("fails", QUOTING)
def test_a_bug_is_logged_without_its_text(
    fails: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(tmp_path))
    with pytest.raises(Exception) as caught:  # noqa: PT011
        fails()
    logged = for_the_log(caught.value)
    assert "Zyxname" not in logged
    assert f"in {fails.__name__}" in logged
    assert type(caught.value).__name__ in logged
    spoken = {one_out_of_another: "RuntimeError: shapes differ", missing_file: "[Errno 2] No such file or directory"}
    assert spoken.get(fails, "") in logged  # messages that quote no user text are kept
    monkeypatch.setattr(worker_process, "work", lambda run_id: fails())
    monkeypatch.setattr(sys, "argv", ["core.work", "work", "x", "--home", str(tmp_path)])
    assert worker_process.main() == 1  # the worker's command line prints the same error
    stderr = capsys.readouterr().err
    assert f"in {fails.__name__}" in stderr
    assert "Zyxname" not in stderr


@pytest.mark.parametrize("fails", [*(pytest.param(each, marks=pytest.mark.full) for each in QUOTING[:-1]), QUOTING[-1]])
def test_no_log_of_the_home_contains_the_text_of_an_error(
    fails: Callable[[], None], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = register(KINDS["add"], KINDS["add"].config.parse({"path": "x.txt"}), RunStore(home))

    def recipe(context: RunContext) -> dict[str, object]:
        fails()
        return {}

    with pytest.raises(Exception):  # noqa: B017, PT011
        execute(run, recipe)
    monkeypatch.setattr(frame, "logger", logging.getLogger(f"winnow.pages.{home}"))
    monkeypatch.setattr(corpora, "listed", fails)
    assert "Details are in the log" in opened("pages/1_Corpora.py").error[0].value
    for log in (run.log_file, shared_home(home) / "app.log"):
        assert f"in {fails.__name__}" in log.read_text()
    assert holding(home, NAMES) == []


CORPORA = {
    "words in the last column": ("x.conll", "Ada\tB-PER\nsees\tO\n.\tO\n\nRoe\tB-PER\nsees\tZyxname7\n.\tO\n"),
    "nothing else": ("y.conll", "Ada\tO\nsees\tZyxname7\n\nRoe\tO\nsees\tZyxname8\n"),
    "an answer": (
        "z.jsonl",
        '{"text": "a b", "spans": [], "answer": "accept"}\n{"text": "c d", "spans": [], "answer": "Zyxname7"}\n',
    ),
    "a broken row": ("u.jsonl", '{"text": "a b"}\n{"text": "Zyxname7\n{"other": "Zyxname8"}\n'),
}


@pytest.mark.parametrize("case", CORPORA)
def test_an_import_quotes_no_row(case: str, tmp_path: Path, home: Path, command: Command) -> None:
    name, text = CORPORA[case]
    (tmp_path / name).write_text(text)
    _, out, err = command("corpus", "add", tmp_path / name, "--json", *["--scheme", "iob2"] * name.endswith("conll"))
    output = out + err
    assert "Traceback" not in output
    [run] = runs.listed("add")
    assert "Zyxname" not in run.events_file.read_text() + output
    assert "Zyxname" not in (run.result_file.read_text() if run.result_file.exists() else "")


def test_an_invalid_tag_is_named_but_a_word_is_not(tmp_path: Path) -> None:
    file = tmp_path / "x.conll"
    for tag, reason in (
        ("X-PER", "tag 'X-PER' is not a valid IOB2 tag; expected O or B-, I- before a type"),
        ("Roe", "column"),
    ):
        file.write_text(f"Ada\tB-PER\nsees\tO\n\nRoe\t{tag}\n.\tO\n")
        [problem] = runs.execute("add", {"path": str(file), "scheme": "iob2"}).result()["problems"]
        assert problem["line"] == 4
        assert reason in problem["reason"]
        assert "Roe" not in problem["reason"]
