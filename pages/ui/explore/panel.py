"""The panel beside the map, and below it the table of picked sentences with the reason why each was selected."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import streamlit as st

from core.experiment import deliver
from core.explore import regions
from core.explore import view as maps
from core.explore.result import CLASSES, MapRow
from core.explore.view import Sort
from core.results import IntArray
from core.selection import insights
from core.selection import view as selections
from core.selection.why import Why
from core.shown import count
from core.terms import plainly
from pages.ui.explore import state
from pages.ui.explore.controls import FILTERS
from pages.ui.explore.map import scores
from pages.ui.frame import guard
from pages.ui.project import later
from pages.ui.selection.chosen import LARGEST_DOWNLOAD
from pages.ui.widgets import entity_html, grid, place_html, plain, pressed, readable, table, with_place


def name_it(map_run: str, region: regions.Region) -> None:
    """Draw the popover in which the user names a picked lasso or box."""
    token = regions.region_token(region)
    before = regions.named_regions(map_run).get(token, "")
    with st.popover("Rename" if before else "Name it", icon=":material/bookmark:", key="explore.naming"):
        name = st.text_input("Name", before, regions.LONGEST, key=f"explore.named.{token}", placeholder="boilerplate")
        if pressed("Keep the name", "explore.name"):
            regions.name_region(map_run, region, name)
            st.rerun()


def why_card(choice_id: str, map_run: str, point: int, kinds: IntArray, *, opened: bool = False) -> None:
    """Show a sentence of the map and why it was or was not selected.

    point: number of the sentence on the map. kinds: class of each sentence. opened: True beside the map, False beside
    the table.
    """
    mapped = maps.get(map_run)
    place = "map" if opened else "list"
    with st.container(border=not opened, key=f"explore-why-{place}"):
        row = maps.page_of(map_run, np.array([point]), kinds)[0]
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader("Why this sentence", anchor=False, width="content")
            if opened:
                _drop(map_run, "Close", "point")
            else:
                st.button("Close", key="explore.close", icon=":material/close:", on_click=_untick, type="tertiary")
        if point < mapped.n_task:
            st.html(f'<blockquote class="w-sentences">{escape(row["text"])}{place_html(row["place"])}</blockquote>')
            st.markdown(
                f"A sentence of the task corpus ({plain(mapped.task.name)}, row {row['row']:,}). Sentences of "
                "the domain corpus are compared with those of the task corpus."
            )
            return
        _sentence(choice_id, row)
        why = insights.why(choice_id, row["row"])
        st.markdown(f"**{plain(why.verdict)}**")
        _place(why, row["class"])
        _one(choice_id, why.row, row["class"] == "selected", place)
        _neighbours(why)
        _parts(why)
        _duplicates(why)
        for note in why.notes:
            st.caption(plain(note))


def _untick() -> None:
    st.session_state[CLOSED] = _closed() + 1


def _closed() -> int:
    return int(st.session_state.get(CLOSED, 0))


def _sentence(choice_id: str, row: MapRow) -> None:
    """Draw the text of a sentence. If a tagger has tagged D_C, mark the predicted entities."""
    tagged = maps.with_entities(choice_id, row["row"])
    shown = escape(row["text"]) if tagged is None else entity_html(tagged, maps.entity_types(choice_id))
    st.html(f'<blockquote class="w-sentences">{shown}{place_html(row["place"])}</blockquote>')
    if tagged is not None:
        n = len(tagged.entities or ())
        st.caption(f"Predicted by a tagger, not labelled by hand: {n} {'entity' if n == 1 else 'entities'}.")


def _place(why: Why, kind: str) -> None:
    better = "higher" if why.prefer == "high" else "lower"
    with st.container(horizontal=True):
        st.metric("Class", plainly(kind), width="content")
        if why.rank is None:
            st.metric("Score", "none", width="content", help="This sentence has no score.")
            return
        st.metric(f"Score ({plain(why.unit)})", f"{why.score:.4g}", width="content", help=f"The {better}, the better.")
        st.metric(
            "Rank by score",
            f"{why.rank:,} of {why.of:,}",
            width="content",
            help="among all scored sentences of the domain corpus, with and without flags",
        )
        st.metric(
            "Better than",
            f"{why.percentile:.1f}%",
            width="content",
            help="of the other scored sentences of the domain corpus",
        )


def _one(choice_id: str, row: int, selected: bool, place: str) -> None:
    label = "Remove from the selection" if selected else "Add to the selection"
    if pressed(label, f"explore.one.{place}", icon=f":material/{'remove' if selected else 'add'}:"):
        selections.edit(choice_id, "remove" if selected else "add", np.array([row]))
        st.rerun(scope="app")


def _parts(why: Why) -> None:
    # A table of a single part would only repeat the score. The notes on the card explain the score.
    if len(why.parts) == 1 and why.notes:
        return
    if why.mostly:
        st.markdown(plain(why.mostly))
    st.markdown("**Parts of the score**")
    if not why.parts:
        st.caption("This strategy's score has no parts.")
    else:
        rows = [{"part": part.name, "value": float(part.value)} for part in why.parts]
        if len(rows) > 1:
            rows.append({"part": "together", "value": float(why.total)})
        table(rows, {"part": "Part", "value": "Value"}, "Parts of the score")
    if why.formula:
        st.caption(plain(why.formula))


def _neighbours(why: Why) -> None:
    if not why.neighbours:
        return
    st.markdown("**Nearest sentences of the task corpus**")
    rows = [{**row, "cosine": float(row["cosine"])} for row in why.neighbours]
    table(rows, with_place({"cosine": "Cosine", "text": "Sentence"}, rows), "Nearest sentences of the task corpus")


def _duplicates(why: Why) -> None:
    if why.duplicates:
        st.markdown("**Duplicates and near duplicates in the domain corpus**")
        rows = [{**copy, "differs": copy["differs"].replace("->", "→") or "no word"} for copy in why.duplicates]
        names = {"row": "Row", "score": "Score", "differs": "Differs in", "text": "Sentence"}
        table(rows, with_place(names, rows), "Duplicates and near duplicates in the domain corpus")


ROWS = 10  # sentences per page of the table
GROUPED = "explore.grouped"
SORTS: Mapping[Sort, str] = {"score": "score", "tokens": "length", "class": "class", "row": "row in its corpus"}
ORDERS = {  # {column: labels for ascending and descending order}
    "score": ("lowest first", "highest first"),
    "tokens": ("shortest first", "longest first"),
    "class": ("task corpus first", "not selected first"),
    "row": ("first rows first", "last rows first"),
}
FORMATS = {"csv": "CSV", "txt": "Text", "jsonl": "JSONL", "parquet": "Parquet"}
# The sentence is the second column, because the card beside the table leaves too little width for all columns.
HEADS = {"class": "Class", "text": "Sentence", "score": "Score", "tokens": "Tokens", "flags": "Flags"}
CLOSED = "explore.closed"  # session key: how often the user has closed the card beside the table


def panel(choice_id: str, map_run: str, kinds: IntArray, points: IntArray) -> None:
    """Draw the panel beside the map: the picked regions, counts by class, actions on the pick, and filters.

    kinds: class of each sentence on the map. points: numbers of the picked sentences on the map.
    """
    picked = state.picked(map_run)
    region, opened = state.filtered(picked), state.part(picked, "point")
    if opened:
        why_card(choice_id, map_run, opened["value"], kinds, opened=True)
        if region is None and not st.session_state.get(FILTERS):
            return
        st.divider()
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(state.words(map_run, region), anchor=False, width="content")
        if region:
            st.button("Clear", key="explore.clear", icon=":material/close:", on_click=state.clear, type="tertiary")
    _parts_of(map_run, region)
    st.markdown(f"**{len(points):,} of {count(len(maps.get(map_run)), 'sentence')}**")
    if region is not None and len(points):
        read = "Read the sentence" if len(points) == 1 else f"Read the {len(points):,} sentences"
        st.html(f'<a class="w-read" href="#{state.LIST}">{read} below the map</a>')
    if shape := state.part(region, *regions.SHAPES):
        name_it(map_run, shape)
    if region is None:
        st.caption("Draw around sentences with the mouse, click one, or pick a class in the legend.")
    _counts(maps.class_counts(points, kinds))
    if region is not None:
        _actions(choice_id, map_run, kinds, points)
        _take_away(choice_id, map_run, points)
        _telling(map_run, points)
    _filters(map_run, points, region)


def _drop(map_run: str, label: str, *kinds: str) -> None:
    st.button(
        label,
        key=f"explore.drop.{kinds[0]}",
        icon=":material/close:",
        on_click=state.drop,
        args=(map_run, *kinds),
        type="tertiary",
    )


def _parts_of(map_run: str, region: regions.Region | None) -> None:
    """Draw a button for each picked region that removes it. A single region has none, because Clear removes it."""
    parts = regions.parts(region)
    with st.container(horizontal=True, gap="small"):
        for each in parts if len(parts) > 1 else ():
            _drop(map_run, state.words(map_run, each), each["kind"])


def _filters(map_run: str, points: IntArray, region: regions.Region | None) -> None:
    """Draw fields that narrow the pick by topic or class, by score and by columns of the imported files."""
    shown = bool(st.session_state.get(FILTERS)) or state.part(region, "score", "column") is not None
    with st.expander("Narrow down", expanded=shown, icon=":material/filter_list:"):
        _groups(map_run)
        scores(map_run, points)
        now = state.part(region, "column")
        for name, values in maps.filter_values(map_run).items():
            _column(map_run, name, values, now["value"] if now else {})


RANGED = 12  # From this many different numbers on, a column gets a slider instead of a list.


def _column(map_run: str, name: str, values: Mapping[str, int], now: Mapping[str, Sequence[str]]) -> None:
    """Let the user pick values of a column.

    values: {value: number of sentences on the map}. now: {column: values picked at present}, for all columns.
    """
    numbers = maps.numbers(map_run, name)
    if len({float(value) for value in numbers}) >= RANGED:
        _range(map_run, name, numbers, now)
        return
    key = f"explore.column.{name}.{state.nth()}"
    st.multiselect(
        plain(state.heading(name)),
        [*numbers, *(value for value in values if value not in numbers)],
        [value for value in now.get(name, ()) if value in values],
        lambda value: f"{value} ({values[value]:,})",
        key=key,
        on_change=lambda: _take(map_run, name, list(st.session_state[key]), now),
        placeholder=f"any of {len(values):,}",
    )


def _range(map_run: str, name: str, numbers: Sequence[str], now: Mapping[str, Sequence[str]]) -> None:
    """Let the user pick a range of a numeric column. numbers: its values, ascending. now: see `_column`."""
    sizes: list[float] = [float(value) for value in numbers]
    whole = all(size.is_integer() and abs(size) < 2**53 for size in sizes)  # A slider refuses larger integers.
    number = int if whole else float
    held = now.get(name, ())
    inside = [size for size, value in zip(sizes, numbers, strict=True) if value in held] or sizes
    key = f"explore.between.{name}.{state.nth()}"

    def chosen() -> None:
        first, last = st.session_state[key]
        picked = [value for size, value in zip(sizes, numbers, strict=True) if first <= size <= last]
        _take(map_run, name, picked if len(picked) < len(numbers) else [], now)

    st.slider(
        plain(state.heading(name)),
        number(sizes[0]),
        number(sizes[-1]),
        (number(inside[0]), number(inside[-1])),
        1 if whole else (sizes[-1] - sizes[0]) / 200,
        "%d" if whole else "%.4g",
        key,
        on_change=chosen,
    )


def _take(map_run: str, name: str, values: Sequence[str], now: Mapping[str, Sequence[str]]) -> None:
    """Pick values of a column, and keep the values picked in other columns. now: see `_column`.

    values: the values to pick; empty to remove this column from the pick.
    """
    wanted = {**now, name: list(values)}
    if kept := {each: value for each, value in wanted.items() if value}:
        state.pick(map_run, "column", kept)
    else:
        state.drop(map_run, "column")


def _groups(map_run: str) -> None:
    """Draw the field that picks a topic, a class or a named lasso without a mouse."""
    named = regions.named_regions(map_run)
    names = _names(map_run, named)
    key = f"explore.group.{state.nth()}"

    def chosen() -> None:
        kind, value = st.session_state[key] or ("", "")
        if kind == "named":
            state.pick_named(map_run, value)
        elif kind:
            state.pick(map_run, kind, value)

    what = "a topic, a class or a named lasso" if named else "a topic or a class"
    st.selectbox(
        f"Pick {what}",
        list(names),
        None,
        names.__getitem__,
        key,
        on_change=chosen,
        placeholder=f"Pick {what}",
        label_visibility="collapsed",
    )


def _names(map_run: str, named: Mapping[str, str]) -> dict[tuple[str, int | str], str]:
    """Return {(kind, value) of a region: label} for topics, classes and named lassos. named: {token: name}."""
    sizes: dict[tuple[str, int | str], str] = {
        **{("topic", i): f" ({cluster.size:,})" for i, cluster in enumerate(maps.get(map_run).clusters)},
        **{("class", name): "" for name in CLASSES},
    }
    return {
        (kind, value): readable(state.words(map_run, regions.Region(kind=kind, value=value))) + size
        for (kind, value), size in sizes.items()
    } | {("named", token): name for token, name in named.items()}


def _counts(counts: dict[str, tuple[int, int]]) -> None:
    total = sum(inside for inside, _ in counts.values())
    st.markdown(f"**{counts['selected'][0]:,} of {total:,}** selected")
    rows = [f"| {name} | {inside:,} | {of:,} |" for name, (inside, of) in counts.items()]
    st.markdown("\n".join(["| Class | Picked | On the map |", "| :-- | --: | --: |", *rows]))


def _actions(choice_id: str, map_run: str, kinds: IntArray, points: IntArray) -> None:
    """Draw buttons that add the picked sentences of D_C to the selection or remove them from it.

    They act on all picked sentences, even those that the map does not draw. Flagged sentences have a separate button.
    """
    view = maps.get(map_run)
    outside, selected = (view.domain_rows(points[kinds[points] == kind]) for kind in (2, 1))
    flagged = np.any([*insights.flags_of(choice_id, outside).values(), np.zeros(len(outside), dtype=bool)], axis=0)
    clean, flagged = outside[~flagged], outside[flagged]
    with st.container(horizontal=True):
        if len(clean):
            _add(choice_id, clean)
        look: dict[str, Any] = {"icon": ":material/remove:", "shortcut": "Alt+D"}
        if len(selected) and pressed(f"Remove {len(selected):,} from the selection", "explore.remove", **look):
            selections.edit(choice_id, "remove", selected)
            st.rerun()
    if len(flagged):
        _add_flagged(choice_id, flagged)
    elif not len(clean) and not len(selected):
        st.caption(
            "All of these belong to the task corpus, so there is nothing to add to the selection or to remove from it."
        )


def _add(choice_id: str, rows: IntArray) -> None:
    look: dict[str, Any] = {"icon": ":material/add:", "shortcut": "Alt+A"}
    if pressed(f"Add {len(rows):,} to the selection", "explore.add", **look):
        selections.edit(choice_id, "add", rows)
        st.rerun()


def _add_flagged(choice_id: str, rows: IntArray) -> None:
    """Draw the button that adds flagged sentences. rows: their rows in D_C."""
    st.caption(f"Flagged and left out: {state.flagged(choice_id, rows)}.")
    if pressed(f"Add the {len(rows):,} flagged too", "explore.add-flagged", icon=":material/flag:"):
        selections.edit(choice_id, "add", rows)
        st.rerun()


def _take_away(choice_id: str, map_run: str, points: IntArray) -> None:
    stem = regions.region_file(choice_id, map_run, state.filtered(state.picked(map_run)))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Download it" if len(points) == 1 else f"Download these {len(points):,}", width="content")
        # A file has about 300 bytes per sentence. Larger files are written to the exports folder.
        small = 300 * len(points) < LARGEST_DOWNLOAD
        for kind, label in FORMATS.items():
            name = f"{stem}.{kind}"
            write = partial(maps.export, map_run, points)
            look = ":material/download:"
            if small:
                data = partial(_bytes, write, name)
                st.download_button(label, later(data), name, on_click="ignore", key=f"explore.export.{kind}", icon=look)
            elif pressed(label, f"explore.export.{kind}", icon=look):
                with guard():  # An error is shown here, and the page below is still drawn.
                    st.code(str(write(deliver.exports() / name)), language=None, wrap_lines=True)


def _bytes(write: Callable[[Path], Path], name: str) -> bytes:
    with TemporaryDirectory() as folder:
        return write(Path(folder) / name).read_bytes()


def _telling(map_run: str, points: IntArray) -> None:
    words = maps.telling_words(map_run, points)[:12]
    if not words:
        return
    st.markdown("**Typical words**")
    st.markdown(" · ".join(plain(word.word) for word in words))
    with st.expander("How often they occur", icon=":material/format_list_numbered:"):
        rows = [{"word": w.word, "z": w.z, "inside": w.inside, "outside": w.outside} for w in words]
        columns = {"word": "Word", "z": "Log-odds (z)", "inside": "Here", "outside": "Elsewhere"}
        table(rows, columns, "Typical words of the picked sentences")


@st.fragment
def rows(choice_id: str, map_run: str, kinds: IntArray, points: IntArray) -> None:
    """Draw the picked sentences as a list, or grouped by topic or by a column. Without a pick, draw all sentences."""
    with guard(buttons="explore.one.list"):
        st.html(f'<div id="{state.LIST}"></div>')
        if not len(points):
            st.info("No sentence is picked. Draw around some points, remove a filter, or press Clear.")
            return
        columns = maps.group_columns(map_run)
        if st.session_state.get(GROUPED) not in columns:  # The value may come from another selection's map.
            st.session_state.pop(GROUPED, None)
        column = st.selectbox(
            "Group the sentences",
            columns,
            None,
            lambda name: f"by {state.column_name(name)}",
            GROUPED,
            placeholder="not grouped",
            width=220,
        )
        if column is not None:
            _grouped(map_run, kinds, points, column)
        else:
            _listed(choice_id, map_run, kinds, points)


def _grouped(map_run: str, kinds: IntArray, points: IntArray, column: str) -> None:
    """Draw a table with one row per group of the picked sentences. A tick picks the group on the map."""
    found = maps.groups(map_run, points, kinds, column)
    columns: dict[str, list[Any]] = {
        "name": [group["name"] for group in found],
        "task": [group["task"] for group in found],
        "domain": [group["domain"] for group in found],
        "selected": [group["selected"] for group in found],
        "share": [group["selected"] / group["domain"] if group["domain"] else None for group in found],
        "score": [None if np.isnan(group["score"]) else group["score"] for group in found],
    }
    title = state.column_name(column)
    event = grid(
        columns,
        key=f"explore.groups.{map_run[-4:]}.{column}.{state.nth()}",  # Each pick changes the key, which resets ticks.
        on_select="rerun",
        selection_mode="single-row",
        hide_index=True,
        alt=f"Picked sentences by {title}: how many there are, and how many are in the selection",
        column_config={
            "name": st.column_config.TextColumn(state.heading(column), width="large"),
            "task": st.column_config.NumberColumn("Task corpus", format="localized"),
            "domain": st.column_config.NumberColumn("Domain corpus", format="localized"),
            "selected": st.column_config.NumberColumn("Selected", format="localized"),
            "share": st.column_config.NumberColumn("Share selected", format="percent"),
            "score": st.column_config.NumberColumn("Mean score", format="%.4g"),
        },
    )
    st.caption("Tick a row to pick its sentences on the map.")
    for row in event.selection.rows:
        # A pick resets the ticks, so `row` is never a row number of an earlier `found`.
        _pick_group(map_run, column, found[row]["value"])
        st.rerun(scope="app")


def _pick_group(map_run: str, column: str, value: int | str) -> None:
    if column == maps.TOPIC:
        state.pick(map_run, "topic", value)
        return
    now = state.part(state.picked(map_run), "column")
    _take(map_run, column, [str(value)], now["value"] if now else {})


def _listed(choice_id: str, map_run: str, kinds: IntArray, points: IntArray) -> None:
    """Draw the picked sentences page by page. If the user ticks one, show beside the table why it was selected."""
    sort, down = _sorting(len(points))
    last = max(-(-len(points) // ROWS) - 1, 0)
    # After a new pick, the list may have fewer pages than before.
    page = min(int(st.session_state.get("explore.page", 0)), last)
    shown = maps.page_of(map_run, points, kinds, sort=sort, descending=down, page=page, size=ROWS)
    # A tick is a row number, so other sentences change the key, which removes the tick.
    key = f"{map_run[-4:]}.{state.turn()}.{_closed()}.{hash(tuple(row['point'] for row in shown))}"
    st.caption("Tick a sentence (keyboard: Shift + Space) to see why it was or was not selected.")
    with st.container(key="explore-list"):
        left, right = st.columns((8, 5))  # Always make both columns, so that a tick does not move the table.
    with left:
        chosen = _table(shown, key)
        _turn(page, last, len(points))
    if chosen is not None:
        with right:
            why_card(choice_id, map_run, chosen, kinds)


def _sorting(n: int) -> tuple[Sort, bool]:
    """Ask for the order of the table of `n` sentences. Return the column, and True for descending order."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{count(n, 'sentence')}**, by", width="content")
        sort = st.segmented_control(
            "Sort by",
            list(SORTS),
            format_func=SORTS.__getitem__,
            default="score",
            required=True,
            key="explore.sort",
            label_visibility="collapsed",
        )
        prefer = selections.scored(st.session_state["explore.shown"]).scores.prefer
        falls = st.segmented_control(
            "Order",
            [False, True],
            format_func=ORDERS[sort].__getitem__,
            default=sort == "score" and prefer == "high",
            required=True,
            # The best score is the highest for one selection and the lowest for another, so each has its own order.
            key=f"explore.order.{sort}.{prefer}",
            label_visibility="collapsed",
        )
    return sort, bool(falls)


