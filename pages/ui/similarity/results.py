"""The result of a comparison of sources: recommendation, tables, charts, agreement of the measures, export."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape

import streamlit as st
from plotly.graph_objects import Figure

from core import shown_command as commands
from core.experiment import deliver
from core.projects import runs
from core.runs.result import read
from core.similarity import plot
from core.similarity import view as similarity
from core.similarity.agreement import Agreement, Split
from core.similarity.grid import Lead, number
from core.similarity.measures import MEASURES, symbol, title
from core.similarity.result import CurvePoint, SimilarityResult, SimilarityRow, best_values
from pages.ui.project import later
from pages.ui.widgets import chart, plain, same_command, table

ANOTHER = "Pick a second source under **What to compare**. You can import a file of your own on the page Corpora."
ENDS = {"high": "higher is closer", "low": "lower is closer"}


def results(run_id: str, target: str) -> None:
    """Show the results of a finished `similarity` run for one of its targets."""
    compared = read(runs.get(run_id), SimilarityResult)
    rows = similarity.rows(run_id, target)
    sentence = plain(similarity.recommendation(run_id, target))
    if len(compared.sources) > 1:
        st.success(sentence, icon=":material/recommend:")
    else:
        st.info(f"{sentence} {ANOTHER}", icon=":material/library_add:")  # A single source cannot be compared.
    for warning in compared.warnings:
        st.warning(plain(warning), icon=":material/warning:")
    matrix(rows, f"Similarity of each source to {target}", compared.too_small)
    _leads([lead for lead in compared.leads if lead.target == target], target)
    _bars(rows, target)
    _agreement(compared.agreement, target)
    _curve(compared.curve, target)
    _measuring(rows, compared.notes)
    _export(run_id, rows, target)


def matrix(rows: Sequence[SimilarityRow], name: str, too_small: Mapping[str, int]) -> None:
    """Draw a table of values with a row per source and a column per measure. The closest source is first.

    In each column, the closest source is marked. Below each value is its range over random samples of the source.
    name: caption. too_small: {source that was not compared: number of its tokens}.
    """
    measures = {row.measure: row.prefer for row in rows}
    best = best_values(rows)
    head = "".join(
        f'<th scope="col" class="w-number w-wrapped">{escape(heading(m))} '
        f'<small class="w-symbol">{escape(symbol(m))}</small><br><small>{ENDS[end]}</small></th>'
        for m, end in measures.items()
    )
    body = ""
    for source in dict.fromkeys(row.source for row in rows):
        cells = "".join(_cell(row, best[row.measure]) for row in rows if row.source == source)
        tokens = next(row.sample_tokens for row in rows if row.source == source)
        body += f'<tr>{_source(source)}<td class="w-number">{tokens:,}</td>{cells}</tr>'
    for source, tokens in too_small.items():
        cells = f'<td colspan="{len(measures)}">too small to compare</td>'
        body += f'<tr>{_source(source)}<td class="w-number">{tokens:,}</td>{cells}</tr>'
    st.html(
        f'<div class="w-scroll" tabindex="0" role="region" aria-label="{escape(name)}"><table class="w-table">'
        f'<caption>{escape(name)}</caption><thead><tr><th scope="col">Source</th>'
        f'<th scope="col" class="w-number">Tokens<br><small>compared</small></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def heading(measure: str) -> str:
    """Return a measure's name with a capital letter."""
    return title(measure)[:1].upper() + title(measure)[1:]


def named(measure: str) -> str:
    """Return a measure's name with its symbol in brackets, for labels without Markdown."""
    return heading(measure) if symbol(measure) == title(measure) else f"{heading(measure)} ({symbol(measure)})"


def _source(name: str) -> str:
    return f'<th scope="row" class="w-name" title="{escape(name)}">{escape(name)}</th>'


def _cell(row: SimilarityRow, best: float | None) -> str:
    if row.value is None:
        return '<td class="w-number">not measured</td>'
    unit = "%" if row.unit == "%" else ""
    text = f"{number(row.value)}{unit}"
    low, high = min(row.draws), max(row.draws)
    spread = "" if low == high else f"<br><small>{number(low)} to {number(high)}</small>"
    if row.value == best:
        return f'<td class="w-number w-best"><strong>{text}</strong> <small>closest</small>{spread}</td>'
    return f'<td class="w-number">{text}{spread}</td>'


def _leads(ahead: Sequence[Lead], target: str) -> None:
    if not ahead:
        return
    columns = {
        "measure": "Measure",
        "holds": "The lead",
        "of": "of",
        "whole": "On all",
        "parts": "On parts",
        "interval": "95% interval",
    }
    with st.expander("Could a lead be chance?", icon=":material/casino:"):
        table(
            [_lead(lead) for lead in ahead],
            columns,
            f"Lead of the closest source over the second closest, for {target}",
        )
        st.caption(
            "The task corpus and the sources are cut into parts that share no sentence, and each part is measured "
            "separately. How much the lead varies between parts shows how much it would vary with other text. "
            "Consecutive documents stay in one part. Text from a few long documents gives less certainty than the "
            "number of parts suggests."
        )


