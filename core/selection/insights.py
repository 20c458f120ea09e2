"""Explain and compare selections, show examples, measure health, and read selections whose corpora were removed."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from core.config import Budget
from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS, counted_once
from core.encoders import vectors
from core.errors import CorpusError, RunError
from core.explore.result import read_points
from core.projects.home import kept_per_home, library, store
from core.results import BoolArray, FloatArray, IntArray, Rows, Selection
from core.runs.result import read as read_result
from core.selection import plot
from core.selection.choose import ranking
from core.selection.health import Health, check_up
from core.selection.result import Scored, ScoredRow, ScoreResult, read_rows, read_values, withheld_flags
from core.selection.view import chosen, edits, kept_budget, result, run_of, scored
from core.selection.why import Why, explain_row

Side = Literal["neither", "only A", "only B", "both"]
Which = Literal["top", "borderline", "rejected", "withheld"]
SIDES: tuple[Side, ...] = ("neither", "only A", "only B", "both")


class Example(ScoredRow):
    """An example sentence. selected: True if it is in S_C."""

    selected: bool


def why(choice_id: str, row: int, budget: str | None = None, keep: Sequence[str] | None = None) -> Why:
    """Explain why a sentence of D_C was or was not selected. Errors: CorpusError for a row that D_C does not have."""
    return explain_row(
        run_of(choice_id),
        row,
        scored=scored(choice_id),
        chosen=chosen(choice_id, budget, keep, edited=False),
        edits=edits(choice_id),
        drop=withheld_flags(_keep(choice_id, keep)),
        library=library(),
    )


def flags_of(choice_id: str, rows: IntArray) -> dict[str, BoolArray]:
    """Return, for each flag that withholds sentences from this selection, a mask over `rows` of D_C, shape (m,)."""
    audit = scored(choice_id).audit
    return {flag: audit.has(flag)[rows] for flag in withheld_flags(_keep(choice_id, None))}


def flag_counts(choice_id: str, rows: IntArray) -> dict[str, int]:
    """Return the number of `rows` of D_C per flag of `flags_of`. A row with several flags counts for the first one."""
    return counted_once(scored(choice_id).audit.mask[rows], withheld_flags(_keep(choice_id, None)))


def health(
    choice_id: str, budget: str | None = None, keep: Sequence[str] | None = None, labelled: str | None = None
) -> Health:
    """Return the health of S_C with its hand edits. Takes seconds for a million rows; the result is cached.

    labelled: fingerprint of L_C, needed for the share of new entity names.
    """
    return _health_of(run_of(choice_id).id, chosen(choice_id, budget, keep), labelled)


def _health_of(run_id: str, selection: Selection, labelled: str | None) -> Health:
    # A later map may embed corpora that the selection did not. More of its health can then be measured.
    embedded = tuple(found is not None for found in _vectors(run_id))
    return _health(run_id, selection.rows.tobytes(), labelled, embedded)


@kept_per_home(16)
def _health(run_id: str, rows: bytes, labelled: str | None, embedded: tuple[bool, ...]) -> Health:
    """Return the health of a selection. embedded: True for each of D_C and T_C that has vectors, for the cache."""
    select, about = store().get(run_id), scored(run_id)
    domain_vectors, task_vectors = _vectors(run_id)
    return check_up(
        about,
        np.frombuffer(rows, dtype=np.int64),
        library().find(select.manifest.inputs["task"]),
        domain_vectors=domain_vectors,
        task_vectors=task_vectors,
        labelled=library().find(labelled) if labelled else None,
        seed=store().get(result(run_id).score_run).manifest.config["seed"],
    )


def _vectors(run_id: str) -> tuple[Rows | None, Rows | None]:
    """Return the vectors of D_C and of T_C for a selection's encoder; None if the corpus was not embedded."""
    select, about = store().get(run_id), scored(run_id)
    score = store().get(result(run_id).score_run)
    config = score.manifest.config
    task = library().find(select.manifest.inputs["task"])
    of_domain, of_task = (vectors.find(store(), config, corpus) for corpus in (about.domain, task))
    if about.cascade:
        with suppress(RunError):  # raised if the vectors are missing, as in exported projects
            of_domain = vectors.read_some(score, len(about.domain), config["options"])
    return of_domain[0] if of_domain else None, of_task[0] if of_task else None


