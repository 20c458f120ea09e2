"""The form of a project's file: a zip of its files, and in it a list of them with their sha256 sums.

winnow.json      what this is: {"format": "winnow-project", "version": 1, "winnow": ..., "name": ..., "created": ...,
                 "weights": ..., "files": {name: [bytes, sha256, changed]}}; changed: nanoseconds since 1970
corpora/..., runs/..., roles.json, cover.json

No entry is a pickle, a folder, a link, or of the process that worked on a run. The order is that of the names, the list
last, and no entry is dated: the same project makes the same bytes.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from core.runs import where
from core.runs.run import BROUGHT

FORMAT, VERSION = "winnow-project", 1
LIST = "winnow.json"
# In a run's folder; checkpoints hold pickles, and where it ran has names of machines, to which it would go back.
OF_THE_PROCESS = ("lock", "cancel", "companion", "launched", "claims", "checkpoints", where.FILE, BROUGHT)
PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth", ".py", ".so")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """size: bytes. changed: nanoseconds since 1970, by which corpora are listed newest first."""

    size: int
    sha256: str
    changed: int


def is_pickle(name: str) -> bool:
    """Whether a file may hold what runs when it is loaded."""
    return PurePosixPath(name).suffix.casefold() in PICKLES


def is_of_the_process(name: str) -> bool:
    """Whether a file says where and by whom a run is worked on, which no other machine shall go by."""
    room, *within = name.casefold().split("/")
    return room == "runs" and within[1:2] in [[each] for each in OF_THE_PROCESS]
