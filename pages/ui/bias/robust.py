"""Robustness: test sets with replaced names, and F1 of taggers per test set, never only as an average."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import streamlit as st

from core import shown_command as commands
from core.bias import plot
from core.bias import view as bias
from core.bias.result import RobustnessResult, sentences_file
from core.bias.result import logs as logs_of
from core.bias.robustness import FrontierRow, averages
from core.experiment import deliver, results
from core.importing import view as corpora
from core.projects import runs
from core.runs.result import read
from core.runs.run import Run
from core.shown import count
from core.tagging import view as taggers
from core.terms import TEST, TRAIN
from pages.ui.bias.views import changes
from pages.ui.frame import guard, where_text_is_here
from pages.ui.project import later
from pages.ui.results.board import spread
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import chart, corpus_labels, corpus_picker, plain, pressed, same_command, table

KINDS = {"oov": "New names", "cross-category": "Names of another type", "typos": "Typos in names"}
PROMISES = {
    "oov": "no word of the name occurs in the training set, except function words such as “of” and “the”",
    "cross-category": "every name has another type in the training set",
    "typos": "one typo; the new name is not in the training set (a name that is too short for a typo is kept)",
}
MOST = 12  # largest number of taggers that are preselected for the comparison
SETS = {
    "name": "Test set",
    "promise": "Property of the new names",
    "mentions": "Mentions",
    "changed": "Renamed",
    "ambiguous": "Ambiguous",
    "origins": "Origin of new names",
}
ORIGINS = {
    "finds": "found by a tagger",
    "gazetteer": "from lists",
    "generated": "generated",
    "train": "from the training set",
    "typo": "typos",
}


def robust() -> None:
    """Draw the tab Robustness, which needs no measurement by PVI."""
    harder = runs.own("robustness")
    st.markdown(
        "The same test sentences with **other names**: a tagger that uses context still finds them, one that memorised"
        " names does not. Such sets are synthetic, so report their score **beside** that of the plain test set, never"
        " instead of it."
    )
    with st.expander("Make harder test sets", expanded=not harder, icon=":material/construction:"):
        _setup()
    for run in harder[:6]:
        if runs.state(run.id).state != "succeeded":
            run_panel(run.id, f"bias.robust.{run.id}")
    done = [run for run in harder if runs.state(run.id).state == "succeeded"]
    if done:
        _harder_sets(done)
    _frontier()


@st.fragment
def _setup() -> None:
    with guard(buttons="bias.robust.start"):
        roles = corpora.roles()
        left, right = st.columns(2)
        with left:
            test = corpus_picker(TEST.title, f"bias.test.{roles.get('test')}", roles.get("test"))
        with right:
            train = corpus_picker(
                f"{TRAIN.title} of the taggers", f"bias.known.{roles.get('train')}", roles.get("train")
            )
        kinds = st.multiselect("Sets", list(KINDS), list(KINDS), KINDS.__getitem__, key="bias.kinds")
        own = _names()
        if not (test and train and kinds):
            st.info("Pick a test set, a training set, and at least one set to make.")
            return
        wanted = [{"test": test, "train": train, "kind": kind, **own.get(kind, {})} for kind in kinds]
        if pressed("Make test sets", "bias.robust.start", type="primary", icon=":material/construction:"):
            for options in wanted:
                runs.start("robustness", options)
            st.rerun()
        same_command("bias.robust.command", *(commands.command("robustness", options) for options in wanted))


def _names() -> dict[str, dict[str, Any]]:
    """Ask where the new names come from, and return {kind of test set: options that depend on the answer}."""
    labelled = corpus_labels(corpus for corpus in corpora.listed() if corpus.types)
    with st.expander("Where new names come from", icon=":material/settings:"):
        gazetteer = st.multiselect(
            "Corpora from which to take names that are not in the training set; without them, names are generated",
            list(labelled),
            [],
            labelled.__getitem__,
            key="bias.gazetteer",
            placeholder="generate them",
        )
        tagged = bias.finders()
        finds = st.selectbox(
            "Names to use first: those that a tagger found in a text",
            ["", *tagged],
            format_func=lambda run: tagged.get(run, "none"),
            key="bias.finds",
            help="Only names that do not occur in the training set are used: first those that this tagger found, then "
            "those of the corpora above. If neither has names of a type, names are generated letter by letter.",
        )
        strict = st.toggle(
            "Do not use names that have the replaced name's type in the training set",
            True,
            key="bias.strict",
            help="If this is off, a new name may also have the replaced name's type in the training set, as in "
            "TextFlint's sets.",
        )
    own = {"gazetteer": gazetteer} | ({"finds": finds} if finds else {})
    return {"oov": own, "cross-category": {"ambiguous": "strict" if strict else "textflint"}}


def _harder_sets(runs: Sequence[Run]) -> None:
    rows = []
    for run in runs:
        result = read(run, RobustnessResult)
        name, promise = results.corpus_name(result.corpus), PROMISES[run.manifest.config["kind"]]
        origins = ", ".join(f"{n:,} {ORIGINS.get(source, source)}" for source, n in result.sources.items() if n)
        rows.append({**asdict(result), "name": name, "promise": promise, "origins": origins})
    table(rows, SETS, "Harder test sets", wrapped=("promise",))
    st.caption(
        "Ambiguous: the name has several types in the training set, or its sentence has no content word outside of"
        " names. To test taggers on these sets, add them to the test sets of a fine-tuning or an experiment."
    )
    names = {run.id: row["name"] for run, row in zip(runs, rows, strict=True)}
    with st.expander("View and download a set", icon=":material/difference:"):
        picked = st.selectbox("Test set", list(names), 0, names.__getitem__, key="bias.robust.which")
        _files(picked, names[picked])
        changes(picked, "bias.robust.diff")


def _files(run_id: str, name: str) -> None:
    """Draw download buttons: the test set, the log of edits, and the list of names, in which ambiguous ones are marked.

    run_id: a finished `robustness` run. name: start of the file names.
    """
    logs = logs_of(runs.get(run_id))
    files = {
        "conll": ("CoNLL", sentences_file(runs.get(run_id)), "conll"),
        "log": ("Log of the edits", logs["edits"], "edits.jsonl"),
        "slots": ("All names, ambiguous ones marked", logs["slots"], "slots.jsonl"),
    }
    with st.container(horizontal=True):
        for key, (label, file, ending) in files.items():
            data = partial(deliver.take_bytes, run_id, file)
            look = ":material/download:"
            file_name = f"{name}.{ending}"
            st.download_button(label, later(data), file_name, on_click="ignore", key=f"bias.robust.{key}", icon=look)


@st.fragment
def _frontier() -> None:
    """Compare the F1 of finished taggers that were tested on the same test sets."""
    with guard(), where_text_is_here():
        st.subheader("F1 of taggers on these sets", anchor=False)
        groups = bias.tested_alike()
        if not groups:
            st.info("No finished tagger has been tested on several test sets yet.")
            return
        group = st.selectbox("Tested on", groups, 0, _group, key="bias.group") if len(groups) > 1 else groups[0]
        names = taggers.names(group.runs)
        picked = st.multiselect(
            "Taggers",
            list(names),
            list(names)[:MOST],
            lambda run: names.get(run, run),
            # The number of taggers is part of the key, so that new taggers are preselected.
            key=f"bias.taggers.{group.runs[0]}.{len(names)}",
        )
        if not picked:
            return
        certain = st.toggle("Leave ambiguous names out of the scores", False, key="bias.certain")
        rows = bias.standings(picked)
        plain_name = results.corpus_name(group.tests[0])
        for i, test in enumerate(group.tests[1:]):
            if i % 2 == 0:
                columns = st.columns(2)
            with columns[i % 2]:
                _set(rows, test, plain_name, names, certain)
        _numbers(rows, group.tests, names)


def _group(group: bias.TestedAlike) -> str:
    first, *others = map(results.corpus_name, group.tests)
    return f"{first}, {', '.join(others)} ({count(len(group.runs), 'tagger')})"


def _set(rows: Sequence[FrontierRow], test: str, plain_name: str, names: dict[str, str], certain: bool) -> None:
    points = bias.frontier_points(rows, test, names, certain=certain)
    hard = results.corpus_name(test)
    st.markdown(f"**{plain(hard)}**")
    figure = plot.frontier(points, x=f"score (F1) on {plain_name}", y="score (F1) on this set")
    best = "; ".join(one.name for one in points if one.best)
    ahead = f"taggers that no other tagger beats (at least as good on both test sets, better on one): {best}"
    chart(figure, f"bias.frontier.{test}", f"Score (F1) on {plain_name} against {hard}; {ahead}")


def _numbers(rows: Sequence[FrontierRow], tests: Sequence[str], names: dict[str, str]) -> None:
    """Draw a table of F1 by tagger and test set, with and without ambiguous names.

    The mean over test sets is the last column, as in Ma et al. 2023.
    """
    heads = {"name": "Tagger"}
    lines: dict[str, dict[str, str]] = {}
    means = averages(rows)
    for row in rows:
        certain = f"certain_{row.test}"
        heads |= {row.test: row.name, certain: f"{row.name}, certain names"}
        line = lines.setdefault(row.run, {"name": names[row.run]})
        line |= {row.test: spread(row.mean, row.sd), certain: spread(row.certain_mean, row.certain_sd)}
    for run, line in lines.items():
        line["average"] = f"{means[run]:.2f}"
    table(list(lines.values()), {**heads, "average": "Mean of all sets"}, "Scores (F1) by tagger and set", wrapped=())
    unsure = {row.test: f"{plain(row.name)}: {row.ambiguous:,} of {row.mentions:,}" for row in rows}
    st.caption(
        f"Scores (F1): mean and standard deviation over seeds. “Certain names” leaves out ambiguous names:"
        f" {'; '.join(unsure[test] for test in tests)}. Which names are ambiguous depends only on the labels of"
        f" {plain(results.corpus_name(rows[0].known))}, not on the tagger."
    )
