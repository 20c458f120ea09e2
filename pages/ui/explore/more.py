"""Beside the map: two choices compared; selected and filtered sentences side by side."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from core.explore import plot
from core.explore import view as maps
from core.projects.home import home
from core.results import IntArray
from core.selection import choices, insights
from core.selection import view as selections
from core.selection.insights import Side
from pages.ui.explore import state
from pages.ui.explore.tooltips import packed, tooltips
from pages.ui.project import page_link
from pages.ui.runs.words import selection_titles
from pages.ui.widgets import chart, plain, table, with_place

DRAWN = 20_000
SHORT = {
    "exact_duplicate": "duplicate",
    "near_duplicate": "near duplicate",
    "leak": "leak",
    "too_short": "too short",
    "too_long": "too long",
}
SIDE_WORDS: Mapping[Side, str] = {
    "both": "Both",
    "only A": "Only this selection (A)",
    "only B": "Only the other (B)",
    "neither": "Neither",
}


def compare(choice_id: str, map_run: str | None) -> None:
    """Another choice from the same D_C, on this one's map where it has one."""
    names = selection_titles([*choices.comparable(choice_id), selections.at(choice_id)])
    this = names.pop(choice_id)
    if not names:
        st.info("Save this selection, then change it or try another strategy to compare both on one map.")
        page_link("pages/3_Selection.py", label="Make another selection", icon=":material/filter_alt:")
        return
    other = st.selectbox("Compare with", list(names), 0, names.__getitem__, key=f"explore.other.{choice_id}")
    st.markdown(f"**A** is {plain(this)}; **B** is {plain(names[other])}. Hand edits are counted.")
    _both(choice_id, map_run, other)
    side = st.segmented_control(
        "Sentences of",
        list(SIDE_WORDS),
        format_func=SIDE_WORDS.__getitem__,
        default="both",
        required=True,
        key="explore.side",
    )
    columns = {"id": "Id", "score": "Score", "text": "Sentence"}
    rows = insights.side_examples(choice_id, other, side)
    table(rows, with_place(columns, rows), SIDE_WORDS[side], wrapped=("text", "place"))


def _both(choice_id: str, map_run: str | None, other: str) -> None:
    """Draw who selected what: on the map, in numbers, by budget."""
    sides = insights.sides(choice_id, other)
    counts = dict(zip(insights.SIDES, np.bincount(sides, minlength=len(insights.SIDES)).tolist(), strict=True))
    left, right = st.columns((8, 5))
    with left:
        if map_run is None:
            st.info("Make this selection's map on the tab Map, and the two are drawn on it here.")
        else:
            _sides_map(choice_id, map_run, other, sides)
    with right:
        lines = [f"| {SIDE_WORDS[side]} | {counts[side]:,} |" for side in SIDE_WORDS]
        st.markdown("\n".join(["| Selected by | Sentences |", "| :-- | --: |", *lines]))
        _curve(choice_id, other)


def _sides_map(choice_id: str, map_run: str, other: str, sides: IntArray) -> None:
    fig, counts, hover = _sides(str(home()), map_run, state.stamp(choice_id), other, state.stamp(other), sides)
    chart(fig, "explore.sides", f"The same map by who selected: {counts}. The table beside it holds the numbers.")
    tooltips("explore.sides.tooltips", hover)


@st.cache_resource(max_entries=4, show_spinner="Drawing the map")
def _sides(
    home: str, map_run: str, stamp: str, other: str, other_stamp: str, _sides: IntArray
) -> tuple[Any, str, bytes]:
    mapped = maps.get(map_run)
    kinds = np.full(len(mapped), len(insights.SIDES), dtype=np.uint8)  # T_C comes after the sides
    kinds[mapped.n_task :] = _sides[mapped.rows[mapped.n_task :]]
    points = maps.get(map_run).draw(kinds, DRAWN)
    drawn = plot.Dots(
        x=mapped.xy[0][points],
        y=mapped.xy[1][points],
        points=points,
        kinds=kinds[points],
        hovered=np.ones(len(points), dtype=bool),
    )
    names = [plot.SIDE_LOOKS[kind].name for kind in kinds[points].tolist()]
    hover = packed("explore-sides", points, plot.hover_lines(names, maps.hover(map_run, points)))
    totals = np.bincount(kinds, minlength=len(plot.SIDE_LOOKS)).tolist()
    counts = ", ".join(f"{n:,} {look.name}" for n, look in zip(totals, plot.SIDE_LOOKS, strict=True))
    return plot.by_class(drawn, totals, plot.View(tool="pan", height=480), plot.SIDE_LOOKS), counts, hover


def _curve(choice_id: str, other: str) -> None:
    points = insights.overlap_curve(choice_id, other)
    st.markdown("**Overlap by budget**")
    chart(
        plot.overlap_lines(points, len(selections.scored(choice_id).domain)),
        "explore.overlap",
        "Share of the best sentences that both selections hold, by how many are selected",
    )
    with st.expander("In numbers", icon=":material/table:"):
        rows = [{"n": n, "shared": shared, "share": f"{shared / max(n, 1):.1%}"} for n, shared in points]
        table(rows, {"n": "Sentences", "shared": "Shared", "share": "Share"}, "Overlap by budget")


def side_by_side(map_run: str) -> None:
    """Selected sentences, each beside the filtered one that is most like it (Mahapatra et al. 2022, Fig. 3a)."""
    st.markdown("Selected sentences, each beside the filtered sentence that is most like it: where the line was drawn.")
    n = st.slider("Pairs", 5, 50, 15, 5, key="explore.pairs")
    pairs = maps.pairs(map_run, maps.classes(map_run), n)
    if not pairs:
        st.info("There is no pair to show: either no sentence is selected or none is filtered.")
        return
    rows = [
        {
            "selected": selected["text"],
            "filtered": filtered["text"],
            "gap": f"{selected['score']:.3g} / {filtered['score']:.3g}",
            "cosine": float(cosine),
            "why": ", ".join(SHORT[flag] for flag in filtered["flags"]) or "score",
            "place": " / ".join(filter(None, (selected["place"], filtered["place"]))),
        }
        for selected, filtered, cosine in pairs
    ]
    columns = {
        "selected": "Selected",
        "filtered": "Filtered",
        "cosine": "Alike (cosine)",
        "gap": "Scores",
        "why": "Kept out by",
    }
    table(rows, with_place(columns, rows), "Selected sentences beside the filtered ones most like them")
