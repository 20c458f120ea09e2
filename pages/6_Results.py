"""The page Results: verdicts, comparisons of taggers, and downloads."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from core import terms
from core.experiment import results, words
from core.experiment.arms import NONE
from core.project_list import INVENTED
from core.projects import runs
from core.projects import view as projects
from core.projects.titles import title
from core.tagging import view as taggers
from pages.ui.empty import empty
from pages.ui.frame import page, where_text_is_here
from pages.ui.results import board, pair, sentences, take, try_it
from pages.ui.runs.links import OPEN, TRAINING, attached, pick_run
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import plain

RUN = "results.run"
COMPARED = ("experiment", "study")
OPENS = {"try": try_it.TAB, "download": "Download"}  # {value in the URL: tab that it opens}
NEEDS = "There is no finished run yet. An experiment shows whether pre-training on a selection was worth it."

WORDS = (
    *(
        terms.SCORE,
        terms.VARIANT,
        terms.EXPERIMENT,
        terms.INTERVAL,
        terms.CLAIM,
        terms.SEED,
        terms.REPLICATE,
        terms.CHOICE,
    ),
    *(terms.TEST, terms.DEV, terms.TAGGER),
)


def main() -> None:
    """Draw the page."""
    with page("Results", "What was compared, the result, and how certain it is.", WORDS):
        single = _single()
        run_id = None if single else attached(COMPARED, RUN)
        if run_id is None and not runs.listed("finetune"):
            empty(NEEDS, "results", TRAINING, make="Start an experiment")
            return
        finished = run_id is not None and run_panel(_pick(run_id), RUN).state == "succeeded"
        if projects.current().sample:
            st.caption(f":material/science: {INVENTED}")
        if finished:
            _warn(str(run_id))
        if finished and runs.get(str(run_id)).manifest.kind == "study":
            _study(str(run_id))
        else:
            _tabs(run_id if finished else None, single, waiting=run_id is not None and not finished)


def _single() -> str:
    """Return the id of the `finetune` run that the URL names, or ""."""
    run = next((run for run in runs.listed("finetune") if run.id == st.query_params.get("run")), None)
    if run is None:
        return ""
    st.markdown(f"**{plain(title(run))}** is the first of the separate trainings below.")
    return run.id


def _pick(run_id: str) -> str:
    """Let the user pick an experiment or study if there are several, and return its id. run_id: the default."""
    return pick_run(
        run_id,
        RUN,
        runs.own(*COMPARED),
        "Experiment",
        lambda run: title(run) if run.manifest.kind == "study" else ", ".join(run.manifest.config["arms"]),
    )


def _warn(run_id: str) -> None:
    if gone := results.missing(run_id):
        st.caption(
            f":material/link_off: This run cannot be repeated exactly. Missing inputs: {plain('; '.join(gone))}."
        )


def _study(run_id: str) -> None:
    drawn: dict[str, Callable[[], None]] = {
        "Study": partial(board.study, run_id),
        "Download": partial(take.report, run_id),
        try_it.TAB: partial(try_it.try_it, {}),
        "All trainings": take.trainings,
    }
    _draw(drawn, "results.tab.study")


def _draw(drawn: dict[str, Callable[[], None]], key: str) -> None:
    """Draw tabs; only the open one is computed."""
    first = OPENS.get(st.query_params.get(OPEN, ""))
    for tab, draw in zip(st.tabs(list(drawn), default=first, key=key, on_change="rerun"), drawn.values(), strict=True):
        if tab.open:
            with tab, where_text_is_here():
                draw()


def _tabs(run_id: str | None, single: str, *, waiting: bool) -> None:
    """Draw the tabs. run_id: a finished experiment; None: show only `finetune` runs, with `single` first.

    waiting: True if an experiment has no result yet. Then the list of all `finetune` runs comes first, because two
    unrelated taggers side by side could be mistaken for its result.
    """
    run_labels = _run_labels(run_id, single)
    drawn: dict[str, Callable[[], None]] = (
        {}
        if run_id is None
        else {
            "Leaderboard": partial(board.leaderboard, run_id),
            "Curves": partial(board.curves, run_id),
        }
    )
    if run_labels:
        drawn |= {
            "By type": partial(pair.types, run_labels, run_id),
            "Sentences": partial(sentences.sentences, run_labels),
            "Training curves": partial(pair.overlay, run_labels),
        }
    drawn[try_it.TAB] = partial(try_it.try_it, run_labels)
    everything: dict[str, Callable[[], None]] = {"All trainings": take.trainings}
    drawn = everything | drawn if waiting else drawn | everything
    drawn |= {"Download": partial(take.take_away, run_id, run_labels)}
    # Change the key when the result arrives, because Streamlit then opens the first tab, the leaderboard.
    _draw(drawn, f"results.tab{'.waiting' * waiting}")


def _run_labels(run_id: str | None, single: str) -> dict[str, str]:
    """Return {`finetune` run: name} for finished taggers with a test set."""
    if run_id is not None:
        here = {run.id for run in runs.listed("finetune")}
        board = results.board(run_id)
        # Put the variant of the planned analysis first, because comparisons preselect the first variant.
        leaderboard = sorted(board.leaderboard, key=lambda arm: not results.is_claimed(board, arm))
        lines: dict[tuple[str, ...], list[str]] = {}  # Variants with the same text and labels share their taggers.
        for arm in leaderboard:
            lines.setdefault(tuple(arm.finetunes), []).append(words.line_name(arm))
        labels: dict[str, str] = {}
        for finetunes, names in lines.items():
            name = ", also ".join(sorted(names, key=lambda name: name != NONE))
            for i, run in enumerate(finetunes, 1):
                if run in here:
                    own = f"{name}, replicate {i}" if len(finetunes) > 1 else name
                    # Two variants may have the same text and labels in only some replicates.
                    labels[run] = f"{labels[run]}, also {own}" if run in labels else own
        return labels
    rows = [row for row in results.tagger_rows() if row.f1 is not None]
    # Put `single` first. The sort is stable, so the other runs stay newest first.
    rows.sort(key=lambda row: row.run != single)
    return taggers.names([row.run for row in rows])


main()
