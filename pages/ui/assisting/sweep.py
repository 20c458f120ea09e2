"""Does borrowing help? F1 by threshold (Murthy et al. 2018, Fig. 2), compared with borrowing nothing and everything."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core import shown_command as commands
from core.assisting import plot
from core.assisting import view as assisting
from core.assisting.assist import AssistResult, AssistRow, AssistTable, in_words
from core.assisting.skl import SWEEP
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import preferences, runs
from core.runs.result import read
from core.runs.run import Run
from core.terms import DEV, TEST
from pages.ui.runs.links import pick_part, remember
from pages.ui.runs.panel import run_panel
from pages.ui.runs.words import last_duration
from pages.ui.widgets import chart, config_form, corpus_picker, plain, same_command, submitted, table

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
    """Show the trainings alone, with all, and at every threshold, and their results."""
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
        "Trains one tagger per seed for each variant: your corpus alone, with all of the assisting corpus, with what "
        "each threshold keeps, and with as many random sentences as the chosen threshold keeps. The dev set chooses "
        "the threshold. All variants take the same steps on the same batches of your corpus. On two cores this "
        f"takes hours; cancel and resume at any time. {plain(last_duration('assist'))}"
    )
    roles = corpora.roles()
    with st.form("assisting.sweep.form", border=False):
        left, right = st.columns(2)
        with left:
            dev = corpus_picker(f"{DEV.title} of the primary corpus", "assisting.dev", roles.get("dev"))
        with right:
            test = corpus_picker(f"{TEST.title} of the primary corpus", "assisting.test", roles.get("test"))
        thresholds = st.multiselect("Thresholds", SWEEP, SWEEP, key="assisting.thresholds")
        seeds = st.number_input("Seeds", 1, 20, 3, key="assisting.seeds", help="3 for a first result, 5 for a claim")
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
    name = "Test score alone, with all, with as many at random, with the chosen threshold"
    table([_line(each) for each in result.tables], COLUMNS, name)
    st.caption("† better than with all of it: p below 0.05, Welch's two-sided t-test over the seeds.")
    _effort(result.rows)


def _effort(rows: Sequence[AssistRow]) -> None:
    """Show if the variants trained equally long; with the preset `paper` they do not."""
    alone, whole = rows[0], next(row for row in rows if row.arm == "all")
    if alone.steps == whole.steps:
        st.caption(
            f"Every variant took {alone.steps:,} steps, {alone.passes:g} passes over the primary sentences, on the same"
            " batches. The variants differ only in what each step added of the assisting corpus."
        )
        return
    st.caption(
        f"Borrowing also trains longer: {alone.steps:,} steps alone, {whole.steps:,} with all of the"
        f" assisting corpus ({alone.passes:g} and {whole.passes:g} passes over the primary sentences). A difference"
        " may come from that alone. Every preset except paper takes the same steps in every variant."
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
