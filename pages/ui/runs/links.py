"""Which run a page shows: links to runs, and fields to choose another one."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import streamlit as st

from core.errors import WinnowError
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import runs
from core.projects.titles import run_titles, title
from core.runs.run import Run
from pages.ui.project import page_link
from pages.ui.widgets import plain

CORPORA, SIMILARITY, SELECTION = "pages/1_Corpora.py", "pages/2_Similarity.py", "pages/3_Selection.py"
EXPLORE, TRAINING, RESULTS = "pages/4_Explore.py", "pages/5_Training.py", "pages/6_Results.py"
BIAS, ASSISTING, RUNS, LABEL = "pages/7_Bias.py", "pages/8_Assisting.py", "pages/10_Runs.py", "pages/11_Label.py"
WHAT = "what"  # URL parameter of Training: the form to open; its only value is "experiment"

OPEN = "open"  # URL parameter of Results: the tab to open, "try" or "download"

SUGGEST = "label.suggest"  # key of the field on the page Label for the source of suggestions

# URL parameter of Training: an undecided experiment, for which the form proposes one that would decide it
AGAIN = "again"

GONE = "This result is not in this project: it was removed, or the address is wrong."
PAGES = {  # {name of a page in `Kind.page`: its file}
    page.rpartition("_")[2].removesuffix(".py"): page
    for page in (CORPORA, SIMILARITY, SELECTION, EXPLORE, TRAINING, RESULTS, BIAS, ASSISTING, LABEL)
}


def link(run: Run, label: str, width: Any = "content") -> None:
    """Draw a link to the page that shows a run. Draw nothing if no page shows runs of this kind."""
    known = KINDS.get(run.manifest.kind)
    if known is None or not known.page:
        return
    shown = {"run": run.manifest.config.get("selection", run.id)} if known.opens else {}
    page_link(PAGES[known.page], label=label, icon=":material/arrow_forward:", query=shown, width=width)


def _at_work(run: Run) -> bool:
    return runs.state(run.id).active


def attached(
    kind: str | Collection[str], key: str, *, finished: bool = False, first: Callable[[Run], bool] = _at_work
) -> str | None:
    """Return the id of the run that a page shows; None if there is none.

    It is the run in the URL, else the run shown last in this visit, else the latest run on the corpora in use. If the
    URL names a run that this page cannot show, draw a message, offer the latest run, and return None. A child run is
    shown only if the URL names it.

    kind: kinds of run that the page shows. key: session key of the page's run. finished: True to return only runs that
    succeeded. first: function that returns True for runs to prefer to the latest.
    """
    kinds = {kind} if isinstance(kind, str) else kind
    fitting = runs.listed(*kinds, state="succeeded" if finished else None)
    ids, asked_for = [run.id for run in fitting], [run for run in fitting if run.manifest.parent is None]
    if named := st.query_params.get("run"):
        if named in ids:
            return str(named)
        _not_here(str(named))
        offer(asked_for, key, "The latest here")
        return None
    if seen := remembered(key, ids):
        return seen
    own = runs.of_corpora_in_use(asked_for)
    if not own:
        offer(asked_for, key, "No run used the current corpora. Latest run on other corpora")
    return next((run.id for run in own if first(run)), own[0].id if own else None)


def _not_here(named: str) -> None:
    """Explain why the page does not show the run `named`, and link to the page that does."""
    try:
        run = runs.get(named)
    except WinnowError:
        st.warning(GONE, icon=":material/link_off:")
        page_link(RUNS, label="All runs of this project", icon=":material/table_rows:", width="content")
        return
    problem = "is not finished or belongs on another page"
    st.warning(f"{plain(title(run))} ({plain(named)}) {problem}.", icon=":material/link_off:")
    link(run, "Open it")


def offer(runs: Sequence[Run], key: str, words: str) -> None:
    """Draw a button that shows the running run, else the latest. runs: newest first. words: text before the title."""
    if runs:
        latest = next(filter(_at_work, runs), runs[0])
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"{words}: {plain(title(latest))}.", width="content")
            st.button("Show it", key=f"{key}.latest", icon=":material/history:", on_click=attach, args=(latest.id, key))


def attach(run_id: str, key: str) -> None:
    """Make the page show this run, also after a reload. key: session key of the page's run."""
    for filled in ("choice", AGAIN):
        st.query_params.pop(filled, None)
    st.query_params["run"] = run_id
    remember(run_id, key)


def remembered(key: str, among: Collection[str]) -> str | None:
    """Return the id of the run shown last in this visit; None if it is not in `among` or the corpora in use changed."""
    run_id, parts = st.session_state.get(key, ("", None))
    return str(run_id) if parts == corpora.roles() and run_id in among else None


def remember(run_id: str, key: str) -> None:
    """Make the page show this run for the rest of the visit, until other corpora are in use."""
    st.session_state[key] = (run_id, corpora.roles())


def pick_run(
    run_id: str,
    key: str,
    runs: Sequence[Run],
    what: str,
    label: Callable[[Run], str] = title,
    *,
    take: Callable[[str, str], None] = attach,
    **look: Any,
) -> str:
    """Let the user pick a run to show instead of `run_id`, and return `run_id`. A pick reruns the page.

    key: session key of the page's run. what: label of the field. label: function that names a run; runs with equal
    names also get their date. take: function that makes the page show a run. look: passed to `st.selectbox`.
    """
    by_id = {run.id: run for run in runs}
    if len(by_id) < 2 or run_id not in by_id:
        return run_id
    # The key includes the shown run, so that a run in the URL replaces an earlier pick.
    names, ids, which = run_titles(runs, label), list(by_id), f"{key.partition('.')[0]}.which.{run_id}"
    picked = st.selectbox(what, ids, ids.index(run_id), names.__getitem__, key=which, **look)
    if picked != run_id:
        take(picked, key)
        st.rerun()
    return run_id


def pick_part(key: str, runs: Sequence[Run], what: str, label: Callable[[Run], str]) -> str:
    """Let the user pick the run that one section of the page shows, and return its id. The default is the newest.

    The pick is kept in the session, not in the URL. For the arguments see `pick_run`.
    """
    latest = remembered(key, [run.id for run in runs]) or runs[0].id
    return pick_run(latest, key, runs, what, label, take=remember)
