"""`audit` in parts: broken off and resumed, or shared with a process that helps, it leaves what one process makes."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from core.corpora import edit_similarity, hygiene, near
from core.corpora.hygiene import Audit
from core.corpora.library import Library
from core.errors import Cancelled
from core.kind import help_of, register
from core.kinds import KINDS
from core.projects import runs
from core.reporter import Silent
from core.runs.chunks import Chunks
from core.runs.executors.share import CLAIMS, Aside, Over
from core.runs.store import Run, RunStore
from tests.conftest import Seal
from tests.corpora.test_hygiene import sentences, variants

PHASES = ("numbers", "rarity", "entries", "pairs", "dealt", "crowds", "words", "letters")
Options = dict[str, object]


@pytest.fixture
def options(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> Options:
    """A corpus of several chunks in every phase, with a template's hundred variants."""
    rng = Random(1)
    held = sentences(rng, 10)
    texts = variants(rng, [*held, *sentences(rng, 200), *sentences(rng, 50, 3, 9)], 300)
    words = " ".join(f"w{i}" for i in range(30))
    texts += [f"{words} x{i}" for i in range(100)]
    monkeypatch.setattr(near, "RANGE", 300)
    monkeypatch.setattr(edit_similarity, "ROWS", 100)
    monkeypatch.setattr(hygiene, "SIZE", 250)
    return {"corpus": seal(texts).fingerprint, "held_out": (seal(held, "held").fingerprint,)}


def expected(home: Path, options: Options) -> Audit:
    """By one process that writes nothing."""
    library, held = Library(home), options["held_out"]
    assert isinstance(held, tuple)
    return hygiene.audit(library.find(str(options["corpus"])), [library.find(mark) for mark in held], Silent())


def audited(options: Options) -> Run:
    return runs.execute("audit", options)


def same(run: Run, audit: Audit) -> None:
    left = Audit.load(run.artifacts / "audit")
    assert left.mask.tolist() == audit.mask.tolist()
    assert left.cluster.tolist() == audit.cluster.tolist()
    assert (left.leak_rules, left.near_rules) == (audit.leak_rules, audit.near_rules)
    assert not list(run.chunks.iterdir())
    assert not (run.path / CLAIMS).exists()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the chunks that are written."""
    names, keep = list[str](), Chunks.keep

    def kept(self: Chunks, i: int, array: Any) -> None:
        keep(self, i, array)
        names.append(self.paths[i].stem)

    monkeypatch.setattr(Chunks, "keep", kept)
    return names


@pytest.mark.parametrize("phase", PHASES)
def test_what_was_broken_off_in_any_phase_makes_no_chunk_again(
    home: Path, options: Options, kept: list[str], phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = expected(home, options)
    keep = Chunks.keep

    def broken_off(self: Chunks, i: int, array: Any) -> None:
        keep(self, i, array)
        path = self.paths[i]
        if path.stem == f"{phase}-000000":
            raise Cancelled("a power cut")

    with monkeypatch.context() as patch:
        patch.setattr(Chunks, "keep", broken_off)
        with pytest.raises(Cancelled):
            audited(options)
    assert kept[-1] == f"{phase}-000000"
    same(audited(options), undisturbed)
    assert max(Counter(kept).values()) == 1
    assert {name.rpartition("-")[0] for name in kept} == set(PHASES)
    assert min(Counter(name.rpartition("-")[0] for name in kept if name.startswith(("pairs", "words"))).values()) > 1


def test_who_helps_goes_from_phase_to_phase_and_all_that_it_made_is_taken(
    home: Path, options: Options, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(home)
    run = register(KINDS["audit"], KINDS["audit"].config.parse(options), store)
    helped = help_of(run, KINDS)
    assert helped
    monkeypatch.setenv("WINNOW_SHARE", "1/2")
    assert run.lock.acquire(run.id)  # by whoever works on it, and is slow
    with pytest.raises(Over):
        helped(Aside(run, run))
    run.lock.release()
    assert {name.rpartition("-")[0] for name in kept} == set(PHASES)
    made = list(kept)
    monkeypatch.setenv("WINNOW_SHARE", "0/2")
    same(audited(options), expected(home, options))
    assert kept == made


def test_who_helps_is_over_when_the_chunks_are_gone(
    home: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = register(KINDS["audit"], KINDS["audit"].config.parse(options), RunStore(home))
    helped, load = help_of(run, KINDS), np.load
    assert helped

    def swept(path: Path, **how: Any) -> Any:
        for each in run.chunks.glob("*.npy"):
            each.unlink()
        return load(path, **how)

    monkeypatch.setenv("WINNOW_SHARE", "1/2")
    assert run.lock.acquire(run.id)
    monkeypatch.setattr("core.importing.phased.np.load", swept)
    with pytest.raises(Over):
        helped(Aside(run, run))
    run.lock.release()


def test_few_sentences_are_few_files(home: Path, seal: Seal, kept: list[str]) -> None:
    """Each is written to the disk, which takes some disks longer than all of the search."""
    rng = Random(2)
    audited({"corpus": seal(variants(rng, sentences(rng, 300, 3, 40), 300)).fingerprint})
    assert len(kept) == 6
