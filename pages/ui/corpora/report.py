"""What became of every row of a finished import, under which name, and which part the corpus plays."""

from dataclasses import asdict

import streamlit as st

from core.experiment import deliver, results
from core.importing import view as corpora
from core.importing.result import ROLES, AddResult
from core.shown import short
from pages.ui import checks as data_check
from pages.ui.presses import pressed
from pages.ui.project import later
from pages.ui.runs.links import CORPORA
from pages.ui.widgets import plain, table


def report(run_id: str) -> None:
    """Show what became of every row of a finished import, and the rows that were rejected, to take away."""
    result = corpora.import_result(run_id)
    with st.container(border=True):
        _report(run_id, result)


def _report(run_id: str, result: AddResult) -> None:
    _named(result)
    _counts(result)
    if result.cut and result.cut.rule != "own":
        rule = "runs of letters, and single marks" if result.cut.rule == "words" else "what blanks separate"
        st.caption(f"Its tokens are {rule} ({result.cut.why}).")
    for text in result.of_labels:
        st.warning(plain(text), icon=":material/warning:")
    if result.unspaced:
        _counted_letters(result.unspaced)
    if result.problems:
        rows = [{**asdict(problem), "line": str(problem.line or "")} for problem in result.problems[:20]]
        names = {"line": "Line", "file": "File", "kind": "What", "reason": "Why"}
        table(rows, names, "Rows that were not taken as they came")
    if rejects := corpora.rejects_file(run_id):
        st.download_button(
            "Download the rejected rows",
            later(lambda: deliver.take_bytes(run_id, rejects)),
            file_name="rejects.jsonl",
            mime="application/jsonl",
            on_click="ignore",
            icon=":material/download:",
            key="corpora.rejects",
        )
    data_check.show(corpora.check_corpus(result.corpus), "corpora.import", here=CORPORA)
    _give_role(result.corpus)


def _counts(result: AddResult) -> None:
    """Show what became of its pages, rows and files."""
    with st.container(horizontal=True):
        for label, n in (
            *((("Pages", result.pages), ("Pages without text", result.blank_pages)) if result.pages else ()),
            *(
                (("Letters without a character", result.unmapped), ("Restored", result.restored))
                if result.unmapped
                else ()
            ),
            ("Read", result.read),
            ("Kept", result.kept),
            ("Repaired", result.repaired),
            ("Rejected", result.rejected),
            *((("Skipped", result.skipped),) if result.skipped else ()),
            *((("Sentences left out", result.lost),) if result.lost else ()),
            *((("Files left out", result.left_out),) if result.left_out else ()),
        ):
            st.metric(label, f"{n:,}", width="content")


def _named(result: AddResult) -> None:
    """Show what the corpus is called, where that is not what was asked for; its text may have been here."""
    name, asked = results.corpus_name(result.corpus), result.asked_name
    if result.was_here:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(f"This text is here already as **{plain(name)}**; opened that one.", icon=":material/inventory_2:")
            if asked != name and pressed(f"Call it {plain(short(asked))}", "corpora.rename"):
                corpora.rename(result.corpus, asked)
                st.rerun()
    elif asked and asked != name:
        st.info(f"Another corpus is called **{plain(asked)}**, so this one is called **{plain(name)}**.")


def _counted_letters(n: int) -> None:
    st.caption(
        f"{n:,} sentence{'s are' if n > 1 else ' is'} in a script that writes no blanks between words"
        " (Chinese, Japanese, Thai, Lao, Khmer or Burmese). Each of its letters is a token: in lengths and budgets,"
        " and where sentences are compared."
    )


def _give_role(fingerprint: str) -> None:
    short = {role: term.title for role, term in ROLES.items()}
    held = [role for role, other in corpora.roles().items() if other == fingerprint]
    choice = st.segmented_control(
        "Use it as",
        list(short),
        format_func=short.__getitem__,
        default=held[0] if held else None,
        key=f"corpora.role.{fingerprint}",  # another corpus must not inherit the choice
    )
    if choice and choice not in held:
        corpora.set_role(choice, fingerprint)
        st.rerun()
