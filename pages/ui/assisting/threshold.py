"""The threshold of scores: its slider, the sentences that it keeps and drops, and their export."""

from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from core import shown_command as commands
from core.assisting import plot
from core.assisting import view as assisting
from core.assisting.skl import DRIFTS, Mark
from core.assisting.view import Kept
from core.projects import runs
from core.shown import count
from core.text.sentence import Sentence
from pages.ui.frame import guard, looked
from pages.ui.project import later
from pages.ui.removal import text_gone
from pages.ui.widgets import chart, place_html, plain, pressed, same_command

AGREE, DRIFT = "#009E73", "#D55E00"
SCORE = (
    "The score of a sentence is its mean symmetric KL divergence (SKL): how differently the two corpora label their"
    " shared entities. 0: always the same type; about 9: never the same type. Choose the threshold by a tagger's dev"
    " F1, under Does it help?"
)
SIDES = {"line": "At the line", "ends": "Farthest from it"}


@st.fragment
def threshold(run_id: str) -> None:
    """Show all that depends on the threshold. It needs only stored scores, so it is redrawn while a slider moves."""
    with guard(buttons="assisting.seal"):
        assisted = assisting.get(run_id)
        top = max(float(assisted.scores.max()), 9.0) + 0.5
        line = (0.1, round(top, 1), 1.0, 0.1)
        threshold = st.slider("Keep sentences with a score below", *line, key="assisting.line", help=SCORE)
        counts = assisting.kept(run_id, threshold)
        _numbers(counts)
        sharing = assisted.scores[assisted.overlaps > 0]
        log = runs.get(run_id).manifest.config["log"]
        name = f"Histogram of sentence scores: {counts.kept:,} of {counts.of:,} kept below {threshold:g}"
        chart(plot.skl_histogram(sharing, threshold, log), "assisting.scores", name)
        st.caption(
            f"Not drawn: {counts.of - len(sharing):,} sentences that share no entity with"
            f" {plain(assisted.primary.name)}. Their score is 0, so they are always kept."
        )
        if not text_gone(run_id):
            _take_away(run_id, counts)
            _sentences(run_id, threshold)
        command = commands.command("skl", runs.get(run_id).manifest.config)
        same_command("assisting.command", f"{command} --threshold {threshold:g} --output kept.conll")


def _numbers(counts: Kept) -> None:
    with st.container(horizontal=True):
        st.metric("Kept", f"{counts.kept:,}", width="content", help=f"of {count(counts.of, 'sentence')}")
        st.metric("Dropped", f"{counts.of - counts.kept:,}", width="content")
        st.metric("Kept of all", f"{counts.kept / counts.of:.1%}", width="content")
        # Nothing is kept if the threshold is below every score.
        share = counts.sharing_nothing / max(counts.kept, 1)
        st.metric(
            "Kept without a shared entity",
            f"{share:.0%}",
            width="content",
            help=f"{counts.sharing_nothing:,} of the kept sentences share no entity, so nothing in them can drift.",
        )


def _take_away(run_id: str, counts: Kept) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Kept sentences as CoNLL",
            later(partial(_conll, run_id, counts.threshold)),
            f"kept-{run_id[-4:]}-{counts.threshold:g}.conll",
            on_click="ignore",
            key="assisting.download",
            type="primary",
            icon=":material/download:",
            disabled=not counts.kept,
        )
        if pressed("Keep them as a corpus", "assisting.seal", icon=":material/library_add:"):
            sealed = assisting.seal(run_id, counts.threshold)
            st.success(f"{plain(sealed.name)}: {count(len(sealed), 'sentence')}, ready to train on.")


def _conll(run_id: str, threshold: float) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kept.conll"
        assisting.export(run_id, threshold, path)
        return path.read_bytes()


def _sentences(run_id: str, threshold: float) -> None:
    which = st.segmented_control(
        "Sentences", list(SIDES), format_func=SIDES.__getitem__, default="line", required=True, key="assisting.which"
    )
    looked(runs.get(run_id).manifest.inputs["assisting"])
    sides = assisting.sentences(run_id, threshold, at_line=which == "line")
    st.html(
        f'<p>Entities in both corpora: <mark class="w-entity" style="--c:{AGREE}">agree</mark> or'
        f' <mark class="w-entity" style="--c:{DRIFT}">drift <small>type · usual type there · SKL</small>'
        "</mark></p>"
    )
    for column, heading, rows in zip(st.columns(2), ("Kept", "Dropped"), sides, strict=True):
        with column:
            st.markdown(f"**{heading}**")
            items = "".join(
                f"<li>{_marked(sentence, marks)} <small>{score:.2f}</small>{place_html(sentence.place)}</li>"
                for score, sentence, marks in rows
            )
            if not items:
                st.caption("No such sentence shares an entity.")
            st.html(f'<ul class="w-sentences" aria-label="{heading} sentences">{items}</ul>')


def _marked(sentence: Sentence, marks: list[Mark]) -> str:
    words = [escape(token) for token in sentence.tokens]
    for mark in marks:
        drifts = mark.skl > DRIFTS
        usual = "" if mark.usual == mark.type else f" · {escape(mark.usual)}"
        label = f" <small>{escape(mark.type)}{usual} · {mark.skl:.1f}</small>" if drifts else ""
        words[mark.start] = f'<mark class="w-entity" style="--c:{DRIFT if drifts else AGREE}">{words[mark.start]}'
        words[mark.end - 1] += f"{label}</mark>"
    return " ".join(words)