def _turn(page: int, last: int, n: int) -> None:
    """Draw the buttons Previous and Next. page, last: this page and the last one, counted from 0. n: sentences."""

    def go(to: int) -> None:
        st.session_state["explore.page"] = to

    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Previous",
            key="explore.previous",
            icon=":material/chevron_left:",
            disabled=page == 0,
            on_click=go,
            args=(page - 1,),
        )
        st.button(
            "Next",
            key="explore.next",
            icon=":material/chevron_right:",
            disabled=page == last,
            on_click=go,
            args=(page + 1,),
        )
        st.caption(f"{page * ROWS + 1:,} to {min((page + 1) * ROWS, n):,} of {n:,}", width="content")


def _table(shown: Sequence[MapRow], key: str) -> int | None:
    """Draw one page of the table. Return the number on the map of the ticked sentence, or None."""
    rows: Sequence[Mapping[str, object]] = [
        {**row, "class": plainly(row["class"]), "flags": ", ".join(flag.replace("_", " ") for flag in row["flags"])}
        for row in shown
    ]
    columns = {name: [row[name] for row in rows] for name in with_place(HEADS, rows)}
    event = grid(
        columns,
        key=f"explore.table.{key}",
        on_select="rerun",
        selection_mode="single-row",
        hide_index=True,
        row_height=66,
        height="content",
        alt="Sentences picked on the map, with class, score and length",
        column_config={
            "class": st.column_config.TextColumn("Class", width=100),
            "score": st.column_config.NumberColumn("Score", format="%.4g", width=80),
            "tokens": st.column_config.NumberColumn("Tokens", width=70),
            "text": st.column_config.TextColumn("Sentence", width="large"),
            "place": st.column_config.TextColumn("File and page", width=180),
            "flags": st.column_config.TextColumn("Flags", width=110),
        },
    )
    ticked = event.selection.rows
    # The browser may still report a row of the previous page.
    return shown[ticked[0]]["point"] if ticked and ticked[0] < len(shown) else None
