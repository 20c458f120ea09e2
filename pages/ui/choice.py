"""The selection that Selection, Explore and Training show: read from the URL, picked, saved, renamed, removed."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.errors import WinnowError
from core.experiment import find_out
from core.projects import runs
from core.projects.titles import run_titles, selection_titles, title
from core.runs.run import Run
from core.selection import choices
from core.selection import view as selections
from core.selection.choice import LONGEST, Choice, run_of
from core.shown import count
from pages.ui.runs import links
from pages.ui.widgets import plain, pressed

NAMED = "choice"  # URL parameter: id of a selection

VISIT = "selection.run"  # session key of the selection or unfinished run that the pages show
REFUSED, NEWS = "choice.refused", "choice.news"


def attached(*, finished: bool = False) -> str | None:
    """Return the id of the selection to show; None, after a message, if there is none.

    It is the selection in the URL, else the last one shown in this visit, else the project's current one.
    finished: True to return only finished selections; False to return also the id of an unfinished `select` run.
    """
    if named := _named():
        choice = _there(named)
        if choice is None or runs.state(choice.run).state == "succeeded":
            return _arrive(choice) if choice else None
        links.attach(choice.run, VISIT)
    elif "run" not in st.query_params:
        listed = [each.id for each in choices.listed()]
        if seen := links.remembered(VISIT, listed):
            return seen
        # The selection that Home shows. If an experiment made this selection, it is not in `listed`.
        latest = find_out.choice_now()
        if latest and latest.id not in listed:
            return latest.id
    now = choices.current()

    def first(run: Run) -> bool:
        return runs.state(run.id).active or (now is not None and run.id == now.run)

    run_id = links.attached("select", VISIT, finished=finished, first=first)
    return now.id if now and now.run == run_id and "run" not in st.query_params else run_id


def _named() -> str:
    return str(st.query_params.get(NAMED, ""))


def _there(named: str) -> Choice | None:
    """Return the selection with the id `named`. If there is none, show a message, offer the latest, return None."""
    try:
        return selections.at(named)
    except WinnowError as error:
        removed = run_of(named) not in [run.id for run in runs.listed("select")]
        st.warning(links.GONE if removed else plain(str(error)), icon=":material/link_off:")
        links.offer(runs.own("select", state="succeeded"), VISIT, "The latest here")
        return None


def _arrive(choice: Choice) -> str:
    if not links.remembered(VISIT, [choice.id]):
        links.remember(choice.id, VISIT)
        choices.take_up(choice.id)
    return choice.id


def take(choice_id: str) -> None:
    """Show this selection on the pages, also after a reload, and make it the project's current one."""
    st.query_params[NAMED] = choice_id
    _clean()
    links.remember(choice_id, VISIT)
    choices.take_up(choice_id)


def _clean() -> None:
    """Remove the parameters of older versions from the URL."""
    for name in ("run", "budget"):
        if name in st.query_params:
            del st.query_params[name]


def follow_address(choice_id: str) -> None:
    """Update the URL: add the id of a selection that the user has changed, and rewrite a URL of an older Winnow.

    If a URL of an older Winnow has a budget, the selection gets this budget.
    """
    old = st.query_params.get("run") == choice_id
    if old and (budget := st.query_params.get("budget")):
        try:
            selections.keep_budget(choice_id, str(budget))
        except WinnowError as error:
            st.session_state[REFUSED] = str(error)
    choice = selections.at(choice_id)
    changed = not choice.first or choice.name or choice.budget != runs.get(choice.run).manifest.config["budget"]
    if old:
        take(choice_id)
    elif (changed or selections.edits(choice_id)) and _named() != choice_id:
        st.query_params[NAMED] = choice_id
    links.remember(choice_id, VISIT)


def say_refused() -> None:
    """Show why a budget was refused."""
    if refused := st.session_state.pop(REFUSED, None):
        st.error(plain(refused), icon=":material/error:")


