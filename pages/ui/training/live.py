"""Live curves of a training: new points are added to existing charts, so nothing flickers."""

from collections.abc import Mapping, Sequence

import streamlit as st

from core import terms
from core.errors import CorpusError
from core.importing import view as corpora
from core.projects import runs
from core.runs.events import RunState
from core.runs.run import Run
from core.shown import count, duration
from core.tagging import plot
from core.tagging import view as training
from core.tagging.view import Metric
from pages.ui.frame import guard
from pages.ui.runs.words import run_titles
from pages.ui.widgets import is_dark, table

POLL = 2.0  # seconds
OVERALL = "all types"
HELD_OUT = {"dev_loss_task": "held-out sentences of the task corpus", "dev_loss_general": "held-out general text"}
SMALL = {
    "learning_rate": "Learning rate",
    "tokens_per_second": "Tokens per second",
    "gpu_memory_gb": "GPU memory, most taken (GB)",
    "gpu_used_gb": "GPU memory in use (GB)",
    "gpu_busy": "GPU busy (%)",
}
CURVES = {**SMALL, **HELD_OUT, "loss": "Training loss", "dev_f1": terms.DECIDING.named}


def live(run_id: str, state: RunState) -> None:
    """Draw everything that moves below a training's panel. The pickers are outside of the redrawn part."""
    trainings = training.trainings(run_id)
    config = runs.get(run_id).manifest.config
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = _which(run_id, trainings, state.active) if config.get("arms") else None
        kind = _training(run_id, shown).manifest.kind
        types = _types(run_id, config.get("train")) if kind == "finetune" else []
    st.fragment(run_every=POLL if state.active else None)(_curves)(run_id, shown, types, kind)


def _training(run_id: str, shown: str | None) -> Run:
    """Return the training to draw: the chosen one, else the latest, else the run itself."""
    return runs.get(shown) if shown else (training.trainings(run_id) or [runs.get(run_id)])[-1]


def _which(run_id: str, trainings: Sequence[Run], active: bool) -> str | None:
    """Ask for one training of an experiment; None for the current one, or the last one at the end."""
    names = run_titles(trainings)
    latest = "the running one" if active else "the last one"
    return st.selectbox(
        "Training", [None, *names], format_func=lambda name: names.get(name, latest), key=f"training.part.{run_id}"
    )


def _types(run_id: str, train: str | None) -> list[str]:
    """Ask for types whose F1 to draw next to the total; by default the two most frequent."""
    if not train:
        return []
    try:
        counted = corpora.find(train).types
    except CorpusError:
        return []
    types = sorted(counted, key=lambda name: -counted[name])
    return st.multiselect(
        "Score of", types, types[:2], key=f"training.types.{run_id}", placeholder="all types together"
    )


def _curves(run_id: str, shown: str | None, types: Sequence[str], kind: str) -> None:
    with guard():
        run = _training(run_id, shown)
        if run.manifest.kind != kind:  # an experiment went on to another stage: only a tagger has F1 by type
            st.rerun(scope="app")
        trainings = training.trainings(run_id)
        if not trainings:
            st.caption("Curves show here as soon as a model is trained.")
            return
        metrics = training.curves(run.id)
        if not metrics:
            st.caption("The first points come with the first steps.")
            return
        if run.id != run_id:
            st.text(run_titles(trainings)[run.id])
        _numbers(metrics, runs.state(run_id))
        _charts(metrics, types)
        _table(metrics)


