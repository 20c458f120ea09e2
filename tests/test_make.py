"""`make test` and `make test-full`: they fail if a part fails, install a browser, and count the tests left out."""

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.browser import chromium
from tests.conftest import ROOT, pytest_terminal_summary

# Replaces python, ruff and mypy: it records how it was called and fails if the pattern matches its arguments.
PROGRAM = '#!/bin/sh\necho "$*" >> "{calls}"\ncase "$*" in {fails}) exit 1;; esac\n'


@pytest.mark.parametrize(
    ("target", "left_out", "fails"),
    [
        ("test-full", "", "nothing"),
        ("test", " and not full", "nothing"),
        ("test", " and not full", "*'-m not browser'*"),
        ("test", " and not full", "*'-m browser'*"),
        ("test", " and not full", "*'-m alone'*"),
        ("test", " and not full", "*tests.lint*"),
        ("test", " and not full", "''"),  # mypy, which is called without a word
    ],
)
def test_make_runs_all_parts_and_fails_if_one_fails(tmp_path: Path, target: str, left_out: str, fails: str) -> None:
    for name in ("python", "ruff", "mypy"):
        (tmp_path / name).write_text(PROGRAM.format(calls=tmp_path / "calls", fails=fails), encoding="utf-8")
        (tmp_path / name).chmod(0o700)
    words = ["make", target, f"VENV={tmp_path}", f"BIN={tmp_path}", "-o", f"{tmp_path}/.dev"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (fails == "nothing"), done.stderr
    calls = (tmp_path / "calls").read_text(encoding="utf-8").split("\n")
    assert "lint" in fails or "" in calls[:-1]
    calls = [call for call in calls if call]  # mypy runs beside the others
    if "lint" not in fails:
        assert calls[-5:-3] == ["-m tests.lint", "-m tests.browser.chromium"]
        parts = ["not browser and not alone", "browser and not alone", "alone"]
        assert [call.split(" -m ")[-1].rstrip() for call in calls[-3:]] == [part + left_out for part in parts]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A machine without a browser; what is called to get one."""
    called: list[str] = []

    def run(words: list[str], **_: object) -> SimpleNamespace:
        called.append(" ".join(words[-4:]))
        return SimpleNamespace(returncode=1 if "playwright" in words else 0)

    monkeypatch.setattr(chromium, "find", lambda: None)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    return called


def test_a_browser_is_downloaded_else_the_systems_is_installed(
    bare: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(chromium, "why_not", lambda path: "" if "install -y -qq chromium" in bare[-1:] else "none")
    assert chromium.provide() == ""
    assert bare == ["-m playwright install chromium", "apt-get update -qq", "install -y -qq chromium"]


def test_where_the_system_may_not_be_touched_it_says_what_is_wrong(
    bare: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert chromium.provide() == "there is no chromium"
    assert bare == ["-m playwright install chromium"]


def test_what_was_left_out_is_counted_by_its_reason() -> None:
    reports = [SimpleNamespace(longrepr=("file", 1, f"Skipped: {why}")) for why in ("no data", "no browser", "no data")]
    lines: list[str] = []
    reporter = SimpleNamespace(stats={"skipped": reports}, write_line=lambda line, **_: lines.append(line))
    pytest_terminal_summary(reporter)
    assert lines == ["2 tests left out: no data", "1 test left out: no browser"]
