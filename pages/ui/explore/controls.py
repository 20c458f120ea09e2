"""Fields around the map: colours, filters, search, layers, comparison of two selections, tagging and export."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import streamlit as st

from core import terms
from core.experiment import deliver
from core.explore import atlas, plot
from core.explore import view as maps
from core.explore.view import Mode
from core.importing import view as corpora
from core.paths import home
from core.projects import runs
from core.projects.titles import selection_titles
from core.results import IntArray
from core.selection import choices, insights
from core.selection import view as selections
from core.selection.choice import run_of
from core.selection.insights import Side
from core.shown import count
from core.tagging import view as taggers
from pages.ui.explore import state
from pages.ui.explore.state import LIST, packed, tooltips
from pages.ui.frame import guard
from pages.ui.project import page_link
from pages.ui.runs.panel import run_panel, where
from pages.ui.widgets import chart, command_lines, plain, pressed, table, with_place

RUN, FILTERS = "explore.tag.run", "explore.filters"


def offer_tagging(choice_id: str) -> None:
    """Let the user choose a tagger and tag D_C, and show the progress. Draw nothing if D_C has been tagged."""
    if maps.tag_runs(choice_id):
        return
    with st.expander("Find entities in the domain corpus", icon=":material/label:"):
        options = _options(choice_id)
        on = where("explore.tag") if options else ""
        if options and pressed("Find entities", "explore.tag.start", icon=":material/search:"):
            st.session_state[RUN] = runs.start("tag", options, on)
            st.rerun()
        # The run that was started here may have been removed on the page Runs.
        started = next((run for run in runs.listed("tag") if run.id == st.session_state.get(RUN)), None)
        if options and started and started.manifest.inputs["corpus"] == options["corpus"]:
            run_panel(started.id, "explore.tag")


def _options(choice_id: str) -> dict[str, str] | None:
    names = taggers.here()
    if not names:
        page_link("pages/5_Training.py", label="Fine-tune a tagger first", icon=":material/model_training:")
        return None
    tagger = st.selectbox("Tagger", list(names), format_func=names.__getitem__, key="explore.tag.model")
    domain = runs.get(run_of(choice_id)).manifest.inputs["domain"]
    n = len(corpora.find(domain))
    st.caption(
        f"The tagger reads all {count(n, 'sentence')} of the domain corpus once. Without a GPU, a small encoder reads "
        "a few hundred per second."
    )
    return {"corpus": domain, "model": str(deliver.model_folder(tagger))}


WRITTEN = "explore.atlas.written"


def for_atlas(map_run: str) -> None:
    """Draw a button that writes the map to a folder for Embedding Atlas, then the command that opens the folder."""
    if pressed("Folder for Embedding Atlas", "explore.atlas", icon=":material/folder_open:"):
        with guard():  # An error is shown here, and the page below is still drawn.
            st.session_state[WRITTEN] = {map_run: str(atlas.export(map_run))}
    if folder := st.session_state.get(WRITTEN, {}).get(map_run):
        st.caption(
            "The folder was written, with the text of all sentences on the map. Open it in Embedding Atlas with:"
        )
        command_lines(atlas.command(Path(folder)))


MOST_DRAWN = 200_000  # largest number of points; with more, each zoom step takes seconds, even with a GPU
Colouring = Literal["class", "score", "cluster", "entities", "length", "doc", "file", "group", "page", "column"]
COLOURINGS: Mapping[Colouring, str] = {
    "class": "class",
    "score": "score",
    "cluster": "topic",
    "entities": "entities",
    "length": "length",
    "doc": "document",
    "file": "file",
    "group": "group",
    "page": "page",
    "column": "column",
}
LAYERS = {"words": "topic words", "density": "contours around the densest 20, 50 and 80% of each class"}
PICTURES = {"png": "PNG", "svg": "SVG"}
MODES: Mapping[Mode, str] = {"substring": "as written", "words": "all words, any order"}
# The settings of the map: colouring, number of points to draw, search text, search mode, layers, and the column for the
# colouring "column" ("" for other colourings).
Controls = tuple[Colouring, int, str, Mode, frozenset[str], str]


def controls(map_run: str) -> Controls:
    """Draw the fields above the map and return the settings of the map."""
    choices = _colourings(map_run)
    if st.session_state.get("explore.by") not in choices:  # The value may come from another selection's map.
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
            for_atlas(map_run)
        st.toggle(
            "Narrow down", key=FILTERS, help="Show only a class, a topic, a range of scores, or values of a column."
        )
    state.searched(map_run, query, mode)
    if query:
        _hits(map_run, query, mode)
    return by, n, query, mode, layers, column


def _colourings(map_run: str) -> list[Colouring]:
    """Return the colourings that are possible on this map; for example "entities" needs a tagged D_C."""
    there = {"entities": bool(maps.tag_runs(maps.get(map_run).selection)), **maps.kept_columns(map_run)}
    there["column"] = bool(maps.further_columns(map_run))
    return [by for by in COLOURINGS if there.get(by, True)]


def _colouring(choices: list[Colouring]) -> Colouring:
    st.markdown("Colour by", width="content")
    return st.selectbox(
        "Colour by",
        choices,
        format_func=COLOURINGS.__getitem__,
        key="explore.by",
        label_visibility="collapsed",
        width=140,
    )


def _column(names: list[str]) -> str:
    """Ask for the column by which to colour the map, and return its name. names: columns of the imported files."""
    if st.session_state.get("explore.column") not in names:  # The value may come from another selection's map.
        st.session_state.pop("explore.column", None)
    return st.selectbox(
        "Column of the imported files", names, key="explore.column", label_visibility="collapsed", width=180
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
    """Ask for the file format of the pictures that the map's camera button saves."""
    st.segmented_control(
        "File format of pictures (saved with the camera button)",
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
            # A map may have fewer than 100 sentences, and a field refuses a minimum above its maximum.
            min(100, most),
            most,
            min(20_000, most),
            5_000,
            key=key,
            help=f"At most {MOST_DRAWN:,} sentences are drawn as points. With more than 20,000, the map moves smoothly "
            "only with a graphics card. A shaded area behind the points shows the others; a lasso picks them too.",
        )
    )


