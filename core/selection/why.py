"""Why a sentence was or was not selected."""

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
from core.selection.edits import Edits
from core.selection.explain import explain, neighbours
from core.selection.parts import Evidence, Part
from core.selection.result import Scored, ScoredRow, ScoreResult, SelectResult, read_learnt
from core.selection.spans import Spans
from core.tagging.predictions import read_spans


class Neighbour(TypedDict):
    """A sentence of T_C. row: its place there. cosine: to the sentence that is explained."""

    row: int
    cosine: float
    text: str
    place: str


class Copy(ScoredRow):
    """A copy or near copy. differs: in which words, `its own -> those of the sentence that is explained`."""

    differs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One sentence of D_C.

    rank: 1 is best, None where it could not be scored; `of` sentences were scored. percentile: share of the others
    that are ranked below it, 0 to 100. parts add up to `total`; `formula` says how that becomes the score.
    neighbours: nearest T_C sentences. duplicates: rows of the same cluster of exact and near duplicates. verdict,
    notes: sentences for people.
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


def explain_row(
    select: Run, row: int, *, scored: Scored, chosen: Selection, edits: Edits, drop: Sequence[str], library: Library
) -> Why:
    """Everything that is known of one row. chosen: what the score alone selects; edits: by hand, after it."""
    if not 0 <= row < len(scored.domain):
        raise CorpusError(f"row {row}: the domain corpus has rows 0 to {len(scored.domain) - 1:,}; give one of them.")
    task = library.find(select.manifest.inputs["task"])
    evidence = _evidence(select, row, scored, task, library)
    explanation = explain(scored.scores.name, evidence)
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
    """Rows of the same cluster; each may differ more from this one than from another of them."""
    (text,) = (sentence.text for sentence in scored.domain.take(np.array([row])))
    copies = scored.table(near_duplicates_of(row, scored.audit))
    return [{**copy, "differs": differing(copy["text"], text)} for copy in copies]


def verdict(row: int, rank: int | None, *, scored: Scored, chosen: Selection, edits: Edits, drop: Sequence[str]) -> str:
    """A sentence: selected and where, or what kept it out."""
    at, cut = np.flatnonzero(chosen.rows == row), len(chosen.rows)
    # Hands come last and so are asked first: what the scores say of such a row does not count.
    if row in edits.removed:
        return "Taken out of the selection by hand."
    if len(at):
        return f"Selected: number {at[0] + 1:,} of {cut:,}."
    if row in edits.added:
        return "Put into the selection by hand."
    if rank is None:
        return "Left out: it could not be scored."
    eligible = scored.eligible(drop)
    before = int(np.isin(scored.order[: int(np.flatnonzero(scored.order == row)[0])], eligible).sum())
    if flags := [flag for flag in drop if scored.audit.mask[row] >> FLAGS.index(flag) & 1]:
        otherwise = "its score would have let it in" if before < cut else "its score would not have let it in either"
        return f"Withheld: flagged {flags[0].replace('_', ' ')}; {otherwise}."
    return f"Below the cut: number {before + 1:,} of {len(eligible):,} that may be taken, and the budget took {cut:,}."


def _evidence(select: Run, row: int, scored: Scored, task: Corpus, library: Library) -> Evidence:
    store = RunStore(select.home)
    score_run = store.get(read_result(select, SelectResult).score_run)
    config = score_run.manifest.config
    domain_vectors = _vectors(store, score_run, scored.domain, Role.DOMAIN)
    task_vectors = _vectors(store, score_run, task, Role.TASK)
    # Half of them explain nothing: a cosine needs both sides.
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
    )


def _vectors(store: RunStore, score_run: Run, corpus: Corpus, role: Role) -> tuple[Rows, FloatArray] | None:
    """The vectors that the score was made from, by models of its own where it has them; None where they are gone."""
    names = read_result(score_run, ScoreResult).made_by.get(f"embed {role}")
    if names is None:
        return vectors.find(store, score_run.manifest.config, corpus)
    try:
        return vectors.read_joined([store.get(name) for name in names], score_run.manifest.config["options"])
    except RunError:
        return None


def predicted(store: RunStore, score_run: Run) -> list[Spans]:
    """The entities of D_C that a scoring rests on, a tagger each; none where it rests on none, or they are gone."""
    try:
        return [read_spans(store.get(name)) for name in read_result(score_run, ScoreResult).made_by.get("tag", ())]
    except RunError:
        return []


def _labelled(fingerprint: str, library: Library) -> Corpus | None:
    try:
        return library.find(fingerprint) if fingerprint else None
    except CorpusError:
        return None
