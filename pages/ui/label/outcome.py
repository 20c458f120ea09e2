"""Results of labelling: corpora, files for labelling tools, and test scores. Also the field for guidelines."""

import math
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import streamlit as st

from core.errors import ConfigError
from core.importing import uploads
from core.importing import view as corpora
from core.labelling import plot
from core.labelling import view as labelling
from core.labelling.tasks import ENDINGS
from core.projects import runs
from core.shown import count
from pages.ui.frame import guard
from pages.ui.label.editor import reported
from pages.ui.project import later, page_link
from pages.ui.runs.links import RESULTS, TRAINING
from pages.ui.widgets import chart, plain, pressed, submitted, table

TOOL_NAMES = {
    "doccano": "doccano",
    "label-studio": "Label Studio",
    "prodigy": "Prodigy",
    "brat": "brat",
    "conll": "CoNLL",
}
# session keys: text of the guidelines; message about the labels that were read from a file
GUIDELINES, READ = "label.guidelines", "label.read"

SHOWN = 3  # largest number of unreadable parts of a file that a message lists
TO_LABEL, LABELLED = "Sentences to label", "Labelled sentences"


def guidelines() -> None:
    """Draw the field for the labelling guidelines, which the user writes, and a field that adds an entity type."""
    st.session_state.setdefault(GUIDELINES, labelling.guidelines())
    most = labelling.LONGEST_GUIDELINES
    # Store the text only when the user changes it here, because another tab may have stored a newer one.
    st.text_area("Guidelines", key=GUIDELINES, height=190, max_chars=most, on_change=_keep_guidelines)
    with st.form("label.type", border=False, clear_on_submit=True):
        name = st.text_input("New type", key="label.type.name", max_chars=40, placeholder="PARTY")
        if submitted("Add type", "label.type.add", icon=":material/new_label:"):
            try:
                labelling.add_type(name.strip())
            except ConfigError as error:
                st.error(plain(str(error)))
            else:
                st.rerun()


def _keep_guidelines() -> None:
    reported(labelling.keep_guidelines, st.session_state[GUIDELINES])


def taken_away(run_id: str, annotator: str) -> None:
    """Draw the buttons that make corpora of the labelled sentences, export them to other tools, and train on them."""
    labelled = len(labelling.answered(run_id).labelled)
    purpose = labelling.purpose(run_id)
    label, least, make = MADE[purpose]
    row, below = st.container(horizontal=True, vertical_alignment="center"), st.container()
    with row:
        sealed = pressed(label, "label.seal", type="primary", icon=":material/library_add:", disabled=labelled < least)
        _tools(run_id, annotator, suggested=purpose != "draw", labelled=labelled)
    if said := st.session_state.pop(READ, ""):
        below.success(plain(said), icon=":material/check:")
    if purpose == "draw":
        below.caption("Skipped and flagged sentences stay out of both sets, which makes the test set a little easier.")
    if sealed:
        with below, guard():
            make(run_id)
    if purpose == "draw":
        return
    if purpose == "review":
        _effect(run_id)
    _train_again()


def _tools(run_id: str, annotator: str, *, suggested: bool, labelled: int) -> None:
    """Draw the buttons that export the sentences to another labelling tool, and the field that imports its labels.

    suggested: True if the sentences have suggested entities. labelled: number of labelled sentences.
    """
    with st.popover("Another labelling tool", icon=":material/ios_share:", key="label.tools"):
        what = st.radio("Write", (TO_LABEL, LABELLED), key="label.write", horizontal=True)
        suggestions = (
            what == TO_LABEL and suggested and st.toggle("With suggestions", value=True, key="label.suggestions")
        )
        with st.container(horizontal=True):
            for tool, ending in ENDINGS.items():
                st.download_button(
                    TOOL_NAMES[tool],
                    later(partial(_file, run_id, tool, labelled=what == LABELLED, suggestions=suggestions)),
                    f"{'labelled' if what == LABELLED else 'to-label'}-{run_id[-4:]}{ending}",
                    on_click="ignore",
                    key=f"label.tool.{tool}",
                    icon=":material/download:",
                    disabled=what == LABELLED and not labelled,
                )
        with st.form("label.back", border=False, clear_on_submit=True):
            file = st.file_uploader("File with labels of these sentences", key="label.back.file", max_upload_size=50)
            if submitted("Read the labels", "label.back.start", icon=":material/upload:") and file:
                with guard():
                    _read_back(run_id, annotator, file.name, file)
                    st.rerun()


def _read_back(run_id: str, annotator: str, name: str, file: BinaryIO) -> None:
    token = uploads.spool(name, file)
    try:
        found = labelling.import_labels(run_id, uploads.spooled(token), annotator)
    finally:
        uploads.discard(token)
    words = f"{count(found.labelled, 'sentence')} labelled, {found.changed:,} of them changed."
    if found.annotators:
        words += f" They are by {', '.join(found.annotators)}."
    if found.unnamed:
        words += f" They are by {found.unnamed}, but are stored without a name."
    if found.suggested:
        words += (
            f" In {found.suggested:,} of them, the labels equal the suggestions. If nobody checked these, do it here."
        )
    if found.unknown:
        words += f" {count(found.unknown, 'sentence')} left out, because this queue has none with that text."
    if found.unread:
        first = "; ".join(found.unread[:SHOWN])
        words += f" {count(len(found.unread), 'part')} of the file could not be read and was ignored ({first})."
    st.session_state[READ] = words


