"""A finished selection: budget, distribution, examples, lengths, overlap, export. Nothing is scored again."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from core import shown_command as commands
from core.config import Budget
from core.corpora.writers import Format
from core.errors import WinnowError
from core.experiment import deliver, results
from core.explore import view as maps
from core.importing import view as corpora
from core.projects import runs
from core.projects.titles import selection_titles
from core.results import Selection
from core.selection import choices, insights, plot
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.choice import run_of
from core.selection.insights import Which
from core.selection.prevalence import PrevalenceResult
from core.selection.result import NotServed
from core.shown import count
from pages.ui.choice import REFUSED, VISIT, say_refused
from pages.ui.frame import guard, looked
from pages.ui.project import later, page_link, switch_page
from pages.ui.removal import orphaned, span_words
from pages.ui.runs.links import EXPLORE, TRAINING, attach
from pages.ui.runs.panel import run_panel
from pages.ui.selection.groups import Grouping, grouping
from pages.ui.widgets import is_dark, plain, pressed, same_command, table, with_place

# session key: selection, a budget for which its stored scores are not enough, and the reason
AGAIN = "selection.again.asked"

LARGEST_DOWNLOAD = 200_000_000  # bytes, estimated; larger files are written to the exports folder
FORMATS: Mapping[Format, str] = {"txt": "text", "jsonl": "JSONL", "parquet": "Parquet", "folder": "folder for datasets"}
REASONS = {
    "exact_duplicate": "equal to an earlier sentence",
    "near_duplicate": "similar to an earlier sentence",
    "leak": "also in the dev or test set",
    "too_short": "shorter than the minimum",
    "too_long": "longer than the maximum",
    "not_scored": "could not be scored",
}
KINDS: Mapping[Which, str] = {
    "top": "The closest to the task corpus",
    "borderline": "Around the cut-off",
    "rejected": "The farthest from the task corpus",
    "withheld": "High score but excluded",
}
COLUMNS = {"score": "Score", "tokens": "Tokens", "text": "Sentence"}


def selected(choice_id: str) -> None:
    """Draw a finished selection. Only stored scores are used, so it can be redrawn while the user moves a slider."""
    run_id = run_of(choice_id)
    if "domain" in results.removed_inputs(run_id):
        orphaned(choice_id)
        same_command("selection.command", commands.command("select", runs.get(run_id).manifest.config))
        return
    controls(choice_id)
    keep = runs.get(run_id).manifest.config["keep"]
    ranked, chosen = (selections.chosen(choice_id, edited=edited) for edited in (False, True))
    meter(choice_id, len(ranked.rows))
    _numbers(choice_id, chosen)
    command = _export(choice_id, str(chosen.budget), keep, chosen)
    _next_pages(choice_id)
    _distribution(choice_id, ranked)
    _withheld(ranked)
    _examples(choice_id, ranked, keep, grouping(choice_id, chosen))
    # Hand edits may have removed all sentences. Then draw the lengths of the selection without these edits.
    _lengths(choice_id, chosen if len(chosen.rows) else ranked)
    _comparison(choice_id)
    same_command("selection.command", command)


def _next_pages(choice_id: str) -> None:
    """Draw links to Explore and Training. The link to Explore also starts the map if there is none."""
    run_id = run_of(choice_id)
    label = "See the selection on a map"
    with st.container(horizontal=True):
        if pressed(label, "selection.map", icon=":material/bubble_chart:"):
            if maps.of(choice_id) is None and "task" not in results.removed_inputs(run_id):
                runs.start("map", maps.options(choice_id))
            switch_page(EXPLORE, query={"choice": choice_id})
        page_link(
            TRAINING, label="Train on this selection", icon=":material/model_training:", query={"choice": choice_id}
        )


def _numbers(choice_id: str, chosen: Selection) -> None:
    scored = selections.scored(choice_id)
    tokens = int(scored.lengths[chosen.rows].sum())
    with st.container(horizontal=True):
        st.metric(
            "Selected", f"{len(chosen.rows):,}", width="content", help=f"of {count(len(scored.domain), 'sentence')}"
        )
        st.metric("of the domain corpus", f"{len(chosen.rows) / len(scored.domain):.1%}", width="content")
        st.metric("Tokens", f"{tokens:,}", width="content")
        withheld = sum(n for reason, n in chosen.dropped.items() if reason in REASONS)
        st.metric("Withheld", f"{withheld:,}", width="content")
    if edits := selections.edits(choice_id):
        st.caption(
            f"Your hand edits from Explore are counted here: {edits}. Scores and examples below are without them."
        )


def _export(choice_id: str, budget: str, keep: Sequence[str], chosen: Selection) -> str:
    """Draw the field for the export format and the button that exports the selection.

    Folders and large files are written to the exports folder, others are downloaded. Return the command line for the
    same export.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            "Export selection as",
            list(FORMATS),
            format_func=FORMATS.__getitem__,
            default="txt",
            required=True,
            key="selection.format",
        )
        name = selections.file_name(choice_id) + ("" if kind == "folder" else f".{kind}")
        write = partial(selections.export, choice_id, budget, keep, format=kind)
        # Text has about 8 bytes per token.
        large = 8 * int(selections.scored(choice_id).lengths[chosen.rows].sum()) >= LARGEST_DOWNLOAD
        if large or kind == "folder":
            asked = pressed("Export", "selection.export", type="primary", icon=":material/folder:")
        else:
            _download(partial(_bytes, write, name), name)
    if large or kind == "folder":
        _written(write, deliver.exports() / name, asked)
    return selections.command(choice_id, name, kind)


