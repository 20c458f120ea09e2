"""A finished selection, looked at: budget, distribution, examples, lengths, overlap, export. Nothing is rescored."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from core.facade import corpora, deliver, figures, insights, maps, results, runs, selections
from core.facade.insights import Which
from core.facade.selections import Format, Selection
from pages.ui.frame import guard, looked
from pages.ui.presses import pressed
from pages.ui.project import later, switch_page
from pages.ui.remains import remains, span_words
from pages.ui.runs.links import EXPLORE
from pages.ui.selection.budget import controls
from pages.ui.selection.meter import meter
from pages.ui.widgets import chart, same_command, table, with_place

LARGEST_DOWNLOAD = 200_000_000  # bytes, about; more goes to the exports folder
FORMATS: Mapping[Format, str] = {"txt": "text", "jsonl": "JSONL", "parquet": "Parquet", "folder": "folder for datasets"}
REASONS = {
    "exact_duplicate": "copies of an earlier sentence",
    "near_duplicate": "near copies of an earlier sentence",
    "leak": "sentences of the dev or test split",
    "too_short": "shorter than the minimum",
    "too_long": "longer than the maximum",
    "not_scored": "could not be scored",
}
KINDS: Mapping[Which, str] = {
    "top": "The closest to T_C",
    "borderline": "At the border: the last in, the first out",
    "rejected": "The farthest from T_C",
    "withheld": "Withheld, though well scored",
}
COLUMNS = {"score": "Score", "tokens": "Tokens", "text": "Sentence"}


def selected(run_id: str) -> None:
    """Everything below the run panel; a pure function of the scores and the budget, so a slider may drive it."""
    if "domain" in results.removed_inputs(run_id):
        remains(run_id)
        same_command(runs.command("select", runs.get(run_id).manifest.config))
        return
    controls(run_id)
    keep = runs.get(run_id).manifest.config["keep"]
    chosen = selections.choose(run_id, selections.kept_budget(run_id), keep)
    meter(run_id, len(chosen.rows))
    _numbers(run_id, chosen)
    command = _export(run_id, str(chosen.budget), keep, chosen)
    _to_map(run_id)
    _distribution(run_id, chosen)
    _withheld(chosen)
    _examples(run_id, chosen, keep)
    _lengths(run_id, chosen)
    _comparison(run_id, str(chosen.budget), keep)
    same_command(command)


def _to_map(run_id: str) -> None:
    """The way to Explore; the same press begins the map where there is none to draw."""
    label = "See selected and filtered sentences on a map"
    if pressed(label, "selection.map", icon=":material/bubble_chart:"):
        if maps.of(run_id) is None and "task" not in results.removed_inputs(run_id):
            runs.start("map", maps.options(run_id))
        switch_page(EXPLORE, query={"run": run_id})


def _numbers(run_id: str, chosen: Selection) -> None:
    scored = selections.scored(run_id)
    tokens = int(scored.lengths[chosen.rows].sum())
    with st.container(horizontal=True):
        st.metric("Selected", f"{len(chosen.rows):,}", width="content", help=f"of {len(scored.domain):,} sentences")
        st.metric("of D_C", f"{len(chosen.rows) / len(scored.domain):.1%}", width="content")
        st.metric("Tokens", f"{tokens:,}", width="content")
        st.metric("Withheld", f"{sum(chosen.dropped.values()):,}", width="content")
    if edits := selections.edits(run_id):
        st.caption(f"What you take away also has your hand edits from Explore: {edits}.")


def _export(run_id: str, budget: str, keep: Sequence[str], chosen: Selection) -> str:
    """A download, built when it is asked for; a folder, and what is too large to send, goes to the exports.

    Returns the command line that writes the same.
    """
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
        write = partial(selections.export, run_id, budget, keep, format=kind)
        large = 8 * int(selections.scored(run_id).lengths[chosen.rows].sum()) >= LARGEST_DOWNLOAD
        if large or kind == "folder":
            asked = pressed("Export", "selection.export", type="primary", icon=":material/folder:")
        else:
            _download(partial(_bytes, write, name), name)
    if large or kind == "folder":
        _written(write, deliver.exports() / name, asked)
    return selections.command(run_id, name, kind)


def _written(write: Callable[[Path], Path], target: Path, asked: bool) -> None:
    written = False
    with guard():  # what goes wrong is said here; the page below stays
        written = asked and bool(write(target))
    st.caption("Written to:" if written else "Will be written to:")
    st.code(str(target), language=None, wrap_lines=True)


def _download(data: Callable[[], bytes], name: str) -> None:
    st.download_button(
        "Download",
        later(data),
        name,
        on_click="ignore",
        key="selection.download",
        type="primary",
        icon=":material/download:",
    )


def _bytes(write: Callable[[Path], Path], name: str) -> bytes:
    with TemporaryDirectory() as folder:
        return write(Path(folder) / name).read_bytes()


def _distribution(run_id: str, chosen: Selection) -> None:
    scores = selections.scored(run_id).scores
    figure = figures.score_histogram(selections.score_bins(run_id), chosen.scores, scores.unit, scores.prefer)
    name = f"Histogram of the scores of D_C: {len(chosen.rows):,} selected, cut at {chosen.scores[-1]:.4g}"
    chart(figure, "selection.scores", name)
    st.caption(span_words(chosen.scores, scores.unit, scores.prefer))


def _withheld(chosen: Selection) -> None:
    if chosen.dropped:
        parts = [f"{n:,} {REASONS[reason]}" for reason, n in chosen.dropped.items()]
        st.markdown(f"**Withheld from the selection:** {', '.join(parts)}.")


def _examples(run_id: str, chosen: Selection, keep: Sequence[str]) -> None:
    kinds = [kind for kind in KINDS if kind != "withheld" or chosen.dropped]
    which = st.segmented_control(
        "Sentences", kinds, format_func=KINDS.__getitem__, default="top", required=True, key="selection.examples"
    )
    looked(runs.get(run_id).manifest.inputs["domain"])
    examples = insights.examples(run_id, chosen, keep, which)
    rows: Sequence[Mapping[str, object]] = examples
    columns = {**COLUMNS, "selected": "In S_C"} if which == "borderline" else COLUMNS
    if which == "withheld":
        rows = [{**row, "why": ", ".join(flag.replace("_", " ") for flag in row["flags"])} for row in examples]
        columns = {**COLUMNS, "why": "Why"}
    table(rows, with_place(columns, rows), KINDS[which])


def _lengths(run_id: str, chosen: Selection) -> None:
    scored = selections.scored(run_id)
    task = runs.get(run_id).manifest.inputs["task"]
    lengths = {"S_C": scored.lengths[chosen.rows], "D_C": scored.lengths}
    if "task" not in results.removed_inputs(run_id):
        lengths["T_C"] = corpora.find(task).lengths()
    st.subheader("Sentence lengths", anchor=False)
    for warning in corpora.length_warnings(lengths):
        st.warning(warning, icon=":material/straighten:")
    figure = figures.lengths_compared(lengths)
    chart(figure, "selection.lengths", "Sentence lengths of S_C, D_C and T_C compared")


def _comparison(run_id: str, budget: str, keep: Sequence[str]) -> None:
    """Where another strategy chooses otherwise, at the same budget."""
    names = {run.id: f"{run.manifest.config['strategy']} ({run.id[-4:]})" for run in selections.comparable(run_id)}
    st.subheader("Compared with another selection", anchor=False)
    if not names:
        st.caption("Select from the same D_C by another strategy, and its overlap with this one shows here.")
        return
    other = st.selectbox(
        "The other", list(names), None, names.__getitem__, key="selection.other", placeholder="pick a selection"
    )
    if other is None:
        return
    overlap = insights.overlap(run_id, other, budget, keep)
    share = overlap.shared / overlap.size
    st.markdown(
        f"**{share:.0%}** of what this selection holds, the other holds too ({overlap.shared:,} of {overlap.size:,})."
    )
    headings = ("Only in this selection", f"Only in {names[other]}")
    for column, heading, rows in zip(st.columns(2), headings, (overlap.only_here, overlap.only_other), strict=True):
        with column:
            st.markdown(f"**{heading}**")
            table(rows, with_place({"score": "Score", "text": "Sentence"}, rows), heading)
