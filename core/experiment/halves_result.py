"""What a `halves` run made of a pool of labelled sentences: for each half, what is learnt from it when the other is
the test.

artifacts/halves.npz    of each half the pool's rows that it is tested on
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.files import read_back
from core.results import Evaluation, IntArray
from core.runs.context import RunContext
from core.runs.result import read
from core.runs.store import Run
from core.tagging import evaluations

_TESTED = "halves.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """Fingerprints of what a replicate on one half has: task, the half's text; train and dev, its labelled parts; test,
    the other half. sentences: of each by name."""

    task: str
    train: str
    dev: str
    test: str
    sentences: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvesResult:
    """Result of a `halves` run. pool: fingerprint of all the sentences. halves: two; the second is the first with
    the sides swapped."""

    pool: str
    sentences: int
    halves: Sequence[Half]


def write(context: RunContext, tested: Sequence[IntArray]) -> None:
    """tested: of each half the pool's rows that it is tested on, in the order of its test corpus."""
    path = context.run.artifacts / _TESTED
    np.savez_compressed(path, *tested)
    context.artifact(path.name, path)


def tables(finetune: Run, halves: Run | None) -> list[Evaluation]:
    """Evaluations of a replicate's taggers on the first test set, one a seed. halves: the run that gave it its
    labels and its test set; None where all replicates have the same.

    Under halves the table has a row for every sentence of the pool, and says which were tested.
    """
    plain = evaluations.read(finetune)
    if halves is None:
        return plain
    result = read(halves, HalvesResult)
    side = [half.test for half in result.halves].index(finetune.manifest.config["test"][0])
    with read_back(path := halves.artifacts / _TESTED), np.load(path, allow_pickle=False) as file:
        rows = file[f"arr_{side}"]
    return [one.among(rows, result.sentences) for one in plain]