def _written(write: Callable[[Path], Path], target: Path, asked: bool) -> None:
    written = False
    with guard():  # An error is shown here, and the page below is still drawn.
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


def _distribution(choice_id: str, chosen: Selection) -> None:
    scores = selections.scored(choice_id).scores
    bins = selections.score_bins(choice_id)
    figure = plot.score_histogram(bins, chosen.scores, scores.unit, scores.prefer, dark=is_dark())
    cut = plot.worst(chosen.scores, scores.prefer)
    name = f"Histogram of domain scores: {len(chosen.rows):,} selected, cut-off at {cut:.4g}"
    st.vega_lite_chart(spec=figure, key="selection.scores", alt=name)
    st.caption(span_words(chosen.scores, scores.unit, scores.prefer))
    scored = selections.scored(choice_id)
    if scored.cascade:
        st.caption(plain(f"{scored.cascade.in_words(len(scored.domain))} The chart shows only embedded sentences."))


def _withheld(chosen: Selection) -> None:
    if chosen.dropped:
        parts = [f"{n:,} {REASONS[reason]}" for reason, n in chosen.dropped.items()]
        st.markdown(f"**Withheld from the selection:** {', '.join(parts)}.")


def _examples(choice_id: str, chosen: Selection, keep: Sequence[str], group: Grouping | None) -> None:
    kinds = [kind for kind in KINDS if kind != "withheld" or chosen.dropped]
    which = st.segmented_control(
        "Sentences", kinds, format_func=KINDS.__getitem__, default="top", required=True, key="selection.examples"
    )
    looked(runs.get(run_of(choice_id)).manifest.inputs["domain"])
    examples = insights.examples(choice_id, chosen, keep, which, inside=group.inside if group else None)
    rows: Sequence[Mapping[str, Any]] = examples
    columns = {**COLUMNS, "selected": "In the selection"} if which == "borderline" else COLUMNS
    if which == "withheld":
        rows = [{**row, "why": ", ".join(flag.replace("_", " ") for flag in row["flags"])} for row in examples]
        columns = {**COLUMNS, "why": "Why"}
    if group:
        rows, columns = group.added(choice_id, rows), {**columns, "group": group.title}
    table(rows, with_place(columns, rows), KINDS[which])


def _lengths(choice_id: str, chosen: Selection) -> None:
    scored, run_id = selections.scored(choice_id), run_of(choice_id)
    task = runs.get(run_id).manifest.inputs["task"]
    lengths = {"S_C": scored.lengths[chosen.rows], "D_C": scored.lengths}
    if "task" not in results.removed_inputs(run_id):
        lengths["T_C"] = corpora.find(task).lengths()
    st.subheader("Sentence lengths", anchor=False)
    for warning in corpora.length_warnings(lengths):
        st.warning(warning, icon=":material/straighten:")
    figure = plot.lengths_compared(lengths, dark=is_dark())
    name = "Sentence lengths of the selection, the domain corpus and the task corpus compared"
    st.vega_lite_chart(spec=figure, key="selection.lengths", alt=name)


def _comparison(choice_id: str) -> None:
    """Let the user pick another selection from the same D_C, and show which sentences are in only one of the two."""
    names = selection_titles(choices.comparable(choice_id))
    st.subheader("Compared with another selection", anchor=False)
    if not names:
        st.caption("Save this selection, then change it or try another strategy to see what they share.")
        return
    other = st.selectbox(
        "The other", list(names), None, names.__getitem__, key="selection.other", placeholder="pick a selection"
    )
    if other is None:
        return
    overlap = insights.overlap(choice_id, other)
    size = overlap.both + overlap.only_a
    st.markdown(
        f"**{overlap.both / max(size, 1):.0%}** of this selection's sentences are also in the other "
        f"({overlap.both:,} of {size:,})."
    )
    name = plain(choices.title(selections.at(other)))
    headings = (f"Only in this selection ({overlap.only_a:,})", f"Only in {name} ({overlap.only_b:,})")
    for column, heading, rows in zip(st.columns(2), headings, (overlap.only_in_a, overlap.only_in_b), strict=True):
        with column:
            st.markdown(f"**{heading}**")
            table(rows, with_place({"id": "Id", "score": "Score", "text": "Sentence"}, rows), heading)


UNITS = {"fraction": "share", "sentences": "sentences", "tokens": "tokens", "threshold": "score"}


