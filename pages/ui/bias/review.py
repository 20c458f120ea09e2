"""Review of suspicious labels: accept, fix, remove, skip, undo; export of the corrected labels."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from core.bias import view as bias
from core.bias.result import Action, Reviews
from core.errors import Overtaken
from core.shown import count
from pages.ui.bias.views import bits, marked, notes
from pages.ui.frame import guard, looked
from pages.ui.project import later
from pages.ui.widgets import plain, pressed, table

NOTHING = "no entity here"
ACTION_WORDS = {"accept": "label is right", "fix": "should be", "remove": NOTHING, "skip": "skipped"}
OVERTAKEN = "bias.overtaken"  # session key: the reason that the last press had no effect
LAST = 8  # reviews shown
ROUNDING = 1e-6  # bits


@st.fragment
def review(run_id: str) -> None:
    """Draw the next suspicious label. Each answer is stored in the folder of the run at once."""
    with guard(buttons="bias.seal"):
        numbers, log = bias.suspicious(run_id), bias.read_reviews(run_id)
        if not len(numbers) and not log.history:
            _none(run_id)
            return
        looked(bias.measured(run_id).corpus.fingerprint)
        st.markdown(
            "Labels that **neither the name nor the context supports**, worst first. Some are wrong, others only rare"
            " or hard. Read the sentence and decide."
        )
        if overtaken := st.session_state.pop(OVERTAKEN, ""):
            st.warning(plain(overtaken), icon=":material/group:")
        todo, skipped = _left(numbers.tolist(), log)
        _counts(len(numbers), len(todo), len(skipped), log)
        if skipped and not todo:
            st.caption("Only skipped labels are left; they are shown again.")
        if todo or skipped:
            _one(run_id, (todo or skipped)[0], log)
        else:
            st.success("All suspicious labels are reviewed.")
        _undo(run_id, log)
        _take_away(run_id, log)
        _history(run_id, log)


def _none(run_id: str) -> None:
    """Draw why there is nothing to review: no label is suspicious, or nothing could be measured."""
    measured = bias.measured(run_id)
    if max(abs(measured.entity).max(), abs(measured.context).max()) > ROUNDING:
        st.success("Every label is supported by its name or its context; none looks wrong.")
    else:
        st.info("Neither names nor contexts hold information about the types, so labels cannot be checked.")
        notes(run_id)


def _left(numbers: Sequence[int], log: Reviews) -> tuple[list[int], list[int]]:
    """Return numbers without a review, and skipped ones, the least recently skipped first."""
    todo = [number for number in numbers if number not in log.latest]
    # The last skip of a label counts, so skipping it again moves it to the end.
    turn = {one.mention: at for at, one in enumerate(log.history) if one.action == "skip"}
    skipped = [number for number in numbers if number in log.latest and log.latest[number].action == "skip"]
    return todo, sorted(skipped, key=turn.__getitem__)


def _counts(of: int, todo: int, skipped: int, log: Reviews) -> None:
    done, later = of - todo - skipped, f", {skipped:,} skipped" if skipped else ""
    st.progress(done / max(of, 1), text=f"{done:,} of {of:,} reviewed, {len(log.changes):,} changed{later}")


def _one(run_id: str, number: int, log: Reviews) -> None:
    """Draw one mention, its information, and the buttons."""
    row, measured = bias.mention_rows(run_id, [number])[0], bias.measured(run_id)
    with st.container(border=True, key="bias-review"):
        st.html(f'<p aria-label="The label in question">{marked(row)}</p>')
        few = f" Only {measured.counts()[row.type]:,} labels have this type: **too few to judge**."
        st.caption(
            f"Labelled **{plain(row.type)}**. Information of the name: {bits(row.pvi_entity)} bits, of the context:"
            f" {bits(row.pvi_context)}. Neither makes this type more likely than its overall share."
            f"{few if row.type in measured.few else ''}"
        )
        # A skipped label has a review already; a newer one by another user must not be overwritten.
        seen = log.latest[number].time if number in log.latest else 0.0
        _answers(run_id, number, [name for name in sorted(measured.corpus.types) if name != row.type], seen)


def _answers(run_id: str, number: int, others: Sequence[str], seen: float) -> None:
    """Draw the buttons for a label. others: the other types. seen: see `bias.view.review`."""
    answer = partial(_answer, run_id, number, seen)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        accept = ("accept",)
        st.button(
            "Label is right", key="bias.accept", icon=":material/check:", shortcut="Alt+A", on_click=answer, args=accept
        )
        st.button(
            "Skip", key="bias.skip", icon=":material/skip_next:", shortcut="Alt+S", on_click=answer, args=("skip",)
        )
        should_be = st.selectbox(
            "It should be",
            [*others, NOTHING],
            None,
            key=f"bias.right.{run_id}.{number}",
            placeholder="another type, or none",
            width=240,
        )
        st.button(
            "Fix",
            key="bias.fix",
            icon=":material/edit:",
            type="primary",
            disabled=should_be is None,
            on_click=answer,
            args=("remove", "") if should_be == NOTHING else ("fix", should_be),
        )


def _answer(run_id: str, number: int, seen: float, action: Action, type: str = "") -> None:
    with _other_review_kept():
        bias.review(run_id, number, action, type, seen=seen)


def _take_back(run_id: str, seen: float) -> None:
    with _other_review_kept():
        bias.undo_review(run_id, seen)


@contextmanager
def _other_review_kept() -> Iterator[None]:
    """Keep the review of another window if it came first, and show that on the page."""
    try:
        yield
    except Overtaken as error:
        st.session_state[OVERTAKEN] = str(error)


def _undo(run_id: str, log: Reviews) -> None:
    if log.history:
        last = log.history[-1]
        mention = bias.measured(run_id).mentions[last.mention].surface
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Undo",
                key="bias.undo",
                icon=":material/undo:",
                shortcut="Alt+U",
                on_click=_take_back,
                args=(run_id, last.time),
            )
            st.caption(
                f"Your last review, of {plain(mention)}: {ACTION_WORDS[last.action]} {plain(last.type)}",
                width="content",
            )


def _take_away(run_id: str, log: Reviews) -> None:
    if not log.history:
        return
    name = f"corrected-{run_id[-4:]}"
    with st.container(horizontal=True):
        st.download_button(
            "Corrected labels as CoNLL",
            later(partial(_conll, run_id)),
            f"{name}.conll",
            on_click="ignore",
            key="bias.corrected",
            icon=":material/download:",
        )
        st.download_button(
            "Log of the reviews as CSV",
            later(partial(bias.reviews_csv, run_id)),
            f"{name}-log.csv",
            on_click="ignore",
            key="bias.log",
            icon=":material/download:",
        )
        if pressed("Keep as a corpus", "bias.seal", icon=":material/library_add:", disabled=not log.changes):
            sealed = bias.seal_corrected(run_id)
            st.success(f"{plain(sealed.name)}: {count(len(sealed), 'sentence')}, ready to train on.")


def _conll(run_id: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corrected.conll"
        bias.export_corrected(run_id, path)
        return path.read_bytes()


def _history(run_id: str, log: Reviews) -> None:
    recent = log.history[-LAST:][::-1]
    if not recent:
        return
    rows: list[dict[str, Any]] = [
        {
            "mention": row.surface,
            "type": row.type,
            "action": f"{ACTION_WORDS[one.action]} {one.type}",
            "text": row.text,
        }
        for one, row in zip(recent, bias.mention_rows(run_id, [one.mention for one in recent]), strict=True)
    ]
    heads = {"mention": "Mention", "type": "Was labelled", "action": "Your review", "text": "Sentence"}
    table(rows, heads, "The latest reviews, newest first", wrapped=("text",))
