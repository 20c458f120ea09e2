"""Fixtures of all tests: an empty home per test, real data if available, and corpora from words."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two cores, several test processes
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
from hypothesis import settings

from core import cards
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.project_list import is_project, shared_home
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import tokenize
from tests.fake_cards import Driver
from tests.fork_server import ForkServer
from tests.homes import biased, experimented, homes, project_in, selected, trained

__all__ = ["biased", "experimented", "homes", "selected", "trained"]  # fixtures

settings.register_profile("winnow", deadline=None)  # a busy machine must not fail a test
settings.load_profile("winnow")

ROOT = Path(__file__).resolve().parents[1]
REAL_DATA = Path(os.environ.get("WINNOW_REAL_DATA", ROOT.parent / "shared" / "data"))
LONG = {"experiment", "pretraining", "stats", "tagging", "torture", "training"}  # folders with the longest tests
IMPORTED = pytest.StashKey[int]()  # number of modules at the last gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Long tests run first; otherwise one core would wait for the other at the end.
    items.sort(key=lambda item: item.path.parent.name not in LONG)
    if not REAL_DATA.is_dir():
        for item in items:
            if item.get_closest_marker("real"):
                item.add_marker(pytest.mark.skip(reason=f"needs the corpora of {REAL_DATA}"))


def pytest_collection_finish() -> None:
    """Scan the installed components once; AppTest of streamlit scans them for each page, which takes 0.3 s."""
    if "streamlit.testing.v1" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Exclude objects of imported libraries from garbage collection.

    A run collects garbage after each seed, which took 0.3 s each time, most of it for objects of libraries.
    """
    if len(sys.modules) > item.config.stash.get(IMPORTED, 0) + 200:
        item.config.stash[IMPORTED] = len(sys.modules)
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many tests were skipped and why, so that they are not taken for passed."""
    skipped = terminalreporter.stats.get("skipped", [])
    for reason, count in Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped).items():
        terminalreporter.write_line(f"{count} test{'s' * (count > 1)} left out: {reason}", yellow=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the only project of an empty home; no test may touch the user's own home."""
    path = project_in(tmp_path / "home")
    monkeypatch.setenv("WINNOW_HOME", str(shared_home(path)))
    monkeypatch.setenv("WINNOW_CONFINED", "0")  # a drawn page confines this process until the test ends
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(tmp_path_factory.getbasetemp()))
    return path


@contextmanager
def elsewhere(home: Path) -> Iterator[Path]:
    """Use another project than the test's: yield its folder. home: that folder, or a home, of which the first is used."""
    project = home if is_project(home) else project_in(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(shared_home(project)))
        yield project


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Yield a fake driver of GPUs."""
    yield Driver(monkeypatch, tmp_path / "driver")
    cards.forget()


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Start a process that forks others, which need no seconds for imports."""
    with ForkServer() as fork_server:
        yield fork_server


@pytest.fixture(scope="session")
def real_data() -> Path:
    return REAL_DATA


def sentence(text: str, entities: Sequence[tuple[int, int, str]] | None = None) -> Sentence:
    spans = None if entities is None else tuple(Entity(start=s, end=e, type=t) for s, e, t in entities)
    return Sentence(id=sentence_id(text), tokens=tokenize(text), text=text, entities=spans)


def entities_of(sentence: Sentence) -> tuple[Entity, ...]:
    """Return the entities of a labelled sentence."""
    assert sentence.entities is not None
    return sentence.entities


Command = Callable[..., tuple[int, str, str]]  # words -> exit code, stdout, stderr


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Type a command line in this process: `command("corpus", "list")` -> (exit code, stdout, stderr)."""
    from core.cli.main import run_main

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["core", *map(str, words)])
        return (run_main(), *capsys.readouterr())

    return call


class Seal(Protocol):
    """`seal(texts, name="c")` -> a sealed corpus of this test's home."""

    def __call__(self, texts: Sequence[str | Sentence], name: str = "corpus", labelled: bool = False) -> Corpus: ...


@pytest.fixture
def untrained() -> Iterator[None]:
    """Replace all training in this test by results drawn at random."""
    from tests.untrained import without_training

    with without_training():
        yield


@pytest.fixture
def seal(home: Path) -> Seal:
    return sealer(home)


def sealer(home: Path) -> Seal:
    """Return `seal` for any home."""

    def make(texts: Sequence[str | Sentence], name: str = "corpus", labelled: bool = False) -> Corpus:
        rows = [text if isinstance(text, Sentence) else sentence(text) for text in texts]
        return Library(home).seal(rows, name=name, origin={}, labelled=labelled)

    return make
