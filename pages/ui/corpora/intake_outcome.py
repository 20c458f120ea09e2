"""What became of several files that were imported at once, part by part, and where to go from there."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from core import terms
from core.corpora.grouped import SOURCE
from core.errors import WinnowError
from core.experiment import results
from core.importing import intake_view as intake
from core.importing import view as corpora
from core.importing.result import Taken
from core.shown import count, short
from core.terms import in_words
from pages.ui.project import page_link
from pages.ui.runs.links import CORPORA
from pages.ui.widgets import plain, table


def intake_outcome(run_id: str) -> None:
    """A line a part, what is in use now, and the way on."""
    result = intake.result(run_id)
    with st.container(border=True):
        rows = [_row(each) for each in result.parts]
        names = {"part": "Part", "name": "Corpus", "n": "Sentences", "rejected": "Rows rejected", "note": "Note"}
        table(rows, names, "What was imported", names=("name",))
        for each in result.parts:
            if each.problem:
                st.warning(plain(f"{intake.PART_TITLES[each.part]}: {each.problem}"), icon=":material/error:")
            for text in _of_labels(each):
                st.warning(plain(f"{intake.PART_TITLES[each.part]}: {text}"), icon=":material/warning:")
        parts = in_words([intake.PART_TITLES[role].lower() for role in result.roles])
        more = f" The {terms.TASK.word} is the text of the {terms.TRAIN.word}." if result.task_of_train else ""
        if parts:
            st.markdown(f"In use now as {parts}.{more}")
        if any(each.part == SOURCE and not each.problem for each in result.parts):
            st.markdown("The further sources are in All corpora, without a part. Similarity compares them.")
        with st.container(horizontal=True):
            page_link("home.py", label="**Go on**", icon=":material/arrow_forward:", width="content")
            for each in result.parts:
                if each.run and not each.problem:
                    name = short(results.corpus_name(corpora.import_result(each.run).corpus))
                    label, icon = f"Import details of {name}", ":material/list_alt:"
                    page_link(CORPORA, label=label, icon=icon, query={"run": each.run}, width="content")


def _of_labels(each: Taken) -> Sequence[str]:
    """What to know of a part's labels; nothing if its import was removed."""
    if each.run and not each.problem:
        with suppress(WinnowError):
            return corpora.import_result(each.run).of_labels
    return ()


def _row(each: Taken) -> dict[str, object]:
    row: dict[str, object] = {
        "part": intake.PART_TITLES[each.part],
        "name": "",
        "n": 0,
        "rejected": 0,
        "note": "not imported",
    }
    if not each.run:
        return row
    try:
        result = corpora.import_result(each.run)
    except WinnowError:  # it was removed meanwhile
        return {**row, "note": "removed"}
    notes = [count(result.files, "file")] if result.files > 1 else []
    notes += [f"{result.blank_pages:,} of {count(result.pages, 'page')} without text"] if result.blank_pages else []
    notes += [f"{count(result.left_out, 'file')} left out"] if result.left_out else []
    notes += ["was here already"] if result.was_here else []
    name = results.corpus_name(result.corpus)
    return {**row, "name": name, "n": result.sentences, "rejected": result.rejected, "note": "; ".join(notes)}
