"""Timing this machine: from its speed the time of a training is known before it begins."""

from collections.abc import Mapping

import streamlit as st

from core.projects import runs
from pages.ui.presses import pressed
from pages.ui.runs.panel import run_panel

HELP = "Trains for a few seconds on your text and throws the result away; nothing is kept but the speed."


def time_machine(options: Mapping[str, object], key: str) -> None:
    """One click away, or the run that is at it. options: of `calibrate`. key: begins the keys of what is drawn."""
    timing = next((run.id for run in runs.listed("calibrate") if runs.state(run.id).active), None)
    if timing:
        run_panel(timing, f"{key}.timing")
    elif pressed("Time this machine (under a minute)", f"{key}.time", icon=":material/timer:", help=HELP):
        runs.start("calibrate", options)
        st.rerun()
