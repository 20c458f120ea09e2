"""V-information of names and contexts (Ma et al. 2023, Fig. 3), histogram of CEIM, tables by bin and by type."""

from collections.abc import Sequence

import streamlit as st

from core.bias import plot
from core.bias import view as bias
from core.bias.result import BINS, DifficultyResult
from core.experiment import results
from core.projects import runs
from core.runs.run import Run
from pages.ui.bias.parts import bits, mention_list
from pages.ui.frame import guard
from pages.ui.runs.words import run_titles
from pages.ui.widgets import chart, plain, table

MOST = 8  # data sets compared in one figure
BIN_HEADS = {
    "name": "Name minus context (CEIM)",
    "mentions": "Mentions",
    "share": "Share",
    "entity": "Mean PVI of the name",
    "context": "Mean PVI of the context",
}
TYPE_HEADS = {
    "type": "Type",
    "mentions": "Mentions",
    "entity": "Name (bits)",
    "context": "Context (bits)",
    "ceim": "Name minus context (bits)",
    "high": "Name more informative",
    "low": "Context more informative",
    "note": "",
}


def views(run_id: str) -> None:
    """Draw everything except the scatter plot."""
    information = bias.difficulty_result(run_id)
    st.subheader(_answer(information), anchor=False)
    name = _span(information.v_information.entity, information.intervals.entity)
    context = _span(information.v_information.context, information.intervals.context)
    st.markdown(
        f"The **name** alone holds {name} of information about the type of a mention, the **context** alone {context};"
        f" the maximum is {information.entropy:.2f} bits. In brackets: 95% confidence intervals."
    )
    _data_sets(run_id)
    _histogram(run_id)
    table(
        _bin_lines(information),
        BIN_HEADS,
        "Mentions and mean information by bin of name minus context",
    )
    table(_type_lines(run_id), TYPE_HEADS, "Information by type", wrapped=("note",))


def _answer(result: DifficultyResult) -> str:
    """Return the answer in words. If the intervals overlap, no difference is claimed."""
    if not result.entropy:
        return "There is only one type, so there is no information to measure"
    entity, context = result.intervals.entity, result.intervals.context
    if entity[0] > context[1]:
        return "Names are more informative than contexts"
    if context[0] > entity[1]:
        return "Contexts are more informative than names"
    if max(entity[0], context[0]) <= 0:
        return "No evidence that names or contexts hold information about the type"
    return "Names and contexts are about equally informative"


def _span(bits: float, interval: tuple[float, float]) -> str:
    low, high, mean = (f"{value:z.2f}" for value in (*interval, bits))
    return f"**{mean} bits** [{low}, {high}]".replace("-", "−")


@st.fragment
def _data_sets(run_id: str) -> None:
    """Compare several finished runs in one figure."""
    with guard():
        measured = {run.id: run for run in runs.listed("difficulty", state="succeeded")}
        alike = {name: f"{_corpus(run)}, {run.manifest.config['encoder']}" for name, run in measured.items()}
        names = run_titles(measured.values(), lambda run: alike[run.id])
        shown = [run_id]
        if len(measured) > 1:
            # One run per corpus and encoder: the newest, or the run that the page shows.
            usual = {alike[name]: name for name in reversed(measured)} | {alike[run_id]: run_id}
            shown = st.multiselect(
                "Data sets to compare",
                list(measured),
                sorted(usual.values(), key=list(measured).index)[:MOST],
                names.__getitem__,
                key=f"bias.sets.{run_id}",
                max_selections=MOST,
            )
        called = run_titles([measured[name] for name in shown], lambda run: alike[run.id])
        rows = [
            plot.Informed(
                name=called[run],
                bits=bias.difficulty_result(run).v_information,
                intervals=bias.difficulty_result(run).intervals,
            )
            for run in shown
        ]
        if rows:
            values = "; ".join(f"{row.name}: {row.bits.entity:z.2f}, {row.bits.context:z.2f}" for row in rows)
            chart(plot.v_information_bars(rows), "bias.v", f"V-information by name, by context, bits: {values}")


