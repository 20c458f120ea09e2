"""What labels teach: V-information (Ma et al. 2023, Fig. 3), CEIM by bar (clickable), by bin, by type."""

from collections.abc import Sequence

import streamlit as st

from core.bias import plot
from core.bias import view as bias
from core.bias.result import DifficultyResult
from core.bias.view import BinRow, TypeRow
from core.experiment import results
from core.projects import runs
from core.projects.runs import Run
from pages.ui.bias.parts import bits, mention_list
from pages.ui.frame import guard
from pages.ui.runs.words import run_titles
from pages.ui.widgets import chart, plain, table

MOST = 8  # data sets beside each other
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
    "high": "Name tells more",
    "low": "Context tells more",
    "note": "",
}


def views(run_id: str) -> None:
    """Everything but the scatter."""
    information = bias.difficulty_result(run_id)
    st.subheader(_answer(information), anchor=False)
    name = _span(information.v_information.entity, information.intervals.entity)
    context = _span(information.v_information.context, information.intervals.context)
    st.markdown(
        f"A mention's type is told with {name} by its **name** alone and with {context} by its **context** alone, of"
        f" {information.entropy:.2f} bits that there are to tell."
        " In brackets: where 95 of 100 draws of such sentences would come out."
    )
    _data_sets(run_id)
    _histogram(run_id)
    table(
        [_bin_line(row) for row in bias.bin_rows(run_id)],
        BIN_HEADS,
        "Mentions and mean information by bin of name minus context",
    )
    table([_type_line(row) for row in bias.type_rows(run_id)], TYPE_HEADS, "What tells each type", wrapped=("note",))


def _answer(result: DifficultyResult) -> str:
    """The answer in words; no difference is claimed where the intervals overlap."""
    if not result.entropy:
        return "There is only one type: nothing for names or contexts to tell"
    entity, context = result.intervals.entity, result.intervals.context
    if entity[0] > context[1]:
        return "Names tell more than contexts"
    if context[0] > entity[1]:
        return "Contexts tell more than names"
    if max(entity[0], context[0]) <= 0:
        return "Nothing shows that names or contexts tell the type"
    return "Names and contexts tell about as much"


def _span(bits: float, interval: tuple[float, float]) -> str:
    low, high, mean = (f"{value:z.2f}" for value in (*interval, bits))
    return f"**{mean} bits** [{low}, {high}]".replace("-", "−")


@st.fragment
def _data_sets(run_id: str) -> None:
    """Several finished runs beside each other."""
    with guard():
        measured = {run.id: run for run in runs.listed("difficulty", state="succeeded")}
        alike = {name: f"{_corpus(run)}, {run.manifest.config['encoder']}" for name, run in measured.items()}
        names = run_titles(measured.values(), lambda run: alike[run.id])
        shown = [run_id]
        if len(measured) > 1:
            # From the oldest on: of two of one name the newer stays, and the page's own before any.
            usual = {alike[name]: name for name in reversed(measured)} | {alike[run_id]: run_id}  # one of each kind
            shown = st.multiselect(
                "Data sets beside each other",
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
    """CEIM, of all mentions or type by type; a click on a bar shows its sentences."""
    with guard():
        st.subheader("What tells the type, mention by mention", anchor=False)
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
        kinds = [row.type for row in bias.type_rows(run_id)][: len(panels)] if by_type else [""]
        picker, key = f"bias.bar.{run_id}.{by_type}", f"bias.ceim.{run_id}.{by_type}"

        def clicked() -> None:
            points = st.session_state[key]["selection"]["points"]
            panel, bar = points[0]["customdata"] if points else (0, None)
            st.session_state[picker] = None if bar is None else (kinds[panel], bar)

        bins = ", ".join(f"{row.name} {row.mentions:,}" for row in bias.bin_rows(run_id))
        alt = f"Histogram of name minus context: {bins}. The sentences of a bar can be listed below."
        chart(plot.ceim_histogram(panels), key, alt, on_select=clicked, selection_mode="points")
        _bar(run_id, panels, kinds, picker)


def _bar(run_id: str, panels: Sequence[plot.CeimPanel], kinds: Sequence[str], picker: str) -> None:
    """The picked bar's sentences; the list of bars is the way without a mouse."""
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


def _bin_line(row: BinRow) -> dict[str, object]:
    return {
        "name": row.name,
        "mentions": row.mentions,
        "share": f"{row.share:.0%}",
        "entity": "" if row.entity is None else bits(row.entity),
        "context": "" if row.context is None else bits(row.context),
    }


def _type_line(row: TypeRow) -> dict[str, object]:
    return {
        "type": row.type,
        "mentions": row.mentions,
        "entity": bits(row.entity),
        "context": bits(row.context),
        "ceim": bits(row.ceim),
        "high": f"{row.high:.0%}",
        "low": f"{row.low:.0%}",
        "note": "too few to judge" if row.few else "",
    }
