"""Results of PVI and CEIM: tables by bin and by type, charts, and lists of mentions in their sentences."""

import math
from collections.abc import Collection, Sequence
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from core import charts
from core.bias import plot
from core.bias import view as bias
from core.bias.result import BINS, Diff, DifficultyResult
from core.bias.view import MentionRow
from core.experiment import results
from core.projects import runs
from core.projects.titles import run_titles
from core.results import FloatArray, IntArray
from core.shown import count
from core.text.sentence import Entity
from pages.ui.frame import guard, looked, where_text_is_here
from pages.ui.project import later, page_link
from pages.ui.removal import text_gone
from pages.ui.runs.links import LABEL
from pages.ui.widgets import chart, grid, place_html, plain, table

PAGE = 8  # sentences per page

ROWS = 300  # largest number of rows of the table of mentions
OLD, NEW = "#8F8F8F", "#009E73"
COLOURS = {kind: charts.css_colour(look[1]) for kind, look in plot.BIN_LOOKS.items()}


def bits(value: float) -> str:
    """Format bits with a sign and two decimals, such as "−0.31"; "0.00" without a sign if the value rounds to 0."""
    return f"{value:+.2f}".replace("-", "−") if round(value, 2) else "0.00"


def notes(run_id: str) -> None:
    """Draw the notes of a finished `difficulty` run, such as mentions that could not be measured."""
    if remarks := bias.difficulty_result(run_id).notes:
        st.info("\n\n".join(map(plain, remarks)), icon=":material/info:")


def marked(row: MentionRow) -> str:
    """Return the sentence of a mention as HTML with the mention highlighted, followed by file and page."""
    mention = Entity(start=row.start, end=row.end, type=row.type)
    return _painted(row.tokens, [mention], COLOURS[row.bin]) + place_html(row.place)


