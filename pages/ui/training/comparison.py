"""The lines of an experiment's leaderboard: at first what tries the choice, as it was chosen."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.experiment.arms import CONTROLS
from pages.ui.training import claim
from pages.ui.training.arms import arm_label, arm_names
from pages.ui.training.parts import seed_list, worded
from pages.ui.widgets import listed, plain

REPEAT = {
    "pipeline": "the selection of sentences, the pre-training and the tagger: both answers can be had",
    "tagger": "the tagger alone: a quick look, which can show that reading helped, not that choosing did",
}
BUDGETS = "training.experiment.budgets"  # key of the field
HOW = ("strategies", "select")  # options by which a choice was made, beside its strategy and its size


def lines(
    further: Mapping[str, Any], by_choice: Mapping[str, Any], unlabelled: bool, *, swapped: bool
) -> dict[str, Any]:
    """The lines of the leaderboard. by_choice: `find_out.choice_options`, which they begin with. unlabelled: there are
    a T_C and a D_C. swapped: replicates have halves of their own."""
    names = arm_names(further)
    arms = st.multiselect(
        "What is compared",
        names,
        [name for name in by_choice["arms"] if name in names] if unlabelled else ["none"],
        arm_label,
        key="training.experiment.arms",
        placeholder="pick what the tagger gets beside its labels",
        help="What no verdict can do without is added by itself: no pre-training, and what a selection must beat.",
    )
    left, right = st.columns(2)
    st.session_state.setdefault(BUDGETS, ", ".join(by_choice["budgets"]))  # no default: a button sets the field too
    budgets = left.text_input(
        "How much each selection takes",
        key=BUDGETS,
        help="A share of the domain corpus (10%) or so many sentences (1000). Several, by commas, are a line each.",
    )
    with right:
        # An even number, and a field of its own: a default does not change what a field holds.
        seeds = seed_list("experiment.cross", "1, 2, 3, 4") if swapped else seed_list("experiment", "1, 2, 3")
    repeat = "pipeline" if swapped else worded("repeat", "Repeated for every seed", REPEAT)
    rest = {"budgets": listed(budgets), "seeds": seeds, "repeat": repeat, **claim.multipliers(repeat)}
    planned = claim.planned([name for name in arms if name not in ("none", *CONTROLS)], repeat)
    return {"arms": arms, **rest, **planned}


def as_chosen(by_choice: Mapping[str, Any], arms: Sequence[str]) -> dict[str, Any]:
    """Options by which the choice was made, said where its strategy is among the arms; {} where it is not."""
    *_, strategy = by_choice["arms"]
    same = {stage: by_choice[stage] for stage in HOW if stage in by_choice} if strategy in arms else {}
    if same:
        st.caption(f"By {plain(strategy)} it is chosen with the options that your selection was made with.")
    return same
