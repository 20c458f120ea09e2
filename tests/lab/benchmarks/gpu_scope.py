"""Common code of the parts of bench_gpu: their sizes, their text, and the lines that they write."""

import gc
import gzip
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from core.errors import Cancelled
from core.models import hub
from core.models.devices import Precision, prepare_attention
from core.samples import sets
from core.samples.grammar import Grammar
from core.samples.sets import SETS
from core.tagging import calibrate
from core.text.sentence import Sentence, sentence_id
from core.text.words import tokenize
from core.training import pretrain

LEGAL = next(sample for sample in sets.sample_sets() if sample.name == "legal")
CARRIED = "WINNOW_BENCH_ENCODER"  # passes the prepared encoder on to processes that a figure starts
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The sizes of everything. On a CPU it is a rehearsal: it shows that the command runs; its figures mean nothing.

    texts: sentences that are compared. fast: sentences that are timed. domain: sentences of D_C in part 3. side: of a
    multiplied matrix. together: trainings at once on one GPU. data: folder of CrossNER and of unlabelled text; without
    it, the sample and its grammar are used.
    """

    out: Path
    data: Path | None
    device: str
    encoder: str
    texts: int
    fast: int
    steps: int
    side: int
    domain: int
    seeds: tuple[int, ...]
    together: int
    budget: str = "25%"
    pretrain: Mapping[str, object] = field(default_factory=dict)
    finetune: Mapping[str, object] = field(default_factory=dict)

    @property
    def precisions(self) -> tuple[Precision, ...]:
        return ("fp32", "bf16")

    @property
    def rehearsal(self) -> bool:
        return self.device == "cpu"

    @cached_property
    def written(self) -> list[str]:
        """Sentences of the sample's grammar, as many as the largest part needs; some occur twice."""
        plan, rng = SETS["legal"], random.Random(0)
        folder = Path(sets.__file__).with_name("grammars")
        grammar = Grammar([folder / name for name in ("common.txt", "legal.txt", "legal_other.txt")], rng)
        topics = (*plan.inside, *plan.outside)
        return [grammar.line(topics[i % len(topics)]).text for i in range(max(self.texts, self.fast))]

    def sentences(self, n: int) -> list[Sentence]:
        return [Sentence(id=sentence_id(t), tokens=tokenize(t), text=t, entities=()) for t in self.written[:n]]

    @cached_property
    def labelled(self) -> dict[str, Path]:
        """Files of T_C, and of train, dev and test of L_C."""
        folder = self.data and self.data / "crossner-music"
        if not folder or not folder.is_dir():
            return {"task": LEGAL.task, **{split: getattr(LEGAL, split) for split in SPLITS}}
        from tests.lab.benchmarks.data import sentences

        task = self.out / "task.txt"
        lines = [line for split in ("train", "dev") for line in sentences(folder / f"{split}.conll")]
        task.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return {"task": task, **{split: folder / f"{split}.conll" for split in SPLITS}}

    @cached_property
    def unlabelled(self) -> Path:
        """The file of D_C: the English text of `data`, shuffled; without `data`, sentences of the sample's grammar."""
        path = self.out / "domain.txt"
        if not path.exists():
            rows: list[str] = []
            for file in sorted((self.data / "unlabeled").glob("*.txt.gz")) if self.data else ():
                if not file.name.startswith(("wikipedia-es", "wikitext")):
                    with gzip.open(file, "rt", encoding="utf-8") as stream:
                        rows += stream.read().splitlines()
            random.Random(1).shuffle(rows)
            rows = rows[: self.domain] or replace(self, fast=self.domain).written[: self.domain]
            part = path.with_suffix(".part")
            part.write_text("\n".join(rows) + "\n", encoding="utf-8")
            part.replace(path)
        return path


