"""Entities that taggers predicted in D_C, read from finished `tag` runs, for pages to colour by and to show."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.explore import view as maps
from core.projects.home import kept_per_home, store
from core.results import FloatArray, IntArray
from core.runs.result import read
from core.runs.store import Run
from core.selection.evidence import Spans
from core.selection.result import ScoreResult, SelectResult
from core.selection.view import run_of, scored
from core.tagging.predictions import read_spans
from core.text.sentence import Sentence


def tag_runs(choice_id: str) -> list[Run]:
    """Return finished `tag` runs of a choice's D_C: those behind its scores, else the latest one, else none."""
    select = run_of(choice_id)
    score = store().get(read(select, SelectResult).score_run)
    own = read(score, ScoreResult).made_by.get("tag", ())
    done = store().list("tag", state="succeeded")
    if sources := [run for run in done if run.id in own]:
        return sources
    return [run for run in done if run.manifest.inputs["corpus"] == select.manifest.inputs["domain"]][:1]


@kept_per_home(4)
def _spans(run_id: str) -> Spans:
    return read_spans(store().get(run_id))


def entity_types(choice_id: str) -> Sequence[str]:
    """Return the entity types of D_C's taggers; empty if D_C was never tagged."""
    by_tagger = [_spans(run.id) for run in tag_runs(choice_id)]
    return sorted({name for spans in by_tagger for name in spans.types})


def entity_counts(map_run: str, points: IntArray) -> FloatArray:
    """Return the number of predicted entities of `points`, `(m,)`, mean over taggers; NaN for T_C."""
    mapped = maps.get(map_run)
    counts = [_spans(run.id).totals() for run in tag_runs(mapped.selection)]
    return mapped.values(points, np.mean(counts, axis=0))


def with_entities(choice_id: str, row: int) -> Sentence | None:
    """Return a sentence of D_C with the first tagger's predicted entities; None if D_C was never tagged."""
    runs = tag_runs(choice_id)
    if not runs:
        return None
    sentence = scored(choice_id).domain.take([row])[0]
    return replace(sentence, entities=_spans(runs[0].id).entities(row))
