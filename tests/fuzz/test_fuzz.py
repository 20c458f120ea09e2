"""A short run of the fuzzer over all readers, and its detection of faults."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from core import isolated
from core.corpora.formats.source import _PACKED
from core.corpora.readers import sniff
from tests.conftest import ROOT
from tests.lab.fuzz import hunt as module
from tests.lab.fuzz.__main__ import STORED, VECTORS
from tests.lab.fuzz.projects import PROJECTS
from tests.lab.fuzz.reading import outcome
from tests.lab.fuzz.seeds import SEEDS, options_of
from tests.lab.fuzz.stored import HOME, stored

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", SEEDS)
def test_every_seed_is_read_in_its_format(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "is_isolated", lambda: True)  # a separate process per file would take minutes
    for i, seed in enumerate(SEEDS[name]):
        folder = tmp_path / str(i) / "in"
        monkeypatch.setenv("WINNOW_HOME", str(folder.parent / "home"))
        folder.mkdir(parents=True)
        for file, data in seed.files.items():
            (folder / file).write_bytes(data)
        assert outcome(folder / seed.path, options_of(seed), folder.parent) == "taken"
        assert sniff(folder / seed.path, options_of(seed)).format == name or name in (*_PACKED.values(), "zip")


def test_300_inputs_find_no_fault() -> None:
    words = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.lab.fuzz",
        "--inputs",
        "300",
        "--seed",
        "19",
        "--readers",
        ",".join([*SEEDS, VECTORS, "projects", "archive", "intake"]),
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 inputs" in done.stdout


class Misbehaving:
    """Fail in every way that the fuzzer detects, by the number of the input."""

    name = "misbehaving"

    def prepare(self) -> None:
        pass

    def attempt(self, random: Random, folder: Path) -> str:
        match int(folder.name):
            case 1:
                raise ValueError("a bug")
            case 2:
                os.kill(os.getpid(), signal.SIGSEGV)
            case 3:
                assert len(b"x" * (60 << 20))
            case 4:
                while True:
                    pass
        return "taken"

    attempt_apart = attempt


def test_every_kind_of_fault_is_found_and_the_hunt_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.3)
    monkeypatch.setattr(module, "GROWTH", 30 << 10)
    report = module.hunt(lambda: [Misbehaving()], range(6), seed=0)
    assert dict(report.outcomes) == {("misbehaving", "taken"): 2, ("misbehaving", "found"): 4}
    assert {place: find.first for place, find in report.finds.items()} == {
        "ValueError at after reading": 1,
        "killed its process: SIGSEGV": 2,
        "memory": 3,
        "killed its process: SIGPROF": 4,
    }


def test_stored_files_are_read_before_they_are_damaged(tmp_path: Path) -> None:
    targets = {target.name: target for target in stored(tmp_path)}
    assert tuple(targets) == STORED
    for name, patterns in (("home", HOME), ("projects", PROJECTS)):
        targets[name].prepare()
        for pattern in patterns:
            assert list((tmp_path / name).glob(pattern)), pattern
