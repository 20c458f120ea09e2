"""Curves of several trainings in one chart: how fast each learnt, and where it stopped."""

from collections.abc import Mapping

import streamlit as st

from core import terms
from core.tagging import plot
from core.tagging import view as training
from pages.ui.results.pair import note_differences
from pages.ui.widgets import is_dark

MOST_TRAININGS = 6  # number of distinguishable colours; all seeds of a training share one
TAGGER_CURVES = {"dev_f1": terms.DECIDING.named, "loss": "Training loss"}


def overlay(run_labels: Mapping[str, str]) -> None:
    """Draw a curve of several taggers, one line per seed. run_labels: {`finetune` run: name}."""
    left, right = st.columns((3, 1))
    runs = left.multiselect(
        "Trainings",
        list(run_labels),
        list(run_labels)[:MOST_TRAININGS],
        run_labels.__getitem__,
        key="results.overlay.runs",
        placeholder="pick trainings",
        max_selections=MOST_TRAININGS,
    )
    note_differences(run_labels, runs)
    curve = right.selectbox(
        "Curve", list(TAGGER_CURVES), format_func=TAGGER_CURVES.__getitem__, key="results.overlay.what"
    )
    drawn = [line for run in runs for line in lines(run, run_labels[run], curve)]
    if not drawn:
        st.caption("These trainings have no such curve.")
        return
    title = TAGGER_CURVES[curve]
    figure = plot.curves(drawn, y=title, height=380, dots=curve == "dev_f1", dark=is_dark())
    st.altair_chart(figure, key="results.overlay", alt=f"{title} over optimizer steps, one line per training and seed")
    st.caption("Each seed is a line of its variant's colour; steps are those of the optimizer.")


def lines(run: str, label: str, curve: str) -> list[plot.Line]:
    """Return the lines of a training, one per seed. label: name of the training. curve: name of the metric."""
    return [
        plot.Line(name=label, part=f"seed {metric.seed}", steps=metric.steps, values=metric.values)
        for metric in training.curves(run)
        # Only over all entities: the curves per type would hide this one.
        if metric.name == curve and not metric.type
    ]
