"""Finished runs whose corpora were removed: what they kept of their own."""

import numpy as np
import streamlit as st

from core.corpora.corpus import Corpus
from core.experiment import results
from core.explore import plot as explore_plot
from core.explore.result import CLASSES
from core.results import FloatArray, IntArray
from core.selection import insights
from core.selection import plot as selection_plot
from core.selection import view as selections
from core.selection.insights import Orphaned
from core.selection.result import SelectResult
from core.shown import count
from pages.ui.frame import looked
from pages.ui.widgets import chart, is_dark, plain, table, with_place

FIRST = 8  # sentences of S_C


def span_words(chosen: FloatArray, unit: str, prefer: str) -> str:
    """Describe the range of the selected scores, and what a score means, as Markdown. chosen: the scores of S_C."""
    low, high = float(chosen.min()), float(chosen.max())
    best, worst, closer = (high, low, "higher") if prefer == "high" else (low, high, "lower")
    return (
        f"What is selected scores from {best:.4g}, the closest to the task corpus, to {worst:.4g} (in {plain(unit)}; "
        f"{closer} is closer)."
    )


def text_gone(run_id: str) -> bool:
    """Whether a corpus of the run was removed; says so in the place where its sentences would stand."""
    gone = bool(results.removed_inputs(run_id))
    if gone:
        st.info("Not shown: the sentences of a corpus that was removed.", icon=":material/link_off:")
    return gone


def orphaned(choice_id: str) -> None:
    """Numbers, scores, S_C where that is still here, and the map as it was drawn, without its sentences."""
    kept, result = insights.orphaned(choice_id), selections.result(choice_id)
    _numbers(kept, result)
    figure = selection_plot.score_histogram(kept.bins, kept.chosen, kept.unit, kept.prefer, dark=is_dark())
    name = f"Histogram of the scores of the domain corpus: {len(kept.chosen):,} selected, cut at {kept.chosen[-1]:.4g}"
    st.vega_lite_chart(spec=figure, key=f"remains.scores.{choice_id}", alt=name)
    st.caption(span_words(kept.chosen, kept.unit, kept.prefer))
    if kept.corpus is not None:
        _sentences(kept.corpus, kept)
    if kept.drawn is not None:
        _map(choice_id, *kept.drawn)


def _numbers(kept: Orphaned, result: SelectResult) -> None:
    selected, of = result.selected, result.of
    with st.container(horizontal=True):
        st.metric("Selected", f"{selected:,}", width="content", help=f"of {count(of, 'sentence')}")
        st.metric("of the domain corpus", f"{selected / of:.1%}", width="content")
        st.metric("Tokens", f"{result.tokens:,}", width="content")
        st.metric("Withheld", f"{sum(result.dropped.values()):,}", width="content")


def _sentences(sealed: Corpus, kept: Orphaned) -> None:
    st.caption("The selection itself is still here, as a corpus of its own: it can be trained on. Its first sentences:")
    looked(sealed.fingerprint)
    scores = kept.chosen[:FIRST].tolist()
    rows = [
        {"score": score, "text": sentence.text, "place": sentence.place}
        for score, sentence in zip(scores, next(sealed.batches(0, FIRST)), strict=True)
    ]
    table(rows, with_place({"score": "Score", "text": "Sentence"}, rows), "The first sentences of the selection")


def _map(run_id: str, x: FloatArray, y: FloatArray, kinds: IntArray) -> None:
    drawn = explore_plot.Dots(x=x, y=y, points=np.arange(len(x)), kinds=kinds, hovered=np.zeros(len(x), dtype=bool))
    totals = np.bincount(kinds, minlength=len(CLASSES)).tolist()
    figure = explore_plot.by_class(drawn, totals, explore_plot.View(tool="pan", height=480))
    chart(figure, f"remains.map.{run_id}", "The map as it was made, without its sentences")
