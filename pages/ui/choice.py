"""The choice that Selection, Explore and Training are about: in the address, one of all, kept, renamed, removed."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.errors import WinnowError
from core.experiment import find_out
from core.projects import runs
from core.runs.run import Run
from core.selection import choices
from core.selection import view as selections
from core.selection.choice import LONGEST, Choice, run_of
from core.shown import count
from pages.ui.runs import links
from pages.ui.runs.words import run_titles, selection_titles, title
from pages.ui.widgets import plain, pressed

NAMED = "choice"  # in an address
VISIT = "selection.run"  # of the visit: what its pages are about, a choice or a run that is not finished
REFUSED, NEWS = "choice.refused", "choice.news"


def attached(*, finished: bool = False) -> str | None:
    """The choice that a page is about: the one that the address names, else that of this visit, else the current one.

    finished: only these. Else also a run that is not, by its id. None where there is nothing to show: that is said.
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
        latest = find_out.choice_now()  # what Home shows; it may be one that an experiment made
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
    """The choice of an address; where there is none, that is said and the latest offered."""
    try:
        return selections.at(named)
    except WinnowError as error:
        removed = run_of(named) not in [run.id for run in runs.listed("select")]
        st.warning(links.GONE if removed else plain(str(error)), icon=":material/link_off:")
        links.offer(selections.finished(), VISIT, "The latest here")
        return None


def _arrive(choice: Choice) -> str:
    if not links.remembered(VISIT, [choice.id]):
        links.remember(choice.id, VISIT)
        choices.take_up(choice.id)
    return choice.id


def take(choice_id: str) -> None:
    """Make the pages be about this choice, also after a reload, and let it be the project's current one."""
    st.query_params[NAMED] = choice_id
    _clean()
    links.remember(choice_id, VISIT)
    choices.take_up(choice_id)


def _clean() -> None:
    """Forget what addresses of older versions name."""
    for name in ("run", "budget"):
        if name in st.query_params:
            del st.query_params[name]


def follow_address(choice_id: str) -> None:
    """Keep the budget that an address of an older version came with; let the address name a choice that was changed."""
    old = st.query_params.get("run") == choice_id
    if old and (budget := st.query_params.get("budget")):
        try:
            selections.keep_budget(choice_id, str(budget))
        except WinnowError as error:
            st.session_state[REFUSED] = str(error)
    choice = selections.at(choice_id)
    changed = not choice.first or choice.name or choice.budget != _run(choice).manifest.config["budget"]
    if old:
        take(choice_id)
    elif (changed or selections.edits(choice_id)) and _named() != choice_id:
        st.query_params[NAMED] = choice_id
    links.remember(choice_id, VISIT)


def _run(choice: Choice) -> Run:
    return runs.get(choice.run)


def say_refused() -> None:
    """Show why a budget was not taken."""
    if refused := st.session_state.pop(REFUSED, None):
        st.error(plain(refused), icon=":material/error:")


def pick(shown: str, page: str, unfinished: Sequence[Run] = ()) -> None:
    """The one that is shown, of all; another one is taken up. unfinished: runs that can be shown too."""
    labels, listed = run_titles(unfinished), choices.listed()
    if shown not in (*labels, *(choice.id for choice in listed)):  # an experiment made it
        listed.append(selections.at(shown))
    labels |= selection_titles(listed)
    if len(labels) < 2:
        return
    # With what is shown in its key the field follows when another is taken up elsewhere.
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
    """Show which choice it is, of all; the way to keep it, call it otherwise, remove it. page: begins its keys."""
    choice = selections.at(choice_id)
    with st.container(horizontal=True, vertical_alignment="center"):
        pick(choice_id, page, unfinished)
        _keep(choice, page)
        _more(choice, page)
    if news := st.session_state.pop(NEWS, None):
        st.success(plain(news), icon=":material/bookmark_added:")
    _changed_since(choice)


def _keep(choice: Choice, page: str) -> None:
    """The number lies in the button: what is kept is what is seen."""
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
            st.session_state[NEWS] = f"Saved as {kept.name}. Later changes do not affect it."
            st.rerun()


def _more(choice: Choice, page: str) -> None:
    """Its name, the trainings that read it, its end."""
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
            st.caption(f"Read by {read}.")
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
    """Trainings that read it when it was another: they keep what they read."""
    others = [each for each in choices.read_by(choice.id) if not each.same]
    for reader in others[:3]:
        st.caption(
            f":material/history: {plain(title(runs.get(reader.run)))} was trained on an earlier version of this "
            f"selection ({count(reader.sentences, 'sentence')})."
        )
