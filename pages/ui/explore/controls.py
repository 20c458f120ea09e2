"""What the map is asked to show: its colours, how many sentences, what is searched for, its layers and its picture."""

from collections.abc import Mapping
from typing import Literal

import streamlit as st

from core.explore import entities
from core.explore import view as maps
from core.explore.view import Mode
from pages.ui.explore import state
from pages.ui.widgets import plain

MOST_DRAWN = 50_000  # a lasso sends every drawn point back, 130 bytes each
Colouring = Literal["class", "score", "cluster", "entities", "length", "source", "file", "group", "page", "column"]
COLOURINGS: Mapping[Colouring, str] = {
    "class": "class",
    "score": "score",
    "cluster": "topic",
    "entities": "entities",
    "length": "length",
    "source": "document",
    "file": "file",
    "group": "group",
    "page": "page",
    "column": "column",
}
LAYERS = {"words": "topic words", "density": "lines around the densest 20, 50 and 80%"}
PICTURES = {"png": "PNG", "svg": "SVG"}
MODES: Mapping[Mode, str] = {"substring": "as written", "words": "all words, any order"}
# Colour by, points to draw, search, its mode, `LAYERS`, the file's own column that colours ("" for none).
Controls = tuple[Colouring, int, str, Mode, frozenset[str], str]


def controls(map_run: str) -> Controls:
    """Settings of what the map shows, as the person set it."""
    choices = _colourings(map_run)
    if st.session_state.get("explore.by") not in choices:  # of another selection's map
        st.session_state.pop("explore.by", None)
    with st.container(horizontal=True, vertical_alignment="center"):
        by = _colouring(choices)
        column = _column(list(maps.further_columns(map_run))) if by == "column" else ""
        query = _query()
        with st.popover("Options", icon=":material/settings:", key="explore.options"):
            mode = _search_mode()
            n = _to_draw(len(maps.get(map_run)), f"explore.n.{map_run}")
            layers = _layers()
            _picture()
    state.searched(map_run, query, mode)
    if query:
        _hits(map_run, query, mode)
    return by, n, query, mode, layers, column


def _colourings(map_run: str) -> list[Colouring]:
    """Colourings that the sentences of this map can have: what they do not have is left out."""
    there = {"entities": bool(entities.tag_runs(maps.get(map_run).selection)), **maps.kept_columns(map_run)}
    there["column"] = bool(maps.further_columns(map_run))
    return [by for by in COLOURINGS if there.get(by, True)]


def _colouring(choices: list[Colouring]) -> Colouring:
    st.markdown("Colour by", width="content")
    return st.segmented_control(
        "Colour by",
        choices,
        format_func=COLOURINGS.__getitem__,
        default="class",
        required=True,
        key="explore.by",
        label_visibility="collapsed",
    )


def _column(names: list[str]) -> str:
    """Column, of those that came with the texts, that colours."""
    if st.session_state.get("explore.column") not in names:  # of another selection's map
        st.session_state.pop("explore.column", None)
    return st.selectbox(
        "Column that came with the texts", names, key="explore.column", label_visibility="collapsed", width=180
    )


def _query() -> str:
    return st.text_input(
        "Search all sentences",
        key="explore.query",
        type="search",
        icon=":material/search:",
        width=270,
        placeholder="Search all sentences",
        label_visibility="collapsed",
    ).strip()


def _search_mode() -> Mode:
    return st.segmented_control(
        "Search for",
        list(MODES),
        format_func=MODES.__getitem__,
        default="substring",
        required=True,
        key="explore.mode",
    )


def _layers() -> frozenset[str]:
    return frozenset(
        st.pills(
            "On the map",
            list(LAYERS),
            selection_mode="multi",
            format_func=LAYERS.__getitem__,
            default=["words"],
            key="explore.layers",
        )
    )


def _picture() -> None:
    """The form in which the map's camera saves it."""
    st.segmented_control(
        "Picture (the camera at the map's corner)",
        list(PICTURES),
        format_func=PICTURES.__getitem__,
        default="png",
        required=True,
        key="explore.picture",
    )


def _to_draw(most: int, key: str) -> int:
    return int(
        st.number_input(
            "Sentences to draw",
            # A small map has fewer sentences than the usual bounds, and a field refuses a least above its most.
            min(100, most),
            most,
            min(20_000, most),
            5_000,
            key=key,
            help=f"At most {MOST_DRAWN:,} are drawn; a lasso takes the others with it all the same.",
        )
    )


def _hits(map_run: str, query: str, mode: Mode) -> None:
    hits = maps.search(map_run, query, mode)
    with st.container(horizontal=True, vertical_alignment="center"):
        if not len(hits.rows) and not len(hits.task_rows):
            st.markdown(f"No sentence of the domain corpus or the task corpus holds {plain(query)}.", width="content")
            return
        counts = (
            f"**{len(hits.rows):,}** in the domain corpus and **{len(hits.task_rows):,}** in the task corpus hold "
            f"{plain(query)}"
        )
        st.markdown(f"{counts}{'.' if len(hits.points) else '; none of them is on the map.'}", width="content")
        region = state.picked(map_run)
        if len(hits.points) and (region is None or region["value"] != (query, mode)):
            st.button(
                f"Pick the {len(hits.points):,} on the map",
                key="explore.hits",
                icon=":material/select_all:",
                on_click=state.pick,
                args=(map_run, "hits", (query, mode)),
            )
