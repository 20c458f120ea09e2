"""Results: was it worth it, how sure is that, what does each tagger get right, and taking it all away."""

from functools import partial

import streamlit as st

from core import facade
from pages.ui import results_beside, results_board, results_overlay, results_take, results_try
from pages.ui.frame import page
from pages.ui.run_panel import attach, attached, run_panel
from pages.ui.widgets import plain, sample_buttons

RUN = "results.run"


def main() -> None:
    """The page."""
    with page("Results", "What was compared, what came out, and how sure that is."):
        run_id = attached("experiment", RUN)
        if run_id is None and not facade.runs("finetune"):
            _nothing()
            return
        finished = run_id is not None and run_panel(_pick(run_id), RUN).state == "succeeded"
        if finished:
            _warn(str(run_id))
        _tabs(run_id if finished else None)


def _nothing() -> None:
    st.info("There is no finished run yet. An experiment says whether pre-training on a selection was worth it.")
    if facade.corpora():
        st.page_link("pages/5_Training.py", label="Start an experiment", icon=":material/model_training:")
    else:
        sample_buttons("results", "pages/5_Training.py")


def _pick(run_id: str) -> str:
    """The experiment to look at, where there are several."""
    runs = {run.id: run.manifest.config for run in facade.runs("experiment") if run.manifest.parent is None}
    if len(runs) < 2:
        return run_id

    def label(name: str) -> str:
        return f"{', '.join(runs[name]['arms'])} ({name[9:11]}:{name[11:13]} UTC, {name[-4:]})"

    names = list(runs)
    picked = st.selectbox("Experiment", names, names.index(run_id), label, key=f"results.which.{run_id}")
    if picked != run_id:
        attach(picked, RUN)
        st.rerun()
    return run_id


def _warn(run_id: str) -> None:
    if gone := facade.missing(run_id):
        st.warning(f"Not reproducible as it was: {plain('; '.join(gone))} can no longer be found.")


def _tabs(run_id: str | None) -> None:
    """Only the open one is worked out. run_id: a finished experiment; None: single trainings alone."""
    arms = _arms(run_id)
    drawn = {} if run_id is None else {
        "Leaderboard": partial(results_board.leaderboard, run_id), "Curves": partial(results_board.curves, run_id),
    }  # fmt: skip
    if arms:
        drawn |= {
            "By type": partial(results_beside.types, arms),
            "Sentences": partial(results_beside.sentences, arms),
            "While training": partial(results_overlay.overlay, arms),
            "Try a sentence": partial(results_try.try_it, arms),
        }
    drawn |= {"All trainings": results_take.trainings, "Take away": partial(results_take.take_away, run_id, arms)}
    for tab, draw in zip(st.tabs(list(drawn), key="results.tab", on_change="rerun"), drawn.values(), strict=True):
        if tab.open:
            with tab:
                draw()


def _arms(run_id: str | None) -> dict[str, str]:
    """Finished taggers with a test set by what they are called here: {finetune run: name}."""
    if run_id is not None:
        here = {run.id for run in facade.runs("finetune")}
        rows = facade.board(run_id)["leaderboard"]
        return {row["finetune_run"]: facade.figures.line_name(row) for row in rows if row["finetune_run"] in here}
    rows = [row for row in facade.tagger_rows() if row["f1"] is not None]
    return {row["run"]: f"{results_take.origin(row)} on {row['train']} ({row['run'][-4:]})" for row in rows}


main()
