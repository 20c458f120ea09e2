"""The claim of an experiment: its planned test, and whether to measure what choosing is worth."""

from typing import Any

import streamlit as st

from pages.ui.training.arms import arm_label
from pages.ui.widgets import listed


def multipliers(repeat: str) -> dict[str, Any]:
    """Whether to measure what choosing is worth, which every seed must make all anew for."""
    asked = st.checkbox(
        "Measure what choosing is worth in random text and in labels",
        key="training.experiment.multipliers",
        disabled=repeat != "pipeline",
        help="So many times as much read at random, or so many more labelled sentences, for the same score. Random "
        "sentences are read at 2 and 4 times the amount too, and a quarter and half of the labels are trained on: "
        "the times below say what that takes.",
    )
    return {"multipliers": True} if asked and repeat == "pipeline" else {}


def planned(arms: list[str], repeat: str) -> dict[str, Any]:
    """The planned test: what it is about, what it is to find, when it may end."""
    left, middle, right = st.columns(3)
    claim = left.selectbox(
        "The claim is about",
        ["", *arms],
        format_func=lambda name: arm_label(name) if name else "the first strategy",
        key="training.experiment.claim",
        help="Say it beforehand: its test pays for no other variant's. All others are exploratory.",
    )
    effect = middle.number_input(
        "To find, in points of the score",
        0.1,
        value=1.0,
        step=0.1,
        key="training.experiment.effect",
        help="The chances below are told for a difference of this size, and an early end goes by it.",
    )
    looks = right.text_input(
        "May end after so many replicates",
        key="training.experiment.looks",
        placeholder="such as 2, 4, 6",
        disabled=repeat != "pipeline",
        help="The last is the number of seeds. It ends there if the claim is decided, or can hardly be any more.",
    )
    return {"claim": claim, "effect": effect, "looks": listed(looks) if repeat == "pipeline" else []}
