"""Training: pre-train an encoder, fine-tune a tagger, or ask whether it was worth it; watch it, stop it, resume it."""

import streamlit as st

from core import facade
from pages.ui import training_form, training_outcome, training_preflight
from pages.ui.frame import page
from pages.ui.live import live
from pages.ui.run_panel import attach, attached, run_panel, title
from pages.ui.widgets import sample_buttons

RUN = "training.run"
KINDS = {
    "pretrain": "Pre-train an encoder",
    "finetune": "Fine-tune a tagger",
    "experiment": "Experiment: was it worth it?",
}
WHAT = {
    "pretrain": "The encoder goes on reading: masked language modelling on T_C, S_C or both (S0, stage II).",
    "finetune": "A tagger learns from L_C what to find: encoder and CRF, the best epoch by dev F1 (S0, stage III).",
    "experiment": "Arms side by side: no pre-training, a random S_C, a selected S_C, each fine-tuned under the same "
    "seeds; then a verdict, and how sure it is.",
}
STOPPED = (
    "Stopped at your request. The last checkpoint and the best model so far are kept; Resume goes on at that step "
    "with the same curve."
)


def main() -> None:
    """The page."""
    with page("Training", "Pre-train, fine-tune, and find out whether it was worth it."):
        if not facade.corpora():
            st.info("Training needs text for the encoder (T_C or an S_C) and labelled sentences for the tagger (L_C).")
            sample_buttons("training", "pages/5_Training.py")
            st.page_link("pages/1_Corpora.py", label="Import your own corpora", icon=":material/library_books:")
            return
        run_id = attached(facade.TRAININGS, RUN)
        with st.expander("What to train", expanded=run_id is None, icon=":material/tune:"):
            _setup()
        if run_id is not None:
            with st.container():  # stays when the queue comes and goes, so that nothing below it moves its place
                training_outcome.queue(run_id, RUN)
            _watch(_pick_run(run_id))


def _setup() -> None:
    kind = st.segmented_control(
        "What to train", list(KINDS), format_func=KINDS.__getitem__, default="finetune", required=True,
        key="training.kind", label_visibility="collapsed",
    )  # fmt: skip
    st.markdown(WHAT[kind])
    options = training_form.options(kind)
    if options is None:
        return
    training_preflight.show(kind, options)
    label = {"pretrain": "Pre-train", "finetune": "Fine-tune", "experiment": "Start the experiment"}[kind]
    if st.button(label, type="primary", icon=":material/play_arrow:", key="training.start"):
        attach(facade.start(kind, options), RUN)
        st.rerun()
    st.code(facade.command(kind, options), language="bash", wrap_lines=True)


def _pick_run(run_id: str) -> str:
    """The training to look at, where there are several."""
    runs = {
        run.id: f"{title(run)} ({run.id[9:11]}:{run.id[11:13]} UTC, {run.id[-4:]})"
        for run in facade.runs()
        if run.manifest.kind in facade.TRAININGS and run.manifest.parent is None
    }
    if len(runs) < 2:
        return run_id
    names = list(runs)
    picked = st.selectbox("Training", names, names.index(run_id), runs.__getitem__, key=f"training.which.{run_id}")
    if picked != run_id:
        attach(picked, RUN)
        st.rerun()
    return run_id


def _watch(run_id: str) -> None:
    """The run, what can be done about its end, what came out, and its curves."""
    state = run_panel(run_id, RUN, stop="Stop and keep", stopped=STOPPED)
    training_outcome.smaller(run_id, state, RUN)
    if state.state == "succeeded":
        training_outcome.result(run_id)
    live(run_id, state)
    with st.expander("The same on the command line", icon=":material/terminal:"):
        run = facade.run(run_id)
        st.code(facade.command(run.manifest.kind, run.manifest.config), language="bash", wrap_lines=True)


main()
