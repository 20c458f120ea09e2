"""The page Runs: a table of the project's runs, fields to name and tag them, and a chart of training curves."""

from collections.abc import Sequence

import streamlit as st

from core.projects import labels, run_comparison, runs
from core.projects import view as projects
from core.projects.labels import RunRow
from core.projects.titles import run_titles
from core.runs.run import Run
from core.tagging import plot
from core.tagging import view as training
from pages.ui.empty import empty
from pages.ui.frame import guard, page
from pages.ui.results.pair import MOST_TRAININGS, TAGGER_CURVES, lines
from pages.ui.runs import table as run_table
from pages.ui.runs.links import SELECTION
from pages.ui.training.live import POLL
from pages.ui.widgets import is_dark, same_command, table

NEEDS = "There are no runs yet. On this page you can name, compare and remove runs."

CURVES = {
    **TAGGER_CURVES,
    "dev_loss_task": "Loss on held-out sentences of the task corpus",
    "dev_loss_general": "Loss on held-out general text",
}


def main() -> None:
    """Draw the page."""
    with page("Runs", "All runs of this project: search, name, compare and remove them."):
        if not labels.rows(archived=True):
            empty(NEEDS, "runs", SELECTION, make="Make a selection")
            return
        ticked = run_table.table()
        if not ticked:
            st.caption("Tick a run to name, annotate or remove it; tick several to compare them.")
        elif len(ticked) == 1:
            run_table.one(ticked[0])
        else:
            run_table.flags(ticked)
            _options(ticked)
        _curves(ticked)


def _options(rows: Sequence[RunRow]) -> None:
    """Draw a table of the options in which `rows` differ: a row per option, a column per run."""
    st.subheader("Differences in options", anchor=False)
    ids = [row.run.id for row in rows]
    differences = run_comparison.differences(ids)
    if not differences:
        st.caption("Their options are equal.")
        return
    shown = [
        {"option": row.option, **{run: value or "-" for run, value in zip(ids, row.values, strict=True)}}
        for row in differences
    ]
    columns = {"option": "Option", **run_titles(row.run for row in rows)}
    table(shown, columns, f"Options in which these {len(rows)} runs differ")
    same_command("runs.diff.command", projects.typed("runs", "diff", *ids))


def _curves(rows: Sequence[RunRow]) -> None:
    """Draw the training curves of `rows` in one chart. The chart is updated while one of these runs is active."""
    trainings = _trainings([row.run for row in rows])
    if not trainings:
        return
    st.subheader("Curves", anchor=False)
    names = run_titles(trainings)
    left, right = st.columns((3, 1), vertical_alignment="bottom")
    key = f"runs.curves.{'.'.join(run_id[-4:] for run_id in names)[:200]}"
    picked = left.multiselect(
        "Trainings",
        list(names),
        list(names)[:MOST_TRAININGS],
        names.__getitem__,
        key=key,
        placeholder="pick trainings",
        max_selections=MOST_TRAININGS,
    )
    curve = right.selectbox("Curve", _measured(picked), format_func=CURVES.__getitem__, key="runs.curves.what")
    if picked and curve:
        active = any(runs.state(run_id).active for run_id in picked)
        st.fragment(run_every=POLL if active else None)(_chart)({run_id: names[run_id] for run_id in picked}, curve)
        same_command("runs.curves.command", projects.typed("runs", "curves", *picked, "--output", "curves.csv"))


def _trainings(rows: Sequence[Run]) -> list[Run]:
    """Return the runs among `rows` and their child runs that have training curves, without repetition."""
    begun = {run.id: run for row in rows for run in training.trainings(row.id)}
    return [run for run in begun.values() if training.curves(run.id)]


def _measured(run_ids: Sequence[str]) -> list[str]:
    names = {metric.name for run_id in run_ids for metric in training.curves(run_id)}
    return [name for name in CURVES if name in names]


def _chart(names: dict[str, str], curve: str) -> None:
    with guard():
        drawn = [line for run_id, name in names.items() for line in lines(run_id, name, curve)]
        figure = plot.curves(drawn, y=CURVES[curve], height=360, dots=curve == "dev_f1", dark=is_dark())
        label = f"{CURVES[curve]} over optimizer steps, one line per training and seed: {', '.join(names.values())}"
        st.altair_chart(figure, key="runs.chart", alt=label)
        st.caption("Each seed is a line in the colour of its training. New points appear during the training.")


main()
