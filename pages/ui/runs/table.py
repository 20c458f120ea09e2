"""The runs of a project: the list on Home, the table on Runs, and the actions on a ticked run."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any

import streamlit as st

from core import shown_command as commands
from core.errors import RunError
from core.projects import labels, runs
from core.projects import view as projects
from core.projects.labels import RunRow
from core.projects.titles import outcome, run_titles, title
from core.runs.events import RunState
from core.runs.run import Run
from core.shown import count
from pages.ui.frame import guard
from pages.ui.removal import run_removal
from pages.ui.runs.links import link
from pages.ui.runs.panel import POLL, headline, progress
from pages.ui.runs.words import ending
from pages.ui.widgets import grid, plain, pressed, same_command, submitted

SHOWN = 8
# Kinds of short and frequent runs. When they have ended, they are listed separately.
SMALL = ("add", "audit", "calibrate", "dictionary", "evaluate", "llm", "predict", "tag", "zero-shot")


def run_list(listed: Sequence[Run]) -> None:
    """Draw the list of runs on Home, without archived ones that have ended.

    The runs are in a fragment that is updated while one of them is active.
    """
    active = {run.id for run in listed if run.state().active}
    listed = [run for run in listed if run.id in active or not labels.read(run).archived]
    small = [run for run in listed if run.manifest.kind in SMALL and run.id not in active]
    large = [run for run in listed if run not in small]
    more = len(large) > SHOWN and st.toggle(f"Show all {len(large)}", key="home.all")
    # Always show running runs, even after the first `SHOWN`.
    shown = [run for i, run in enumerate(large) if more or i < SHOWN or run.id in active]
    st.fragment(run_every=POLL if active else None)(_rows)([run.id for run in shown], bool(active))
    if small:
        with st.expander(f"Imports, checks and other small runs: {len(small)}", icon=":material/inventory_2:"):
            for run in small[: 10 * SHOWN]:
                _row(run, runs.state(run.id))


def _rows(run_ids: Sequence[str], was_live: bool) -> None:
    with guard():
        shown = list[tuple[Run, RunState]]()
        for run_id in run_ids:
            with suppress(RunError):  # another window has removed the run
                shown.append((runs.get(run_id), runs.state(run_id)))
        # Rerun the page when the last run ends, because only that updates the rest of the page.
        if any(state.active for _, state in shown) != was_live or len(shown) < len(run_ids):
            st.rerun(scope="app")
        for run, state in shown:
            _row(run, state)


def _row(run: Run, state: RunState) -> None:
    with st.container(border=True, key=f"home.run.{run.id}"):
        with st.container(horizontal=True, horizontal_alignment="distribute"):
            with st.container(width="content"):
                headline(run.id, state)
            link(run, "Open")
        if state.active:
            progress(state)
        elif line := state.error or (outcome(run) if state.state == "succeeded" else ""):
            st.caption(plain(line))


def one(row: RunRow) -> None:
    """Show a run's title, the fields for its name, tags and note, and its buttons."""
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
    """Draw the form for the name, tags and note of a run.

    The widget keys contain the run's id, so that the form for another run does not show the same text.
    """
    run_id, label = row.run.id, row.label
    known = {tag for other in labels.rows(archived=True) for tag in other.label.tags}
    # The fields keep their text if another window changes the label. Keep changes only what was typed here.
    if f"runs.name.{run_id}" not in st.session_state:
        filled = {"name": label.name, "tags": list(label.tags), "note": label.note}
        st.session_state[f"runs.filled.{run_id}"] = filled
    with st.form(f"runs.words.{run_id}", border=False):
        left, right = st.columns(2)
        name = left.text_input("Name", label.name, 60, key=f"runs.name.{run_id}", placeholder="New name")
        tags = right.multiselect(
            "Tags",
            sorted({*known, *label.tags}),
            label.tags,
            key=f"runs.tags.{run_id}",
            accept_new_options=True,
            placeholder="pick or type",
        )
        note = st.text_area("Note", label.note, 80, 4_000, key=f"runs.note.{run_id}")
        if submitted("Keep", "runs.keep", type="primary"):
            typed: dict[str, Any] = {"name": name, "tags": tags, "note": note}
            filled = st.session_state[f"runs.filled.{run_id}"]
            new = {field: value for field, value in typed.items() if value != filled[field]}
            if "tags" in new:
                # Another window may have removed a tag that this field still shows, so add only tags typed here.
                kept = (tag for tag in label.tags if tag in tags or tag not in filled["tags"])
                new["tags"] = [*kept, *(tag for tag in tags if tag not in filled["tags"])]
            st.session_state[f"runs.filled.{run_id}"] = typed
            labels.change(run_id, **new)
            st.rerun()


def flags(rows: Sequence[RunRow]) -> None:
    """Draw the buttons that pin and archive the runs in `rows`, or undo that if all are pinned or archived."""
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


MORE = {"small": "Imports and checks", "parts": "Trainings within experiments", "archived": "Archived runs"}


