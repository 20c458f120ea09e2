"""Two taggers side by side: scores by type and differing settings. Training curves of several in one chart."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import streamlit as st

from core import terms
from core.experiment import plot, results
from core.experiment.result import nothing_learnt
from core.projects import preferences
from core.tagging import plot as training_plot
from core.tagging import view as training
from pages.ui.widgets import chart, is_dark, plain, table

DECODINGS = {
    "constrained": "the best tag sequence that BIOES allows",
    "viterbi": "the best of all tag sequences",
    "argmax": "the best tag of each word",
    "cited_scorer": "viterbi, scored by the code that Mahapatra et al. 2022 cite",
}
FAR = 10.0  # points of F1; a larger gap between two decodings gets a note that explains it
UNTRAINED = (
    "Low scores outside “Constrained” are expected here. These taggers were trained with the allowed tag sequences "
    "only. They never learnt to score forbidden ones, which the other decodings may choose. Use the constrained score."
)
MACRO = "Macro: the mean over types"
OF_TYPES = (
    "In brackets after a score (F1): its 95% interval over seeds and test sentences. With few mentions it is wide. "
    "Macro weights all types of the test set equally, even rare ones; the headline score weights all mentions equally."
)
LOOKED_AT = 10  # number of the newest trainings that are searched for two with the same settings


def pair(run_labels: Mapping[str, str], key: str) -> tuple[str, str]:
    """Let the user pick taggers A and B, warn if their settings differ, and return their runs.

    If there is only one tagger, return it twice. In an experiment, the default for B is the variant without
    pre-training. Otherwise the default is the newest two taggers with the same settings.

    run_labels: {`finetune` run: name}. key: prefix of the widget keys.
    """
    runs = list(run_labels)
    if len(runs) == 1:
        st.caption(
            "Only one tagger has been tested so far. Once there is another one, the two are shown side by side here."
        )
        return runs[0], runs[0]
    first, base = _alike(run_labels)
    left, right = st.columns(2)
    a = left.selectbox("A", runs, first, run_labels.__getitem__, key=f"{key}.a.{runs[0]}")
    if _of_experiment(run_labels):
        # If halves of the labels are swapped, replicates have different test sets. Offer taggers with A's test set.
        alike = results.tested_alike(a, runs)
        if len(alike) < len(runs):
            runs, base = alike, next((i for i, run in enumerate(alike) if _is_none(run_labels[run])), 0)
            key = f"{key}.{a}"
    b = right.selectbox("B", runs, base, run_labels.__getitem__, key=f"{key}.b.{runs[0]}")
    note_differences(run_labels, (a, b))
    return a, b


def _is_none(name: str) -> bool:
    return name.partition(",")[0] == "none"


def _of_experiment(run_labels: Mapping[str, str]) -> bool:
    """Return True if the taggers are variants of an experiment, False if they are separate trainings."""
    return any(map(_is_none, run_labels.values()))


def _alike(run_labels: Mapping[str, str]) -> tuple[int, int]:
    """Return the default positions of A and B in `run_labels`."""
    runs = list(run_labels)
    if _of_experiment(run_labels):
        base = next(i for i, name in enumerate(run_labels.values()) if _is_none(name))
        # A is the first variant other than `none`.
        return (0 if base else min(1, len(runs) - 1)), base
    pairs = combinations(range(min(len(runs), LOOKED_AT)), 2)
    alike = (places for places in pairs if not results.differing_settings(*(runs[place] for place in places)))
    return next(alike, (0, len(runs) - 1))


def note_differences(run_labels: Mapping[str, str], runs: Sequence[str]) -> None:
    """Warn if separate trainings differ in their settings. Show nothing for variants of an experiment.

    runs: the `finetune` runs to compare.
    """
    if _of_experiment(run_labels) or not runs or any(run not in run_labels for run in runs):
        return
    rows = [row for run in runs[1:] for row in results.differing_settings(runs[0], run)]
    if not rows:
        return
    names = list(dict.fromkeys(plain(row.option) for row in rows))
    if len(runs) == 2:
        names = [f"{plain(row.option)} ({plain(row.a)} against {plain(row.b)})" for row in rows]
    st.warning(
        f"**Not trained alike**: {'A and B' if len(runs) == 2 else 'these trainings'} differ in {', '.join(names)}."
        " That alone may explain the difference of their scores.",
        icon=":material/balance:",
    )


def types(run_labels: Mapping[str, str], run_id: str | None = None) -> None:
    """Show F1 of two taggers by type, and on names seen and not seen in training.

    For variants of an experiment, show means over all replicates, and to experts also F1 by decoding. run_id: the
    experiment, None for separate trainings. Source: Mahapatra et al. 2022, Table 4.
    """
    if run_id is not None and nothing_learnt(results.board(run_id).leaderboard):
        st.caption("No tagger learnt anything, so there is no score to compare.")
        return
    lines = results.replicates(run_id) if run_id is not None else {}
    further = {run for line in lines.values() for run in line[1:]}
    labels = {
        run: label.rpartition(", replicate ")[0] if run in lines else label
        for run, label in run_labels.items()
        if run not in further
    }
    picked = pair(labels, "results.types")
    a, b = (lines.get(run, (run,)) for run in picked)
    one, other = (labels[run] for run in picked)
    rows = results.type_scores(a, b)
    f1: dict[str, str] = {"a": f"Score ({results.of_how_many(a)})"}
    if a != b:
        f1 = {"a": f"A ({results.of_how_many(a)})", "b": f"B ({results.of_how_many(b)})"}
        alt = f"Test score of every entity type under A, {one}, and B, {other}; the table below has the numbers"
        chart(plot.type_differences(rows, f"A: {one}", f"B: {other}"), "results.types.chart", alt)
    scores: list[dict[str, object]] = [
        {
            "type": row.type,
            "mentions": row.mentions,
            "a": with_interval(row.a, row.interval_a),
            "b": with_interval(row.b, row.interval_b),
            "difference": f"{row.difference:+z.2f}",
        }
        for row in rows
    ]
    scores.append(_macro(a, b))
    difference = {"difference": "A minus B"} if a != b else {}
    columns = {"type": "Type", "mentions": "In the test set", **f1, **difference}
    table(scores, columns, "Score by entity type, mean of the seeds and replicates")
    st.caption(OF_TYPES)
    for line, name in dict(zip((a, b), (one, other), strict=True)).items():
        _report(line, name)
    _novelty(a, b, f1)
    if run_id is not None:
        _decodings(run_id)


def _report(line: tuple[str, ...], name: str) -> None:
    """Show precision, recall and F1 per type. Show nothing for taggers of a version that stored no such report.

    line: `finetune` runs of one variant, whose mean is shown. name: name of the variant.
    """
    rows = [
        {
            "type": row.type,
            "entities": row.support,
            "precision": f"{row.precision:.2f}",
            "recall": f"{row.recall:.2f}",
            "f1": f"{row.f1:.2f}",
        }
        for row in results.type_reports(line)
    ]
    if rows:
        columns = {
            "type": "Type",
            "entities": "In the test set",
            "precision": "Precision",
            "recall": "Recall",
            "f1": "F1",
        }
        with st.expander(f"Precision and recall of {plain(name)}", icon=":material/target:"):
            table(rows, columns, "Precision, recall and F1 of each entity type, in percent")
            st.caption(
                "An entity counts as found if start, end and type are exact (seqeval, strict mode). Mean over seeds."
            )


def _macro(a: tuple[str, ...], b: tuple[str, ...]) -> dict[str, object]:
    """Return the last row of the table, the mean over types. a, b: `finetune` runs of A and of B."""
    f1_a, f1_b = results.macro_f1(a), results.macro_f1(b)
    difference = f"{f1_a - f1_b:+z.2f}"
    return {"type": MACRO, "mentions": "", "a": f"{f1_a:.2f}", "b": f"{f1_b:.2f}", "difference": difference}


def _novelty(a: tuple[str, ...], b: tuple[str, ...], f1: Mapping[str, str]) -> None:
    st.subheader("Names seen in training, and new ones", anchor=False)
    novel = [
        {
            "surfaces": SEEN[score_a.surfaces],
            # If A and B have different training sets, other names are seen in each.
            "mentions": score_a.mentions
            if score_a.mentions == score_b.mentions
            else f"{score_a.mentions:,} / {score_b.mentions:,}",
            "a": f"{score_a.f1:.2f}",
            "b": f"{score_b.f1:.2f}",
        }
        for score_a, score_b in zip(results.novelty_scores(a), results.novelty_scores(b), strict=True)
    ]
    columns = {"surfaces": "Entities", "mentions": "In the test set", **f1}
    table(novel, columns, "Score on entities seen and not seen in the training sentences", wrapped=("surfaces",))


def _decodings(run_id: str) -> None:
    """Show experts the F1 of each variant by decoding. Show nothing for a version that stored no decodings."""
    if not preferences.expert():
        return
    lines = results.decodings(run_id)
    here = [name for name in DECODINGS if any(name in f1s for f1s in lines.values())]
    if not here:
        return
    st.subheader("How tags are decoded", anchor=False)
    rows = [
        {"line": line} | {name: f"{f1s[name]:.2f}" if name in f1s else "" for name in here}
        for line, f1s in lines.items()
    ]
    columns = {"line": "Variant"} | {name: name.replace("_", " ").capitalize() for name in here}
    table(rows, columns, "Test score of every variant by how tags are decoded", names=("line",))
    how = "; ".join(f"{columns[name]}: {DECODINGS[name]}" for name in here)
    st.caption(f"The same taggers, mean of all seeds and replicates; no tagger was trained again. {how}.")
    if any(f1s.get("constrained", 0.0) - f1s.get("viterbi", 100.0) > FAR for f1s in lines.values()):
        st.caption(UNTRAINED)


def with_interval(f1: float, interval: tuple[float, float] | None) -> str:
    """Return a score with its interval, such as "81.20 [79.1, 83.0]"; without brackets if the interval is None."""
    return f"{f1:.2f}" + (f" [{interval[0]:.1f}, {interval[1]:.1f}]" if interval else "")


SEEN = {"seen": "also labelled in the training sentences", "unseen": "not labelled in the training sentences"}


# largest number of trainings in the chart, one per distinguishable colour; the seeds of a training share a colour
MOST_TRAININGS = 6
TAGGER_CURVES = {"dev_f1": terms.DECIDING.named, "loss": "Training loss"}


def overlay(run_labels: Mapping[str, str]) -> None:
    """Draw a chart of the training of several taggers, with one line per tagger and seed.

    run_labels: {`finetune` run: name}.
    """
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
        st.caption("None of these trainings has this curve.")
        return
    title = TAGGER_CURVES[curve]
    figure = training_plot.curves(drawn, y=title, height=380, dots=curve == "dev_f1", dark=is_dark())
    st.altair_chart(figure, key="results.overlay", alt=f"{title} over optimizer steps, one line per training and seed")
    st.caption("Each training has a colour, and each of its seeds a line. Steps are those of the optimizer.")


def lines(run: str, label: str, curve: str) -> list[training_plot.Line]:
    """Return the lines of a training in a chart, one per seed.

    run: the `finetune` run. label: name of the training in the legend. curve: name of the metric.
    """
    return [
        training_plot.Line(name=label, part=f"seed {metric.seed}", steps=metric.steps, values=metric.values)
        for metric in training.curves(run)
        # Leave out curves per entity type, which would hide the curve over all types.
        if metric.name == curve and not metric.type
    ]