def _trained(run_id: str) -> None:
    made = labelling.training_set(run_id)
    corpora.set_role("train", made.fingerprint)
    st.success(f"{plain(made.name)}: {count(len(made), 'sentence')}, now the training set.", icon=":material/check:")


def _measuring(run_id: str) -> None:
    made = labelling.measuring_sets(run_id)
    held = corpora.roles()
    if free := {
        role: corpus.fingerprint for role, corpus in zip(("dev", "test"), made, strict=True) if role not in held
    }:
        corpora.set_roles(free)
    words = [f"{plain(corpus.name)} ({count(len(corpus), 'sentence')})" for corpus in made]
    stays = " and ".join(role for role in ("dev", "test") if role in held)
    kept = f" The {stays} set in use stays. You can change it on the page Corpora." if stays else ""
    st.success(f"Stored: {' and '.join(words)}.{kept}", icon=":material/check:")


def _corrected(run_id: str) -> None:
    changed = labelling.roles_of_reviewed(run_id)
    made = labelling.corrected(run_id)
    if changed:
        corpora.set_roles(dict.fromkeys(changed, made.fingerprint))
    use = f", now the {' and '.join(changed)} set" if changed else ""
    st.success(f"{plain(made.name)}: {count(len(made), 'sentence')}{use}.", icon=":material/check:")


MADE = {  # {purpose: (label of the button, minimum number of labelled sentences, function of the button)}
    "queue": ("Add to the training set", 1, _trained),
    "draw": ("Use as dev and test set", 4, _measuring),
    "review": ("Use the corrected labels", 1, _corrected),
}


def _effect(run_id: str) -> None:
    """Show the test score of taggers trained before and after the corrections, if both were trained."""
    effect = labelling.effect_of_corrections(run_id)
    if effect is None:
        return
    gap = effect.difference
    seeds = min(len(gap.system), len(gap.other))
    known = f", 95% interval {gap.lo:+.1f} to {gap.hi:+.1f}" if seeds > 1 else ""
    st.markdown(
        f"Test score (F1) before the corrections {effect.before:.1f}, after them {effect.after:.1f}: "
        f"**{gap.delta:+.1f}**{known} ({count(seeds, 'seed')})."
    )


def _train_again() -> None:
    """Draw the button that trains the latest tagger again, on the training set in use.

    Draw nothing if that set has no labels made on this page. Without a tagger, link to the page Training instead.
    """
    train = corpora.roles().get("train")
    if train is None or not labelling.is_labelled_here(train):
        return
    options = labelling.retraining(train)
    if options is None:
        page_link(TRAINING, label="Train a tagger", icon=":material/model_training:", width="content")
        return
    begun = runs.begun("finetune", options)
    if begun and runs.state(begun.id).state == "succeeded":
        page_link(RESULTS, label="Results of this training set", icon=":material/leaderboard:", width="content")
    elif pressed("Train again", "label.again", icon=":material/model_training:"):
        runs.start("finetune", options)
        page_link(TRAINING, label="Watch it", icon=":material/arrow_forward:", width="content")


def learning_curve() -> None:
    """Draw the test scores of taggers by size of their training set. Draw nothing if all sizes are equal."""
    points = labelling.curve()
    if len({point.sentences for point in points}) < 2:
        return
    st.subheader("Test scores by number of labels", anchor=False)
    chart(
        plot.learning_curve(points), "label.curve", "Test scores by number of labels; the table below has the numbers"
    )
    rows = [
        {
            "name": point.name,
            "sentences": f"{point.sentences:,}",
            "f1": f"{point.mean:.1f}",
            "interval": f"{point.interval[0]:.1f} to {point.interval[1]:.1f}",
            "seeds": f"{len(point.f1):,}",
        }
        for point in points
    ]
    columns = {
        "name": "Training set",
        "sentences": "Sentences",
        "f1": "Test score (F1)",
        "interval": "95% interval",
        "seeds": "Seeds",
    }
    table(rows, columns, "Test scores of the taggers of this project by training set, on the test set in use")
    st.caption(
        "The interval is over seeds and test sentences; with one seed, only over test sentences. Taggers with other "
        "settings are not listed."
    )
    if expected := labelling.next_labels(points):
        gains = [
            f"{n:,} more labelled sentences are expected to bring {step.gain:+.1f} points"
            + (f" (at most {step.upper:+.1f})" if math.isfinite(step.upper) else "")
            for n, step in expected.items()
        ]
        st.markdown(
            f"According to this curve, {', and '.join(gains)}. This is an estimate by a power law, not evidence."
        )


def _file(run_id: str, tool: str, *, labelled: bool, suggestions: bool) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tasks"
        if labelled:
            labelling.export_labelled(run_id, path, tool)
        else:
            labelling.export(run_id, path, tool, suggestions=suggestions)
        return path.read_bytes()
