"""Rebuilding a training set: method and preview, the run, the changed sentences, and downloads."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from core import shown_command as commands
from core.bias import plot
from core.bias import view as bias
from core.bias.rebuild import Preview
from core.bias.result import RebuildResult
from core.experiment import deliver, results
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import runs
from core.runs.result import read
from core.runs.run import Run
from core.shown import count
from pages.ui.bias.views import changes
from pages.ui.frame import guard
from pages.ui.project import later, page_link
from pages.ui.runs.links import pick_part, remember
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import config_form, corpus_labels, plain, pressed, same_command, table

RUN = "bias.rebuild"
METHODS = {
    "highc2low": (
        "Harder names in informative contexts",
        "Copies sentences in which a name and its context are both informative, and puts a less informative name of "
        "the same type into each copy.",
    ),
    "random2low": (
        "Harder names anywhere",
        "Copies sentences with an informative name, and puts a less informative name of the same type into each copy.",
    ),
    "redundant2low": (
        "Harder names for repeated ones",
        "Keeps one mention of a repeated name, and replaces the others by less informative names of the same type.",
    ),
    "low2high": (
        "Copies of informative sentences instead of the least informative ones",
        "Deletes the least informative sentences and puts their names into copies of informative ones.",
    ),
    "random2high": (
        "Copies of informative sentences instead of random ones",
        "Deletes random sentences and puts their names into copies of informative ones.",
    ),
    "low-share": (
        "A fixed share of low-CEIM sentences",
        "Draws a set of a fixed size. A given share of its sentences contains a mention whose context is more"
        " informative than its name (low CEIM). The other sentences contain no such mention.",
    ),
    "dataaug": (
        "Typos and similar names (a baseline)",
        "Adds a copy of each sentence in which one name has a typo or is replaced by one with similar spelling. Uses "
        "no measurement.",
    ),
}
POOLS = {
    "type": "Type",
    "entity_low": "Uninformative name",
    "entity_high": "Informative name",
    "context_high": "Informative context",
    "both_high": "Both informative",
}


def rebuild(run_id: str) -> None:
    """Draw the form that rebuilds a measured training set, and the rebuilt corpora. run_id: a `difficulty` run."""
    own = runs.get(run_id).manifest.inputs["train"]
    rebuilt = [run for run in runs.listed("rebuild") if run.manifest.inputs["train"] == own]
    with st.expander("How to rebuild", expanded=not rebuilt, icon=":material/construction:"):
        _setup(run_id, own)
    if not rebuilt:
        return
    shown = pick_part(RUN, rebuilt, "Rebuilt", _label)
    if run_panel(shown, RUN).state == "succeeded":
        _outcome(shown)


@st.fragment
def _setup(run_id: str, own: str) -> None:
    with guard(buttons="bias.rebuild.start"):
        st.markdown(
            "Change the **training** sentences so that a name alone no longer reveals its type; the labels stay."
            " Test sets are never changed."
        )
        options = {"train": own, "difficulty": run_id, **_options(own)}
        drawn = bias.preview(options)
        _pools(options, drawn)
        unknown = not options["holdout"] and not _none_held_out(own)
        if pressed(
            "Rebuild",
            "bias.rebuild.start",
            type="primary",
            icon=":material/construction:",
            disabled=bool(drawn.empty) or unknown,
        ):
            remember(runs.start("rebuild", options), RUN)
            st.rerun()
        same_command("bias.rebuild.command", commands.command("rebuild", options))


def _options(own: str) -> dict[str, Any]:
    left, right = st.columns(2)
    method = left.selectbox(
        "Method", list(METHODS), 0, lambda name: f"{METHODS[name][0]} ({name})", key="bias.rebuild.method"
    )
    left.caption(METHODS[method][1])
    options: dict[str, Any] = {"method": method, "holdout": _holdout(right, own)}
    names = {"low-share": ("size", "add_bin", "seed"), "dataaug": ("encoder", "seed")}.get(
        method, ("entity_low", "entity_high", "context_high", "seed")
    )
    with st.expander("Thresholds", icon=":material/settings:"):
        for i, column in enumerate(st.columns(2)):
            with column:
                options |= config_form(KINDS["rebuild"].config, names[i::2], f"bias.rebuild.{method}")
    if method != "dataaug" and not options.get("add_bin"):
        of = "of sentences with a low-CEIM mention" if method == "low-share" else "of all mentions"
        options["rate"] = right.slider(f"Share {of}, percent", 0, 90, 20, 5, key=f"bias.rate.{method}") / 100
    return options


def _holdout(place: Any, own: str) -> list[str]:
    """Let the user pick the dev and test sets to hold out, and return their fingerprints.

    own: fingerprint of the measured corpus, whose dev and test sets are preselected. If the user picks `own` itself,
    the `rebuild` run fails with an error. place: column to draw in.
    """
    known = corpus_labels(corpus for corpus in corpora.listed() if corpus.types)
    splits, source = bias.splits_of(own)
    # The key contains the preselected sets, so that a dev or test set that is imported later is preselected too.
    usual = [name for name in splits if name in known]
    picked: list[str] = place.multiselect(
        "Held out: dev and test sets whose sentences must not enter the new set",
        list(known),
        usual,
        known.__getitem__,
        key=f"bias.holdout.{own}.{'.'.join(usual)}",
        placeholder="pick the dev and test sets",
    )
    if picked and picked == usual:
        place.caption(f"The dev and test sets of {plain(results.corpus_name(own))}: {plain(source)}.")
    return picked


def _none_held_out(own: str) -> bool:
    """Ask the user to confirm that the corpus `own` has no dev or test set. Return True if the box is ticked.

    Without this confirmation, sentences of an unknown dev or test set could enter the rebuilt training set.
    """
    name = plain(results.corpus_name(own))
    st.warning(
        f"The dev and test sets of {name} are not known. Pick them above, so that none of their sentences enters the"
        " new set.",
        icon=":material/help:",
    )
    return st.checkbox(f"{name} has no dev or test set", key=f"bias.holdout.none.{own}")


def _pools(options: Mapping[str, Any], drawn: Preview) -> None:
    """Draw the preview: the number of mentions to change, and the number of mentions to draw from by type."""
    if drawn.empty:
        st.warning(plain(drawn.empty), icon=":material/rule:")
    if options["method"] == "dataaug":
        return
    if drawn.measured < drawn.of:
        st.markdown(
            f"Only {drawn.measured:,} of {count(drawn.of, 'mention')} were measured; only these can be changed."
        )
    if options["method"] == "low-share":
        _sentences(options, drawn)
        return
    if not drawn.empty:
        able = "all of them" if drawn.able == drawn.wanted else f"only **{drawn.able:,}** of them"
        st.markdown(
            f"**{drawn.wanted:,} of {count(drawn.of, 'mention')}** to change; {able} can be changed."
            f"{_lowered(drawn.reached)}"
        )
    kinds = sorted({kind for pool in drawn.pools.values() for kind in pool})
    rows = [{"type": kind, **{pool: drawn.pools[pool][kind] for pool in list(POOLS)[1:]}} for kind in kinds]
    table(rows, POOLS, "Mentions to draw from, by type")


def _lowered(reached: str) -> str:
    """Return a sentence that says how far thresholds were lowered; "" if `reached` is "", because none was."""
    if not reached:
        return ""
    return (
        f" To reach this number, the threshold of informative names and contexts is lowered to the {reached} quantile "
        "of their type."
    )


def _sentences(options: Mapping[str, Any], drawn: Preview) -> None:
    """Draw the preview of the method `low-share`, which draws a training set with a fixed number of sentences."""
    size, looks = options["size"], plot.BIN_LOOKS
    if options["add_bin"]:
        more = "" if options["add_bin"] == "none" else f", and {size:,} with: {looks[options['add_bin']][0]}"
        st.markdown(f"**{count(size, 'sentence')}** to draw at random{more}.")
    else:
        st.markdown(
            f"**{count(size, 'sentence')}** to draw, {round(options['rate'] * size):,} of them with a low-CEIM mention,"
            " the others without one."
        )
    if drawn.drawn:
        st.markdown(
            f"The set has **{drawn.drawn:,} measured mentions**, {drawn.low:,} of them low-CEIM"
            f" ({drawn.low / drawn.drawn:.1%})."
        )
    rows = [{"bin": looks[name][0], "sentences": n} for name, n in drawn.bins.items()]
    table(rows, {"bin": "Contains a mention with", "sentences": "Sentences"}, "Sentences to draw from, by bin of CEIM")
    st.caption(
        "A sentence is counted in the bin of each mention. Held-out sentences are counted but never drawn. Mentions are"
        " drawn at random and their sentences are taken, so a sentence with more mentions is more likely to be drawn."
    )


def _label(run: Run) -> str:
    config = run.manifest.config
    rate = "" if config["method"] == "dataaug" or config["add_bin"] else f" {config['rate']:.0%}"
    return f"{METHODS[config['method']][0]}{rate}, seed {config['seed']}"


def _outcome(run_id: str) -> None:
    rebuilt = read(runs.get(run_id), RebuildResult)
    name = results.corpus_name(rebuilt.corpus)
    if rebuilt.corpus == runs.get(run_id).manifest.inputs["train"]:
        st.info(f"Nothing was changed in {plain(name)}, so no new corpus was made.", icon=":material/info:")
        same_command("bias.rebuilt.command", commands.command("rebuild", runs.get(run_id).manifest.config))
        return
    st.success(
        f"**{plain(name)}**: {count(rebuilt.sentences, 'sentence')}, {count(rebuilt.mentions, 'mention')},"
        f" {rebuilt.changed:,} of them changed. The new corpus is in your list of corpora, and can be used as a"
        " training set.",
        icon=":material/library_add:",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        _file(run_id, "CoNLL", Path(rebuilt.output), f"rebuilt-{run_id[-4:]}.conll", "conll")
        _file(run_id, "Log of the edits", Path(rebuilt.edits), f"rebuilt-{run_id[-4:]}.edits.jsonl", "log")
        page_link("pages/5_Training.py", label="Train on it", icon=":material/model_training:")
    st.caption("To train as Ma et al. 2023 did, choose **Paper on bias** (`paper-bias`) in the settings on Training.")
    if rebuilt.changed:
        changes(run_id, "bias.rebuilt.diff")
    else:
        st.caption("No sentence was changed. The new set is a selection of sentences of the old one.")
    same_command("bias.rebuilt.command", commands.command("rebuild", runs.get(run_id).manifest.config))


def _file(run_id: str, label: str, path: Path, name: str, kind: str) -> None:
    st.download_button(
        label,
        later(partial(deliver.take_bytes, run_id, path)),
        name,
        on_click="ignore",
        key=f"bias.rebuilt.{kind}",
        icon=":material/download:",
    )
