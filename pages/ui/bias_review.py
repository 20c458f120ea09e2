"""Suspicious labels one by one: accept, fix, skip; kept at once, undone at will; the corrected labels taken away."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from core import facade
from pages.ui.bias_parts import bits, marked
from pages.ui.frame import guard
from pages.ui.widgets import plain, table

NOTHING = "no entity here"
SAID = {"accept": "label is right", "fix": "is a", "remove": NOTHING, "skip": "skipped"}
LAST = 8  # reviews shown


@st.fragment
def review(run_id: str) -> None:
    """Whatever is said goes to the log beside the run, so a reload or another day changes nothing."""
    with guard():
        numbers, told = facade.suspicious(run_id), facade.reviews(run_id)
        if not len(numbers) and not told.history:
            st.success("Every label is spoken for by its name or by its context; none looks wrong.")
            return
        st.markdown(
            "Labels that **neither the name nor the context speaks for**, worst first. Some are wrong, others only"
            " rare or hard: read the sentence and say which."
        )
        todo = [number for number in numbers.tolist() if number not in told.latest]
        _counts(len(numbers), len(todo), told)
        if todo:
            _one(run_id, todo[0])
        else:
            st.success("All of them are reviewed.")
        _undo(run_id, told)
        _take_away(run_id, told)
        _history(run_id, told)


def _counts(of: int, left: int, told: facade.Reviews) -> None:
    st.progress((of - left) / max(of, 1), text=f"{of - left:,} of {of:,} reviewed, {len(told.changes):,} changed")


def _one(run_id: str, number: int) -> None:
    """The mention at hand, and what can be said of it."""
    row = facade.mention_rows(run_id, [number])[0]
    with st.container(border=True, key="bias-review"):
        st.html(f'<p aria-label="The label in question">{marked(row)}</p>')
        st.caption(
            f"Labelled **{plain(row['type'])}**. Its name tells {bits(row['pvi_entity'])} bits of that, its context"
            f" {bits(row['pvi_context'])}: both point to another type."
        )
        types = sorted(facade.measured(run_id).corpus.types)
        say = partial(_say, run_id, number)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.button("Label is right", key="bias.accept", icon=":material/check:", shortcut="Alt+A", on_click=say,
                      args=("accept",))  # fmt: skip
            st.button("Skip", key="bias.skip", icon=":material/skip_next:", shortcut="Alt+S", on_click=say,
                      args=("skip",))  # fmt: skip
            right = st.selectbox(
                "It should be", [*(name for name in types if name != row["type"]), NOTHING], None,
                key=f"bias.right.{run_id}.{number}", placeholder="another type, or none", width=240,
            )  # fmt: skip
            action = ("remove", "") if right == NOTHING else ("fix", right)
            st.button("Fix", key="bias.fix", icon=":material/edit:", type="primary", disabled=right is None,
                      on_click=say, args=action)  # fmt: skip


def _say(run_id: str, number: int, action: str, type: str = "") -> None:
    facade.review(run_id, number, action, type)


def _undo(run_id: str, told: facade.Reviews) -> None:
    if told.history:
        last = told.history[-1]
        mention = facade.measured(run_id).mentions[last.mention].surface
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Undo", key="bias.undo", icon=":material/undo:", shortcut="Alt+U",
                      on_click=facade.undo_review, args=(run_id,))  # fmt: skip
            st.caption(f"Last: {plain(mention)}, {SAID[last.action]} {plain(last.type)}", width="content")


def _take_away(run_id: str, told: facade.Reviews) -> None:
    if not told.history:
        return
    name = f"corrected-{run_id[-4:]}"
    with st.container(horizontal=True):
        st.download_button(
            "Corrected labels as CoNLL", partial(_conll, run_id), f"{name}.conll", on_click="ignore",
            key="bias.corrected", icon=":material/download:",
        )  # fmt: skip
        st.download_button(
            "Log of the reviews as CSV", partial(facade.review_log, run_id), f"{name}-log.csv", on_click="ignore",
            key="bias.log", icon=":material/download:",
        )  # fmt: skip
        if st.button("Keep as a corpus", key="bias.seal", icon=":material/library_add:", disabled=not told.changes):
            sealed = facade.seal_corrected(run_id)
            st.success(f"{plain(sealed.name)}: {len(sealed):,} sentences, ready to train on.")


def _conll(run_id: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corrected.conll"
        facade.export_corrected(run_id, path)
        return path.read_bytes()


def _history(run_id: str, told: facade.Reviews) -> None:
    recent = told.history[-LAST:][::-1]
    if not recent:
        return
    rows: list[dict[str, Any]] = [
        {"mention": row["mention"], "type": row["type"], "said": f"{SAID[one.action]} {one.type}", "text": row["text"]}
        for one, row in zip(recent, facade.mention_rows(run_id, [one.mention for one in recent]), strict=True)
    ]
    heads = {"mention": "Mention", "type": "Was labelled", "said": "You said", "text": "Sentence"}
    table(rows, heads, "The latest reviews, newest first", wrapped=("text",))
