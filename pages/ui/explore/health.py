"""The health of S_C in numbers and warnings, and what choosing with diversity changes."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.facade import corpora, insights, runs
from core.facade.home import home
from core.facade.insights import Health
from pages.ui.explore import state
from pages.ui.presses import pressed
from pages.ui.runs.links import attach
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import plain, table

KINDS = {"quota": "every topic its share", "mmr": "not the same thing twice (MMR)"}
DIVERSE = "explore.diverse"


def health(run_id: str) -> None:
    """S_C in numbers, hand edits counted; beside it, what score alone would have chosen."""
    found = _health(str(home()), run_id, state.stamp(run_id), corpora.roles().get("train"))
    for warning in found.warnings:
        st.warning(plain(warning), icon=":material/health_and_safety:")
    if not found.warnings:
        st.success("Nothing about this selection calls for a warning.", icon=":material/health_and_safety:")
    columns = {"what": "Measure", "value": "S_C", "means": "What it says"}
    rows = _rows(found)
    diverse = runs.get(run_id).manifest.config.get("diversity", "none") != "none"
    if diverse:
        before = {row["what"]: row["value"] for row in _rows(_without(str(home()), run_id))}
        rows = [{**row, "before": before.get(row["what"], "")} for row in rows]
        columns = {"what": "Measure", "before": "By score alone", "value": "S_C", "means": "What it says"}
    table(rows, columns, "Health of S_C")
    if not diverse:
        _again(run_id)


def _again(run_id: str) -> None:
    """The same scores, chosen with diversity: a selection of its own, so that both stay."""
    st.subheader("More variety", anchor=False)
    begun = st.session_state.get(DIVERSE)
    if begun and begun["from"] == run_id and run_panel(begun["run"], "explore.diverse-run").state == "succeeded":
        attach(begun["run"], "explore.run")
        del st.session_state[DIVERSE]
        st.rerun()
    st.markdown(
        "The best scores are often much alike. Choose again from the same scores, spread over the topics; the table "
        "then shows what it changed. Nothing is scored anew, and this selection stays as it is."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            "Spread by",
            list(KINDS),
            format_func=KINDS.__getitem__,
            default="quota",
            required=True,
            key="explore.spread",
        )
        if pressed("Choose with diversity", "explore.choose", icon=":material/diversity_2:"):
            config: Mapping[str, Any] = runs.get(run_id).manifest.config
            new = runs.start("select", {**config, "diversity": kind})
            st.session_state[DIVERSE] = {"from": run_id, "run": new}
            st.rerun()


@st.cache_resource(max_entries=4, show_spinner="Measuring what score alone would choose")
def _without(home: str, run_id: str) -> Health:
    return insights.health_without_diversity(run_id)


@st.cache_resource(max_entries=8, show_spinner="Measuring S_C")
def _health(home: str, run_id: str, stamp: str, labelled: str | None) -> Health:
    return insights.health(run_id, labelled=labelled)


def _rows(found: Health) -> list[dict[str, str]]:
    medians, ratio = found.median_tokens, found.type_token
    beside = lambda values, form: ", ".join(
        f"{role} {format(value, form)}" for role, value in values.items() if role != "S_C"
    )
    rows = [
        ("Size", f"{found.sentences:,} sentences, {found.tokens:,} tokens", "hand edits counted"),
        ("Median length", f"{medians['S_C']:.0f} tokens", f"beside it: {beside(medians, '.0f')}"),
        ("Duplicates left", f"{found.duplicates:,}", "copies and near copies of another sentence of S_C"),
        ("Different words", f"{ratio['S_C']:.1%}", f"of {found.type_token_words:,} words; {beside(ratio, '.1%')}"),
    ]
    if found.variety is not None:
        rows.append(("Variety", f"{found.variety:.1f}", f"effectively different sentences among {found.variety_of:,}"))
    if found.coverage is not None:
        said = f"of {found.coverage_of:,} sentences of T_C lie closer to S_C than to what was filtered"
        rows.append(("Coverage of T_C", f"{found.coverage:.0%}", said))
    if found.new_entities is not None:
        said = f"of {found.new_entities_of:,} names in S_C, told by their looks, are not in L_C"
        rows.append(("New names", f"{found.new_entities:.0%}", said))
    return [{"what": what, "value": value, "means": means} for what, value, means in rows]
