"""Outputs in tests/lab/benchmarks/PAPERS.md equal those of its commands that take under a minute."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli.main import main
from tests.lab.benchmarks.bench_papers import LINES, RUNS, Line, prepared, quick, read

KNOWN = read(LINES)
QUICK = [key for key, line in KNOWN.items() if quick(line)]
RUN_ID = re.compile(r"\d{8}-\d{6}-[a-z-]+-[0-9a-f]{4}")


def command(home: Path, text: str) -> str:
    result = CliRunner().invoke(main, ["--home", str(home), *shlex.split(text)])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, real_data: Path) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    prepared(real_data, folder / "files", folder, command)
    return folder


def comparable(text: str, home: str = "HOME") -> str:
    return RUN_ID.sub("RUN", text.replace(home, "HOME")).rstrip()


def test_enough_items_are_compared() -> None:
    assert len(QUICK) >= 12


@pytest.mark.full
@pytest.mark.real
@pytest.mark.parametrize(("paper", "item"), QUICK)
def test_a_stored_output_equals_that_of_its_command(filled: Path, paper: str, item: str) -> None:
    line: Line = KNOWN[paper, item]
    assert tuple(line["commands"]) == RUNS[paper][item]
    for text, printed in zip(line["commands"], line["printed"], strict=True):
        again = command(filled, text.replace("{folder}", str(filled)))
        assert comparable(again, str(filled)) == comparable(printed)
