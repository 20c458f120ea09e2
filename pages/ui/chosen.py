"""A finished selection, looked at: budget, distribution, examples, lengths, overlap, export. Nothing is rescored."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from core import facade
from pages.ui.frame import guard
from pages.ui.widgets import chart, table

LARGEST_DOWNLOAD = 200_000_000  # bytes, about; more goes to the exports folder
UNITS = {"share": "share", "sentences": "sentences", "tokens": "tokens", "threshold": "score"}
FORMATS = {"txt": "text", "jsonl": "JSONL", "parquet": "Parquet", "folder": "folder for datasets"}
REASONS = {
    "exact_duplicate": "copies of an earlier sentence",
    "near_duplicate": "near copies of an earlier sentence",
    "leak": "sentences of the dev or test split",
    "too_short": "shorter than the minimum",
    "too_long": "longer than the maximum",
    "not_scored": "could not be scored",
}
KINDS = {
    "top": "The closest to T_C",
    "borderline": "At the border: the last in, the first out",
    "rejected": "The farthest from T_C",
    "withheld": "Withheld, though well scored",
}
COLUMNS = {"score": "Score", "tokens": "Tokens", "text": "Sentence"}


def results(run_id: str) -> None:
    """Everything below the run panel."""
    _budgeted(run_id)
    st.page_link(
        "pages/4_Explore.py",
        label="See selected and filtered sentences on a map",
        icon=":material/bubble_chart:",
        query_params={"run": run_id},
    )
    _command(run_id)


@st.fragment
def _budgeted(run_id: str) -> None:
    """What follows from the budget: a pure function of the scores, so a slider may drive it."""
    with guard():
        config = facade.run(run_id).manifest.config
        budget = _budget(run_id, config["budget"])
        chosen = facade.choose(run_id, budget, config["keep"])
        _numbers(run_id, chosen)
        _export(run_id, budget, config["keep"], chosen)
        _distribution(run_id, chosen)
        _withheld(chosen)
        _examples(run_id, chosen, config["keep"])
        _lengths(run_id, chosen)
        _comparison(run_id, budget, config["keep"])


def _budget(run_id: str, asked: str) -> str:
    """The budget as text, from the control of its unit; starts at what the run was asked for."""
    start = facade.Budget.parse(asked)
    own = "share" if start.unit == "fraction" else start.unit
    left, right = st.columns(2, vertical_alignment="bottom")
    unit = left.segmented_control(
        "Budget by",
        list(UNITS),
        format_func=UNITS.__getitem__,
        default=own,
        required=True,
        key=f"selection.unit.{run_id}",
    )
    first = start.value if own == unit else None
    with right:
        return _amount(run_id, unit, first, f"selection.amount.{run_id}.{unit}", facade.choose(run_id, asked))


def _amount(run_id: str, unit: str, first: float | None, key: str, chosen: facade.Selection) -> str:
    """first: in `unit`, where the run was asked for it; else what its selection comes to."""
    if unit == "share":
        share = 100 * (first or len(chosen.rows) / len(facade.scored(run_id).domain))
        return f"{st.slider('Share of D_C', 0.1, 100.0, max(share, 0.1), 0.1, format='%.1f%%', key=key):g}%"
    if unit == "threshold":
        edges, cut = facade.score_bins(run_id).edges, float(chosen.scores[-1])
        low, high = min(float(edges[0]), cut), max(float(edges[-1]), cut)
        return f"threshold:{st.slider('Worst score taken', low, high, cut, (high - low) / 500, '%.4g', key)}"
    found = facade.scored(run_id)
    whole, tokens = (len(found.domain), found.domain.n_tokens), int(found.lengths[chosen.rows].sum())
    most, here = (whole[0], len(chosen.rows)) if unit == "sentences" else (whole[1], tokens)
    return f"{st.number_input(f'At most, in {unit}', 1, most, int(first or here), max(most // 100, 1), key=key)}{unit}"


def _numbers(run_id: str, chosen: facade.Selection) -> None:
    found = facade.scored(run_id)
    tokens = int(found.lengths[chosen.rows].sum())
    with st.container(horizontal=True):
        st.metric("Selected", f"{len(chosen.rows):,}", width="content", help=f"of {len(found.domain):,} sentences")
        st.metric("of D_C", f"{len(chosen.rows) / len(found.domain):.1%}", width="content")
        st.metric("Tokens", f"{tokens:,}", width="content")
        st.metric(f"Worst score ({found.scores.unit})", f"{chosen.scores[-1]:.4g}", width="content")
        st.metric("Withheld", f"{sum(chosen.dropped.values()):,}", width="content")
    if edits := facade.edits(run_id):
        st.caption(f"What you take away also has your hand edits from Explore: {edits}.")


def _export(run_id: str, budget: str, keep: Sequence[str], chosen: facade.Selection) -> None:
    """A download, built when it is asked for; a folder, and what is too large to send, goes to the exports."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            "Take S_C away as",
            list(FORMATS),
            format_func=FORMATS.__getitem__,
            default="txt",
            required=True,
            key="selection.format",
        )
        name = f"S_C-{run_id[-4:]}-{budget.replace('%', 'pct').replace(':', '-')}"
        name += "" if kind == "folder" else f".{kind}"
        write = partial(facade.export, run_id, budget, keep)
        small = 8 * int(facade.scored(run_id).lengths[chosen.rows].sum()) < LARGEST_DOWNLOAD
        if kind != "folder" and small:
            _download(partial(_bytes, write, name), name)
            return
        target = facade.exports() / name
        if st.button("Export", type="primary", icon=":material/folder:", key="selection.export"):
            write(target)
    st.caption("Written to:" if target.exists() else "Will be written to:")
    st.code(str(target), language=None)


