"""What an experiment compares: its corpora, the lines of its leaderboard, what these read, borrow and are tested on."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core import facade
from pages.ui.training_parts import seed_list, settings, several, splits, start_from
from pages.ui.widgets import config_form, corpus_picker, listed, plain

NETWORKS = {
    "": "as the arms need", "encoder": "encoder, CRF", "bilstm": "BiLSTM-CRF (S1)", "charcnn": "char-CNN BiLSTM (S4)",
}  # fmt: skip
ARMS = ("none", "random", facade.DEFAULT_STRATEGY)
RARE = ("fixed", "transductive", "train_sizes", "draws", "draw_seed", "cap_tokens", "allow_download")


def options() -> dict[str, Any] | None:
    """What was asked for; None while a corpus is missing, or what is typed is wrong, which is said."""
    picked = splits("experiment", ("task", "domain")) | splits("experiment", ("train", "dev", "test"))
    if not (picked["train"] and picked["dev"] and picked["test"]):
        st.info("An experiment needs the three labelled splits; T_C and D_C are for arms that are pre-trained.")
        return None
    further = _further()
    lines = _lines(further, bool(picked["task"] and picked["domain"]))
    encoder = {"encoder": start_from("experiment"), **settings("experiment", (), ("quick", "paper"))}
    rare, typed = _rare()
    try:
        found = {**picked, **further, **lines, **encoder, **rare, **facade.stage_options(typed, further)}
        facade.calibration(found)
    except facade.ConfigError as error:
        st.info(plain(str(error)))
        return None
    return found


def _lines(further: Mapping[str, Any], unlabelled: bool) -> dict[str, Any]:
    """The lines of the leaderboard. unlabelled: there are a T_C and a D_C."""
    left, middle, right = st.columns((2, 1, 1))
    names = [*facade.ARM_NAMES, *_valued(further)]
    arms = left.multiselect(
        "What is compared", names, [name for name in ARMS if name in names] if unlabelled else [ARMS[0]],
        key="training.experiment.arms", accept_new_options=True,
        help="What no verdict can do without is added: none, and what a choice must beat. Type for others: "
        f"{', '.join(facade.ARM_SHAPES)}.",
    )  # fmt: skip
    budgets = listed(
        middle.text_input("Budgets", "10%", key="training.experiment.budgets", help="10%, 20% or 1000: sentences.")
    )
    with right:
        return {"arms": arms, "budgets": budgets, "seeds": seed_list("experiment", "1, 2, 3")}


def _further() -> dict[str, Any]:
    """What some arms read or borrow, and harder test sets."""
    with st.expander("Sources, borrowed labels, harder test sets", icon=":material/add_circle:"):
        left, right = st.columns(2)
        with left:
            sources = several(
                "Sources, for vectors:SOURCE and lm:SOURCE", "training.experiment.sources", "as much is read of each"
            )
            told = "shown beside the test set, in no verdict"
            also_test = several("Further test sets", "training.experiment.also_test", told, labelled=True)
        with right:
            assisting = corpus_picker("Assisting labelled corpus, for all and skl:THRESHOLD",
                                      "training.experiment.assisting", None) or ""  # fmt: skip
            network = st.selectbox(
                "Network", NETWORKS, 0, lambda name: NETWORKS[name], key="training.experiment.network",
                help="The same for every arm.",
            )  # fmt: skip
        maps = st.text_input(
            "Types by another name", key="training.experiment.map", help="PER=person, in the assisting corpus or yours"
        )
    found = {"sources": sources, "also_test": also_test, "assisting": assisting, "type_map": listed(maps)}
    return found | ({"finetune": {"network": network}} if network else {})


def _rare() -> tuple[dict[str, Any], list[str]]:
    """What is seldom changed; and options of single stages, as lines."""
    with st.expander("Further options", icon=":material/tune:"):
        left, right = st.columns(2)
        with left:
            found: dict[str, Any] = {"holdout": several(
                "Further held-out splits", "training.experiment.holdout", "their sentences are never learnt from"
            )}  # fmt: skip
        with right:
            found["difficulty_encoder"] = st.text_input(
                "Encoder that judges names and contexts", key="training.experiment.judge",
                placeholder="the one that is trained", help="For arms that rebuild L_C, such as highc2low:20%.",
            ).strip()  # fmt: skip
        columns = st.columns(3)
        for number, name in enumerate(RARE):
            with columns[number % 3]:
                found |= config_form(facade.RECIPES["experiment"].config, (name,), "training.experiment")
        typed = st.text_area(
            "Options of single stages, a line each", key="training.experiment.typed",
            placeholder="pretrain.epochs=4\nstrategies.knn.neighbours=10",
            help=f"STAGE.NAME=VALUE, where a stage is one of {', '.join(facade.STAGES)}.",
        )  # fmt: skip
    return found, typed.splitlines()


def _valued(further: Mapping[str, Any]) -> list[str]:
    """Arms with a value that go with what was picked; others can be typed."""
    values = {
        "SOURCE": [facade.corpus(source).name for source in further["sources"]],
        "THRESHOLD": ["1", "2", "4"] if further["assisting"] else [],
        "RATE": ["20%"],
    }
    shapes = (shape.split(":") for shape in facade.ARM_SHAPES)
    return [f"{head}:{value}" for head, kind in shapes for value in values[kind]]