def _lead(lead: Lead) -> dict[str, str]:
    """Return a table row: by how much the closest source is ahead of the next, and whether this may be chance."""
    bounds = None if lead.low is None or lead.high is None else (lead.low, lead.high)
    return {
        "measure": named(lead.measure),
        "holds": "too little text" if lead.p is None else "beyond chance" if lead.holds else "may be chance",
        "of": f"{lead.first} over {lead.second}",
        "whole": number(lead.whole),
        "parts": _reading(lead.on_parts),
        "interval": " to ".join(map(number, bounds)) if bounds else "–",
    }


def _bars(rows: Sequence[SimilarityRow], target: str) -> None:
    name = f"Bars of each measure by source for {target}, with its range over samples; the table above has the numbers"
    chart(_figure(rows), "similarity.bars", name)


def _figure(rows: Sequence[SimilarityRow]) -> Figure:
    best = best_values(rows)
    return plot.similarity_bars(rows, {measure: heading(measure) for measure in best}, best)


def _agreement(agreement: Agreement, target: str) -> None:
    st.subheader("Do the measures agree?", anchor=False)
    if not agreement.items:
        st.caption("This needs two sources and two measures that order them.")
        return
    st.markdown(agreement_text(agreement))
    splits = [split for split in agreement.splits if split.target == target]
    if splits:
        split_table(splits, f"Pairs of sources that the measures order differently for {target}", target=False)


def agreement_text(agreement: Agreement) -> str:
    """Return a text in Markdown: on how many pairs of sources the measures agree, kappa, and a caution."""
    kappas = [
        f"{name} kappa **{kappa:z.3f}**"
        for name, kappa in (("Fleiss'", agreement.fleiss_kappa), ("Randolph's", agreement.randolph_kappa))
        if kappa is not None
    ]
    out = f", {agreement.left_out} left out because of ties or missing values" if agreement.left_out else ""
    return (
        "Which of two sources is closer? The measures agree on "
        f"**{agreement.unanimous} of {agreement.items}** pairs{out}: "
        f"{', '.join(kappas) or 'kappa is not defined here'}. "
        "TVC and TVcC compare the same vocabulary, so only TVC is counted. Measures "
        "that compare similar things may agree and still be wrong."
    )


def split_table(splits: Sequence[Split], name: str, *, target: bool = True) -> None:
    """Draw a table of the pairs of sources that the measures order differently, and why.

    name: caption. target: True to add a column with the target.
    """
    rows = [
        {
            "target": split.target,
            "first": f"{split.sources[0]} ({_titles(split.first)})",
            "second": f"{split.sources[1]} ({_titles(split.second)})",
            "why": split.why,
        }
        for split in splits
    ]
    columns = {"first": "One source (closer by)", "second": "The other (closer by)", "why": "Why"}
    table(rows, {"target": "Target", **columns} if target else columns, name)


def _titles(measures: Sequence[str]) -> str:
    return ", ".join(map(title, measures))


def _curve(curve: Sequence[CurvePoint], target: str) -> None:
    points = [point for point in curve if point.target == target]
    if not points:
        return
    st.subheader("Does the size of the sample matter?", anchor=False)
    measures = list(dict.fromkeys(point.measure for point in points))
    picked = st.segmented_control(
        "Measure",
        measures,
        format_func=heading,
        default=measures[0],
        required=True,
        key="similarity.curve.measure",
    )
    of_measure = [point for point in points if point.measure == picked]
    name = named(picked)
    chart(plot.size_curve(of_measure, name), "similarity.curve", f"{name} by tokens of the source, first draw")
    with st.expander("In numbers", icon=":material/table:"):
        shown = [{**asdict(at), "value": "not measured" if at.value is None else at.value} for at in of_measure]
        table(shown, {"source": "Source", "tokens": "Tokens", "value": name}, f"{name} by tokens of the source")


def _measuring(rows: Sequence[SimilarityRow], notes: Sequence[str]) -> None:
    for note in notes:
        st.caption(f":material/info: {plain(note)}")
    with st.expander("How each number was measured, and further values", icon=":material/science:"):
        for measure in dict.fromkeys(row.measure for row in rows):
            of_measure = [row for row in rows if row.measure == measure]
            grey = f":gray[{plain(symbol(measure))}]"
            st.markdown(f"**{plain(heading(measure))}** {grey}. {plain(MEASURES[measure].summary)}")
            meaning = MEASURES[measure].columns
            shown = [
                {
                    "source": row.source,
                    "how": row.convention or row.problem,
                    **{key: _reading(row.columns.get(key)) for key in meaning},
                }
                for row in of_measure
            ]
            table(
                shown,
                {"source": "Source", **{key: key for key in meaning}, "how": "How"},
                f"Readings of {named(measure)}",
            )
            for key, text in meaning.items():
                st.caption(f"{plain(key)}: {plain(text)}")


def _reading(value: float | None) -> str:
    return "–" if value is None else number(value)


def _export(run_id: str, rows: Sequence[SimilarityRow], target: str) -> None:
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True):
        st.download_button(
            "Table (.csv)",
            later(lambda: similarity.table_csv(run_id).encode("utf-8-sig")),
            f"similarity-{run_id[-4:]}.csv",
            on_click="ignore",
            key="similarity.csv",
            icon=":material/download:",
        )
        st.download_button(
            "Figure (.html)",
            later(lambda: deliver.figure_page(run_id, _figure(rows))),
            f"similarity-{run_id[-4:]}.html",
            on_click="ignore",
            key="similarity.html",
            icon=":material/download:",
        )
    same_command("similarity.command", commands.command("similarity", runs.get(run_id).manifest.config))
