"""One run of the table: its name, tags and note, pinned or archived, and removing it."""

from collections.abc import Sequence

import streamlit as st

from core import shown_command as commands
from core.projects import labels
from core.projects import view as projects
from core.projects.labels import RunRow
from pages.ui.presses import pressed, submitted
from pages.ui.removal import run_removal
from pages.ui.runs.links import link
from pages.ui.runs.words import title
from pages.ui.widgets import plain, same_command


def one(row: RunRow) -> None:
    """Show what can be said of it and done with it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain(title(row.run)), anchor=False, width="content")
        link(row.run, "Open")
    _words(row)
    with st.container(horizontal=True):
        flags([row])
        if row.state not in ("running", "queued"):
            run_removal(row.run.id)
    label = projects.typed("runs", "label", row.run.id, "--name", "NAME", "--tag", "TAG", "--note", "TEXT")
    same_command("runs.command", *filter(None, (commands.command_of(row.run), label)))


def _words(row: RunRow) -> None:
    """Keys hold the run, so that what was typed of one is not said of another."""
    known = {tag for other in labels.rows(archived=True) for tag in other.label.tags}
    with st.form(f"runs.words.{row.run.id}", border=False):
        left, right = st.columns(2)
        name = left.text_input("Name", row.label.name, 60, key=f"runs.name.{row.run.id}", placeholder="New name")
        tags = right.multiselect(
            "Tags",
            sorted({*known, *row.label.tags}),
            row.label.tags,
            key=f"runs.tags.{row.run.id}",
            accept_new_options=True,
            placeholder="pick or type",
        )
        note = st.text_area("Note", row.label.note, 80, 4_000, key=f"runs.note.{row.run.id}")
        if submitted("Keep", "runs.keep", type="primary"):
            labels.change(row.run.id, name=name, tags=tags, note=note)
            st.rerun()


def flags(rows: Sequence[RunRow]) -> None:
    """Pin and archive, of one run or of all that are ticked."""
    pin = not all(row.label.pinned for row in rows)
    archive = not all(row.label.archived for row in rows)
    with st.container(horizontal=True, width="content"):
        if pressed("Pin" if pin else "Unpin", "runs.pin", icon=":material/keep:"):
            for row in rows:
                labels.change(row.run.id, pinned=pin)
            st.rerun()
        if pressed("Archive" if archive else "Take out of the archive", "runs.archive", icon=":material/archive:"):
            for row in rows:
                labels.change(row.run.id, archived=archive)
            st.rerun()