def _hits(map_run: str, query: str, mode: Mode) -> None:
    hits = maps.search(map_run, query, mode)
    with st.container(horizontal=True, vertical_alignment="center"):
        if not len(hits.rows) and not len(hits.task_rows):
            st.markdown(
                f"No sentence of the domain corpus or the task corpus contains {plain(query)}.", width="content"
            )
            return
        counts = (
            f"Sentences that contain {plain(query)}: **{len(hits.rows):,}** in the domain corpus, "
            f"**{len(hits.task_rows):,}** in the task corpus"
        )
        if not len(hits.points):
            st.markdown(f"{counts}; none of them is on the map.", width="content")
            return
        picked = state.part(state.picked(map_run), "hits")
        listed = picked is not None and tuple(picked["value"]) == (query, mode)
        if listed:
            st.markdown(f"{counts}. [Read them below the map](#{LIST})", width="content")
        else:
            st.markdown(f"{counts}.", width="content")
            st.button(
                f"Pick the {len(hits.points):,} on the map",
                key="explore.hits",
                icon=":material/select_all:",
                on_click=state.pick,
                args=(map_run, "hits", (query, mode)),
            )


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
    """Compare a selection with another one from the same D_C. map_run: the map on which to draw both, or None."""
    names = selection_titles([*choices.comparable(choice_id), selections.at(choice_id)])
    this = names.pop(choice_id)
    if not names:
        st.info("Save this selection, then change it or try another strategy to compare both on one map.")
        page_link("pages/3_Selection.py", label="Make another selection", icon=":material/filter_alt:")
        return
    other = st.selectbox("Compare with", list(names), 0, names.__getitem__, key=f"explore.other.{choice_id}")
    st.markdown(f"**A** is {plain(this)}; **B** is {plain(names[other])}. Hand edits are included.")
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
    """Show which sentences are in both selections and which in only one: on the map, as counts, and by budget.

    other: id of the selection to compare with.
    """
    sides = insights.sides(choice_id, other)
    counts = dict(zip(insights.SIDES, np.bincount(sides, minlength=len(insights.SIDES)).tolist(), strict=True))
    left, right = st.columns((8, 5))
    with left:
        if map_run is None:
            st.info("Make this selection's map on the tab Map. Both selections are then drawn on it here.")
        else:
            _sides_map(choice_id, map_run, other, sides)
    with right:
        lines = [f"| {SIDE_WORDS[side]} | {counts[side]:,} |" for side in SIDE_WORDS]
        st.markdown("\n".join(["| Selected by | Sentences |", "| :-- | --: |", *lines]))
        _curve(choice_id, other)


