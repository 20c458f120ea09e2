"""Reports on imports, and a table of the size ratios of corpora."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

import streamlit as st

from core import terms
from core.corpora.corpus import Corpus
from core.corpora.formats.ledger import NAMES
from core.corpora.proposal import DIVIDE, SOURCE
from core.errors import WinnowError
from core.experiment import deliver, results
from core.importing import intake_view as intake
from core.importing import view as corpora
from core.importing.result import ROLES, AddResult, IntakeResult, Taken
from core.projects import runs
from core.runs.result import read as read_result
from core.shown import count, short
from core.terms import in_words
from pages.ui import checks as data_check
from pages.ui.project import later, page_link
from pages.ui.runs.links import CORPORA, LABEL, TRAINING
from pages.ui.widgets import plain, pressed, table

WITHOUT_LABELS = ("task", "domain")  # roles that a corpus without labels can have
TEXT_ROLES = (
    "Task corpus: sentences like those that your tagger will read. Domain corpus: a large collection to select from."
)


def report(run_id: str) -> None:
    """Show the counts, warnings and rejected rows of a finished import of one file. run_id: an `add` run."""
    result = read_result(runs.get(run_id), AddResult)
    with st.container(border=True):
        _report(run_id, result)


def _report(run_id: str, result: AddResult) -> None:
    here = any(corpus.fingerprint == result.corpus for corpus in corpora.listed())
    if here:
        _named(result)
    else:
        st.info(f"The corpus {plain(result.name)} was removed.", icon=":material/link_off:")
    _counts(result)
    if result.cut and result.cut.rule != "own":
        words = "runs of letters and digits, and single punctuation marks"
        rule = words if result.cut.rule == "words" else "text between spaces"
        st.caption(f"Its tokens are {rule} ({plain(result.cut.why)}).")
    for text in result.of_labels:
        st.warning(plain(text), icon=":material/warning:")
    if result.unspaced:
        _counted_letters(result.unspaced)
    if result.problems:
        rows = [{**asdict(problem), "line": str(problem.line or "")} for problem in result.problems[:20]]
        names = {"line": "Line", "file": "File", "kind": "What", "reason": "Why"}
        table(rows, names, "Rows that were changed or skipped")
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
    if not here:
        return
    if result.format == NAMES:
        _use_names()
        return
    data_check.show(corpora.check_corpus(result.corpus), "corpora.import", here=CORPORA)
    _give_role(result.corpus)


def _use_names() -> None:
    """Link to the pages that use a list of names, which cannot have a role."""
    with st.container(horizontal=True):
        label = "Use the names in an experiment"
        page_link(TRAINING, label=label, icon=":material/model_training:", width="content")
        page_link(LABEL, label="Suggest them as labels", icon=":material/label:", width="content")


def _counts(result: AddResult) -> None:
    """Show the numbers of pages, rows and files that were read, kept and left out."""
    with st.container(horizontal=True):
        for label, n in (
            *((("Pages", result.pages), ("Pages without text", result.blank_pages)) if result.pages else ()),
            *(
                (("Letters that cannot be read as characters", result.unmapped), ("Of these restored", result.restored))
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
    """Show a note if the corpus was in the project before, or could not get the name that the user gave."""
    name, asked = results.corpus_name(result.corpus), result.asked_name
    if result.was_here:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                f"This text is already imported as **{plain(name)}**; that corpus is used.",
                icon=":material/inventory_2:",
            )
            if asked != name and pressed(f"Call it {plain(short(asked))}", "corpora.rename"):
                corpora.rename(result.corpus, asked)
                st.rerun()
    elif asked and asked != name:
        st.info(f"Another corpus has the name **{plain(asked)}**, so this one is named **{plain(name)}**.")


def _counted_letters(n: int) -> None:
    st.caption(
        f"{n:,} sentence{'s are' if n > 1 else ' is'} in a script without spaces between words"
        " (Chinese, Japanese, Thai, Lao, Khmer or Burmese). Each letter counts as a token in lengths and budgets,"
        " and when sentences are compared."
    )


def _give_role(fingerprint: str) -> None:
    held = [role for role, other in corpora.roles().items() if other == fingerprint]
    labelled = corpora.find(fingerprint).labelled
    short = {role: term.title for role, term in ROLES.items() if labelled or role in (*WITHOUT_LABELS, *held)}
    choice = st.segmented_control(
        "Use it as",
        list(short),
        format_func=short.__getitem__,
        default=held[0] if held else None,
        # The key contains the corpus, so that the field for the next import starts without a role.
        key=f"corpora.role.{fingerprint}",
    )
    if not held:
        _propose(corpora.find(fingerprint))
        st.caption(TEXT_ROLES + ("" if labelled else " It has no labels, so it cannot be a training, dev or test set."))
    if choice and choice not in held:
        corpora.set_role(choice, fingerprint)
        st.rerun()


def _propose(corpus: Corpus) -> None:
    row = intake.proposed_role(corpus)
    if row is None:
        return
    if row.part == DIVIDE:
        st.markdown("Proposed: divide it into a training, dev, and test set, under **Divide a corpus into parts**.")
    else:
        role = ROLES[row.part].word if row.part in ROLES else "no role"
        st.markdown(f"Proposed: {plain(role)} ({plain(row.seen)}).")


def intake_outcome(run_id: str) -> None:
    """Show the result of an import of several files: a row per role, the corpora now in use, and next steps.

    run_id: a finished `intake` run.
    """
    result = read_result(runs.get(run_id), IntakeResult)
    with st.container(border=True):
        rows = [_part_row(each) for each in result.parts]
        names = {"part": "Role", "name": "Corpus", "n": "Sentences", "rejected": "Rows rejected", "note": "Note"}
        table(rows, names, "What was imported", names=("name",))
        for each in result.parts:
            if each.problem:
                st.warning(plain(f"{intake.ROLE_TITLES[each.part]}: {each.problem}"), icon=":material/error:")
            for text in _of_labels(each):
                st.warning(plain(f"{intake.ROLE_TITLES[each.part]}: {text}"), icon=":material/warning:")
        parts = in_words([intake.ROLE_TITLES[role].lower() for role in result.roles])
        more = f" The {terms.TASK.word} is the text of the {terms.TRAIN.word}." if result.task_of_train else ""
        if parts:
            st.markdown(f"In use now as {parts}.{more}")
        if any(each.part == SOURCE and not each.problem for each in result.parts):
            st.markdown("The other sources are in the list All corpora, without a role. Similarity compares them.")
        with st.container(horizontal=True):
            page_link("home.py", label="**Go on**", icon=":material/arrow_forward:", width="content")
            for each in result.parts:
                if each.run and not each.problem:
                    name = short(results.corpus_name(read_result(runs.get(each.run), AddResult).corpus))
                    label, icon = f"Import details of {plain(name)}", ":material/list_alt:"
                    page_link(CORPORA, label=label, icon=icon, query={"run": each.run}, width="content")


def _of_labels(each: Taken) -> Sequence[str]:
    """Return warnings about the labels of one imported file; none if its import was removed."""
    if each.run and not each.problem:
        with suppress(WinnowError):
            return read_result(runs.get(each.run), AddResult).of_labels
    return ()


def _part_row(each: Taken) -> dict[str, object]:
    row: dict[str, object] = {
        "part": intake.ROLE_TITLES[each.part],
        "name": "",
        "n": 0,
        "rejected": 0,
        "note": "not imported",
    }
    if not each.run:
        return row
    try:
        result = read_result(runs.get(each.run), AddResult)
    except WinnowError:  # The user has removed this import meanwhile.
        return {**row, "note": "removed"}
    notes = [count(result.files, "file")] if result.files > 1 else []
    notes += [f"{result.blank_pages:,} of {count(result.pages, 'page')} without text"] if result.blank_pages else []
    notes += [f"{count(result.left_out, 'file')} left out"] if result.left_out else []
    notes += ["was in the project already"] if result.was_here else []
    name = results.corpus_name(result.corpus)
    return {**row, "name": name, "n": result.sentences, "rejected": result.rejected, "note": "; ".join(notes)}


def size_ratios(most: int | None) -> None:
    """Show a table of size ratios of the corpora in use. most: largest number of selections in it; None for all."""
    known = corpora.ratios()
    choices = [each for each in known if each.name == corpora.SELECTED]
    rows = [
        {"name": _ratio_name(each.name), "value": f"{each.value:.4g}", "of": each.of, "to": each.to}
        for each in (*(each for each in known if each.name != corpora.SELECTED), *choices[:most])
    ]
    if rows:
        st.subheader("Size ratios", anchor=False)
        names = {"name": "Sentences", "value": "Ratio", "of": "Of", "to": "To"}
        table(rows, names, "Size ratios of the corpora", names=("of", "to"))


def _ratio_name(name: str) -> str:
    """Return a ratio's name in words: for "N_T/N_D", "Task corpus to domain corpus (N_T/N_D)"."""
    one, other = (terms.plainly(f"{part[-1]}_C") for part in name.split("/"))
    return f"{one[:1].upper()}{one[1:]} to {other} ({name})"
