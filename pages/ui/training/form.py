"""What to train: the options of a pre-training, a fine-tuning, an experiment, as widgets; what they give goes to
`runs.start`. Nothing here stands in a form, since the pre-flight below follows every change."""

from typing import Any

import streamlit as st

from core.facade import corpora, selections
from core.facade.runs import Run
from pages.ui.project import page_link
from pages.ui.training import experiment
from pages.ui.training.parts import PRESETS, seed_list, settings, several, splits, start_from
from pages.ui.widgets import budget_words, corpus_label

HELD = "Dev and test sentences, and near copies: who has read them is tested on what it knows."


def options(kind: str) -> dict[str, Any] | None:
    """What was asked for; None while a corpus is missing."""
    return {"pretrain": _pretrain, "finetune": _finetune, "experiment": experiment.options}[kind]()


def _pretrain() -> dict[str, Any] | None:
    left, right = st.columns(2)
    with left:
        text = _text()
    with right:
        init = start_from("pretrain")
        holdout = several("Never read", "training.pretrain.holdout", HELD, labelled=True, at_first=corpora.judged_by())
    if not text:
        st.info("Pick the text to pre-train on: T_C, an S_C from the page Selection, or both.")
        return None
    own = ("corpora", "init", "holdout")
    return {"corpora": text, "init": init, "holdout": holdout, **settings("pretrain", own)}


def _text() -> tuple[str, ...]:
    """What the encoder reads: an S_C, hand edits counted, and whole corpora."""
    roles, here = corpora.roles(), {corpus.fingerprint: corpus for corpus in corpora.listed()}
    whole = st.multiselect(
        "Text to pre-train on",
        list(here),
        [roles["task"]] if "task" in roles else [],
        lambda fingerprint: corpus_label(here[fingerprint]),
        key=f"training.corpora.{roles.get('task')}",
        placeholder="pick corpora",
        help="T_C alone, or T_C and what was chosen for being like it; an experiment shows which of them helps.",
    )
    names = {run.id: _selection(run) for run in selections.finished()}
    if not names:
        page_link("pages/3_Selection.py", label="Select an S_C to go with it", icon=":material/filter_alt:")
        return tuple(whole)
    picked = st.selectbox(
        "S_C, from a selection", [None, *names], 0, lambda name: names.get(name, "none"), key="training.selection"
    )
    if picked is None:
        return tuple(whole)
    return tuple(dict.fromkeys((*whole, selections.seal(picked).fingerprint)))


def _selection(run: Run) -> str:
    config, edits = run.manifest.config, selections.edits(run.id)
    words = f"{budget_words(selections.kept_budget(run.id))} by {config['strategy']}{f', {edits}' if edits else ''}"
    return f"{words} ({run.id[-4:]})"


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
        st.info("Pick labelled sentences to train on, and a dev split that says when to stop.")
        return None
    own = ("train", "dev", "test", "init", "seeds")
    test = tuple(dict.fromkeys(filter(None, (picked["test"], *further))))
    return {**picked, "test": test, "init": init, "seeds": seeds, **settings("finetune", own, tuple(PRESETS))}