def _sides_map(choice_id: str, map_run: str, other: str, sides: IntArray) -> None:
    fig, counts, hover = _sides(str(home()), map_run, state.stamp(choice_id), other, state.stamp(other), sides)
    chart(fig, "explore.sides", f"The map, coloured by selection: {counts}. The table beside it has the numbers.")
    tooltips("explore.sides.tooltips", hover)


@st.cache_resource(max_entries=4, show_spinner="Drawing the map")
def _sides(
    home: str, map_run: str, stamp: str, other: str, other_stamp: str, _sides: IntArray
) -> tuple[Any, str, bytes]:
    mapped = maps.get(map_run)
    # The sentences of T_C keep this class, whose number is one above those of `SIDES`.
    kinds = np.full(len(mapped), len(insights.SIDES), dtype=np.uint8)
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
    st.markdown("**Overlap by budget**, without hand edits")
    chart(
        plot.overlap_lines(points, insights.chance_of(choice_id, other)),
        "explore.overlap",
        "Share of the best sentences that are in both selections, by number of selected sentences",
    )
    with st.expander("In numbers", icon=":material/table:"):
        rows = [{"n": n, "shared": shared, "share": f"{shared / max(n, 1):.1%}"} for n, shared in points]
        table(rows, {"n": "Sentences", "shared": "Shared", "share": "Share"}, "Overlap by budget")


def side_by_side(map_run: str) -> None:
    """Draw pairs of a selected sentence and the most similar one that was not selected.

    Source: Mahapatra et al. 2022, Fig. 3a.
    """
    st.markdown(
        "Selected sentences, each beside the most similar one that is not selected. They show where the cut-off is."
    )
    n = st.slider("Pairs", 5, 50, 15, 5, key="explore.pairs")
    pairs = maps.pairs(map_run, maps.classes(map_run), n)
    if not pairs:
        st.info("There is no pair to show: either none or all sentences are selected.")
        return
    reasons = _kept_out(maps.get(map_run).selection, np.array([filtered["row"] for _, filtered, _ in pairs]))
    rows = [
        {
            "selected": selected["text"],
            "filtered": filtered["text"],
            "gap": f"{selected['score']:.3g} / {filtered['score']:.3g}",
            "cosine": float(cosine),
            "why": why,
            "place": " / ".join(filter(None, (selected["place"], filtered["place"]))),
        }
        for (selected, filtered, cosine), why in zip(pairs, reasons, strict=True)
    ]
    columns = {
        "selected": "Selected",
        "filtered": terms.FILTERED.title,
        "cosine": "Similarity (cosine)",
        "gap": "Scores",
        "why": "Kept out by",
    }
    table(
        rows,
        with_place(columns, rows),
        "Pairs of a selected sentence and the most similar sentence that is not selected",
    )


def _kept_out(choice_id: str, rows: IntArray) -> list[str]:
    """Return the reason why each of `rows` of D_C is not selected, in a word or two."""
    diverse = runs.get(run_of(choice_id)).manifest.config.get("diversity", "none") != "none"
    flags, by_hand = insights.flags_of(choice_id, rows), np.isin(rows, selections.edits(choice_id).removed)
    withheld = [", ".join(SHORT[flag] for flag, mask in flags.items() if mask[i]) for i in range(len(rows))]
    otherwise = "score or variety" if diverse else "score"
    return ["hand edit" if hand else flagged or otherwise for hand, flagged in zip(by_hand, withheld, strict=True)]
