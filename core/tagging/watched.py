"""A few dev sentences with the entities that a tagger in training finds at each evaluation, to show them live.

checkpoints/seed-1/watched.json   {"epoch": 3, "found": {sentence id: [[start, end, type], ...]}}; removed when the
                                  seed ends
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.files import read_object, write_atomic
from core.runs.run import Run
from core.text.sentence import Entity, Prediction, Sentence

SENTENCES = 10
FILE = "watched.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Entities that a seed's tagger found after `epoch` epochs, by sentence id."""

    seed: int
    epoch: float
    found: Mapping[str, tuple[Entity, ...]]


def writer(folder: Path) -> Callable[[float, Sequence[Sentence], Sequence[Prediction]], None]:
    """Return a function that stores the entities found in the first `SENTENCES` dev sentences with gold entities.

    folder: folder of the seed's checkpoints.
    """

    def write(epoch: float, gold: Sequence[Sentence], found: Sequence[Prediction]) -> None:
        pairs = [(sentence.id, one.entities) for sentence, one in zip(gold, found, strict=True) if sentence.entities]
        shown = {id: [[e.start, e.end, e.type] for e in entities] for id, entities in pairs[:SENTENCES]}
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / FILE, json.dumps({"epoch": epoch, "found": shown}).encode())

    return write


def read(run: Run) -> Watched | None:
    """Return the entities found by the newest seed of a run; None if no seed is in training or the file is damaged."""
    seeds = {seed: run.checkpoints / f"seed-{seed}" / FILE for seed in run.manifest.config["seeds"]}
    times = {seed: file.stat().st_mtime for seed, file in seeds.items() if file.exists()}
    seed = max(times, key=times.__getitem__, default=None)
    stored = None if seed is None else read_object(seeds[seed])
    if seed is None or stored is None:
        return None
    try:
        found = {
            str(id): tuple(Entity(start=int(start), end=int(end), type=str(type)) for start, end, type in entities)
            for id, entities in stored["found"].items()  # type: ignore[attr-defined]
        }
        return Watched(seed=seed, epoch=float(stored["epoch"]), found=found)  # type: ignore[arg-type]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