def _corpus(run: Run) -> str:
    return results.corpus_name(run.manifest.inputs["train"])


@st.fragment
def _histogram(run_id: str) -> None:
    """Draw CEIM of all mentions or per type. A click on a bar lists its sentences."""
    with guard():
        st.subheader("Information by mention", anchor=False)
        by_type = st.segmented_control(
            "Show",
            [False, True],
            format_func={False: "All mentions", True: "By type"}.__getitem__,
            default=False,
            required=True,
            key="bias.by_type",
            label_visibility="collapsed",
        )
        panels = bias.panels(run_id, by_type)
        kinds = list(bias.measured(run_id).counts())[: len(panels)] if by_type else [""]
        picker, key = f"bias.bar.{run_id}.{by_type}", f"bias.ceim.{run_id}.{by_type}"

        def clicked() -> None:
            points = st.session_state[key]["selection"]["points"]
            panel, bar = points[0]["customdata"] if points else (0, None)
            st.session_state[picker] = None if bar is None else (kinds[panel], bar)

        counts = bias.difficulty_result(run_id).ceim
        bins = ", ".join(f"{plot.BIN_LOOKS[kind][0]} {counts[kind]:,}" for kind in BINS)
        alt = f"Histogram of name minus context: {bins}. The sentences of a bar can be listed below."
        chart(plot.ceim_histogram(panels), key, alt, on_select=clicked, selection_mode="points")
        _bar(run_id, panels, kinds, picker)


def _bar(run_id: str, panels: Sequence[plot.CeimPanel], kinds: Sequence[str], picker: str) -> None:
    """List the sentences of the picked bar. The select box serves users without a mouse."""
    sizes = {
        (kind, bar): int((panel.bars == bar).sum())
        for kind, panel in zip(kinds, panels, strict=True)
        for bar in sorted(set(panel.bars.tolist()))
    }
    picked = st.selectbox(
        "Sentences of a bar",
        list(sizes),
        None,
        lambda at: f"{f'{at[0]}, ' if at[0] else ''}{plot.bar_words(at[1])} ({sizes[at]:,})",
        key=picker,
        placeholder="click a bar, or pick it here",
    )
    if picked is None:
        return
    numbers = bias.in_bar(run_id, picked[1], picked[0])
    of = f" of type {plain(picked[0])}" if picked[0] else ""
    s = "s" if len(numbers) != 1 else ""
    st.markdown(f"**{len(numbers):,} mention{s}**{of} with a name minus context (CEIM) of {plot.bar_words(picked[1])}")
    mention_list(run_id, numbers, f"bias.list.{run_id[-4:]}.{picked[0]}.{picked[1]}")


def _bin_lines(result: DifficultyResult) -> list[dict[str, object]]:
    def mean(value: float | None) -> str:
        return "" if value is None else bits(value)

    return [
        {
            "name": plot.BIN_LOOKS[kind][0],
            "mentions": result.ceim[kind],
            "share": f"{result.ceim[kind] / result.mentions:.0%}",
            "entity": mean(result.mean_pvi[kind].entity),
            "context": mean(result.mean_pvi[kind].context),
        }
        for kind in BINS
    ]


def _type_lines(run_id: str) -> list[dict[str, object]]:
    measured, by_type = bias.measured(run_id), bias.difficulty_result(run_id).by_type
    return [
        {
            "type": name,
            "mentions": n,
            "entity": bits(by_type[name].entity),
            "context": bits(by_type[name].context),
            "ceim": bits(by_type[name].ceim),
            "high": f"{by_type[name].bins['high'] / n:.0%}",
            "low": f"{by_type[name].bins['low'] / n:.0%}",
            "note": "too few to judge" if name in measured.few else "",
        }
        for name, n in measured.counts().items()
    ]