def mention_list(run_id: str, numbers: IntArray, key: str) -> None:
    """Draw mentions in their sentences, page by page, and a button to download all of them as CSV.

    numbers: indices of the mentions. key: prefix of the widget keys.
    """
    if text_gone(run_id):
        return
    pages = max(-(-len(numbers) // PAGE), 1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        page = st.number_input("Page", 1, pages, 1, key=f"{key}.page", width=120) if pages > 1 else 1
        if pages > 1:
            st.caption(f"of {pages:,}", width="content")
        download(run_id, numbers, key)
    looked(bias.measured(run_id).corpus.fingerprint)
    rows = bias.mention_rows(run_id, numbers[(page - 1) * PAGE : page * PAGE])
    items = "".join(f"<li>{marked(row)}<br><small>{_pvi_words(row)}</small></li>" for row in rows)
    st.html(f'<ul class="w-sentences" aria-label="Sentences with the mention highlighted">{items}</ul>')


def _pvi_words(row: MentionRow) -> str:
    return f"name {bits(row.pvi_entity)}, context {bits(row.pvi_context)} bits"


def download(run_id: str, numbers: IntArray, key: str) -> None:
    """Draw a button that downloads mentions as CSV. The file is made only when the button is pressed."""
    st.download_button(
        f"These {len(numbers):,} as CSV",
        later(lambda: bias.mentions_csv(run_id, numbers)),
        f"mentions-{run_id[-4:]}.csv",
        on_click="ignore",
        key=f"{key}.csv",
        icon=":material/download:",
    )


def mention_table(rows: Sequence[MentionRow], key: str) -> MentionRow | None:
    """Draw a table with a row per mention; return the ticked one, or None."""
    heads = {
        "surface": "Mention",
        "type": "Type",
        "pvi_entity": "Name",
        "pvi_context": "Context",
        "ceim": "Name minus context",
        "text": "Sentence",
        **({"place": "File and page"} if any(row.place for row in rows) else {}),
    }
    number = st.column_config.NumberColumn
    event = grid(
        {name: [_unsigned(getattr(row, name)) for row in rows] for name in heads},
        key=key,
        hide_index=True,
        height=330,
        on_select="rerun",
        selection_mode="single-row",
        alt="Mentions with their type, the information of name and context in bits, and their sentence",
        column_config={
            **{name: st.column_config.TextColumn(head) for name, head in heads.items()},
            **{name: number(heads[name], format="%.2f", width=80) for name in ("pvi_entity", "pvi_context", "ceim")},
            "text": st.column_config.TextColumn("Sentence", width="large"),
        },
    )
    ticked = event.selection.rows
    return rows[ticked[0]] if ticked and ticked[0] < len(rows) else None


def _unsigned(value: Any) -> Any:
    """Return 0.0 for a float that rounds to 0.00, so that the table shows no "-0.00"; return others unchanged."""
    return 0.0 if isinstance(value, float) and not round(value, 2) else value


@st.fragment
def changes(run_id: str, key: str) -> None:
    """Draw the sentences that a `rebuild` or `robustness` run changed, before and after, page by page."""
    with guard(), where_text_is_here():
        looked(bias.new_set(run_id))
        n = bias.changed_sentences(run_id)
        pages = max(-(-n // PAGE), 1)
        st.markdown(f"**{n:,} changed sentences**, before and after")
        page = st.number_input("Page", 1, pages, 1, key=f"{key}.page.{run_id}", width=120) if pages > 1 else 1
        items = "".join(f"<li>{_diff(diff)}</li>" for diff in bias.changed(run_id, (page - 1) * PAGE, PAGE))
        st.html(f'<ol class="w-sentences" start="{(page - 1) * PAGE + 1}" aria-label="Changes">{items}</ol>')


def _diff(diff: Diff) -> str:
    """Return a sentence before and after its edits as HTML.

    An edit keeps the order of the entities, so an old and a new entity with the same index belong together.
    """
    old, new = (sorted(sentence.entities or ()) for sentence in (diff.before, diff.after))
    starts = {edit.start for edit in diff.edits}
    places = [place for place, entity in enumerate(new) if entity.start in starts]
    lines = [
        ("before", _painted(diff.before.tokens, [old[place] for place in places], OLD)),
        ("after", _painted(diff.after.tokens, [new[place] for place in places], NEW, diff.unsure)),
    ]
    if diff.gone is not None:
        lines.append(("deleted", escape(diff.gone.text)))
    shown = "".join(f"<div><strong>{name}</strong> {text}</div>" for name, text in lines)
    return shown + place_html(diff.before.place)


def _painted(tokens: Sequence[str], entities: Sequence[Entity], colour: str, unsure: Collection[int] = ()) -> str:
    """Return a sentence as HTML with entities highlighted. unsure: indices of first tokens of ambiguous entities."""
    words = [escape(token) for token in tokens]
    for entity in entities:
        words[entity.start] = f'<mark class="w-entity" style="--c:{colour}">{words[entity.start]}'
        label = escape(entity.type) + ", ambiguous" * (entity.start in unsure)
        words[entity.end - 1] += f" <small>{label}</small></mark>"
    return " ".join(words)


STEP = 0.05  # bits
Range = tuple[float, float]


@st.fragment
def scatter(run_id: str) -> None:
    """Draw the scatter plot, two sliders, and the table of the mentions in the drawn box.

    The sliders set the same box for users without a mouse.
    """
    with guard():
        st.subheader("Name against context", anchor=False)
        measured, numbers = bias.measured(run_id), bias.drawn(run_id)
        turn = int(st.session_state.get("bias.turn", 0))
        key, sliders = f"bias.pvi.{run_id}.{turn}", (f"bias.x.{run_id}", f"bias.y.{run_id}")
        spans = _axis_span(measured.context), _axis_span(measured.entity)
        figure = plot.pvi_scatter(
            measured.context[numbers], measured.entity[numbers], measured.bins[numbers].tolist(), numbers
        )
        chart(
            figure,
            key,
            f"{count(len(numbers), 'mention')} by information of context and name; the table below lists them",
            on_select=partial(_boxed, key, sliders, spans),
            selection_mode="box",
        )
        some = ""
        if len(numbers) < len(measured):
            some = f" A random sample of {len(numbers):,} of {len(measured):,} is drawn; a box lists all its mentions."
        st.caption(f"Draw a box to list its mentions, or set it with the sliders; a double click removes it.{some}")
        context, name = (
            column.slider(f"Information of the {of}, bits", *span, span, STEP, key=slider, on_change=_turned)
            for column, of, slider, span in zip(st.columns(2), ("context", "name"), sliders, spans, strict=True)
        )
        _listed(run_id, (context, name))


def _axis_span(values: FloatArray) -> Range:
    """Return the range of `values`, rounded outwards to steps of the slider."""
    return round(math.floor(values.min() / STEP) * STEP, 2), round(math.ceil(values.max() / STEP + 1e-9) * STEP, 2)


def _turned() -> None:
    """Give the scatter plot a new key after a slider was moved, which removes the box drawn on it."""
    st.session_state["bias.turn"] = int(st.session_state.get("bias.turn", 0)) + 1


def _boxed(key: str, sliders: tuple[str, str], spans: tuple[Range, Range]) -> None:
    boxes = st.session_state[key]["selection"]["box"]
    drawn = (boxes[0]["x"], boxes[0]["y"]) if boxes else spans
    for slider, ends, (low, high) in zip(sliders, drawn, spans, strict=True):
        # Clip the box to the slider's range and round it to the slider's step, because a slider refuses other values.
        first, last = (round(min(max(end, low), high) / STEP) * STEP for end in sorted(ends))
        st.session_state[slider] = (max(round(first, 2), low), min(round(last, 2), high))


def _listed(run_id: str, box: tuple[Range, Range]) -> None:
    numbers = bias.in_box(run_id, *box)
    if not len(numbers):
        st.info("No mention is in this box; draw a larger one.")
        return
    if text_gone(run_id):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{count(len(numbers), 'mention')}**, ordered by the absolute value of name minus context",
            width="content",
        )
        download(run_id, numbers, "bias.box")
    looked(bias.measured(run_id).corpus.fingerprint)
    row = mention_table(bias.mention_rows(run_id, numbers[:ROWS]), f"bias.table.{run_id[-4:]}.{box}")
    if len(numbers) > ROWS:
        st.caption(f"The first {ROWS:,} of {len(numbers):,}; the CSV file has all.")
    if row is None:
        st.caption("Tick a row to read its sentence with the mention highlighted.")
        return
    st.html(f'<ul class="w-sentences" aria-label="The ticked mention in its sentence"><li>{marked(row)}</li></ul>')


MOST = 8  # largest number of data sets in one figure
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
    """Draw all results of a finished `difficulty` run except the scatter plot."""
    information = bias.difficulty_result(run_id)
    st.subheader(_answer(information), anchor=False)
    name = _span(information.v_information.entity, information.intervals.entity)
    context = _span(information.v_information.context, information.intervals.context)
    st.markdown(
        f"The **name** alone carries {name} of information about the type of a mention, the **context** alone"
        f" {context}; the maximum is {information.entropy:.2f} bits. In brackets: 95% confidence intervals."
    )
    _data_sets(run_id)
    _histogram(run_id)
    table(
        _bin_lines(information),
        BIN_HEADS,
        "Mentions and mean information by bin of name minus context",
    )
    rows = _type_lines(run_id)
    heads = {name: head for name, head in TYPE_HEADS.items() if name != "note" or any(row["note"] for row in rows)}
    with st.container(key="bias-types"):
        table(rows, heads, "Information by type")


def _answer(result: DifficultyResult) -> str:
    """Return a sentence that says whether names or contexts are more informative.

    It claims a difference only if the confidence intervals of the two do not overlap.
    """
    if not result.entropy:
        return "There is only one type, so there is no information to measure"
    entity, context = result.intervals.entity, result.intervals.context
    if entity[0] > context[1]:
        return "Names are more informative than contexts"
    if context[0] > entity[1]:
        return "Contexts are more informative than names"
    if max(entity[0], context[0]) <= 0:
        return "No evidence that names or contexts carry information about the type"
    return "No clear difference between names and contexts: their confidence intervals overlap"


def _span(bits: float, interval: tuple[float, float]) -> str:
    low, high, mean = (f"{value:z.2f}" for value in (*interval, bits))
    return f"**{mean} bits** [{low}, {high}]".replace("-", "−")


def review_link(run_id: str) -> None:
    """Link to the page Label, where the user can review suspicious labels of the measured corpus."""
    query = {"review": bias.measured(run_id).corpus.fingerprint}
    page_link(LABEL, query, label="Review suspicious labels", icon=":material/fact_check:", width="content")


@st.fragment
def _data_sets(run_id: str) -> None:
    """Compare the V-information of several finished `difficulty` runs in one figure. run_id: the run on the page."""
    with guard():
        measured = {run.id: run for run in runs.listed("difficulty", state="succeeded")}
        alike = {
            name: f"{results.corpus_name(run.manifest.inputs['train'])}, {run.manifest.config['encoder']}"
            for name, run in measured.items()
        }
        names = run_titles(measured.values(), lambda run: alike[run.id])
        shown = [run_id]
        if len(measured) > 1:
            # Preselect one run per corpus and encoder: the newest, or the run that the page shows.
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
            chart(
                plot.v_information_bars(rows),
                "bias.v",
                f"V-information of name and context in bits: {values}",
            )


@st.fragment
def _histogram(run_id: str) -> None:
    """Draw a histogram of CEIM over all mentions, or one per type. A click on a bar lists its mentions."""
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
    """Draw the field that picks a bar of the histogram without a mouse, and list the mentions of the picked bar.

    kinds: type of each panel, "" for all types. picker: key of the field.
    """
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
            "note": measured.weak.get(name, ""),
        }
        for name, n in measured.counts().items()
    ]
