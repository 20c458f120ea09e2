"""Several files at once: the part that each is proposed to play, to be changed, and one button to use them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core import terms
from core.corpora.proposal import DIVIDE, Row, task_of_train
from core.importing import intake_view as intake
from core.projects import runs
from core.shown import count, short
from pages.ui.corpora.uploads import OPEN
from pages.ui.presses import pressed
from pages.ui.runs.links import attach
from pages.ui.widgets import plain, size

ONE = "one"  # in the address: all that was dropped is to be one corpus, with all options
JOIN, APART = "Join the domain corpus", "Keep apart, to compare"
TYPES = 4  # that a row names


def proposed(path: Path, run_key: str, *, uploaded: bool) -> None:
    """The files, their parts, and what uses them so. run_key: of the visit's import."""
    like = st.session_state.get(_like(path), ())
    with st.spinner("Looking at the files"):
        proposal = intake.proposal([path], like)
    if apart := bool(proposal.joined) and _kept_apart(path, len(proposal.joined)):
        proposal = proposal.kept_apart()
    parts = {row.files[0]: _row(row, f"corpora.part.{path}.{len(like)}.{apart}") for row in proposal.rows}
    if proposal.ask or like:
        _ask(path, proposal.ask or like)
    files = proposal.files(parts)
    _says(files)
    annotator = asked_annotator(intake.agreement(path)) if any(row.labelled for row in proposal.rows) else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        ready = annotator is not None and bool(files) and not {"train", DIVIDE} <= files.keys()
        if pressed("Use these", "corpora.use", type="primary", icon=":material/done_all:", disabled=not ready):
            _use({**intake.options(proposal, [path], parts, move=uploaded), "annotator": annotator}, run_key)
        if pressed("Import as one corpus, with all options", "corpora.one", type="tertiary", icon=":material/tune:"):
            st.query_params["as"] = ONE
            st.rerun()


def asked_annotator(agreement: Any) -> str | None:
    """The annotator whose labels are taken where several differ; "" for nobody, None until one is chosen."""
    if agreement is None:
        return ""
    st.info(plain(agreement.in_words), icon=":material/group:")
    if agreement.equal == agreement.shared:
        return ""
    names: list[str] = list(agreement.annotators)
    at = names.index(agreement.taken) if agreement.taken in names else None
    chosen: str | None = st.selectbox("Annotator", names, index=at, placeholder="choose one", key="corpora.annotator")
    return chosen


def _row(row: Row, key: str) -> str:
    """One row of the table; the part that it is to play."""
    with st.container(border=True, key=f"{key}.{row.files[0]}"):
        left, right = st.columns((5, 3), vertical_alignment="center")
        much = f"{'' if row.exact else 'about '}{count(_rounded(row), 'sentence')}" if row.sentences else ""
        much = much or (size(row.bytes) if row.bytes else "not read")
        types = ", ".join(row.types[:TYPES]) + (f" and {len(row.types) - TYPES} more" if len(row.types) > TYPES else "")
        known = [much, f"labelled ({types or 'no entity'})"] if row.labelled else [much]
        seen = row.seen[:1].upper() + row.seen[1:]
        left.markdown(f"**{plain(short(row.name))}** · {plain(' · '.join(known))}  \n{plain(seen)}.")
        part = right.selectbox(
            f"Part of {short(row.name)}",
            row.possible_parts,
            index=row.possible_parts.index(row.part),
            format_func=intake.PART_TITLES.__getitem__,
            key=f"{key}.{row.files[0]}.part",
            label_visibility="collapsed",
        )
    return str(part)


def _rounded(row: Row) -> int:
    """An estimate in two digits, a count as it is."""
    return row.sentences if row.exact else int(float(f"{row.sentences:.1e}"))


def _like(path: Path) -> str:
    return f"corpora.like.{path}"


def _ask(path: Path, files: Sequence[str]) -> None:
    """Ask which files are like the task, where nothing of them says it."""
    st.multiselect(
        "Which of these files are like your task?",
        files,
        key=_like(path),
        placeholder="choose the files",
        help="Those like what you will label: Winnow finds more of their kind in the domain corpus. A few are enough.",
    )


def _kept_apart(path: Path, n: int) -> bool:
    """Ask if several texts become one corpus or stay corpora of their own."""
    chosen = st.segmented_control(
        f"{n} texts without labels",
        (JOIN, APART),
        default=JOIN,
        required=True,
        key=f"corpora.joined.{path}",
        help=f"Kept apart, the largest is the {terms.DOMAIN.word}. Each other one is a corpus to compare.",
    )
    return chosen == APART


def _says(files: Mapping[str, Sequence[str]]) -> None:
    """Show what follows from the parts and from the corpora of the project, as far as no row says it."""
    held = intake.held()
    for role in (role for role in held if role in files or (role == "train" and DIVIDE in files)):
        old = f"{held[role].name} ({count(len(held[role]), 'sentence')})"
        st.warning(
            plain(f"Replaces {old} as {intake.PART_TITLES[role].lower()}. The old corpus stays."),
            icon=":material/swap_horiz:",
        )
    files = {**dict.fromkeys(held, ()), **files}
    if task_of_train(files):
        st.caption(f"The {terms.TASK.word} will be the text of your {terms.TRAIN.word}, without the other sets.")
    elif "task" not in files:
        st.caption(f"No {terms.TASK.word} yet: a selection needs one. Name it here or later.")
    if "domain" not in files:
        st.caption(f"No {terms.DOMAIN.word} yet: a selection needs one.")
    if {"train", DIVIDE} <= files.keys():
        st.warning(
            f"Dividing a file makes a {terms.TRAIN.word} too, and another file is one already: change one of them."
        )


def _use(options: dict[str, object], run_key: str) -> None:
    run_id = runs.start("intake", options)
    for name in ("upload", "as"):
        if name in st.query_params:
            del st.query_params[name]
    st.session_state["corpora.turn"] += 1  # fresh widgets for the next files
    st.session_state.pop(OPEN, None)
    attach(run_id, run_key)
    st.rerun()