def table() -> list[RunRow]:
    """Draw the table of runs, with its search and filters, and return the ticked runs."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = st.text_input(
            "Search",
            key="runs.query",
            type="search",
            icon=":material/search:",
            placeholder="Name, tag, note or run",
            width=270,
        )
        more = st.pills("Also show", list(MORE), selection_mode="multi", format_func=MORE.__getitem__, key="runs.more")
    rows = labels.rows(parts="parts" in more, archived="archived" in more)
    rows = _filtered([row for row in rows if "small" in more or row.run.manifest.kind not in SMALL])
    shown = [row for row in rows if _holds(row, query.casefold().split())]
    st.caption(f"{len(shown):,} of {count(len(rows), 'run')}.")
    _watch({row.run.id for row in rows if row.state in ("running", "queued")})
    ticked = _grid(shown) if shown else []
    return [*ticked, *(row for row in _picked(shown) if row not in ticked)]


def _filtered(rows: Sequence[RunRow]) -> list[RunRow]:
    """Draw filters by kind, state and tag, and return the rows that pass them."""
    kinds = sorted({row.run.manifest.kind for row in rows})
    words = {row.run.id: _ending(row) for row in rows}
    tags = sorted({tag for row in rows for tag in row.label.tags})
    columns = st.columns(3)
    kind = columns[0].multiselect("Kind", kinds, key="runs.kinds", placeholder="any")
    state = columns[1].multiselect("State", sorted({*words.values()}), key="runs.states", placeholder="any")
    tag = columns[2].multiselect("Tags", tags, key="runs.tags", placeholder="any") if tags else []
    return [
        row
        for row in rows
        if (not kind or row.run.manifest.kind in kind)
        and (not state or words[row.run.id] in state)
        and set(tag) <= set(row.label.tags)
    ]


def _holds(row: RunRow, words: Collection[str]) -> bool:
    """Return True if every search word occurs in the run's description."""
    text = " ".join((title(row.run), *row.label.tags, row.label.note, row.run.id, row.run.manifest.kind)).casefold()
    return all(word in text for word in words)


def _columns(rows: Sequence[RunRow]) -> Mapping[str, Sequence[Any]]:
    """Return the values of the table by column."""
    return {
        "pinned": ["★" if row.label.pinned else "" for row in rows],
        "name": [title(row.run) for row in rows],
        "state": [_state(row) for row in rows],
        "result": [outcome(row.run) if row.state == "succeeded" else "" for row in rows],
        "tags": [", ".join(row.label.tags) for row in rows],
        "note": [row.label.note for row in rows],
        "began": [_local(row.run) for row in rows],
        "took": [row.seconds / 60 for row in rows],
        "size": [row.size / 1e6 for row in rows],
        "kind": [row.run.manifest.kind for row in rows],
        "run": [row.run.id for row in rows],
    }


def _grid(rows: Sequence[RunRow]) -> list[RunRow]:
    """Draw the grid and return the runs ticked in it."""
    # A tick is a row number, so other rows get another key. Otherwise the tick would apply to another run.
    shown = sha256(" ".join(row.run.id for row in rows).encode()).hexdigest()[:8]
    event = grid(
        _columns(rows),
        key=f"runs.table.{shown}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        height=min(38 * len(rows) + 40, 460),
        alt="The runs of this project, with name, state, result, tags and notes",
        column_config={
            "pinned": st.column_config.TextColumn("★", width=40, help="Pinned to the top"),
            "name": st.column_config.TextColumn("Name", width=330),
            "state": st.column_config.TextColumn("State", width=90),
            "result": st.column_config.TextColumn("Result", width=300),
            "tags": st.column_config.TextColumn("Tags", width=130),
            "note": st.column_config.TextColumn("Note", width=180),
            "began": st.column_config.DatetimeColumn("Began", format="D MMM, HH:mm", width=110),
            "took": st.column_config.NumberColumn("Minutes", format="%.1f", width=80),
            "size": st.column_config.NumberColumn("MB on disk", format="%.1f", width=95),
            "kind": st.column_config.TextColumn("Kind", width=90),
            "run": st.column_config.TextColumn("Run", width=280),
        },
    )
    return [rows[place] for place in event.selection.rows if place < len(rows)]


def _picked(rows: Sequence[RunRow]) -> list[RunRow]:
    """Let the user pick runs by name, without a mouse."""
    by_id = {row.run.id: row for row in rows}
    # Streamlit keeps `format_func` in memory, so it must not refer to `Run` objects (see `corpus_labels`).
    names = run_titles(row.run for row in rows)
    picked = st.multiselect(
        "Look at",
        list(names),
        format_func=names.__getitem__,
        key="runs.picked",
        placeholder="Tick runs above, or pick them by name here",
        label_visibility="collapsed",
    )
    return [by_id[name] for name in picked]


def _state(row: RunRow) -> str:
    """Return a run's state for the table, such as "Finished" or "Failed, archived"."""
    return _ending(row) + (", archived" if row.label.archived else "")


def _ending(row: RunRow) -> str:
    state = runs.state(row.run.id)
    return "Running" if state.active else ending(row.run, state)


def _local(run: Run) -> datetime:
    """Return the start of a run in local time."""
    return run.began.astimezone().replace(tzinfo=None)


def _watch(active: set[str]) -> None:
    """Rerun the page as soon as one of the runs in `active` has ended."""
    if active:
        st.fragment(run_every=POLL)(_look_again)(active)


def _look_again(active: Collection[str]) -> None:
    with guard():
        at_work = {run.id for run in runs.listed() if run.id in active and run.state().active}
        if at_work != set(active):  # a run has ended, or another window has removed it
            st.rerun(scope="app")
