"""`audit` in parts: broken off and resumed, or shared with a process that helps, it leaves what one process makes."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from core.corpora import edit_similarity, hygiene, near
from core.corpora.hygiene import Audit
from core.corpora.library import Library
from core.errors import Cancelled
from core.facade import runs
from core.recipes import RECIPES
from core.recipes.base import help_of, register
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


def audited(options: Options) -> Run:
    return runs.execute("audit", options)


def same(home: Path, run: Run, options: Options) -> None:
    """Compare with one process that writes nothing."""
    library, held = Library(home), options["held_out"]
    assert isinstance(held, tuple)
    audit = hygiene.audit(library.find(str(options["corpus"])), [library.find(mark) for mark in held], Silent())
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


def test_an_audit_stopped_in_every_phase_computes_no_chunk_again(
    home: Path, options: Options, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, left = Chunks.keep, {f"{phase}-000000" for phase in PHASES}

    def broken_off(self: Chunks, i: int, array: Any) -> None:
        keep(self, i, array)
        if self.paths[i].stem in left:
            left.remove(self.paths[i].stem)
            raise Cancelled("a power cut")

    monkeypatch.setattr(Chunks, "keep", broken_off)
    for _ in PHASES:
        with pytest.raises(Cancelled):
            audited(options)
    assert not left
    same(home, audited(options), options)
    assert max(Counter(kept).values()) == 1
    assert {name.rpartition("-")[0] for name in kept} == set(PHASES)
    assert min(Counter(name.rpartition("-")[0] for name in kept if name.startswith(("pairs", "words"))).values()) > 1


def test_a_helping_process_takes_part_in_every_phase(
    home: Path, options: Options, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = register(RECIPES["audit"], RECIPES["audit"].config.parse(options), RunStore(home))
    helped = help_of(run, RECIPES)
    assert helped
    monkeypatch.setenv("WINNOW_SHARE", "1/2")
    assert run.lock.acquire(run.id)  # a slow process works on the run
    with pytest.raises(Over):
        helped(Aside(run, run))
    run.lock.release()
    assert {name.rpartition("-")[0] for name in kept} == set(PHASES)
    made = list(kept)
    monkeypatch.setenv("WINNOW_SHARE", "0/2")
    same(home, audited(options), options)
    assert kept == made


def test_few_sentences_are_few_files(home: Path, seal: Seal, kept: list[str]) -> None:
    """Each is written to the disk, which on some disks takes longer than the whole search."""
    rng = Random(2)
    audited({"corpus": seal(variants(rng, sentences(rng, 300, 3, 40), 300)).fingerprint})
    assert len(kept) == 6
