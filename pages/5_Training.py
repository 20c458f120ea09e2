"""The page Training: start, watch, stop and resume pre-training, fine-tuning and experiments."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core import shown_command as commands
from core import terms
from core.experiment.reference import KINDS as REFERENCES
from core.importing import view as corpora
from core.projects import runs
from core.tagging import view as training
from pages.ui import checks as data_check
from pages.ui.empty import empty
from pages.ui.frame import guard, page
from pages.ui.runs.links import TRAINING, attach, attached, pick_run
from pages.ui.runs.panel import run_panel, where
from pages.ui.training import encoders, form, parts, untrained
from pages.ui.training.experiment import BUDGETS
from pages.ui.training.form import fewer_labels
from pages.ui.training.live import live, queue, result, smaller
from pages.ui.widgets import pressed, same_command

RUN, FORM, BEGUN = "training.run", "training.form", "training.begun"
KINDS = {
    "pretrain": "Pre-train an encoder",
    "finetune": "Fine-tune a tagger",
    "experiment": "Experiment: was it worth it?",
    "untrained": "Without training",
}
WHAT = {
    "pretrain": "Continues an encoder's pre-training (MLM) on the task corpus, the selection or both.",
    "finetune": "A tagger is trained on the labelled data; the dev set decides when training stops.",
    "experiment": "Compares variants: no pre-training, the random baseline, and a strategy's selection. Each is "
    "followed by the same fine-tuning with the same seeds. The result is a verdict with its confidence interval.",
    "untrained": "Tags a test set with lists of names, a ready model or a language model, without training. A tagger "
    "that is trained on your labels should score higher.",
}
SHOWN = (*training.TRAININGS, *REFERENCES)  # kinds of runs on this page
NEEDS = "Training needs text for the encoder (the task corpus or a selection) and labelled data for the tagger."
WORDS = (
    *(terms.TASK, terms.DOMAIN, terms.CHOICE, terms.TRAIN, terms.DEV, terms.TEST, terms.TAGGER, terms.ENCODER),
    *(terms.PRETRAINING, terms.EXPERIMENT, terms.VARIANT, terms.SEED, terms.REPLICATE, terms.CLAIM, terms.SCORE),
)


def main() -> None:
    """Draw the page."""
    with page("Training", "Pre-train, fine-tune, and find out whether it was worth it.", WORDS):
        run_id = attached(SHOWN, RUN)
        if not corpora.listed():
            empty(NEEDS, "training", "pages/5_Training.py")
        else:
            if st.session_state.pop(BEGUN, False):
                st.session_state[FORM] = False  # Close the form, so that the started run is in view.
            elif form.follow_address():
                st.session_state[FORM] = True
            form_box = st.expander(
                "What to train", expanded=run_id is None, icon=":material/tune:", key=FORM, on_change="rerun"
            )
            with form_box, guard():  # After a wrong entry in the form, the run below is still shown.
                _setup()
        if run_id is not None:
            with st.container():  # The queue changes its height. The container keeps the elements below in place.
                queue(run_id, RUN)
            _watch(pick_run(run_id, RUN, runs.own(*SHOWN), "Training"))


def _setup() -> None:
    kind = st.segmented_control(
        "What to train",
        list(KINDS),
        format_func=KINDS.__getitem__,
        default="finetune",
        required=True,
        key="training.kind",
        label_visibility="collapsed",
    )
    st.markdown(WHAT[kind])
    if kind == "untrained":
        if asked := untrained.options():
            _start("Tag the test set", *asked)
        return
    options = form.options(kind)
    encoders.offer()
    if kind != "pretrain":
        parts.vectors_import()
    if options is None:
        return
    if kind == "finetune":
        encoders.show(options)
    if kind == "experiment":
        options = fewer_labels(options, "training.labels")
        form.not_estimated(options)
    may_start, anyway = data_check.gate(
        corpora.check_run(kind, options), "training", here=TRAINING, cures=data_check.fitting_budget(BUDGETS)
    )
    cost = st.container()
    on = where("training", steps=True) if kind == "experiment" else ""
    with cost:
        form.show(kind, options, on)
    label = {"pretrain": "Pre-train", "finetune": "Fine-tune", "experiment": "Start the experiment"}[kind]
    _start(label, kind, options, on, may_start=may_start, anyway=anyway)


def _start(
    label: str, kind: str, options: Mapping[str, Any], on: str = "", *, may_start: bool = True, anyway: bool = False
) -> None:
    play = ":material/play_arrow:"
    if pressed(label, "training.start", type="primary", icon=play, disabled=not may_start):
        attach(runs.start(kind, options, on, run_anyway=anyway), RUN)
        st.session_state[BEGUN] = True
        st.rerun()
    same_command("training.command", commands.command(kind, options))


def _watch(run_id: str) -> None:
    """Show the run's progress and curves, and its result once it has finished."""
    state = run_panel(run_id, RUN)
    run = runs.get(run_id)
    if run.manifest.kind in training.TRAININGS:
        smaller(run_id, state, RUN)
        if state.state == "succeeded":
            result(run_id)
        live(run_id, state)
    elif state.state == "succeeded":
        untrained.result(run_id)
    same_command("training.run.command", commands.command(run.manifest.kind, run.manifest.config))


main()
