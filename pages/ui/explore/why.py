"""Why this sentence: its score and its place, what the score is made of, what is like it, what kept it out."""

from html import escape

import numpy as np
import streamlit as st

from core.explore import entities
from core.explore import view as maps
from core.explore.result import MapRow
from core.results import IntArray
from core.selection import insights
from core.selection import view as selections
from core.selection.why import Why
from pages.ui.presses import pressed
from pages.ui.widgets import entity_html, place_html, plain, table, with_place


def why_card(choice_id: str, map_run: str, point: int, kinds: IntArray) -> None:
    """The card of one point of the map."""
    mapped = maps.get(map_run)
    with st.container(border=True, key="explore-why"):
        row = maps.page_of(map_run, np.array([point]), kinds)[0]
        st.subheader("Why this sentence", anchor=False)
        if point < mapped.n_task:
            st.html(f'<blockquote class="w-sentences">{escape(row["text"])}{place_html(row["place"])}</blockquote>')
            st.markdown(
                f"A sentence of the task corpus ({plain(mapped.task.name)}, row {row['row']:,}): what all "
                "others are held to."
            )
            return
        _sentence(choice_id, row)
        why = insights.why(choice_id, row["row"])
        st.markdown(f"**{plain(why.verdict)}**")
        _place(why, row["class"])
        _one(choice_id, why.row, row["class"] == "selected")
        _neighbours(why)
        _parts(why)
        _duplicates(why)
        for note in why.notes:
            st.caption(plain(note))


def _sentence(choice_id: str, row: MapRow) -> None:
    """Its text, with the entities predicted in it where a tagger has read D_C."""
    tagged = entities.with_entities(choice_id, row["row"])
    shown = escape(row["text"]) if tagged is None else entity_html(tagged, entities.entity_types(choice_id))
    st.html(f'<blockquote class="w-sentences">{shown}{place_html(row["place"])}</blockquote>')
    if tagged is not None:
        n = len(tagged.entities or ())
        st.caption(f"Predicted by a tagger, not labelled by hand: {n} {'entity' if n == 1 else 'entities'}.")


def _place(why: Why, kind: str) -> None:
    better = "higher" if why.prefer == "high" else "lower"
    with st.container(horizontal=True):
        st.metric("Class", kind, width="content")
        if why.rank is None:
            st.metric("Score", "none", width="content", help="This sentence could not be scored.")
            return
        st.metric(
            f"Score ({plain(why.unit)})", f"{why.score:.4g}", width="content", help=f"The {better}, the sooner chosen."
        )
        st.metric("Rank", f"{why.rank:,} of {why.of:,}", width="content")
        st.metric(
            "Better than",
            f"{why.percentile:.1f}%",
            width="content",
            help="of all scored sentences of the domain corpus",
        )


def _one(choice_id: str, row: int, selected: bool) -> None:
    label = "Remove from the selection" if selected else "Add to the selection"
    if pressed(label, "explore.one", icon=f":material/{'remove' if selected else 'add'}:"):
        selections.edit(choice_id, "remove" if selected else "add", np.array([row]))
        st.rerun(scope="app")


def _parts(why: Why) -> None:
    st.markdown("**What the score is made of**")
    if not why.parts:
        st.caption("This strategy's score has no parts.")
    else:
        rows = [{"part": part.name, "value": float(part.value)} for part in why.parts]
        if len(rows) > 1:
            rows.append({"part": "together", "value": float(why.total)})
        table(rows, {"part": "Part", "value": "Value"}, "What the score is made of")
    if why.formula:
        st.caption(plain(why.formula))


def _neighbours(why: Why) -> None:
    st.markdown("**Nearest sentences of the task corpus**")
    if not why.neighbours:
        st.caption("None to show: this selection has no embeddings.")
        return
    rows = [{**row, "cosine": float(row["cosine"])} for row in why.neighbours]
    table(rows, with_place({"cosine": "Cosine", "text": "Sentence"}, rows), "Nearest sentences of the task corpus")


def _duplicates(why: Why) -> None:
    if why.duplicates:
        st.markdown("**Duplicates and near duplicates in the domain corpus**")
        rows = [{**copy, "differs": copy["differs"].replace("->", "→") or "no word"} for copy in why.duplicates]
        names = {"row": "Row", "score": "Score", "differs": "Differs in", "text": "Sentence"}
        table(rows, with_place(names, rows), "Duplicates and near duplicates in the domain corpus")