def health_without_diversity(choice_id: str) -> Health:
    """Return the health of the selection that the same budget would make without diversity."""
    run, about = run_of(choice_id), scored(choice_id)
    plain: Scored = replace(about, order=ranking(about.scores.values, about.scores.prefer))
    selection = plain.choose(Budget.parse(kept_budget(choice_id)), withheld_flags(run.manifest.config["keep"]))
    return _health_of(run.id, selection, None)


def sides(choice_id: str, other: str) -> IntArray:
    """Return, for each row of D_C, which of two selections (A, B) contain the row, as uint8 indices into `SIDES`.

    Hand edits are included. Errors: CorpusError if the selections have different D_C.
    """
    if scored(choice_id).domain.fingerprint != scored(other).domain.fingerprint:
        raise CorpusError(
            f"{choice_id} and {other}: come from different corpora; compare selections from one domain corpus."
        )
    membership = np.zeros(len(scored(choice_id).domain), dtype=np.uint8)
    for bit, name in enumerate((choice_id, other)):
        membership[chosen(name).rows] += np.uint8(1 << bit)
    return membership


def overlap_curve(choice_id: str, other: str) -> list[tuple[int, int]]:
    """Return, for about 20 budgets n, (n, number of rows that are among the best n of both selections).

    Hand edits do not count. If a cascade made the scores, n is at most the number of sentences that it can select.
    """
    n = len(scored(choice_id).domain)
    worst = np.zeros(n, dtype=np.int64)  # per row, the smallest budget at which both select it
    longest = n
    for name in (choice_id, other):
        eligible = scored(name).eligible(withheld_flags(_keep(name, None)))
        # Withheld rows get a rank beyond every budget.
        place = np.full(n, 2 * n)
        place[eligible] = np.arange(1, len(eligible) + 1)
        # Beyond `within`, a cascade left out sentences, so the best n are not known.
        cascade = scored(name).cascade
        longest = min(longest, len(eligible), cascade.within if cascade else longest)
        worst = np.maximum(worst, place)
    worst = np.sort(worst)
    budgets = np.unique(np.geomspace(1, max(longest, 1), 20).round().astype(np.int64))
    return [(int(b), int(np.searchsorted(worst, b, side="right"))) for b in budgets]


def chance_of(choice_id: str, other: str) -> float:
    """Return N such that two selections of n sentences, drawn at random, share n / N of their sentences.

    Each is drawn from the rows that it may select. If these are the same rows for both, N is their number.
    """
    ours, theirs = (scored(name).eligible(withheld_flags(_keep(name, None))) for name in (choice_id, other))
    return len(ours) * len(theirs) / max(len(np.intersect1d(ours, theirs)), 1)


def side_examples(choice_id: str, other: str, side: Side, n: int = 8) -> list[ScoredRow]:
    """Return up to `n` sentences of one of `SIDES`, best first: by B's score for "only B", otherwise by A's.

    Sentences without a score, which only hand edits can add, come last.
    """
    membership = sides(choice_id, other)
    by = other if side == "only B" else choice_id
    ranked = scored(by).order if side != "neither" else scored(by).eligible(withheld_flags(_keep(by, None)))
    best = ranked[membership[ranked] == SIDES.index(side)]
    if side != "neither" and len(best) < n:  # add the rows without a score, which `ranked` lacks
        best = np.concatenate([best, np.setdiff1d(np.flatnonzero(membership == SIDES.index(side)), best)])
    return scored(by).table(best[:n])


@kept_per_home(4)
def _free(run_id: str, keep: tuple[str, ...], *, by_score: bool) -> tuple[IntArray, IntArray]:
    """Return two arrays of D_C's scored rows, best first: rows that may be selected, and rows that a flag withholds.

    by_score: True to sort by score alone, even if diversity changed the order.
    """
    about = scored(run_id)
    order = ranking(about.scores.values, about.scores.prefer) if by_score else about.order
    bits = np.uint8(sum(1 << FLAGS.index(flag) for flag in withheld_flags(keep)))
    free = (about.audit.mask[order] & bits) == 0
    return order[free], order[~free]


