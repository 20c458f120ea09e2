"""The variants of an experiment, how often they are repeated, and the claim of its planned test."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.experiment.arms import ARM_NAMES, ARM_SHAPES, CONTROLS
from core.importing import view as corpora
from core.selection import STRATEGIES
from pages.ui.bias.rebuild import METHODS
from pages.ui.training.parts import seed_list, worded
from pages.ui.widgets import listed, plain

PLAIN = {
    "none": "No pre-training: what all others are compared with",
    "tapt": "The task corpus alone",
    "dapt": "All of the domain corpus",
    "tapt+dapt": "The task corpus and all of the domain corpus",
    "random-only": "As much random text of the domain corpus as the task corpus has",
    "random": "The task corpus and random sentences: what a selection must beat",
    "length-matched-random": "The task corpus and random sentences as long as its own",
    "states": "The encoder as it came, its states in another network",
    "all": "All sentences of the assisting corpus too",
    "lpft": "The last layer first, then the whole tagger",
    "span": "A type for every span of up to four words: what miner must beat",
    "miner": "The same, and names of one type are to be read alike",
    "dataaug": f"Labels and copies of them: {METHODS['dataaug'][0][0].lower()}{METHODS['dataaug'][0][1:]}",
}
VALUED = {
    "vectors": "Word vectors of {}",
    "lm": "The encoder's states after reading {}",
    "skl": "Assisting sentences that differ by less than {} nats",
    "base": "{} random labelled sentences",
    "base+low": "{0} random labelled sentences, and {0} told by their context",
    "base+near_zero": "{0} random labelled sentences, and {0} told by name and context alike",
    "base+high": "{0} random labelled sentences, and {0} told by their name",
}
REPEAT = {
    "pipeline": "the selection of sentences, the pre-training and the tagger: both answers can be had",
    "tagger": "the tagger alone: a quick look, which can show that reading helped, not that choosing did",
}
BUDGETS = "training.experiment.budgets"  # key of the field
HOW = ("strategies", "select")  # options of a selection, next to its strategy and its size


def arm_label(name: str) -> str:
    """Return the label of a variant: what it does, and its name; an unknown name is its own label."""
    head, _, value = name.partition(":")
    if name in PLAIN:
        words = PLAIN[name]
    elif name in STRATEGIES:
        words = "The task corpus and a selection from the domain corpus"
    elif value and head in VALUED:
        words = VALUED[head].format(value)
    elif value and head in METHODS:
        words = f"Labels rebuilt at {value}: {METHODS[head][0][0].lower()}{METHODS[head][0][1:]}"
    else:
        return name
    return f"{words} ({name})"


def arm_names(further: Mapping[str, Any]) -> list[str]:
    """Return the names of variants to choose from; values come from the corpora and vectors that were picked.

    further: the `sources`, the `imported_vectors` and the `assisting` corpus of the experiment.
    """
    values = {
        "SOURCE": [corpora.find(source).name for source in further["sources"]],
        "THRESHOLD": ["1", "2", "4"] if further["assisting"] else [],
        "RATE": ["20%"],
        "SIZE": ["1000"],
    }
    shapes = (shape.split(":") for shape in ARM_SHAPES)
    named = [f"{head}:{value}" for head, kind in shapes for value in values[kind]]
    imported = [f"vectors:{name}" for name in further.get("imported_vectors", ())]
    return [*ARM_NAMES, *dict.fromkeys([*named, *imported])]


def lines(
    further: Mapping[str, Any], by_choice: Mapping[str, Any], unlabelled: bool, *, swapped: bool
) -> dict[str, Any]:
    """Ask for the variants of the leaderboard, and return the options.

    by_choice: `find_out.choice_options`, the default. unlabelled: there are a T_C and a D_C. swapped: each replicate
    has its own half of the labels.
    """
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
    st.session_state.setdefault(BUDGETS, ", ".join(by_choice["budgets"]))  # a button sets the field too
    budgets = left.text_input(
        "How much each selection takes",
        key=BUDGETS,
        help="A share of the domain corpus (10%) or so many sentences (1000). Several, by commas, are a line each.",
    )
    with right:
        # An even number in a separate field, because a default does not change what a field holds.
        seeds = seed_list("experiment.cross", "1, 2, 3, 4") if swapped else seed_list("experiment", "1, 2, 3")
    repeat = "pipeline" if swapped else worded("repeat", "Repeated for every seed", REPEAT)
    rest = {"budgets": listed(budgets), "seeds": seeds, "repeat": repeat, **_multipliers(repeat)}
    planned = _planned([name for name in arms if name not in ("none", *CONTROLS)], repeat)
    return {"arms": arms, **rest, **planned}


def as_chosen(by_choice: Mapping[str, Any], arms: Sequence[str]) -> dict[str, Any]:
    """Return the options of the selection, with a caption; {} if its strategy is not among the variants."""
    *_, strategy = by_choice["arms"]
    same = {stage: by_choice[stage] for stage in HOW if stage in by_choice} if strategy in arms else {}
    if same:
        st.caption(f"By {plain(strategy)} it is chosen with the options that your selection was made with.")
    return same


def _multipliers(repeat: str) -> dict[str, Any]:
    """Ask whether to measure what selecting is worth; every seed must repeat all steps for that."""
    asked = st.checkbox(
        "Measure what choosing is worth in random text and in labels",
        key="training.experiment.multipliers",
        disabled=repeat != "pipeline",
        help="So many times as much read at random, or so many more labelled sentences, for the same score. Random "
        "sentences are read at 2 and 4 times the amount too, and a quarter and half of the labels are trained on: "
        "the times below say what that takes.",
    )
    return {"multipliers": True} if asked and repeat == "pipeline" else {}


def _planned(arms: list[str], repeat: str) -> dict[str, Any]:
    """Ask for the planned test: its claim, the difference to detect, and interim analyses."""
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