def controls(choice_id: str) -> None:
    """Draw the fields for the budget and its unit, and show why a budget was refused."""
    kept, key = Budget.parse(selections.kept_budget(choice_id)), f"selection.unit.{choice_id}"
    _show(key, kept.unit)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Budget by",
            list(UNITS),
            format_func=UNITS.__getitem__,
            required=True,
            key=key,
            on_change=lambda: _keep(choice_id, lambda: selections.budget_in(choice_id, st.session_state[key])),
        )
        {"fraction": _share, "threshold": _threshold}.get(kept.unit, _count)(choice_id, kept)
    say_refused()
    _again(choice_id)


def _again(choice_id: str) -> None:
    """If a cascade scored too few sentences for a new budget, say so, and draw the button that scores again."""
    asked, budget, why = st.session_state.get(AGAIN, ("", "", ""))
    if asked != choice_id:
        return
    st.error(plain(why), icon=":material/error:")
    if pressed("Select again with this budget", "selection.again", icon=":material/filter_alt:"):
        attach(runs.start("select", selections.again(choice_id, budget)), VISIT)
        del st.session_state[AGAIN]
        st.rerun()


def _share(choice_id: str, kept: Budget) -> None:
    # Round to 12 digits, because 0.29 * 100 gives 28.999999999999996.
    share = float(f"{100 * kept.value:.12g}")
    key = _amount(choice_id, kept, share)
    st.slider(
        "Share of the domain corpus",
        # A share that the user typed in the form may be below 0.1%.
        min(0.1, share),
        100.0,
        step=0.1,
        format="%.6g%%",
        key=key,
        width=420,
        on_change=lambda: _keep(choice_id, lambda: f"{st.session_state[key]:.6g}%"),
    )


def _threshold(choice_id: str, kept: Budget) -> None:
    """Draw the slider for a threshold. Its steps have few digits, so that the shown command has the exact value."""
    low, high, decimals = selections.score_range(choice_id)
    key = _amount(choice_id, kept, kept.value)
    way = "at least" if selections.scored(choice_id).scores.prefer == "high" else "at most"
    st.slider(
        f"Take sentences that score {way}",
        # A threshold that the user typed in the form may be outside the range of the scores.
        min(low, kept.value),
        max(high, kept.value),
        step=10.0**-decimals,
        format="%.6g",
        key=key,
        width=420,
        on_change=lambda: _keep(choice_id, lambda: f"threshold:{round(st.session_state[key], decimals)}"),
    )


def _count(choice_id: str, kept: Budget) -> None:
    domain = selections.scored(choice_id).domain
    most = len(domain) if kept.unit == "sentences" else domain.n_tokens
    key = _amount(choice_id, kept, int(kept.value))
    st.number_input(
        f"At most, in {kept.unit}",
        1,
        most,
        step=max(most // 100, 1),
        key=key,
        width=420,
        on_change=lambda: _keep(choice_id, lambda: f"{st.session_state[key]}{kept.unit}"),
    )


def _amount(choice_id: str, kept: Budget, value: float) -> str:
    """Set the field for the budget to `value`, and return its key, which depends on the unit."""
    key = f"selection.amount.{choice_id}.{kept.unit}"
    _show(key, value)
    return key


def _show(key: str, value: object) -> None:
    """Set a widget's value if it differs. If it were always set, a slider would jump back while the user drags it."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _keep(choice_id: str, budget: Callable[[], str]) -> None:
    st.session_state.pop(AGAIN, None)
    try:
        wanted = budget()
        try:
            selections.keep_budget(choice_id, wanted)
        except NotServed as error:
            st.session_state[AGAIN] = choice_id, wanted, str(error)
    except WinnowError as error:
        st.session_state[REFUSED] = str(error)


ABOUT_METER = (
    "Estimates, with the default strategy, how many domain sentences score like the sentences of the task corpus. A "
    "larger budget also includes sentences that are less like your task."
)


def meter(choice_id: str, asked: int) -> None:
    """Show the estimated number of relevant sentences, or the button that starts the estimate.

    asked: number of sentences that the budget selects, with which the estimate is compared.
    """
    run_id = run_of(choice_id)
    inputs = runs.get(run_id).manifest.inputs
    task, domain = inputs["task"], inputs["domain"]
    count = prevalence.counted(task, domain)
    if count is not None:
        _counted(choice_id, count, asked)
    elif counting := prevalence.counting(task, domain):
        run_panel(counting, "selection.counting")
    elif prevalence.countable(task):
        label = "Estimate how many sentences are relevant"
        if pressed(label, "selection.count", icon=":material/speed:", help=ABOUT_METER):
            runs.start("prevalence", prevalence.options(run_id))
            st.rerun()


def _counted(choice_id: str, count: PrevalenceResult, asked: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(prevalence.in_words(count, asked), width="content", help=ABOUT_METER)
        budget = prevalence.budget(count)
        if budget is None or budget == selections.kept_budget(choice_id):
            return
        if pressed(f"Set the budget to {count.about:,}", "selection.counted", icon=":material/check:"):
            _keep(choice_id, lambda: budget)
            st.rerun()
