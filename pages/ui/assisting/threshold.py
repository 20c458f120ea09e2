"""The threshold of SKL scores: set it with a slider and export the kept sentences, or train at several thresholds.

Training shows whether the borrowed sentences help (F1 by threshold: Murthy et al. 2018, Fig. 2).
"""

from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from core import shown_command as commands
from core.assisting import plot
from core.assisting import view as assisting
from core.assisting.assist import AssistResult, AssistRow, AssistTable, in_words
from core.assisting.skl import DRIFTS, SWEEP, Mark
from core.assisting.view import Kept
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import preferences, runs
from core.runs.result import read
from core.runs.run import Run
from core.shown import count
from core.terms import DEV, TEST
from core.text.sentence import Sentence
from pages.ui.frame import guard, looked
from pages.ui.project import later
from pages.ui.removal import text_gone
from pages.ui.runs.links import pick_part, remember
from pages.ui.runs.panel import run_panel
from pages.ui.runs.words import last_duration
from pages.ui.widgets import (
    chart,
    config_form,
    corpus_picker,
    place_html,
    plain,
    pressed,
    same_command,
    submitted,
    table,
)

AGREE, DRIFT = "#009E73", "#D55E00"
SCORE = (
    "The score of a sentence is its mean symmetric KL divergence (SKL): how differently the two corpora label their"
    " shared entities. 0: always the same type; about 9 with the default options: never the same type. On the tab “Does"
    " it help?” you can choose the threshold by a tagger's dev F1."
)
SIDES = {"line": "Nearest to the threshold", "ends": "Farthest from it"}


@st.fragment
def threshold(run_id: str) -> None:
    """Draw the slider of the threshold, and below it the results that depend on it. run_id: a finished `skl` run.

    Only stored scores are used, because every move of the slider redraws the results.
    """
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
        # If the threshold is below every score, no sentence is kept. `max` then avoids a division by 0.
        share = counts.sharing_nothing / max(counts.kept, 1)
        st.metric(
            "Kept without a shared entity",
            f"{share:.0%}",
            width="content",
            help=f"{counts.sharing_nothing:,} of the kept sentences share no entity with your corpus, so nothing in "
            "them can drift.",
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
        f' <mark class="w-entity" style="--c:{DRIFT}">drift <small>type here · usual type in your corpus · SKL</small>'
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
                st.caption("None of these sentences shares an entity with your corpus.")
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


RUN = "assisting.sweep"
LABELS = {
    "network": "Network",
    "shares": "Layers that both corpora share",
    "preset": "Preset",
    "init": "Encoder to start from",
    "hidden": "LSTM units per direction",
    "epochs": "Most epochs",
    "batch_size": "Batch size",
    "assisting_weight": "Weight of an assisting batch",
}
COLUMNS = {
    "share": "Shared",
    "monolingual": "Alone",
    "all": "All",
    "random": "Random",
    "skl": "Selected by SKL",
    "threshold": "Threshold",
    "kept": "Kept",
}


def sweep(run_id: str) -> None:
    """Draw the form that trains at several thresholds, and the result of such an `assist` run.

    The run trains on the primary corpus alone, then with all assisting sentences, and with those that each threshold
    keeps. run_id: the `skl` run that has the scores.
    """
    sweeps = assisting.sweeps(run_id)
    with st.expander("Train and compare", expanded=not sweeps, icon=":material/model_training:"):
        _setup(run_id)
    if not sweeps:
        return
    shown = pick_part(RUN, sweeps, "Trained and compared", _label)
    if run_panel(shown, RUN).state == "succeeded":
        _outcome(shown)
    same_command("assisting.sweep.command", commands.command("assist", runs.get(shown).manifest.config))


def _label(run: Run) -> str:
    config = run.manifest.config
    return f"{config['network']}, seeds {', '.join(map(str, config['seeds']))}"


def _setup(run_id: str) -> None:
    st.caption(
        "Trains one tagger per seed for each variant: your corpus alone, with all of the assisting corpus, with the "
        "sentences that a threshold keeps, and with as many random sentences as the chosen threshold keeps. The dev "
        "set decides which threshold is chosen. All variants take the same steps on the same batches of your corpus. "
        f"On two cores this takes hours, but you can cancel and resume it at any time. {plain(last_duration('assist'))}"
    )
    roles = corpora.roles()
    with st.form("assisting.sweep.form", border=False):
        left, right = st.columns(2)
        with left:
            dev = corpus_picker(f"{DEV.title} of the primary corpus", "assisting.dev", roles.get("dev"))
        with right:
            test = corpus_picker(f"{TEST.title} of the primary corpus", "assisting.test", roles.get("test"))
        thresholds = st.multiselect("Thresholds", SWEEP, SWEEP, key="assisting.thresholds")
        seeds = st.number_input(
            "Seeds", 1, 20, 3, key="assisting.seeds", help="Use 3 seeds for a first result, 5 for a claim."
        )
        more: dict[str, Any] = {}
        if preferences.expert():
            with st.expander("More options", icon=":material/settings:"):
                more = config_form(KINDS["assist"].config, tuple(LABELS), "assisting.sweep", LABELS)
        sent = submitted("Train", "assisting.sweep.start", type="primary", icon=":material/play_arrow:")
    if sent:
        given = {key: value for key, value in more.items() if value not in (None, "")}
        own = runs.get(run_id).manifest.config
        lists = {"thresholds": thresholds, "seeds": list(range(1, seeds + 1))}
        remember(runs.start("assist", {**own, "dev": dev or "", "test": test or "", **lists, **given}), RUN)
        st.rerun()


def _outcome(run_id: str) -> None:
    result = read(runs.get(run_id), AssistResult)
    for table_of_share in result.tables:
        st.markdown(f"**{plain(in_words(table_of_share))}**")
        figure = plot.f1_by_threshold(assisting.sweep_points(run_id, table_of_share.share), table_of_share.threshold)
        chart(figure, f"assisting.f1.{table_of_share.share}", f"Score by threshold, sharing {table_of_share.share}")
    name = "Test score of the primary corpus alone, and with all, with random and with selected assisting sentences"
    table([_line(each) for each in result.tables], COLUMNS, name)
    st.caption("† better than with all of the assisting corpus: p below 0.05, Welch's two-sided t-test over the seeds.")
    _effort(result.rows)


def _effort(rows: Sequence[AssistRow]) -> None:
    """Show the number of training steps of each variant, with a note if they differ, as with the preset `paper`."""
    alone, whole = rows[0], next(row for row in rows if row.arm == "all")
    if alone.steps == whole.steps:
        st.caption(
            f"Every variant took {alone.steps:,} steps on the same batches of primary sentences ({alone.passes:g}"
            " passes over them). The variants differ only in the assisting sentences that each step added."
        )
        return
    st.caption(
        f"Borrowing also trains longer: {alone.steps:,} steps alone, {whole.steps:,} with all of the"
        f" assisting corpus ({alone.passes:g} and {whole.passes:g} passes over the primary sentences). A difference"
        " may come from longer training alone. Every preset except paper takes the same steps in every variant."
    )


def _line(row: AssistTable) -> dict[str, str | int]:
    dagger = "†" if row.against_all and row.against_all.dagger else ""
    return {
        "share": row.share,
        "monolingual": f"{row.monolingual:.2f}",
        "all": f"{row.all:.2f}",
        "random": "–" if row.random is None else f"{row.random:.2f}",
        "skl": f"{row.skl:.2f}{dagger}",
        "threshold": f"{row.threshold:g}",
        "kept": row.kept,
    }
