"""Measuring the difficulty of a labelled corpus: what to measure, the run at work with its losses, which to look at."""

from typing import Any

import numpy as np
import streamlit as st

from core import facade
from pages.ui.frame import guard
from pages.ui.run_panel import attach, attached, run_panel, title
from pages.ui.training_parts import BUNDLED, PRESETS
from pages.ui.widgets import config_form, corpus_label

RUN = "bias.run"
EVERY = 2.0  # seconds
MEANING = {
    "quick": "Minutes on a laptop, for a first look.",
    "paper": "The paper's settings for a corpus of this size (S3, Table 7), for numbers to report, best on a GPU.",
    "custom": "Every option is yours; what is left empty stays as usual.",
}
OPTIONS = (
    "folds", "repeats", "group", "null", "calibrate", "seed", "draws", "entity_epochs", "context_epochs", "batch_size",
    "learning_rate", "head_learning_rate", "max_length", "precision", "allow_download",
)  # fmt: skip
LINES = {"context": "context alone", "entity": "name alone"}  # in the order of their colours
MEANT = """
Two classifiers read every labelled mention, never one that they were trained on. One sees **only the name**, the
other **only the sentence around it**, with a blank where the name was. Both say which type it is.

- **PVI** (pointwise V-information) is how much surer of the right type one of them is than somebody who only knows
  how common each type is. It is in bits: 1 is twice as sure, 0 no surer, **below 0 misled**.
- **V-information** is the mean PVI of all mentions.
- **CEIM** is the name's PVI less the context's. From +0.5 on **the name** gives the type away; from −0.5 down **the
  context** does; in between they tell alike.

A tagger trained where names tell nearly everything may read names by heart and miss new ones (S3).
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
    run_id = _pick_run(run_id)
    state = run_panel(run_id, RUN)
    if state.state != "succeeded":
        st.fragment(run_every=EVERY if state.active else None)(_losses)(run_id)
    return run_id


def finished(run_id: str) -> bool:
    """Whether there is something to look at."""
    return facade.state(run_id).state == "succeeded"


def _setup() -> None:
    labelled = {corpus.fingerprint: corpus for corpus in facade.corpora() if corpus.types}
    train = facade.roles().get("train")
    names = list(labelled)
    left, right = st.columns(2)
    picked = left.selectbox(
        "Labelled corpus", names, names.index(train) if train in names else None,
        lambda name: corpus_label(labelled[name]), key=f"bias.train.{train}", placeholder="pick a labelled corpus",
    )  # fmt: skip
    encoder = right.selectbox(
        "Encoder", [BUNDLED], 0, lambda name: "MiniLM, bundled: works offline" if name == BUNDLED else name,
        key="bias.encoder", accept_new_options=True,
        help="Or type a folder, or a Hugging Face name that is on this machine, such as bert-base-cased.",
    )  # fmt: skip
    settings = _settings()
    if picked is None:
        return
    options = {"train": picked, "encoder": encoder, **settings}
    if st.button("Measure", type="primary", icon=":material/straighten:", key="bias.start"):
        attach(facade.start("difficulty", options), RUN)
        st.rerun()
    st.code(facade.command("difficulty", options), language="bash", wrap_lines=True)


def _settings() -> dict[str, Any]:
    config = facade.RECIPES["difficulty"].config
    left, right = st.columns(2)
    with left:
        preset = st.segmented_control(
            "Settings", list(PRESETS), default="quick", format_func=PRESETS.__getitem__, required=True,
            key="bias.preset",
        )  # fmt: skip
        st.caption(MEANING[preset])
    with right:
        found = config_form(config, ("mentions",), "bias")
    if preset == "custom":
        for i, column in enumerate(st.columns(3)):
            with column:
                found |= config_form(config, OPTIONS[i::3], "bias")
    return {"preset": preset, **found}


def _pick_run(run_id: str) -> str:
    """The one to look at, where there are several."""
    runs = [run for run in facade.runs("difficulty") if run.manifest.parent is None]
    if len(runs) < 2:
        return run_id
    names = {run.id: f"{title(run)} ({run.manifest.config['encoder']}, {run.id[-4:]})" for run in runs}
    picked = st.selectbox(
        "Measured", list(names), list(names).index(run_id), names.__getitem__, key=f"bias.which.{run_id}"
    )
    if picked != run_id:
        attach(picked, RUN)
        st.rerun()
    return run_id


def _losses(run_id: str) -> None:
    """Outside of the panel, so that a chart's node survives the panel's ticks."""
    with guard():
        found = {metric.type: metric for metric in facade.curves(run_id) if metric.name == "loss"}
        if not found:
            return
        none = np.empty(0)
        lines = [
            facade.figures.Line(name=name, part="", steps=found[side].steps, values=found[side].values)
            if side in found
            else facade.figures.Line(name=name, part="", steps=none, values=none)  # so that no colour changes hands
            for side, name in LINES.items()
        ]
        st.markdown("**Training loss of the two classifiers**")
        figure = facade.figures.curves(lines, y="loss", height=220)
        st.altair_chart(figure, key="bias.loss", alt="Training loss of both classifiers over all folds")
        st.caption("It jumps up wherever the next fold's classifier begins, which knows nothing yet.")
