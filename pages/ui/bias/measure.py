"""Measure PVI and CEIM of a labelled corpus: the form, the running measurement, and a field to pick another one."""

from typing import Any

import numpy as np
import streamlit as st

from core import shown_command as commands
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import runs
from core.projects.titles import title
from core.runs.run import Run
from core.shown import count, duration
from core.tagging import plot
from core.tagging import view as training
from pages.ui.frame import guard
from pages.ui.runs.links import attach, attached, pick_run
from pages.ui.runs.panel import run_panel, time_machine
from pages.ui.training.parts import BUNDLED, BUNDLED_SAYS, preset_picker
from pages.ui.widgets import config_form, corpus_picker, is_dark, pressed, same_command

RUN = "bias.run"
POLL = 2.0  # seconds between updates
MEANING = {
    "quick": "For a first impression.",
    "paper": "The published settings for a corpus of this size, for numbers to report; best on a GPU.",
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
LINES = {"context": "context alone", "entity": "name alone"}  # The order of the lines sets their colours.
MEANT = """
Two classifiers predict the type of every labelled mention; neither has trained on the mentions it predicts. One sees
**only the name**, the other **only the sentence around it**, with a blank in place of the name.

- **Information** (PVI, pointwise V-information) compares the probability that a classifier gives the right type with
  the share of that type. It is in bits. At 1, the probability is twice the share; at 0, they are equal. Below 0, the
  classifier **was misled**.
- **V-information** is the mean information of all mentions.
- **Name minus context** (CEIM) is the information of the name minus that of the context. From +0.5 on, **the name** is
  more informative; from −0.5 down, **the context** is; in between, both are about equal.

If names hold nearly all the information, a tagger may memorise names and miss new ones.
"""


def measure() -> str | None:
    """Draw the form and the progress of a measurement; return the id of the `difficulty` run to show, or None."""
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
    """Return True if the run has a result to show."""
    return runs.state(run_id).state == "succeeded"


def _encoder() -> str:
    return st.selectbox(
        "Encoder",
        [BUNDLED],
        0,
        lambda name: BUNDLED_SAYS if name == BUNDLED else name,
        key="bias.encoder",
        accept_new_options=True,
        help="Or type a folder, or a Hugging Face name of an encoder on this machine, such as bert-base-cased.",
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
    """Show the expected duration. If this machine was not timed yet, draw a button that times it."""
    seconds = training.difficulty_estimate(options)
    mentions = sum(corpora.find(options["train"]).types.values())
    # The option `mentions` limits the number of mentions; 0 means no limit.
    mentions = min(mentions, options["mentions"] or mentions)
    if seconds is not None:
        st.caption(
            f"About {duration(seconds)} for {count(mentions, 'mention')} on this machine, if little else runs on it. "
            "This encoder was timed here for a few seconds; the run shows a better estimate after its first trainings."
        )
    else:
        st.caption(f"The time for {mentions:,} mentions on this machine is not known yet.")
        given: dict[str, Any] = {
            name: options[name] for name in ("train", "encoder", "allow_download") if name in options
        }
        time_machine({**given, "task": options["train"]}, "bias")


def _settings() -> dict[str, Any]:
    config = KINDS["difficulty"].config
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
            help="To save time, measure a sample of whole sentences with about this many labelled entities.",
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
    """Draw the chart of training losses. It is not part of the run panel, whose updates would redraw it."""
    with guard():
        losses = {metric.type: metric for metric in training.curves(run_id) if metric.name == "loss"}
        if not losses:
            return
        none, no_steps = np.empty(0), np.empty(0, dtype=np.int64)
        lines = [
            plot.Line(name=name, part="", steps=losses[side].steps, values=losses[side].values)
            if side in losses
            # Without this empty line, the other line would get the first colour.
            else plot.Line(name=name, part="", steps=no_steps, values=none)
            for side, name in LINES.items()
        ]
        st.markdown("**Training loss of the two classifiers**")
        figure = plot.curves(lines, y="loss", height=220, dark=is_dark())
        st.altair_chart(figure, key="bias.loss", alt="Training loss of both classifiers over all folds")
        st.caption("The loss jumps up when the training of the next fold begins.")
