"""`make test` and `make test-full` run all parts and fail if one fails."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

# This program replaces python, ruff and mypy. It records its arguments and fails if the pattern matches them.
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
        ("test", " and not full", "''"),  # matches mypy, which is called without arguments
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