def _numbers(metrics: Sequence[Metric], state: RunState) -> None:
    last = {metric.name: metric.values[-1] for metric in metrics if not metric.type}
    with st.container(horizontal=True, key="training-numbers"):
        if "loss" in last:
            st.metric("Loss", f"{last['loss']:.3g}", width="content")
        if scores := [metric for metric in metrics if metric.name == "dev_f1" and not metric.type]:
            best = max(scores, key=lambda metric: metric.values.max())
            at = int(best.steps[best.values.argmax()])
            of = f", seed {best.seed}" if len(scores) > 1 else ""
            st.metric(
                f"Best {terms.DECIDING.word}",
                f"{best.values.max():.1f}",
                width="content",
                help=f"At step {at:,}{of}.",
            )
        if "tokens_per_second" in last:
            st.metric("Tokens per second", f"{last['tokens_per_second']:,.0f}", width="content")
        if "gpu_memory_gb" in last:
            st.metric("GPU memory", f"{last['gpu_memory_gb']:.1f} GB", width="content")
        if "gpu_busy" in last:
            st.metric("GPU busy", f"{last['gpu_busy']:.0f}%", width="content")
        if state.eta is not None and state.active and not state.cancelling:
            st.metric("Left in this stage", duration(state.eta), width="content")


def _charts(metrics: Sequence[Metric], types: Sequence[str]) -> None:
    left, right = st.columns(2)
    with left:
        _chart(metrics, {"loss": "training"}, "Training loss")
    with right:
        if any(metric.name == "dev_f1" for metric in metrics):
            _chart(metrics, {"dev_f1": ""}, terms.DECIDING.named, {"": OVERALL, **{name: name for name in types}})
        else:
            _chart(metrics, HELD_OUT, "Held-out loss")
    small = {name: heading for name, heading in SMALL.items() if any(metric.name == name for metric in metrics)}
    # Streamlit refuses to make no column.
    for column, (name, heading) in zip(st.columns(max(len(small), 1)), small.items(), strict=False):
        with column:
            _chart(metrics, {name: heading}, heading, height=130)


def _chart(
    metrics: Sequence[Metric],
    names: Mapping[str, str],
    heading: str,
    types: Mapping[str, str] | None = None,
    height: int = 260,
) -> None:
    """Draw one chart. names: {metric: its line}. types: {type: its line} for metrics by type."""
    wanted = list(types or {"": ""})
    drawn = [metric for metric in metrics if metric.name in names and metric.type in wanted]
    drawn.sort(key=lambda metric: wanted.index(metric.type))
    lines = [_line(metric, types[metric.type] if types else names[metric.name], metrics[-1].seed) for metric in drawn]
    st.markdown(f"**{heading}**")
    if not lines:
        st.caption("No point yet: it is measured at the end of an epoch.")
        return
    figure = plot.curves(lines, y=heading, height=height, dots=height > 200 and "loss" not in names, dark=is_dark())
    # One key whichever training it is, so that points come into the chart that is there.
    st.altair_chart(figure, key=f"training.chart.{heading}", alt=f"{heading} over optimizer steps; a table is below")


def _line(metric: Metric, name: str, seed: int | None) -> plot.Line:
    """Return the line of a metric. seed: the current one; lines of other seeds are pale."""
    part = "" if metric.seed is None else f"seed {metric.seed}"
    return plot.Line(name=name, part=part, steps=metric.steps, values=metric.values, pale=metric.seed != seed)


def _table(metrics: Sequence[Metric]) -> None:
    """Draw the latest numbers of the charts, and the number of points."""
    n = sum(len(metric.steps) for metric in metrics)
    step = max(int(metric.steps[-1]) for metric in metrics if metric.seed == metrics[-1].seed)
    words = [f"Step {step:,}", f"{count(n, 'point')}; the chart draws at most {plot.MOST:,}"]
    if metrics[0].seed != metrics[-1].seed:
        words.append(f"seed {metrics[-1].seed} in full colour, those before it pale")
    st.caption(" · ".join(words))
    with st.expander("In numbers", icon=":material/table:"):
        rows = [
            {
                "curve": CURVES.get(metric.name, metric.name.replace("_", " ")),
                "type": metric.type or "all",
                "seed": "" if metric.seed is None else str(metric.seed),
                "points": len(metric.steps),
                "step": int(metric.steps[-1]),
                "last": float(metric.values[-1]),
                "lowest": float(metric.values.min()),
                "highest": float(metric.values.max()),
            }
            for metric in metrics
        ]
        headings = {name: name.capitalize() for name in rows[0]} | {"step": "Last step", "last": "Last value"}
        table(rows, headings, "Every curve in numbers")