def scope_of(out: Path, data: Path | None, encoder: str | None, usual: str = "minilm") -> Scope:
    """Return the scope for a GPU if torch has one, else for a rehearsal. usual: encoder on a GPU if none is named."""
    out.mkdir(parents=True, exist_ok=True)
    if torch.cuda.is_available():
        prepare_attention()  # as every run does
        return Scope(
            out=out,
            data=data if data and data.is_dir() else None,
            device="cuda",
            encoder=encoder or usual,
            texts=2_000,
            fast=100_000,
            steps=200,
            side=8192,
            domain=1_000_000,
            seeds=(1, 2, 3, 4, 5),
            together=4,
            pretrain={"preset": "custom", "epochs": 1, "batch_size": 256, "learning_rate": 1e-4},
        )
    few = {"epochs": 1}
    return Scope(
        out=out,
        data=None,
        device="cpu",
        encoder=encoder or "tiny",
        texts=60,
        fast=300,
        steps=2,
        side=256,
        domain=800,
        seeds=(1,),
        together=2,
        pretrain=few,
        finetune=few,
    )


def shorten() -> None:
    """Make a rehearsal fast: shorten its measurements, use one thread, and keep libraries out of garbage collection.

    With so small an encoder, two threads only wait for each other, and a garbage collection takes longer than a seed.
    """
    calibrate.SECONDS = pretrain.PROBE_SECONDS = 0.1
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    gc.freeze()


def stand_in(encoder: Path) -> None:
    """Use the prepared encoder instead of the bundled one, whose tokenizer an import needs."""
    os.environ[CARRIED] = str(encoder)
    hub._bundled = lambda: encoder


Figure = Callable[[Scope], Mapping[str, Any]]


class Lines:
    """`lines.jsonl`: one line per figure, written as soon as it is known.

    The file `begun` has a line per attempt, so that a figure that kills the process is tried last in the next call.
    """

    def __init__(self, out: Path) -> None:
        self._lines, self._begun = out / "lines.jsonl", out / "begun"

    def known(self) -> dict[str, dict[str, Any]]:
        """Return the lines of figures without an error, by name."""
        lines = [json.loads(line) for line in _read(self._lines)]
        return {line["figure"]: line for line in lines if "error" not in line}

    def missing(self, figures: Mapping[str, Figure]) -> list[str]:
        """Return the missing figures, least tried first."""
        tries, known = Counter(_read(self._begun)), self.known()
        return sorted((name for name in figures if name not in known), key=lambda name: tries[name])

    def make(self, figures: Mapping[str, Figure], scope: Scope) -> None:
        """Compute the missing figures in sequence. A failure adds a line too, and is tried again in the next call."""
        for name in self.missing(figures):
            _append(self._begun, name)
            began = time.perf_counter()
            line: dict[str, Any] = {"figure": name, "device": scope.device}
            try:
                line |= figures[name](scope)
            except Cancelled:  # the time is up, which is no failure of the figure
                sys.exit(3)
            except Exception as error:  # noqa: BLE001  the other figures can still be computed
                line["error"] = f"{type(error).__name__}: {str(error)[:500]}"
            line["took"] = round(time.perf_counter() - began, 1)
            _append(self._lines, json.dumps(line))
            print(json.dumps(line), flush=True)
            if "CUDA error" in line.get("error", ""):  # the process cannot use its GPU any more
                sys.exit(1)


def _read(path: Path) -> list[str]:
    """Return the complete lines; a kill may have cut off the last one."""
    return path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines() if path.exists() else []


def _append(path: Path, line: str) -> None:
    cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size
    if cut:
        path.write_text("".join(f"{whole}\n" for whole in _read(path)), encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def settled() -> float:
    """Wait until the GPU has finished all queued work, and return the time."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Return the seconds of the fastest of several calls."""
    taken = []
    for _ in range(times):
        began = settled()
        work()
        taken.append(settled() - began)
    return min(taken)


@contextmanager
def home(scope: Scope, name: str) -> Iterator[Path]:
    """Use the figure's own home during the block. It is kept, so that its runs can be resumed."""
    before, path = os.environ.get("WINNOW_HOME"), scope.out / "homes" / name
    os.environ["WINNOW_HOME"] = str(path)
    try:
        yield path
    finally:
        if before is None:
            del os.environ["WINNOW_HOME"]
        else:
            os.environ["WINNOW_HOME"] = before
