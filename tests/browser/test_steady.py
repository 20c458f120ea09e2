"""The command that runs the browser tests again and again: what it counts, on tests of its own."""

import json
from pathlib import Path

import pytest

from tests.browser.steady import main


def test_runs_of_several_calls_are_counted_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong, log = tmp_path / "test_right.py", tmp_path / "test_wrong.py", tmp_path / "log.jsonl"
    right.write_text("def test_it(): pass\n")
    wrong.write_text("def test_it(): assert not 1\n")
    words = ["--busy", "0", "--load", "one thing", "--log", str(log), "--rootdir", str(tmp_path), "-q"]
    assert main(["--times", "2", *words, str(right)]) == 0
    assert "0 of 2 runs failed" in capsys.readouterr().out
    assert main(["--times", "1", *words, str(wrong)]) == 1
    assert "1 of 3 runs failed" in capsys.readouterr().out
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["green"] for line in lines] == [True, True, False]
    assert "FAILED" in lines[-1]["end"]
    assert {line["machine"].partition(", ")[2].partition(", ")[2] for line in lines} == {"0 busy loops, one thing"}
