"""The entities that a tagger found in D_C, for pages to colour by and to show: read from finished `tag` runs."""

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
    """Finished `tag` runs of a choice's D_C: those its scores were counted from, else the latest, else none."""
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
    """The types that D_C's taggers know; empty where it was never tagged."""
    by_tagger = [_spans(run.id) for run in tag_runs(choice_id)]
    return sorted({name for spans in by_tagger for name in spans.types})


def entity_counts(map_run: str, points: IntArray) -> FloatArray:
    """`(m,)` predicted entities of some points, a mean where there are several taggers; NaN for T_C."""
    mapped = maps.get(map_run)
    counts = [_spans(run.id).totals() for run in tag_runs(mapped.selection)]
    return mapped.values(points, np.mean(counts, axis=0))


def with_entities(choice_id: str, row: int) -> Sentence | None:
    """A sentence of D_C with the entities predicted in it (of several taggers: the first one's); None: not tagged."""
    runs = tag_runs(choice_id)
    if not runs:
        return None
    sentence = scored(choice_id).domain.take([row])[0]
    return replace(sentence, entities=_spans(runs[0].id).entities(row))
