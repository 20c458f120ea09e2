"""What only the pages look at: figures' data, examples, comparisons."""

import math
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core import plots as figures
from core.artifacts.scores import withheld
from core.config import Budget, Unit
from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS
from core.errors import CorpusError
from core.facade.home import home, store
from core.facade.runs import command
from core.facade.selections import choose, edits, kept_budget, scored
from core.recipes import RECIPES
from core.recipes.base import plan
from core.results import IntArray, Selection
from core.runs.store import Run
from core.text.sentence import Sentence

Which = Literal["top", "borderline", "rejected", "withheld"]


@lru_cache(maxsize=4)
def _score_bins(folder: Path, run_id: str) -> figures.ScoreBins:
    return figures.score_bins(scored(run_id).scores.values)


def score_bins(run_id: str) -> figures.ScoreBins:
    """All scores of a `select` run as a histogram."""
    return _score_bins(home(), run_id)


def score_range(run_id: str) -> tuple[float, float, int]:
    """`(lowest, highest, decimals)` of a `select` run's scores, rounded outwards, some thousand steps apart."""
    edges = score_bins(run_id).edges
    low, high = float(edges[0]), float(edges[-1])
    decimals = -math.floor(math.log10((high - low or abs(high) or 1.0) / 500))
    step = 10.0**-decimals
    return round(math.floor(low / step) * step, decimals), round(math.ceil(high / step) * step, decimals), decimals


def budget_in(run_id: str, unit: Unit) -> str:
    """The kept budget in another unit: what is chosen stays the same, but for rounding to a tenth of a per cent, or a
    score to four digits."""
    found, keep = scored(run_id), store().get(run_id).manifest.config["keep"]
    now = choose(run_id, kept_budget(run_id), keep)
    if now.budget.unit == unit:
        return str(now.budget)
    match unit:
        case "sentences":
            value: float = len(now.rows)
        case "tokens":
            value = max(int(found.lengths[now.rows].sum()), 1)
        case "fraction":
            value = max(round(len(now.rows) / len(found.domain), 3), 0.001)
        case "threshold":  # rounded so that the last one taken stays in
            down = found.scores.prefer == "high"
            worst = float(now.scores.min() if down else now.scores.max())
            decimals = max(
                score_range(run_id)[2], 3 - math.floor(math.log10(abs(worst) or 1.0))
            )  # four digits at least
            value = round((math.floor if down else math.ceil)(worst * 10.0**decimals) / 10.0**decimals, decimals)
    return str(Budget(value=value, unit=unit))


def selection_command(run_id: str, output: str, format: str) -> str:
    """The command line that writes the kept choice to `output`, byte for byte what `export` writes.

    It selects anew where that comes to the same. Where hand edits are counted, diversity re-ordered the scores for
    the run's own budget, or a corpus was removed, it names the run, beside which these lie.
    """
    run, budget = store().get(run_id), kept_budget(run_id)
    options = {**run.manifest.config, "budget": budget}
    words = ["--output", output, *(["--format", format] if format == "folder" else [])]
    reordered = options["diversity"] != "none" and budget != run.manifest.config["budget"]
    with suppress(CorpusError):  # one that was removed: nothing can be selected from it anew
        there = finished("select", options)
        if not reordered and not edits(run_id) and not (there and edits(there.id)):
            return f"{command('select', options)} {shlex.join(words)}"
    return f"python -m core export {run_id} {shlex.join(['--budget', budget, *words])}"


