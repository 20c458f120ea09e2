"""Works for `bench_cluster`, which workers of Ray import too: what a chunk takes, wherever it is made, is written down."""

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.corpora.corpus import Corpus
from core.reporter import Reporter
from core.runs.chunks import Array, Opened, Work


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A work, and the folder that a line goes to for each of its chunks; of probes too, which `items` tell apart."""

    work: Work
    into: Path

    @property
    def stage(self) -> str:
        return self.work.stage

    @property
    def card(self) -> bool:
        return self.work.card

    @property
    def exact(self) -> bool:
        return self.work.exact

    def read(self, start: int, stop: int, about: Mapping[str, Any]) -> Any:
        return self.work.read(start, stop, about)

    def device(self) -> tuple[str, str]:
        return self.work.device()

    def open(self, report: Reporter) -> Opened:
        opened = self.work.open(report)

        def compute(rows: Any, report: Reporter) -> Array:
            begin, cpu = time.time(), time.process_time()
            array = opened.compute(rows, report)
            line = {"begin": begin, "end": time.time(), "cpu": time.process_time() - cpu, "items": len(array)}
            with (self.into / f"{socket.gethostname()}-{os.getpid()}.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
            return array

        return replace(opened, compute=compute)


@dataclass(frozen=True, kw_only=True)
class Sleep:
    """Chunks that take time and no processor, so that what they take beyond it is the engine's, on any busy machine."""

    seconds: float
    stage: str = "sleeping"
    card: bool = False
    exact: bool = True

    def read(self, start: int, stop: int, about: Mapping[str, Any]) -> int:
        return stop - start

    def open(self, report: Reporter) -> Opened:
        return Opened(compute=self._slept)

    def device(self) -> tuple[str, str]:
        return "none", "none"

    def _slept(self, n: int, report: Reporter) -> Array:
        time.sleep(self.seconds)
        return np.zeros(n, np.int8)


@dataclass(frozen=True, kw_only=True)
class Ship:
    """A corpus's text goes out, as many bytes as its vectors have come back, and nothing is computed."""

    corpus: Corpus
    dimension: int = 384
    stage: str = "shipping"
    card: bool = False
    exact: bool = True

    def read(self, start: int, stop: int, about: Mapping[str, Any]) -> list[str]:
        return self.corpus.texts(start, stop)

    def open(self, report: Reporter) -> Opened:
        return Opened(compute=lambda texts, report: np.zeros((len(texts), self.dimension), np.float16))

    def device(self) -> tuple[str, str]:
        return "none", "none"


@dataclass(frozen=True, kw_only=True)
class Stub:
    """The ids of a chunk are read, and one of them is all that is written."""

    corpus: Corpus
    stage: str = "reading ids"
    card: bool = False
    exact: bool = True

    def read(self, start: int, stop: int, about: Mapping[str, Any]) -> Array:
        return np.concatenate([ids for ids, _ in self.corpus.with_ids(start, stop, text=False)])

    def open(self, report: Reporter) -> Opened:
        return Opened(compute=lambda ids, report: ids[:1])

    def device(self) -> tuple[str, str]:
        return "none", "none"
