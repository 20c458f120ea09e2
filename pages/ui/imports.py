"""Adding a corpus: a file is uploaded or named, looked at, and handed to an `add` run; the run's report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from core import facade
from pages.ui.run_panel import attach
from pages.ui.widgets import escape, plain, table

UPLOADED, BY_PATH = "Upload a file", "A path on this machine"
FORMATS = ["txt", "jsonl", "csv", "tsv", "parquet", "conll", "bio", "iob", "iob2", "json", "gz", "zst"]
SCHEMES = ("iob1", "iob2", "bioes", "bilou", "io")
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16")
RUN = "corpora.run"


def importer() -> None:
    """Pick a file, look at it, import it."""
    st.session_state.setdefault("corpora.turn", 0)
    source = st.segmented_control(
        "Where is it?", (UPLOADED, BY_PATH), default=UPLOADED, required=True, key="corpora.source"
    )
    path = _uploaded() if source == UPLOADED else _named()
    if path is None:
        return
    left, right = st.columns(2)
    encoding = left.selectbox("Encoding", ENCODINGS, key="corpora.encoding")
    part = right.selectbox("Part (of a folder with several)", ("", "train", "dev", "test"), key="corpora.part")
    preview = facade.preview(path, encoding=encoding, part=part or None)
    _looks(preview)
    _form(path, preview, {"encoding": encoding, "part": part, "move": source == UPLOADED})


def _uploaded() -> Path | None:
    """The upload, on disk: its token stands in the address, so that a reload finds it again."""
    if token := st.query_params.get("upload"):
        return _waiting(token)
    turn = st.session_state["corpora.turn"]
    file = st.file_uploader(
        "Text, JSONL, CSV, Parquet or CoNLL, also packed as .gz or .zst; up to 500 MB",
        type=FORMATS,
        max_upload_size=500,
        key=f"corpora.file.{turn}",
    )
    if file is not None:
        st.query_params["upload"] = facade.spool(file.name, file).parent.name
        st.session_state["corpora.turn"] = turn + 1  # a fresh widget: the server lets go of the upload
        st.rerun()
    return None


def _waiting(token: str) -> Path | None:
    """An upload that was spooled and not yet imported."""
    try:
        path = facade.spooled(token)
    except facade.InputError as error:
        del st.query_params["upload"]
        st.warning(plain(str(error)))
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(path.name)}**", width="content")
        if st.button("Take another file", key="corpora.discard", icon=":material/close:"):
            facade.discard(token)
            del st.query_params["upload"]
            st.rerun()
    return path


def _named() -> Path | None:
    roots = ", ".join(str(root) for root in dict.fromkeys(facade.import_roots()))
    text = st.text_input(
        "File or folder",
        key=f"corpora.path.{st.session_state['corpora.turn']}",
        placeholder="/home/me/contracts.txt",
        help=plain(f"It may lie in {roots}, or in a folder named by WINNOW_DATA_DIRS."),
    )
    return facade.import_path(text.strip()) if text and text.strip() else None


def _looks(preview: Any) -> None:
    what = f"Read as **{plain(preview.format)}**, " + ("labelled" if preview.labelled else "not labelled")
    if len(preview.files) > 1:
        what += f", {len(preview.files):,} files"
    st.markdown(what + ". First rows:")
    st.html(
        '<ol class="w-sentences" aria-label="First rows">'
        + "".join(f"<li>{escape(row[:300])}</li>" for row in preview.rows)
        + "</ol>"
    )


def _form(path: Path, preview: Any, options: dict[str, Any]) -> None:
    with st.form("corpora.import"):
        name = path.name.removesuffix(".gz").removesuffix(".zst").rsplit(".", 1)[0]
        options |= {"path": str(path), "name": st.text_input("Name", name, key=f"corpora.name.{path}").strip()}
        if preview.columns and preview.text_column is not None:
            at = preview.columns.index(preview.text_column)
            options["text_column"] = st.selectbox("Column that holds the text", preview.columns, index=at)
        if preview.scheme is not None:
            options["scheme"] = _scheme(preview.scheme)
        if not preview.labelled:
            options["split"] = st.toggle("Every row is a document: split it into sentences", key="corpora.split")
        if preview.format == "txt":
            units = {"line": "one line", "paragraph": "the lines up to an empty one"}
            options["unit"] = st.selectbox("A row is", list(units), format_func=units.__getitem__)
        sent = st.form_submit_button("Import", type="primary", icon=":material/download:", key="corpora.submit")
    if sent:
        _start(options)


def _scheme(proposal: Any) -> str | None:
    """The label scheme: proposed where tags leave no doubt, asked for where they do."""
    if proposal.scheme:
        label = f"{proposal.scheme.upper()}, as its tags say (checked over the whole file)"
        choices = ("auto", *(scheme for scheme in SCHEMES if scheme != proposal.scheme))
        return st.selectbox("Label scheme", choices, format_func=lambda s: label if s == "auto" else s.upper())
    st.warning(plain(proposal.problem), title="Which label scheme is it?")
    choices = proposal.candidates or SCHEMES
    return st.selectbox("Label scheme", choices, index=None, format_func=str.upper, placeholder="choose one")


def _start(options: dict[str, Any]) -> None:
    if options.get("scheme", "auto") is None:
        st.error("Choose the label scheme first: the same tags mean different entities in each.")
        return
    run_id = facade.start("add", {key: value for key, value in options.items() if value not in ("", None)})
    if "upload" in st.query_params:
        del st.query_params["upload"]
    st.session_state["corpora.turn"] += 1  # fresh widgets for the next file
    attach(run_id, RUN)
    st.rerun()


def report(run_id: str) -> None:
    """What became of every row of a finished import, and the rows that were rejected, to take away."""
    result = facade.run(run_id).result()
    with st.container(border=True):
        _report(run_id, result)


def _report(run_id: str, result: Mapping[str, Any]) -> None:
    with st.container(horizontal=True):
        for label in ("read", "kept", "repaired", "rejected"):
            st.metric(label.capitalize(), f"{result[label]:,}", width="content")
    if result["problems"]:
        rows = [{**problem, "line": str(problem["line"] or "")} for problem in result["problems"][:20]]
        names = {"line": "Line", "file": "File", "kind": "What", "reason": "Why"}
        table(rows, names, "Rows that were not taken as they came")
    rejects = facade.run(run_id).artifacts / "rejects.jsonl"
    if rejects.exists():
        st.download_button(
            "Download the rejected rows",
            rejects.read_bytes,
            file_name="rejects.jsonl",
            mime="application/jsonl",
            on_click="ignore",
            icon=":material/download:",
            key="corpora.rejects",
        )
    _give_role(result["corpus"])


def _give_role(fingerprint: str) -> None:
    short = {role: words.split(":")[0] for role, words in facade.ROLES.items()}
    held = [role for role, other in facade.roles().items() if other == fingerprint]
    choice = st.segmented_control(
        "Use it as",
        list(short),
        format_func=short.__getitem__,
        default=held[0] if held else None,
        key=f"corpora.role.{fingerprint}",  # another corpus must not inherit the choice
    )
    if choice and choice not in held:
        facade.set_role(choice, fingerprint)
        st.rerun()