def pick(shown: str, page: str, unfinished: Sequence[Run] = ()) -> None:
    """Let the user pick a selection, and show it on the page.

    shown: id of the selection on the page. page: prefix of the widget keys. unfinished: `select` runs to offer too.
    """
    labels, listed = run_titles(unfinished), choices.listed()
    if shown not in (*labels, *(choice.id for choice in listed)):  # A selection of an experiment is not listed.
        listed.append(selections.at(shown))
    labels |= selection_titles(listed)
    if len(labels) < 2:
        return
    # The key contains the shown selection, so that the field follows a selection made elsewhere on the page.
    ids, key = list(labels), f"{page}.which.{shown}"
    look: dict[str, Any] = {"label_visibility": "collapsed", "width": "stretch"}
    picked = st.selectbox("The selection", ids, ids.index(shown), labels.__getitem__, key=key, **look)
    if picked != shown:
        if picked in [run.id for run in unfinished]:
            links.attach(picked, VISIT)
        else:
            take(picked)
        st.rerun(scope="app")


def bar(choice_id: str, page: str, unfinished: Sequence[Run] = ()) -> None:
    """Draw the bar with which the user picks, saves, renames and removes a selection. For arguments see `pick`."""
    choice = selections.at(choice_id)
    with st.container(horizontal=True, vertical_alignment="center"):
        pick(choice_id, page, unfinished)
        _keep(choice, page)
        _more(choice, page)
    if news := st.session_state.pop(NEWS, None):
        st.success(plain(news), icon=":material/bookmark_added:")
    _changed_since(choice)


def _keep(choice: Choice, page: str) -> None:
    """Draw the button that saves a named copy of the selection. Its label shows the number of selected sentences."""
    label = f"Save this selection ({selections.kept(choice.id).selected:,})"
    about = "Saves a copy under a name. Later changes do not affect the copy."
    look: dict[str, Any] = {"icon": ":material/bookmark_add:", "help": about, "width": "content"}
    opened = st.popover(label, key=f"{page}.choice.aside", on_change="rerun", **look)
    if not opened.open:
        return
    with opened:
        proposed = choices.proposed_name(choice)
        name = st.text_input("Name", proposed, key=f"{page}.choice.name.{proposed}", max_chars=LONGEST)
        if pressed("Save", f"{page}.choice.keep", type="primary"):
            try:
                kept = choices.keep(choice.id, name)
            except WinnowError as error:
                st.error(plain(str(error)), icon=":material/error:")
                return
            st.session_state[NEWS] = f"Saved as {kept.name}. Later changes of this selection do not affect the copy."
            st.rerun()


def _more(choice: Choice, page: str) -> None:
    """Draw the popover that renames or removes the selection and lists the runs that were trained on it."""
    look: dict[str, Any] = {
        "icon": ":material/more_horiz:",
        "help": "Rename or remove this selection",
        "width": "content",
    }
    opened = st.popover("", key=f"{page}.choice.more", on_change="rerun", **look)
    if not opened.open:
        return
    with opened:
        now = choices.title(choice)
        name = st.text_input("This selection's name", now, key=f"{page}.choice.called.{now}", max_chars=LONGEST)
        with st.container(horizontal=True):
            renamed = pressed("Rename", f"{page}.choice.rename")
            removed = not choice.first and pressed("Remove", f"{page}.choice.remove", icon=":material/delete:")
        if choice.first:
            st.caption("This selection belongs to a scoring run. To delete it, delete the run on the page Runs.")
        if readers := choices.read_by(choice.id):
            read = ", ".join(f"{plain(title(runs.get(each.run)))} ({each.sentences:,})" for each in readers)
            st.caption(f"Used for training by {read}.")
        if renamed:
            _renamed(choice, name)
        if removed:
            choices.remove(choice.id)
            take(choice.run)
            st.rerun(scope="app")


def _renamed(choice: Choice, name: str) -> None:
    try:
        choices.rename(choice.id, name)
    except WinnowError as error:
        st.error(plain(str(error)), icon=":material/error:")
    else:
        st.rerun(scope="app")


def _changed_since(choice: Choice) -> None:
    """List up to three runs that were trained on an earlier version of the selection."""
    others = [each for each in choices.read_by(choice.id) if not each.same]
    for reader in others[:3]:
        st.caption(
            f":material/history: {plain(title(runs.get(reader.run)))} was trained on an earlier version of this "
            f"selection ({count(reader.sentences, 'sentence')})."
        )
