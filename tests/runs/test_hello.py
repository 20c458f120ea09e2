"""Where chunks may be made, and which workers are taken: all of it that needs no engine."""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from core import cards
from core.errors import ConfigError, ModelError, ResourceError
from core.files import read_object
from core.reporter import Reporter
from core.runs.chunks import Array
from core.runs.executors import engine
from core.runs.executors.hand import Hand
from core.runs.executors.hello import Hello, Roll
from core.runs.store import Run
from core.runs.versions import versions
from tests.fake_cards import H100, Driver
from tests.runs.works import Squares, begun, made


def test_a_cluster_is_joined_with_its_token_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="needs the cluster's token"), engine.engine("head:6379"):
        pass


def test_what_a_killed_process_left_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "_LONGEST", 999)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    left, living = (tmp_path / f"winnow-{os.geteuid()}-{pid}-abc" for pid in (2**30, os.getpid()))
    going = tmp_path / f"winnow-{os.geteuid()}-{2**30 + 1}-abc"
    for each in (left, living, going):
        each.mkdir()

    def exists(pid: int) -> bool:
        """Another engine that begins just now is sooner by a moment."""
        if pid > 2**30:
            going.rmdir()
        return pid == os.getpid()

    monkeypatch.setattr(psutil, "pid_exists", exists)
    folder = engine._folder()
    assert sorted(tmp_path.iterdir()) == sorted([living, folder])
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_worker_on_another_processor_is_refused_by_name_or_taken_with_a_note() -> None:
    one, other = (Hello(versions=versions(), node=node, guarded=True) for node in ("ward3", "ward4"))
    notes = list[str]()
    context: Any = SimpleNamespace(note=notes.append)
    strict, lenient = (Roll(context, mixed=mixed) for mixed in (False, True))
    strict.admit(one)
    strict.probed(one, "ab")
    strict.probed(one, "ab")
    says = r"worker on ward4: makes other numbers .* ward3 .*; use nodes of one kind, .*, or give"
    with pytest.raises(ResourceError, match=says):
        strict.probed(other, "cd")
    lenient.admit(Hello(versions={}, node="ward4", guarded=True))
    lenient.probed(one, "ab")
    lenient.probed(other, "cd")
    assert "has winnow none" in notes[0]
    assert notes[-1].endswith("--mixed allows it: this result is equal to about 4 digits, not to the byte.")


def half_made(home: Path, *, exact: bool = False) -> Run:
    """Return a run that failed at its third chunk."""
    run = begun(home, "half")
    with pytest.raises(ModelError):
        made(run, "local", Squares(run.path, "refused", exact=exact), 40, 4)
    assert len(list(run.chunks.glob("chunk-*.npy"))) == 2
    return run


def test_the_same_kind_finishes_a_run_and_chunks_without_a_probe_are_taken_as_they_are(home: Path) -> None:
    whole, run, older, anew = begun(home, "whole"), *(half_made(home) for _ in range(3))
    expected = made(whole, "local", Squares(whole.path), 40, 4)
    assert made(run, "local", Squares(run.path), 40, 4) == expected
    assert not list(run.chunks.glob("*.probe"))
    (older.chunks / "chunk.probe").unlink()
    assert made(older, "local", Squares(older.path, off=1), 40, 4)[:2] == expected[:2]
    assert not list(half_made(home, exact=True).chunks.glob("*.probe"))
    for path in anew.chunks.glob("*.npy"):
        path.unlink()
    assert made(anew, "local", Squares(anew.path, off=1), 40, 4) != expected


@pytest.mark.parametrize("share", ["", "0/2"])
def test_another_kind_of_processor_does_not_finish_a_run_unless_mixed(
    home: Path, share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = half_made(home)
    probe = (run.chunks / "chunk.probe").read_bytes()
    monkeypatch.setenv("WINNOW_SHARE", share)
    says = r"makes other numbers .* resume the run where it was begun, remove it .* or give --mixed\."
    with pytest.raises(ResourceError, match=says):
        made(run, "local", Squares(run.path, off=1), 40, 4)
    assert len(list(run.chunks.glob("chunk-*.npy"))) == 2
    assert (run.chunks / "chunk.probe").read_bytes() == probe
    monkeypatch.setenv("WINNOW_MIXED", "1")
    assert len(made(run, "local", Squares(run.path, off=1), 40, 4)) == 10
    assert any("--mixed allows it" in note for note in run.state().notes)
    assert [path.name for path in run.chunks.iterdir() if path.suffix != ".npy"] == []


def test_one_chunk_is_computed_here_without_an_engine_or_a_probe(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed, compute = list[tuple[int, ...]](), Squares._compute

    def counted(work: Squares, rows: tuple[int, ...], report: Reporter) -> Array:
        computed.append(rows)
        return compute(work, rows, report)

    monkeypatch.setattr(Squares, "_compute", counted)
    run = begun(home, "one")
    assert len(made(run, "ray", Squares(run.path), 3, 4)) == 1
    assert computed == [(0, 1, 2)]


def test_of_several_that_begin_the_first_is_the_measure(home: Path) -> None:
    """Also where a disk knows no links."""
    run = begun(home, "two")
    one, other = (Hello(versions=versions(), node=node, guarded=True) for node in ("ward3", "ward4"))
    context: Any = SimpleNamespace()
    rolls = [Roll(context, mixed=False, probe=run.chunks / "chunk.probe") for _ in "12"]
    rolls[0].probed(one, "ab")
    with pytest.raises(ResourceError, match=r"worker on ward4: makes other numbers .* ward3 "):
        rolls[1].probed(other, "cd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", lambda *given: (_ for _ in ()).throw(PermissionError()))
        Roll(context, mixed=False, probe=run.chunks / "other.probe").probed(one, "ab")
    assert read_object(run.chunks / "other.probe") == {"node": "ward3", "probe": "ab"}
    assert not list(run.chunks.glob(".*"))


def test_a_worker_names_the_card_of_its_machine_also_where_it_was_given_none(
    home: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Hand({})
    driver.shows(H100)
    monkeypatch.setenv(cards.VISIBLE, "")
    assert worker.computer(card=True) == H100[1]
    assert worker.computer(card=False) == cards.processor()
    driver.shows()
    assert worker.computer(card=True) == "a card that is not known"