@lru_cache(maxsize=4)
def _free(folder: Path, run_id: str, keep: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    """D_C's rows, best first: those that may be chosen, and those that a flag withholds."""
    found = scored(run_id)
    bits = np.uint8(sum(1 << FLAGS.index(flag) for flag in withheld(keep)))
    free = (found.audit.mask[found.order] & bits) == 0
    return found.order[free], found.order[~free]


@lru_cache(maxsize=32)
def _told(folder: Path, run_id: str, rows: tuple[int, ...]) -> list[dict[str, Any]]:
    """Kept, since the best rows stay the same whatever the slider says and lie scattered over the file."""
    return scored(run_id).table(np.array(rows, dtype=np.int64))


def examples(run_id: str, chosen: Selection, keep: Sequence[str], which: Which, n: int = 8) -> list[dict[str, Any]]:
    """Sentences to look at, as `Scored.table` gives them, with `selected`.

    which: `top`; `borderline`, the last that got in and the first that did not; `rejected`, the farthest from
    T_C; `withheld`, the best scored that a flag keeps out.
    """
    free, flagged = _free(home(), run_id, tuple(keep))
    k = len(chosen.rows)
    rows = {
        "top": chosen.rows[:n],
        "borderline": free[max(k - n // 2, 0) : k + n // 2],
        "rejected": free[max(len(free) - n, k) :][::-1],
        "withheld": flagged[:n],
    }[which]
    inside = {"top": n, "borderline": min(k, n // 2)}.get(which, 0)
    return [{**row, "selected": i < inside} for i, row in enumerate(_told(home(), run_id, tuple(rows.tolist())))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two selections of one D_C: sizes, rows in both, and the best rows that only one of them has."""

    ours: int
    theirs: int
    shared: int
    only_ours: Sequence[Mapping[str, Any]]
    only_theirs: Sequence[Mapping[str, Any]]


def overlap(run_id: str, other: str, budget: str, keep: Sequence[str], n: int = 5) -> Overlap:
    """How far two scorings agree at one budget. Errors: ConfigError where one of them chooses nothing."""
    ours, theirs = (choose(name, budget, keep).rows for name in (run_id, other))
    only_ours, only_theirs = ours[~np.isin(ours, theirs)], theirs[~np.isin(theirs, ours)]
    return Overlap(
        ours=len(ours),
        theirs=len(theirs),
        shared=len(ours) - len(only_ours),
        only_ours=scored(run_id).table(only_ours[:n]),
        only_theirs=scored(other).table(only_theirs[:n]),
    )


def comparable(run_id: str) -> list[Run]:
    """Other finished `select` runs on the same D_C, newest first."""
    mine = store().get(run_id)
    return [
        run
        for run in store().list()
        if run.id != run_id
        and run.manifest.kind == "select"
        and run.manifest.inputs["domain"] == mine.manifest.inputs["domain"]
        and run.state().state == "succeeded"
    ]


def length_warnings(lengths: Mapping[str, IntArray], tolerance: float = 0.25) -> list[str]:
    """A sentence for every role whose median length is more than `tolerance` off that of T_C."""
    medians = {role: float(np.median(values)) for role, values in lengths.items() if len(values)}
    target = medians.get("T_C")
    return [
        f"Sentences of {role} have a median of {median:.0f} tokens, those of T_C {target:.0f}: "
        f"{abs(median / target - 1):.0%} {'longer' if median > target else 'shorter'}."
        for role, median in medians.items()
        if target and role != "T_C" and abs(median / target - 1) > tolerance
    ]


def first_sentences(found: Corpus, n: int = 5) -> list[Sentence]:
    """A corpus's first `n` rows; of a labelled one, the first that hold an entity where there are such."""
    first = next(found.batches(0, 500), [])
    return list(islice([*(s for s in first if s.entities), *(s for s in first if not s.entities)], n))


def finished(kind: str, options: Mapping[str, Any]) -> Run | None:
    """The finished run that `start(kind, options)` would return instead of a new one."""
    recipe = RECIPES[kind]
    return store().finished(plan(recipe, recipe.config.parse(dict(options)), home()).key)


def disk() -> tuple[int, int]:
    """Bytes `(free, in all)` where the home folder lies."""
    home().mkdir(parents=True, exist_ok=True)
    usage = shutil.disk_usage(home())
    return usage.free, usage.total


def cores() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
