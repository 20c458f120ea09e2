"""Remove a corpus or a run, alone or with everything made from it, and show selections whose corpora were removed."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from core.corpora.corpus import Corpus
from core.experiment import results
from core.explore import plot as explore_plot
from core.explore.result import CLASSES
from core.importing import view as corpora
from core.projects import removals
from core.projects.removals import Removal, Usage
from core.projects.titles import run_titles, title
from core.results import FloatArray, IntArray
from core.runs.run import Run
from core.selection import insights
from core.selection import plot as selection_plot
from core.selection import view as selections
from core.selection.insights import Orphaned
from core.selection.result import SelectResult
from core.shown import count
from pages.ui.frame import looked
from pages.ui.runs.links import link
from pages.ui.widgets import chart, corpus_picker, is_dark, plain, pressed, size, table, with_place

MOST_NAMED = 5  # largest number of runs that a warning lists
KEPT = "The source file, downloads, and files saved in other folders are kept."


def removal() -> None:
    """Draw the popover that removes a corpus."""
    with st.popover("Remove a corpus", icon=":material/delete:", key="corpora.removal"):
        doomed = corpus_picker("Corpus", "corpora.doomed", None)
        st.caption(
            "The corpus is deleted, but its source file is not. Runs that used it, and everything made from it, keep"
            " some of its text unless you remove them with it."
        )
        if doomed:
            _remove_corpus(corpora.needed_by(doomed))


def _remove_corpus(used: Usage) -> None:
    if used.active:
        _in_the_way(used.active)
        return
    if used.in_words:
        st.warning(f"Used by {used.in_words}.", icon=":material/link_off:")
    if used.derived:
        st.caption(f"Corpora made from it stay: {len(used.derived)}.")
    if pressed("Remove it", "corpora.remove", type="primary"):
        corpora.remove(used.corpus.fingerprint)
        st.rerun()
    goes = removals.removal(used.corpus.fingerprint)
    if _everything(goes) and pressed("Remove with everything made from it", "corpora.remove.all"):
        removals.remove_everything(used.corpus.fingerprint)
        st.rerun()


def run_removal(run_id: str) -> None:
    """Draw the popover that removes a run. It shows the disk space that this frees, and the runs made from the run."""
    with st.popover("Remove", icon=":material/delete:", key="runs.removal"):
        st.caption("The run is deleted with its model, map and tables. Results of other runs that used it stay.")
        _remove_run(run_id)


def _remove_run(run_id: str) -> None:
    gone, freed = removals.removal_alone(run_id)
    goes = removals.removal(run_id)
    own = {run.id for run in gone}
    if needing := [run for run in goes.runs if run.id not in own and run.manifest.parent not in own]:
        st.warning(f"Runs that cannot be repeated without this one: {len(needing)}", icon=":material/link_off:")
        names = run_titles(needing[:MOST_NAMED])
        for run in needing[:MOST_NAMED]:
            link(run, plain(names[run.id]))
    if pressed(f"Remove it, free {size(freed)}", "runs.remove", type="primary"):
        removals.remove_run(run_id)
        st.rerun()
    if _everything(goes):
        label = f"Remove with everything made from it, free {size(removals.bytes_of(goes))}"
        if pressed(label, "runs.remove.all"):
            removals.remove_everything(run_id)
            st.rerun()


def _everything(goes: Removal) -> bool:
    """Show what a removal with all dependent data deletes and keeps. Return False if a run in progress prevents it."""
    if goes.active:
        _in_the_way(goes.active)
        return False
    st.caption(f"Removing everything made from it deletes {goes.in_words}. {KEPT}")
    return True


def _in_the_way(runs: Sequence[Run]) -> None:
    several = len(runs) > 1
    st.warning(
        f"This cannot be removed now, because {'runs' if several else 'a run'} in progress may need it. Wait for the "
        f"end of {'these runs' if several else 'this run'}, or cancel {'them' if several else 'it'}.",
        icon=":material/lock:",
    )
    for run in runs:
        link(run, plain(title(run)))
        if holder := run.held_by():
            st.caption(plain(f"Held by {holder}."))


FIRST = 8  # number of sentences of S_C that are shown


def span_words(chosen: FloatArray, unit: str, prefer: str) -> str:
    """Return a sentence in Markdown: the range of the selected scores, and whether higher or lower ones are closer.

    chosen: scores of S_C. unit: unit of the scores. prefer: "high" if a higher score is closer to T_C, else "low".
    """
    low, high = float(chosen.min()), float(chosen.max())
    best, worst, closer = (high, low, "higher") if prefer == "high" else (low, high, "lower")
    return (
        f"Selected sentences score from {best:.4g}, the closest to the task corpus, to {worst:.4g} (in {plain(unit)}; "
        f"{closer} is closer)."
    )


def text_gone(run_id: str) -> bool:
    """Return True if a corpus of the run was removed, and show a note that its sentences are not shown."""
    gone = bool(results.removed_inputs(run_id))
    if gone:
        st.info("Not shown: the sentences of a corpus that was removed.", icon=":material/link_off:")
    return gone


def orphaned(choice_id: str) -> None:
    """Show a selection whose corpora were removed: its numbers and scores, and its map without sentences.

    If S_C was stored as a corpus, also show its first sentences.
    """
    kept, result = insights.orphaned(choice_id), selections.result(choice_id)
    _numbers(kept, result)
    figure = selection_plot.score_histogram(kept.bins, kept.chosen, kept.unit, kept.prefer, dark=is_dark())
    cut = selection_plot.worst(kept.chosen, kept.prefer)
    name = f"Histogram of the scores of the domain corpus: {len(kept.chosen):,} selected, cut-off at {cut:.4g}"
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
    st.caption("The selection still exists as a corpus and can be trained on. Its first sentences:")
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
    chart(figure, f"remains.map.{run_id}", "The stored map, without its sentences")
