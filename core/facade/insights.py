"""Selections understood and changed: why a sentence, hand edits, health, two selections compared."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.artifacts import edits as log
from core.artifacts import vectors
from core.artifacts.checkup import check_up
from core.artifacts.edits import Edits
from core.artifacts.scores import Scored, withheld
from core.artifacts.why import Why as Why
from core.artifacts.why import explain_row
from core.config import Budget
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.facade.home import home, library, store
from core.facade.selections import chosen, edits, kept_budget, scored
from core.results import BoolArray, IntArray
from core.selection.choose import ranking
from core.selection.health import Health as Health
from core.selection.parts import Part as Part

Side = Literal["neither", "only A", "only B", "both"]
SIDES: tuple[Side, ...] = ("neither", "only A", "only B", "both")


def why(run_id: str, row: int, budget: str | None = None, keep: Sequence[str] | None = None) -> Why:
    """Why a sentence of D_C was or was not selected.

    `Why`: `row, score, unit, prefer, rank` (1 is best; None: not scored), `of, percentile` (share of scored
    sentences that are worse, 0 to 100), `verdict` (a sentence), `parts` (`Part(name, value)`), `total, formula`
    (the parts' sum, and how it becomes the score), `neighbours` (nearest T_C: `row, cosine, text`),
    `duplicates` (rows as `Scored.table` gives them), `notes`. Errors: CorpusError for a row that D_C does not have.
    """
    return explain_row(
        store().get(run_id),
        row,
        scored=scored(run_id),
        chosen=chosen(run_id, budget, keep, edited=False),
        edits=edits(run_id),
        drop=withheld(_keep(run_id, keep)),
        library=library(),
    )


def flags_of(run_id: str, rows: IntArray) -> dict[str, BoolArray]:
    """{flag: `(m,)` whether it holds for each of `rows` of D_C}, for the flags that this selection withholds."""
    audit = scored(run_id).audit
    return {flag: audit.has(flag)[rows] for flag in withheld(_keep(run_id, None))}


def add_rows(run_id: str, rows: IntArray) -> Edits:
    """Put rows of D_C into S_C by hand; at once on disk. Errors: CorpusError for a row that D_C does not have."""
    return _edit(run_id, "add", rows)


def remove_rows(run_id: str, rows: IntArray) -> Edits:
    """Take rows out of S_C by hand."""
    return _edit(run_id, "remove", rows)


def undo(run_id: str) -> Edits:
    """Take back the last hand edit that was not undone; nothing happens if there is none."""
    if edits(run_id).history:
        log.append(store().get(run_id).path, "undo", np.empty(0, dtype=np.int64))
    return edits(run_id)


def _edit(run_id: str, action: Literal["add", "remove"], rows: IntArray) -> Edits:
    rows, n = np.unique(np.asarray(rows, dtype=np.int64)), len(scored(run_id).domain)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < n:
        raise CorpusError(f"rows: {rows[0]} to {rows[-1]} are not all in D_C, which has {n:,}; give rows below it.")
    if len(rows):
        log.append(store().get(run_id).path, action, rows)
    return edits(run_id)


def seal_edited(run_id: str, budget: str | None = None, keep: Sequence[str] | None = None) -> Corpus:
    """S_C with its hand edits as a corpus of its own; its origin names the run and counts the edits."""
    found, made = chosen(run_id, budget, keep), edits(run_id)
    domain = scored(run_id).domain
    return library().subset(
        domain,
        found.rows,
        name=f"S_C {domain.name} {scored(run_id).scores.name} {found.budget}{' edited by hand' if made else ''}",
        origin={
            "run": run_id,
            "from": domain.fingerprint,
            **({"hand_edits": {"added": len(made.added), "removed": len(made.removed)}} if made else {}),
        },
    )


def health(
    run_id: str, budget: str | None = None, keep: Sequence[str] | None = None, labelled: str | None = None
) -> Health:
    """How S_C is, hand edits counted (see `Health`: numbers, and `warnings` in words).

    labelled: an L_C for the rate of new entities, found by their surface. Seconds for a million rows; kept.
    """
    found = chosen(run_id, budget, keep)
    return _health(home(), run_id, found.rows.tobytes(), labelled)


@lru_cache(maxsize=16)
def _health(folder: Path, run_id: str, rows: bytes, labelled: str | None) -> Health:
    select, about = store().get(run_id), scored(run_id)
    config = store().get(select.result()["score_run"]).manifest.config
    task = library().find(select.manifest.inputs["task"])
    ours, theirs = (vectors.find(store(), config, corpus) for corpus in (about.domain, task))
    return check_up(
        about,
        np.frombuffer(rows, dtype=np.int64),
        task,
        domain_vectors=ours[0] if ours else None,
        task_vectors=theirs[0] if theirs else None,
        labelled=library().find(labelled) if labelled else None,
        seed=config["seed"],
    )


def health_without_diversity(run_id: str) -> Health:
    """`health` of what the same run would have chosen by score alone: what re-ordering has changed."""
    plain: Scored = replace(scored(run_id), order=ranking(scored(run_id).scores.values, scored(run_id).scores.prefer))
    config = store().get(run_id).manifest.config
    found = plain.choose(Budget.parse(kept_budget(run_id)), withheld(config["keep"]))
    return _health(home(), run_id, found.rows.tobytes(), None)


def sides(run_id: str, other: str, budget: str | None = None, keep: Sequence[str] | None = None) -> IntArray:
    """`(len(D_C),)` uint8 indices into `SIDES`: which of two selections (A, B) of one D_C have a row.

    budget, keep: for both; those kept of each run unless given. Errors: CorpusError if they are not of one D_C.
    """
    if scored(run_id).domain.fingerprint != scored(other).domain.fingerprint:
        raise CorpusError(f"{run_id} and {other}: select from different corpora; compare selections of one D_C.")
    found = np.zeros(len(scored(run_id).domain), dtype=np.uint8)
    for bit, name in enumerate((run_id, other)):
        found[chosen(name, budget, keep).rows] += np.uint8(1 << bit)
    return found


def overlap_curve(run_id: str, other: str, keep: Sequence[str] | None = None) -> list[tuple[int, int]]:
    """`(sentences, shared)` at about 20 budgets: how many of the best n of A are among the best n of B, edits aside."""
    n = len(scored(run_id).domain)
    worst = np.zeros(n, dtype=np.int64)  # the budget from which on both have a row
    longest = n
    for name in (run_id, other):
        free = scored(name).free(withheld(_keep(name, keep)))
        place = np.full(n, 2 * n)
        place[free] = np.arange(1, len(free) + 1)
        worst, longest = np.maximum(worst, place), min(longest, len(free))
    worst = np.sort(worst)
    budgets = np.unique(np.geomspace(1, max(longest, 1), 20).round().astype(np.int64))
    return [(int(b), int(np.searchsorted(worst, b, side="right"))) for b in budgets]


def side_examples(
    run_id: str, other: str, side: Side, n: int = 8, *, budget: str | None = None, keep: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Some sentences of a side, best first by B's score for "only B", else by A's ("neither": the first left out)."""
    found = sides(run_id, other, budget, keep)
    by = other if side == "only B" else run_id
    free = scored(by).order if side != "neither" else scored(by).free(withheld(_keep(by, keep)))
    return scored(by).table(free[found[free] == SIDES.index(side)][:n])


def _keep(run_id: str, keep: Sequence[str] | None) -> Sequence[str]:
    return store().get(run_id).manifest.config["keep"] if keep is None else keep
