"""Measuring the difficulty of a labelled corpus: what to measure, the run at work with its losses, which to look at."""

from typing import Any

import numpy as np
import streamlit as st

from core import shown_command as commands
from core.importing import view as corpora
from core.projects import runs
from core.projects.runs import Run
from core.shown import count, duration
from core.tagging import plot
from core.tagging import view as training
from pages.ui.frame import guard
from pages.ui.presses import pressed
from pages.ui.runs.links import attach, attached
from pages.ui.runs.panel import run_panel
from pages.ui.runs.pick import pick_run
from pages.ui.runs.timing import time_machine
from pages.ui.runs.words import title
from pages.ui.training.parts import BUNDLED, BUNDLED_SAYS, preset_picker
from pages.ui.widgets import config_form, corpus_picker, is_dark, same_command

RUN = "bias.run"
POLL = 2.0  # seconds
MEANING = {
    "quick": "For a first look.",
    "paper": "The settings that were published for a corpus of this size, for numbers to report, best on a GPU.",
}
OPTIONS = (
    "folds",
    "repeats",
    "group",
    "null",
    "calibrate",
    "seed",
    "draws",
    "entity_epochs",
    "context_epochs",
    "batch_size",
    "learning_rate",
    "head_learning_rate",
    "max_length",
    "precision",
    "allow_download",
)
LINES = {"context": "context alone", "entity": "name alone"}  # in the order of their colours
MEANT = """
Two classifiers read every labelled mention, never one that they were trained on. One sees **only the name**, the
other **only the sentence around it**, with a blank where the name was. Both say which type it is.

- **Information** (PVI, pointwise V-information) is how much surer of the right type one of them is than somebody who
  only knows how common each type is. It is in bits: 1 is twice as sure, 0 no surer, **below 0 misled**.
- **V-information** is the mean information of all mentions.
- **Name minus context** (CEIM) is the name's information less the context's. From +0.5 on **the name** gives the
  type away; from −0.5 down **the context** does; in between they tell alike.

A tagger trained where names tell nearly everything may read names by heart and miss new ones.
"""


def measure() -> str | None:
    """The form, the run at work, and the run to look at."""
    run_id = attached("difficulty", RUN)
    with st.expander("What PVI and CEIM mean", icon=":material/help:"):
        st.markdown(MEANT)
    with st.expander("What to measure", expanded=run_id is None, icon=":material/tune:"):
        _setup()
    if run_id is None:
        return None
    run_id = pick_run(run_id, RUN, runs.own("difficulty"), "Measured", _label)
    state = run_panel(run_id, RUN)
    if state.state != "succeeded":
        st.fragment(run_every=POLL if state.active else None)(_losses)(run_id)
    return run_id


def finished(run_id: str) -> bool:
    """Whether there is something to look at."""
    return runs.state(run_id).state == "succeeded"


def _encoder() -> str:
    return st.selectbox(
        "Encoder",
        [BUNDLED],
        0,
        lambda name: BUNDLED_SAYS if name == BUNDLED else name,
        key="bias.encoder",
        accept_new_options=True,
        help="Or type a folder, or a Hugging Face name that is on this machine, such as bert-base-cased.",
    )


def _setup() -> None:
    labelled = [corpus for corpus in corpora.listed() if corpus.types]
    train = corpora.roles().get("train")
    left, right = st.columns(2)
    with left:
        picked = corpus_picker("Labelled corpus", f"bias.train.{train}", train, labelled)
    with right:
        encoder = _encoder()
    settings = _settings()
    if picked is None:
        return
    options = {"train": picked, "encoder": encoder, **settings}
    _time(options)
    if pressed("Measure", "bias.start", type="primary", icon=":material/straighten:"):
        attach(runs.start("difficulty", options), RUN)
        st.rerun()
    same_command("bias.command", commands.command("difficulty", options))


def _time(options: dict[str, Any]) -> None:
    """Draw how long it will take, as far as this machine was timed; else the way to know."""
    seconds = training.difficulty_estimate(options)
    mentions = sum(corpora.find(options["train"]).types.values())
    # 0 is no limit.
    mentions = min(mentions, options["mentions"] or mentions)
    if seconds is not None:
        st.caption(
            f"About {duration(seconds)} for {count(mentions, 'mention')} on this machine, if little else runs on it. "
            "This encoder was timed here for a few seconds; the run shows a better estimate after its first trainings."
        )
    else:
        st.caption(f"How long {mentions:,} mentions take on this machine is not known yet.")
        given: dict[str, Any] = {
            name: options[name] for name in ("train", "encoder", "allow_download") if name in options
        }
        time_machine({**given, "task": options["train"]}, "bias")


def _settings() -> dict[str, Any]:
    config = runs.KINDS["difficulty"].config
    left, right = st.columns(2)
    with left:
        preset = preset_picker("bias.preset", MEANING)
    with right:
        mentions = st.number_input(
            "Mentions to measure, about",
            1,
            None,
            None,
            placeholder="all of them",
            key="bias.mentions",
            help="A sample of whole sentences with about so many labelled entities takes less time.",
        )
        options: dict[str, Any] = {"mentions": mentions or 0}
    if preset == "custom":
        for i, column in enumerate(st.columns(3)):
            with column:
                options |= config_form(config, OPTIONS[i::3], "bias")
    return {"preset": preset, **options}


def _label(run: Run) -> str:
    return f"{title(run)} with {run.manifest.config['encoder']}"


def _losses(run_id: str) -> None:
    """Outside of the panel, so that a chart's node survives the panel's ticks."""
    with guard():
        losses = {metric.type: metric for metric in training.curves(run_id) if metric.name == "loss"}
        if not losses:
            return
        none, no_steps = np.empty(0), np.empty(0, dtype=np.int64)
        lines = [
            plot.Line(name=name, part="", steps=losses[side].steps, values=losses[side].values)
            if side in losses
            else plot.Line(name=name, part="", steps=no_steps, values=none)  # so that no colour changes hands
            for side, name in LINES.items()
        ]
        st.markdown("**Training loss of the two classifiers**")
        figure = plot.curves(lines, y="loss", height=220, dark=is_dark())
        st.altair_chart(figure, key="bias.loss", alt="Training loss of both classifiers over all folds")
        st.caption("It jumps up wherever the next fold's classifier begins, which knows nothing yet.")
