"""Explain why a sentence was or was not selected.

The arrays that an explanation needs are stored with the scores, so this takes milliseconds and loads neither torch nor
a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS, differing, near_duplicates_of
from core.corpora.library import Library
from core.encoders import vectors
from core.errors import CorpusError, RunError
from core.results import FloatArray, Prefer, Role, Rows, Selection
from core.runs.result import read as read_result
from core.runs.store import Run, RunStore
from core.selection import STRATEGIES
from core.selection.base import Strategy
from core.selection.choice import Edits
from core.selection.choose import rank_of
from core.selection.evidence import Evidence, Part, Parts, Spans
from core.selection.near import cosines
from core.selection.result import Scored, ScoredRow, ScoreResult, SelectResult, read_learnt, read_values
from core.shown import count, listed
from core.tagging.predictions import read_spans


class Neighbour(TypedDict):
    """A sentence of T_C. row: its row in T_C. cosine: similarity to the explained sentence."""

    row: int
    cosine: float
    text: str
    place: str


class Copy(ScoredRow):
    """An exact or near duplicate. differs: the words that differ, as `its words -> words of the explained sentence`."""

    differs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Explanation of one sentence of D_C.

    rank: 1 is best; None if the sentence has no score. of: number of scored sentences. percentile: share of the
    other scored sentences that rank below this one, 0 to 100. parts: terms that add up to `total`. formula: how the
    total becomes the score. neighbours: nearest T_C sentences. duplicates: rows of the same cluster of exact and near
    duplicates. verdict, notes: sentences shown to users.
    """

    row: int
    score: float
    unit: str
    prefer: Prefer
    rank: int | None
    of: int
    percentile: float | None
    verdict: str
    parts: Sequence[Part]
    total: float
    formula: str
    neighbours: Sequence[Neighbour]
    duplicates: Sequence[Copy]
    notes: Sequence[str]

    @property
    def mostly(self) -> str:
        """The three parts that raise the score most, in words; "" if a low score is best, or if no part raises it."""
        named = [part for part in self.parts if part.value > 0 and not part.name.startswith(("other", "constant"))]
        raising = sorted(named, key=lambda part: -part.value)[:3]
        if self.prefer == "low" or len(self.parts) < 2 or not raising:
            return ""
        return f"Its score comes mostly from: {listed([part.name for part in raising])}."


def explain_row(
    select: Run, row: int, *, scored: Scored, chosen: Selection, edits: Edits, drop: Sequence[str], library: Library
) -> Why:
    """Explain a row of D_C. chosen: the selection without hand edits. Errors: CorpusError if D_C has no such row."""
    if not 0 <= row < len(scored.domain):
        raise CorpusError(f"row {row}: the domain corpus has rows 0 to {len(scored.domain) - 1:,}; give one of them.")
    task = library.find(select.manifest.inputs["task"])
    evidence = _evidence(select, row, scored, task, library)
    explanation = explain(scored.scores.name, evidence, cascade=scored.cascade is not None)
    near = neighbours(evidence)
    texts = task.take([at for at, _ in near])
    rank, of = scored.rank(row), len(scored.order)
    return Why(
        row=row,
        score=evidence.score,
        unit=scored.scores.unit,
        prefer=scored.scores.prefer,
        rank=rank,
        of=of,
        percentile=None if rank is None else 100.0 * (of - rank) / max(of - 1, 1),
        verdict=verdict(row, rank, scored=scored, chosen=chosen, edits=edits, drop=drop),
        parts=explanation.parts,
        total=explanation.total,
        formula=explanation.formula,
        neighbours=[
            {"row": at, "cosine": cosine, "text": sentence.text, "place": sentence.place}
            for (at, cosine), sentence in zip(near, texts, strict=True)
        ],
        duplicates=_copies(row, scored),
        notes=explanation.notes,
    )


def _copies(row: int, scored: Scored) -> list[Copy]:
    """Return the other rows in a row's cluster of duplicates. Clusters are transitive, so its rows may differ a lot."""
    (text,) = (sentence.text for sentence in scored.domain.take(np.array([row])))
    copies = scored.table(near_duplicates_of(row, scored.audit))
    return [{**copy, "differs": differing(copy["text"], text)} for copy in copies]


def verdict(row: int, rank: int | None, *, scored: Scored, chosen: Selection, edits: Edits, drop: Sequence[str]) -> str:
    """Return a sentence with the row's position in the selection, or with the reason why it was not selected.

    The position differs from the rank by score if sentences with a better rank are left out.
    """
    at, cut = np.flatnonzero(chosen.rows == row), len(chosen.rows)
    # Hand edits override the scores.
    if row in edits.removed:
        return "Removed from the selection by hand."
    if len(at):
        return f"Selected: number {at[0] + 1:,} of {cut:,} in the selection{_left_out(row, scored, chosen)}."
    if row in edits.added:
        return "Added to the selection by hand."
    flags = [flag.replace("_", " ") for flag in drop if scored.audit.mask[row] >> FLAGS.index(flag) & 1]
    if rank is None:
        return _without_score(flags, scored)
    # By score, because diversity may have changed the order.
    before = int(scored.better(row)[scored.eligible(drop)].sum())
    if flags:
        otherwise = "its score would have been enough" if before < cut else "its score is too low as well"
        return f"Withheld: flagged {flags[0]}; {otherwise}."
    better = f"{count(before, 'sentence')} that may be selected {'has' if before == 1 else 'have'} a better rank"
    why = "Below the cut" if before >= cut else "Left out by diversity"
    return f"{why}: {better}, and the budget selects {cut:,}."


