"""Removing a corpus or a run, alone or with everything made from it: said before what goes and what stays."""

from collections.abc import Sequence

import streamlit as st

from core.importing import view as corpora
from core.projects import removals
from core.projects.removals import Removal, Usage
from core.runs.run import Run
from pages.ui.presses import pressed
from pages.ui.runs.links import link
from pages.ui.runs.words import run_titles, title
from pages.ui.widgets import corpus_picker, plain, size

MOST_NAMED = 5  # runs
KEPT = "The file it came from, what was downloaded and what was saved in other folders stay."


def removal() -> None:
    """The popover below the list of corpora."""
    with st.popover("Remove a corpus", icon=":material/delete:", key="corpora.removal"):
        doomed = corpus_picker("Corpus", "corpora.doomed", None)
        st.caption(
            "The corpus is deleted, the file it came from is not. Runs that read it, and what was made from it, keep"
            " some of its text unless they are removed with it."
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
    """The popover of a run: what it frees, and what needs it."""
    with st.popover("Remove", icon=":material/delete:", key="runs.removal"):
        st.caption("The run is deleted with its model, map and tables. What other runs made of it stays.")
        _remove_run(run_id)


def _remove_run(run_id: str) -> None:
    gone, freed = removals.removal_alone(run_id)
    goes = removals.removal(run_id)
    own = {run.id for run in gone}
    if needing := [run for run in goes.runs if run.id not in own and run.manifest.parent not in own]:
        st.warning(f"{len(needing)} made from it cannot be run again without it:", icon=":material/link_off:")
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
    """Say what would go and what stays; whether it may go."""
    if goes.active:
        _in_the_way(goes.active)
        return False
    st.caption(f"With everything made from it, {goes.in_words} go. {KEPT}")
    return True


def _in_the_way(runs: Sequence[Run]) -> None:
    several = len(runs) > 1
    st.warning(
        f"Not now: {'runs' if several else 'a run'} at work may need it. Wait for the end or cancel"
        f" {'them' if several else 'it'} first.",
        icon=":material/lock:",
    )
    for run in runs:
        link(run, plain(title(run)))
        if holder := run.held_by():
            st.caption(plain(f"Held by {holder}."))
