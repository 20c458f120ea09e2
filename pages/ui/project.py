"""The project that a browser tab shows, and the menu of projects.

The URL names the project, so that two tabs can show two projects.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from html import escape
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.errors import ProjectError
from core.files import on_disk
from core.paths import ask_for_project, home, within
from core.project_list import LONGEST_NAME, Project
from core.projects import pack, preferences
from core.projects import view as projects
from pages.ui.widgets import command_lines, plain, pressed, size

NAMED = "project"  # URL parameter: slug of the project

_SEEN = "project.seen"  # session key: slug of the project to which the session's field values belong

ZIP_LIMIT = 500_000_000  # bytes, the largest download
T = TypeVar("T")
_go = st.components.v2.component("winnow_go", js="export default ({ data }) => { location.assign(data.address); }")


def of_window() -> str | None:
    """Return the project's slug in the URL of the browser tab that this thread serves; None if there is none."""
    context = get_script_run_ctx(suppress_warning=True)
    return _named(context.query_string) if context else None


@lru_cache(maxsize=256)
def _named(query: str) -> str | None:
    # Take the last of several values, as `st.query_params` does.
    return parse_qs(query).get(NAMED, [None])[-1]


ask_for_project(of_window)


def begin(menu: Callable[[str], None]) -> None:
    """Find the project to show, and put it into the URL if there are several projects.

    A URL without a project opens the user's own project that was opened last. After a change of project, clear the
    session, because field values of one project must not appear in another. If the URL names an unknown project, show
    an error and links to the existing ones, and stop. menu: function that draws links to the pages of a project,
    given its slug.
    """
    several = projects.several()
    if several and not st.query_params and (last := _looked_at_last()):
        st.query_params[NAMED] = last
    try:
        here = projects.current()
        slug = here.slug
    except ProjectError as error:
        st.error(plain(str(error)), icon=":material/folder_off:")
        everything = projects.listed()
        _links(everything)
        menu(_looked_at_last() or projects.usual().slug)
        st.stop()
    # The field values belong to another project.
    if st.session_state.get(_SEEN, slug) != slug:
        st.session_state.clear()
    if several and not here.sample and st.session_state.get(_SEEN) != slug:
        preferences.set_last_project(slug)
    st.session_state[_SEEN] = slug
    if (query := address()) and st.query_params.get(NAMED) != slug:
        st.query_params.update(query)


def _looked_at_last() -> str:
    """Return the slug of the project that was opened last.

    Return "" if that project was removed, is archived or is a sample, or if WINNOW_PROJECT sets the project.
    """
    last = "" if os.environ.get("WINNOW_PROJECT") else preferences.last_project()
    open_ = (each for each in projects.listed() if not (each.archived or each.sample))
    return last if any(each.slug == last for each in open_) else ""


def address(**query: str) -> dict[str, str]:
    """Return the URL parameters of a link to a page of the same project. query: further parameters."""
    return {**query, **({NAMED: projects.current().slug} if projects.several() else {})}


def page_link(page: str, query: Mapping[str, str] | None = None, of: str | None = None, **look: Any) -> None:
    """Draw a link to a page of the same project, or of the project with the slug `of`.

    query: URL parameters. look: passed to `st.page_link`.
    """
    st.page_link(page, query_params=address(**(query or {})) if of is None else {NAMED: of}, **look)


def switch_page(page: str, query: Mapping[str, str] | None = None) -> None:
    """Leave the page for another page of the same project. query: URL parameters."""
    st.switch_page(page, query_params=address(**(query or {})))


def later(work: Callable[[], T]) -> Callable[[], T]:
    """Return `work` bound to this project, for a download. Streamlit calls it later, in a thread without a URL."""
    return partial(_within, projects.current().slug, work)


def _within(slug: str, work: Callable[[], T]) -> T:
    with within(slug), on_disk(home()):
        return work()


def elsewhere() -> str:
    """Return a phrase with the number of running runs in other projects, but not their names; "" for none."""
    counts = projects.at_work()
    where = "another project" if len(counts) == 1 else f"{len(counts)} other projects"
    return f"{n} run{'s' * (n > 1)} running in {where}" if (n := sum(counts.values())) else ""


def menu() -> None:
    """Draw the menu of projects. Its content is computed only when the user opens it."""
    here = projects.current()
    look: Any = {"icon": ":material/folder:", "width": "stretch", "help": "Switch, create, rename or export a project"}
    opened = st.popover(plain(here.name), key="project.menu", on_change="rerun", **look)
    if not opened.open:
        return
    with opened:
        everything = projects.listed()
        _links([project for project in everything if project.slug != here.slug and not project.archived])
        _new()
        _this(here)
        _export(here)
        _bring_in()
        if archived := [project for project in everything if project.slug != here.slug and project.archived]:
            st.caption("Archived")
            _links(archived)


def _links(listed: Sequence[Project]) -> None:
    """Draw links to projects. Each link reloads the page, so that no field keeps a value of another project."""
    items = (f'<li><a href="/?{urlencode({NAMED: each.slug})}">{escape(each.name)}</a></li>' for each in listed)
    if text := "".join(items):
        st.html(f'<ul class="winnow-projects">{text}</ul>')


def open_project(project: Project) -> None:
    """Load Home of another project."""
    _go(key="project.go", data={"address": f"/?{urlencode({NAMED: project.slug})}"}, height=1)


def _new() -> None:
    name = st.text_input("A new project", key="project.new.name", placeholder="Its name", max_chars=LONGEST_NAME)
    if pressed("Make it", "project.new", icon=":material/create_new_folder:"):
        open_project(projects.new(name))


def _this(here: Project) -> None:
    name = st.text_input("This project's name", here.name, key="project.name", max_chars=LONGEST_NAME)
    with st.container(horizontal=True):
        if pressed("Rename", "project.rename"):
            projects.rename(here, name)
            st.rerun()
        if here.archived and pressed("Put back", "project.unarchive", icon=":material/unarchive:"):
            projects.archive(here, archived=False)
            st.rerun()
        elif not here.archived and pressed("Archive", "project.archive", icon=":material/archive:"):
            projects.archive(here)
            st.rerun()


def _export(here: Project) -> None:
    n, weight = pack.weights_of(here)
    label = f"Export with its models and vectors ({n}: {size(weight)})"
    weights = bool(n) and st.toggle(
        label, key="project.weights", help="Models and vectors can also be computed again on the other machine."
    )
    if pack.size_of(here) + weight * weights > ZIP_LIMIT:
        st.caption("The project is too large for a download. Export it on the command line:")
        command_lines(projects.command(here, weights=weights))
        return
    st.download_button(
        "Export",
        later(partial(projects.export_bytes, here, weights=weights)),
        f"{here.slug}.zip",
        mime="application/zip",
        on_click="ignore",
        key="project.export",
        icon=":material/download:",
        help="One file with its texts, selections, runs and results, for another machine.",
    )


def _bring_in() -> None:
    file = st.file_uploader("Import an exported project", "zip", key="project.file")
    if file is None:
        return
    name = st.text_input(
        "Call it", projects.name_in(file, file.name), key="project.import.name", max_chars=LONGEST_NAME
    )
    if pressed("Import", "project.import", icon=":material/upload:", type="primary"):
        with st.spinner("Reading the project"):
            project = projects.bring_in(file, file.name, name)
        open_project(project)