def _download(data: Callable[[], bytes], name: str) -> None:
    look = {"type": "primary", "icon": ":material/download:"}
    st.download_button("Download", data, name, on_click="ignore", key="selection.download", **look)


def _bytes(write: Callable[[Path], Path], name: str) -> bytes:
    with TemporaryDirectory() as folder:
        return write(Path(folder) / name).read_bytes()


def _distribution(run_id: str, chosen: facade.Selection) -> None:
    scores = facade.scored(run_id).scores
    figure = facade.figures.score_histogram(facade.score_bins(run_id), chosen.scores, scores.unit, scores.prefer)
    name = f"Histogram of the scores of D_C: {len(chosen.rows):,} selected, cut at {chosen.scores[-1]:.4g}"
    chart(figure, "selection.scores", name)


def _withheld(chosen: facade.Selection) -> None:
    if chosen.dropped:
        parts = [f"{n:,} {REASONS[reason]}" for reason, n in chosen.dropped.items()]
        st.markdown(f"**Withheld from the selection:** {', '.join(parts)}.")


def _examples(run_id: str, chosen: facade.Selection, keep: Sequence[str]) -> None:
    kinds = [kind for kind in KINDS if kind != "withheld" or chosen.dropped]
    which = st.segmented_control(
        "Sentences", kinds, format_func=KINDS.__getitem__, default="top", required=True, key="selection.examples"
    )
    rows: list[dict[str, Any]] = facade.examples(run_id, chosen, keep, which)
    columns = {**COLUMNS, "selected": "In S_C"} if which == "borderline" else COLUMNS
    if which == "withheld":
        rows = [{**row, "why": ", ".join(flag.replace("_", " ") for flag in row["flags"])} for row in rows]
        columns = {**COLUMNS, "why": "Why"}
    table(rows, columns, KINDS[which])


def _lengths(run_id: str, chosen: facade.Selection) -> None:
    found = facade.scored(run_id)
    task = facade.run(run_id).manifest.inputs["task"]
    lengths = {"S_C": found.lengths[chosen.rows], "D_C": found.lengths, "T_C": facade.token_lengths(task)}
    st.subheader("Sentence lengths", anchor=False)
    for warning in facade.length_warnings(lengths):
        st.warning(warning, icon=":material/straighten:")
    figure = facade.figures.lengths_compared(lengths)
    chart(figure, "selection.lengths", "Sentence lengths of S_C, D_C and T_C compared")


def _comparison(run_id: str, budget: str, keep: Sequence[str]) -> None:
    """Where another strategy chooses otherwise, at the same budget."""
    names = {run.id: f"{run.manifest.config['strategy']} ({run.id[-4:]})" for run in facade.comparable(run_id)}
    st.subheader("Compared with another selection", anchor=False)
    if not names:
        st.caption("Select from the same D_C by another strategy, and its overlap with this one shows here.")
        return
    other = st.selectbox(
        "The other", list(names), None, names.__getitem__, key="selection.other", placeholder="pick a selection"
    )
    if other is None:
        return
    found = facade.overlap(run_id, other, budget, keep)
    share = found.shared / found.ours
    st.markdown(
        f"**{share:.0%}** of what this selection holds, the other holds too ({found.shared:,} of {found.ours:,})."
    )
    headings = ("Only in this selection", f"Only in {names[other]}")
    for column, heading, rows in zip(st.columns(2), headings, (found.only_ours, found.only_theirs), strict=True):
        with column:
            st.markdown(f"**{heading}**")
            table(rows, {"score": "Score", "text": "Sentence"}, heading)


def _command(run_id: str) -> None:
    with st.expander("The same on the command line", icon=":material/terminal:"):
        st.code(facade.command("select", facade.run(run_id).manifest.config), language="bash", wrap_lines=True)
