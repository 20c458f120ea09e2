"""The health of S_C in numbers and warnings, and the effect of selecting with diversity."""

from collections.abc import Mapping

import streamlit as st

from core.importing import view as corpora
from core.projects import runs
from core.selection import insights
from core.selection import view as selections
from core.selection.choice import run_of
from core.selection.health import Health
from core.shown import count
from core.terms import CHOICE, plainly
from pages.ui.choice import take
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import plain, pressed, table

KINDS = {"quota": "a share per topic", "mmr": "no two similar sentences (MMR)"}
DIVERSE = "explore.diverse"
RESCORED = "The domain corpus is scored again first, because more sentences are compared"
# session key of the open tab, which is also its URL parameter; title of the tab that this module draws
TAB, TITLE = "explore.tab", "Health of the selection"


def health(choice_id: str) -> None:
    """Show a table of statistics of S_C with its hand edits, and warnings.

    If the selection uses diversity, the table also has a column for a selection by score alone.
    """
    with st.spinner("Measuring the selection"):
        numbers = insights.health(choice_id, labelled=corpora.roles().get("train"))
    for warning in numbers.warnings:
        st.warning(plain(warning), icon=":material/health_and_safety:")
    if not numbers.warnings:
        st.success("There are no warnings about this selection.", icon=":material/health_and_safety:")
    columns = {"what": "Measure", "value": CHOICE.title, "means": "Meaning"}
    rows = _rows(numbers)
    diverse = runs.get(run_of(choice_id)).manifest.config.get("diversity", "none") != "none"
    if diverse:
        with st.spinner("Measuring a selection by score alone"):
            by_score = insights.health_without_diversity(choice_id)
        before = {row["what"]: row["value"] for row in _rows(by_score)}
        rows = [{**row, "before": before.get(row["what"], "")} for row in rows]
        columns = {"what": "Measure", "before": "By score alone", "value": CHOICE.title, "means": "Meaning"}
    table(rows, columns, TITLE)
    if not diverse:
        _again(choice_id)


def _again(choice_id: str) -> None:
    """Draw a button that makes another selection of the same size, but with diversity."""
    st.subheader("More variety", anchor=False)
    begun = st.session_state.get(DIVERSE, {})
    # The run that was started here may have been removed on the page Runs.
    there = begun.get("run") in {run.id for run in runs.listed("select")}
    if there and begun["from"] == choice_id and run_panel(begun["run"], "explore.diverse-run").state == "succeeded":
        take(begun["run"])
        del st.session_state[DIVERSE]
        st.rerun()
    words = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            "Spread by",
            list(KINDS),
            format_func=KINDS.__getitem__,
            default="quota",
            required=True,
            key="explore.spread",
        )
        options, rescored = selections.diverse(choice_id, kind)
        words.markdown(
            "Sentences with the best scores are often very similar. You can make a selection of the same size with "
            "more varied sentences. The table then shows the effect. "
            f"{RESCORED if rescored else 'Nothing is scored again'}, and this selection does not change."
        )
        if pressed("Choose with diversity", "explore.choose", icon=":material/diversity_2:"):
            new = runs.start("select", options)
            st.session_state[DIVERSE] = {"from": choice_id, "run": new}
            st.rerun()


def _rows(numbers: Health) -> list[dict[str, str]]:
    medians, ratio = numbers.median_tokens, numbers.type_token

    def others(values: Mapping[str, float], form: str) -> str:
        return ", ".join(f"{plainly(role)} {format(value, form)}" for role, value in values.items() if role != "S_C")

    rows = [
        ("Size", f"{count(numbers.sentences, 'sentence')}, {count(numbers.tokens, 'token')}", "hand edits included"),
        ("Median length", f"{medians['S_C']:.0f} tokens", f"for comparison: {others(medians, '.0f')}"),
        (
            "Duplicates left",
            f"{numbers.duplicates:,}",
            "duplicates and near duplicates of another sentence of the selection",
        ),
        (
            "Different words",
            f"{ratio['S_C']:.1%}",
            f"of {count(numbers.type_token_words, 'word')}; {others(ratio, '.1%')}",
        ),
    ]
    if numbers.variety is not None:
        rows.append(
            ("Variety", f"{numbers.variety:.1f}", f"effectively different sentences among {numbers.variety_of:,}")
        )
    if numbers.coverage is not None:
        meaning = f"of {numbers.coverage_of:,} task sentences: their nearest domain sentence is selected"
        rows.append(("Coverage of the task corpus", f"{numbers.coverage:.0%}", meaning))
    if numbers.new_entities is not None:
        meaning = (
            f"of {count(numbers.new_entities_of, 'name')} in the selection (found by capitals) are not in the labels"
        )
        rows.append(("New names", f"{numbers.new_entities:.0%}", meaning))
    return [{"what": what, "value": value, "means": means} for what, value, means in rows]
