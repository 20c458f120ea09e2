"""Widgets for the options of a pre-training, a fine-tuning or an experiment, which `runs.start` takes.

There is no Streamlit form, because the estimate below follows every change.
"""

from typing import Any

import streamlit as st

from core.experiment import find_out
from core.importing import view as corpora
from core.selection import choices
from core.selection import view as selections
from pages.ui.project import page_link
from pages.ui.runs.words import selection_titles
from pages.ui.training import experiment
from pages.ui.training.parts import PRESETS, seed_list, settings, several, splits, start_from
from pages.ui.widgets import corpus_labels

CHOICE, ARRIVED, ADRIFT = "training.selection", "training.arrived", ":material/link_off:"
HELD = "Sentences of the dev and test sets and their near duplicates: reading them would make the test too easy."


def options(kind: str) -> dict[str, Any] | None:
    """Return the options; None while a corpus is missing."""
    return {"pretrain": _pretrain, "finetune": _finetune, "experiment": experiment.options}[kind]()


def _pretrain() -> dict[str, Any] | None:
    left, right = st.columns(2)
    with left:
        text = _text()
    with right:
        init = start_from("pretrain")
        holdout = several("Never read", "training.pretrain.holdout", HELD, labelled=True, at_first=corpora.judged_by())
    if not text:
        st.info("Pick the text to pre-train on: the task corpus, a selection from the page Selection, or both.")
        return None
    own = ("corpora", "init", "holdout")
    return {"corpora": text, "init": init, "holdout": holdout, **settings("pretrain", own)}


def _text() -> tuple[str, ...]:
    """Ask for the text that the encoder reads: a selection with its hand edits, and whole corpora."""
    roles, here = corpora.roles(), corpus_labels(corpora.listed())
    whole = st.multiselect(
        "Text to pre-train on",
        list(here),
        [roles["task"]] if "task" in roles else [],
        here.__getitem__,
        # One field per task corpus: another one resets it.
        key=f"training.corpora.{roles.get('task')}",
        placeholder="pick corpora",
        help="The task corpus alone, or that and what was chosen for being like it; an experiment shows which helps.",
    )
    now = find_out.choice_now()
    known = {choice.id: choice for choice in (*([now] if now else []), *choices.listed())}
    names = selection_titles(known.values())
    if not names:
        page_link("pages/3_Selection.py", label="Make a selection to add to it", icon=":material/filter_alt:")
        return tuple(whole)
    listed = ["", *names]
    at_first = listed.index(now.id) if now and now.id in names else 0
    picked = st.selectbox("Selection", listed, at_first, lambda name: names.get(name, "none"), key=CHOICE)
    if not picked:
        return tuple(whole)
    return tuple(dict.fromkeys((*whole, selections.seal(picked).fingerprint)))


def follow_address() -> bool:
    """Fill in the selection that the address names, once; return True if it did."""
    named = str(st.query_params.get("choice", ""))
    if not named or st.session_state.get(ARRIVED) == named:
        return False
    st.session_state[ARRIVED] = named
    if named not in [choice.id for choice in choices.listed()]:
        st.warning("The selection of this address is not here: it was removed, or the address is wrong.", icon=ADRIFT)
        return False
    choices.take_up(named)
    st.session_state["training.kind"], st.session_state[CHOICE] = "pretrain", named
    return True


def _finetune() -> dict[str, Any] | None:
    picked = splits("finetune", ("train", "dev", "test"))
    left, right = st.columns(2)
    with left:
        init = start_from("finetune")
    with right:
        seeds = seed_list("finetune", "1")
    aside = "such as robustness sets: each read once too"
    further = several("Further test sets", "training.finetune.also_test", aside, labelled=True)
    if not (picked["train"] and picked["dev"]):
        st.info("Pick a training set, and a dev set, which decides when training stops.")
        return None
    own = ("train", "dev", "test", "init", "seeds")
    test = tuple(dict.fromkeys(filter(None, (picked["test"], *further))))
    return {**picked, "test": test, "init": init, "seeds": seeds, **settings("finetune", own, tuple(PRESETS))}