def _left_out(row: int, scored: Scored, chosen: Selection) -> str:
    """Return how many sentences with a better rank are not selected, in words; "" if there are none."""
    better = scored.better(row)
    better[chosen.rows] = False
    n = int(better.sum())
    return f"; {count(n, 'sentence')} with a better rank {'is' if n == 1 else 'are'} left out" if n else ""


def _without_score(flags: Sequence[str], scored: Scored) -> str:
    """Return the reason why a sentence has no score. flags: names of the flags that withhold it."""
    if scored.cascade is None:
        return "Not selected: this sentence could not be scored."
    if flags:
        return f"Withheld: flagged {flags[0]}."
    return "Not selected: the quick ranking of the cascade left this sentence out, so it was not embedded."


def _evidence(select: Run, row: int, scored: Scored, task: Corpus, library: Library) -> Evidence:
    store = RunStore(select.home)
    score_run = store.get(read_result(select, SelectResult).score_run)
    config = score_run.manifest.config
    domain_vectors = _vectors(store, score_run, scored.domain, Role.DOMAIN)
    task_vectors = _vectors(store, score_run, task, Role.TASK)
    # A cosine needs the vectors of both corpora.
    known = domain_vectors is not None and task_vectors is not None
    return Evidence(
        sentence=scored.domain.take([row])[0],
        score=float(scored.scores.values[row]),
        unit=scored.scores.unit,
        options=config["options"],
        seed=config["seed"],
        model=read_learnt(score_run),
        vector=np.asarray(domain_vectors[0][row]) if known and domain_vectors else None,
        task=task_vectors[0] if known and task_vectors else None,
        task_norms=task_vectors[1] if known and task_vectors else None,
        labelled=_labelled(config["train"], library),
        spans=[tagger_spans.part(row, row + 1) for tagger_spans in predicted(store, score_run)],
        ranks=_ranks(store, score_run, row),
    )


def _vectors(store: RunStore, score_run: Run, corpus: Corpus, role: Role) -> tuple[Rows, FloatArray] | None:
    """Return the vectors and norms of a corpus that the scores were computed from; None if they were removed."""
    result = read_result(score_run, ScoreResult)
    names = result.made_by.get(f"embed {role}")
    if names is None and not (result.cascade and role == Role.DOMAIN):
        return vectors.find(store, score_run.manifest.config, corpus)
    try:
        if names is None:
            return vectors.read_some(score_run, len(corpus), score_run.manifest.config["options"])
        return vectors.read_joined([store.get(name) for name in names], score_run.manifest.config["options"])
    except RunError:
        return None


def predicted(store: RunStore, score_run: Run) -> list[Spans]:
    """Return the entities in D_C that the scores were computed from, per tagger; [] if none were used or stored."""
    try:
        return [read_spans(store.get(name)) for name in read_result(score_run, ScoreResult).made_by.get("tag", ())]
    except RunError:
        return []


def _ranks(store: RunStore, score_run: Run, row: int) -> dict[str, float]:
    """Return the row's rank by each strategy whose ranks the scores use; {} if one of these runs was removed."""
    try:
        others = [store.get(name) for name in read_result(score_run, ScoreResult).made_by.get("score", ())]
    except RunError:
        return {}
    results = [read_result(other, ScoreResult) for other in others]
    return {
        result.strategy: rank_of(row, read_values(other), result.prefer)
        for other, result in zip(others, results, strict=True)
    }


def _labelled(fingerprint: str, library: Library) -> Corpus | None:
    try:
        return library.find(fingerprint) if fingerprint else None
    except CorpusError:
        return None


def explain(name: str, evidence: Evidence, *, cascade: bool = False) -> Parts:
    """Return the parts that add up to a sentence's score by strategy `name`, or the whole score as the only part.

    cascade: True if sentences without a score were not embedded.
    """
    if np.isnan(evidence.score):
        why = "This sentence was not embedded." if cascade else "This sentence could not be scored: it is empty."
        return Parts(parts=(), formula="", notes=(why,))
    strategy = STRATEGIES.get(name, Strategy)
    try:
        return strategy.explain(evidence)
    except (KeyError, CorpusError):  # raised if an older version computed the scores, or if vectors were removed
        gone = (
            "The vectors of this scoring run are not stored here. Score again to see the parts of the score and the "
            "nearest sentences of the task corpus."
        )
        return Parts(parts=[evidence.whole], notes=(gone,))


def neighbours(evidence: Evidence, n: int = 5) -> list[tuple[int, float]]:
    """Return (row of T_C, cosine) of the nearest `n` sentences, nearest first; [] without vectors."""
    # A sentence that a cascade did not embed has a vector of zeros, so no sentence is nearer to it than another.
    if evidence.vector is None or evidence.task is None or not evidence.vector.any():
        return []
    near = cosines(evidence.task, evidence.vector[None])[:, 0]
    best = np.argsort(-near, kind="stable")[:n]
    return [(int(row), float(near[row])) for row in best]
