"""Several trainings' curves in one chart: how fast each learnt, and where it stopped."""

from collections.abc import Mapping

import streamlit as st

from core.facade import figures, terms, training
from pages.ui.results.pair import note_differences
from pages.ui.widgets import is_dark

MOST = 6  # lines that a reader can tell apart
WHAT = {"dev_f1": terms.DECIDING.named, "loss": "Training loss"}


def overlay(arms: Mapping[str, str]) -> None:
    """A line a tagger and seed over the optimizer steps. arms: {finetune run: what it is called here}."""
    left, right = st.columns((3, 1))
    runs = left.multiselect(
        "Trainings",
        list(arms),
        list(arms)[:MOST],
        arms.__getitem__,
        key="results.overlay.runs",
        placeholder="pick trainings",
        max_selections=MOST,
    )
    note_differences(arms, runs)
    what = right.selectbox("Curve", list(WHAT), format_func=WHAT.__getitem__, key="results.overlay.what")
    drawn = [line for run in runs for line in lines(run, arms[run], what)]
    if not drawn:
        st.caption("These trainings have left no such curve.")
        return
    figure = figures.curves(drawn, y=WHAT[what], height=380, dots=what == "dev_f1", dark=is_dark())
    st.altair_chart(figure, key="results.overlay", alt=f"{WHAT[what]} over optimizer steps, a line a training and seed")
    st.caption("Each seed is a line of its variant's colour; steps are those of the optimizer.")


def lines(run: str, name: str, what: str) -> list[figures.Line]:
    """A curve of a training, `what`, a line a seed. name: what the training is called here."""
    return [
        figures.Line(name=name, part=f"seed {metric.seed}", steps=metric.steps, values=metric.values)
        for metric in training.curves(run)
        if metric.name == what and not metric.type
    ]