@kept_per_home(32)
def _rows(run_id: str, rows: tuple[int, ...]) -> list[ScoredRow]:
    """Return rows of D_C. Cached, because reading rows that are scattered over the file is slow."""
    return scored(run_id).table(np.array(rows, dtype=np.int64))


def examples(
    choice_id: str, chosen: Selection, keep: Sequence[str], which: Which, n: int = 8, *, inside: BoolArray | None = None
) -> list[Example]:
    """Return example sentences of D_C.

    which: `top`; `borderline`, the last selected and the first not selected; `rejected`, the worst scores; `withheld`,
    the best scores among sentences that a flag withholds. inside: mask (n,) of the rows of D_C that may be shown; None
    for all rows.
    """
    run_id = run_of(choice_id).id
    # A threshold selects the first rows by score, also after diversity.
    by_score = chosen.budget.unit == "threshold"
    taken, (free, flagged) = chosen.rows, _free(run_id, tuple(keep), by_score=by_score)
    if inside is not None:
        taken, free, flagged = (rows[inside[rows]] for rows in (taken, free, flagged))
    k = len(taken)
    rows = {
        "top": taken[:n],
        "borderline": free[max(k - n // 2, 0) : k + n // 2],
        "rejected": free[max(len(free) - n, k) :][::-1],
        "withheld": flagged[:n],
    }[which]
    n_selected = {"top": n, "borderline": min(k, n // 2)}.get(which, 0)
    return [Example(**row, selected=i < n_selected) for i, row in enumerate(_rows(run_id, tuple(rows.tolist())))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Overlap of two selections, A and B, of one D_C.

    both, only_a, only_b: numbers of sentences. only_in_a, only_in_b: sentences that are only in A, and only in B.
    """

    both: int
    only_a: int
    only_b: int
    only_in_a: Sequence[ScoredRow]
    only_in_b: Sequence[ScoredRow]


def overlap(choice_id: str, other: str, n: int = 5) -> Overlap:
    """Compare two selections, each at its own budget and with its hand edits. n: examples per selection.

    Errors: CorpusError if they have different D_C; ConfigError if one of them selects nothing.
    """
    counts = np.bincount(sides(choice_id, other), minlength=len(SIDES)).tolist()
    here, there = (side_examples(choice_id, other, side, n) for side in ("only A", "only B"))
    return Overlap(both=counts[3], only_a=counts[1], only_b=counts[2], only_in_a=here, only_in_b=there)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Orphaned:
    """Stored results of a finished `select` run whose D_C or T_C was removed.

    bins: histogram of all scores. chosen: scores of the selection, best first, shape (k,). drawn: x, y and class (see
    `explore.result.CLASSES`) of the points of the latest map, each of shape (m,); None if there is no map. corpus: S_C;
    None if it was removed too.
    """

    bins: plot.ScoreBins
    chosen: FloatArray
    unit: str
    prefer: Literal["high", "low"]
    corpus: Corpus | None
    drawn: tuple[FloatArray, FloatArray, IntArray] | None


def orphaned(choice_id: str) -> Orphaned:
    """Return the stored results of a finished selection whose corpora were removed."""
    select, selected = run_of(choice_id), result(choice_id)
    score = store().get(selected.score_run)
    values, scoring = read_values(score), read_result(score, ScoreResult)
    sealed = library().recall(selected.corpus)
    return Orphaned(
        bins=plot.score_bins(values),
        chosen=values[read_rows(select)],
        unit=scoring.unit,
        prefer=scoring.prefer,
        corpus=sealed if len(sealed) else None,
        drawn=_map_points(select.id),
    )


def _map_points(run_id: str) -> tuple[FloatArray, FloatArray, IntArray] | None:
    for run in store().list("map"):
        if run.manifest.config["selection"] == run_id and run.result_file.exists():
            return read_points(run)
    return None


def _keep(choice_id: str, keep: Sequence[str] | None) -> Sequence[str]:
    return run_of(choice_id).manifest.config["keep"] if keep is None else keep
