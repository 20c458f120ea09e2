"""Import corpora: fields for an upload or a path, proposed roles for several files, and a form for a single file."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.typing import UploadedFile

from core import terms
from core.corpora.formats.detect import suffix
from core.corpora.formats.ledger import NAMES
from core.corpora.formats.name_lists import ENDINGS
from core.corpora.proposal import DIVIDE, Row, task_of_train
from core.errors import EncodingError, InputError, OptionsError, WinnowError
from core.importing import intake_view as intake
from core.importing import uploads
from core.importing import view as corpora
from core.importing.add import LONGEST_NAME, proposed_name
from core.paths import allowed_path, allowed_roots
from core.projects import runs
from core.shown import count, short
from pages.ui.frame import ASSETS, guard
from pages.ui.runs.links import attach
from pages.ui.widgets import plain, pressed, size, submitted

SHOWN = 5
OPEN = "corpora.importing"  # session key: set after "Take another file", so that the form stays open


def taken(token: str) -> Path | None:
    """Return the path of the upload with this token, and draw a button that discards it; None if it was deleted."""
    try:
        path = uploads.spooled(token)
    except InputError as error:
        del st.query_params["upload"]
        st.warning(plain(str(error)))
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(uploads.called(path))}**", width="content")
        if pressed("Take another file", "corpora.discard", icon=":material/close:"):
            uploads.discard(token)
            for name in {"upload", "as"} & set(st.query_params):
                del st.query_params[name]
            st.session_state[OPEN] = True
            st.rerun()
    return path


def waiting() -> None:
    """List uploads that have not been imported yet, with buttons to import or delete each."""
    files = uploads.waiting()
    if files:
        n = len(files)
        st.caption(f"{n} upload{'s' * (n > 1)} waiting to be imported. Uploads are deleted after a day.")
    for token, name in list(files.items())[:SHOWN]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(name)}**", width="content")
            if pressed("Go on", f"corpora.waiting.{token}", icon=":material/arrow_forward:"):
                st.query_params["upload"] = token
                st.rerun()
            if pressed("Delete", f"corpora.forget.{token}", icon=":material/delete:"):
                uploads.discard(token)
                st.rerun()


ONE = "one"  # value of the URL parameter `as`: import all files as one corpus, with all options
JOIN, APART = "Join the domain corpus", "Keep apart, to compare"
TYPES = 4  # largest number of entity types in a row


def proposed(path: Path, run_key: str, *, uploaded: bool) -> None:
    """Draw the files, their proposed roles, and the button that imports them.

    run_key: session key of the import run. uploaded: True if `path` is an upload, which the import moves.
    """
    like = st.session_state.get(_like(path), ())
    with st.spinner("Looking at the files"):
        encoding = st.session_state.get(_encoding(path)) or "utf-8"
        proposal = intake.proposal([path], like, encoding)
    if apart := bool(proposal.joined) and _kept_apart(path, len(proposal.joined)):
        proposal = proposal.kept_apart()
    parts = {row.files[0]: _row(row, f"corpora.part.{path}.{len(like)}.{apart}.{encoding}") for row in proposal.rows}
    if proposal.ask or like:
        _ask(path, proposal.ask or like)
    if encoding != "utf-8" or any(UNDECODED in row.seen for row in proposal.rows):
        st.selectbox(
            "Encoding of files that are not in UTF-8",
            ENCODINGS[1:],
            index=None,
            placeholder="choose one",
            key=_encoding(path),
            help=ABOUT_ENCODING,
        )
    files = proposal.files(parts)
    _says(files)
    annotator = asked_annotator(intake.agreement(path)) if any(row.labelled for row in proposal.rows) else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        ready = annotator is not None and bool(files) and not {"train", DIVIDE} <= files.keys()
        if pressed("Use these", "corpora.use", type="primary", icon=":material/done_all:", disabled=not ready):
            options = intake.options(proposal, [path], parts, move=uploaded)
            _use({**options, "encoding": encoding, "annotator": annotator}, run_key)
        if pressed("Import as one corpus, with all options", "corpora.one", type="tertiary", icon=":material/tune:"):
            st.query_params["as"] = ONE
            st.rerun()


def asked_annotator(agreement: Any) -> str | None:
    """If annotators disagree, ask whose labels to import.

    Return the annotator's name, "" if no choice is needed, None until the user has chosen.
    """
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
    """Draw a file with its size and proposed role, and return the role that the user chose."""
    with st.container(border=True, key=f"{key}.{row.files[0]}"):
        left, right = st.columns((5, 3), vertical_alignment="center")
        much = f"{'' if row.exact else 'about '}{count(_rounded(row), 'sentence')}" if row.sentences else ""
        much = much or (size(row.bytes) if row.bytes else "not read")
        types = ", ".join(row.types[:TYPES]) + (f" and {len(row.types) - TYPES} more" if len(row.types) > TYPES else "")
        known = [much, f"labelled ({types or 'no entity'})"] if row.labelled else [much]
        seen = row.seen[:1].upper() + row.seen[1:]
        left.markdown(f"**{plain(short(row.name))}** · {plain(' · '.join(known))}  \n{plain(seen)}.")
        part = right.selectbox(
            f"Role of {short(row.name)}",
            row.possible_roles,
            index=row.possible_roles.index(row.part),
            format_func=intake.ROLE_TITLES.__getitem__,
            key=f"{key}.{row.files[0]}.part",
            label_visibility="collapsed",
        )
    return str(part)


def _rounded(row: Row) -> int:
    """Return the number of sentences in a file. An estimate is rounded to two digits, an exact count is not."""
    return row.sentences if row.exact else int(float(f"{row.sentences:.1e}"))


def _like(path: Path) -> str:
    return f"corpora.like.{path}"


def _encoding(path: Path) -> str:
    return f"corpora.encoding.{path}"


def _ask(path: Path, files: Sequence[str]) -> None:
    """Ask which files are like the text that will be labelled. The choice goes into the session key `_like(path)`."""
    st.multiselect(
        "Which of these files contain text like that of your task?",
        files,
        key=_like(path),
        placeholder="choose the files",
        help="Choose files like the text that you will label. Winnow finds more such text in the domain corpus.",
    )


def _kept_apart(path: Path, n: int) -> bool:
    """Ask whether `n` texts become one domain corpus or separate corpora. Return True for separate ones."""
    chosen = st.segmented_control(
        f"{n} texts without labels",
        (JOIN, APART),
        default=JOIN,
        required=True,
        key=f"corpora.joined.{path}",
        help=f"If they are kept apart, the largest becomes the {terms.DOMAIN.word}, and each other one a source to "
        "compare.",
    )
    return chosen == APART


def _says(files: Mapping[str, Sequence[str]]) -> None:
    """Show which corpora lose their role to these files, and which roles are still empty. files: {role: files}."""
    held = intake.held()
    for role in (role for role in held if role in files or (role == "train" and DIVIDE in files)):
        old = f"{held[role].name} ({count(len(held[role]), 'sentence')})"
        st.warning(
            plain(f"Replaces {old} as {intake.ROLE_TITLES[role].lower()}. The old corpus is kept."),
            icon=":material/swap_horiz:",
        )
    files = {**dict.fromkeys(held, ()), **files}
    if task_of_train(files):
        st.caption(f"The {terms.TASK.word} will be the text of your {terms.TRAIN.word}, without the other sets.")
    elif "task" not in files:
        st.caption(f"There is no {terms.TASK.word} yet, which a selection needs. Give a file this role now or later.")
    if "domain" not in files:
        st.caption(f"There is no {terms.DOMAIN.word} yet, which a selection needs.")
    if {"train", DIVIDE} <= files.keys():
        st.warning(
            f"A file that is divided also gives a {terms.TRAIN.word}, but another file has this role. Change the role"
            " of one of them."
        )


def _use(options: dict[str, object], run_key: str) -> None:
    run_id = runs.start("intake", options)
    for name in ("upload", "as"):
        if name in st.query_params:
            del st.query_params[name]
    st.session_state["corpora.turn"] += 1  # The widget keys contain this number, so the form gets empty widgets.
    st.session_state.pop(OPEN, None)
    attach(run_id, run_key)
    st.rerun()


UPLOADED, BY_PATH = "Upload a file", "A path on this machine"
SCHEMES = ("iob1", "iob2", "bioes", "bilou", "io")
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16", "cp1250", "cp1251", "gb18030", "big5", "shift_jis", "euc_kr")
ABOUT_ENCODING = "Files from Windows usually have cp1252."
CHOOSE_ENCODING = f"Choose the file's encoding in the field **Encoding** above. {ABOUT_ENCODING}"
UNDECODED = "encoding"  # occurs in every message of the importer for a file that it could not decode
TAG_COLUMN, ENTITY_TYPE = "--tag-column", "--entity-type"  # option names that occur in messages of the importer
RUN = "corpora.run"
SENTENCES, LIST = "Sentences", "A list of names"  # what a text file or a table can contain

REFUSED = "corpora.refused"  # session key: why the last upload was refused
_folders = st.components.v2.component("winnow_folders", js=(ASSETS / "folders.js").read_text(encoding="utf-8"))


def importer() -> None:
    """Let the user pick and import files: several files by their proposed roles, a single file with all options."""
    st.session_state.setdefault("corpora.turn", 0)
    corpora.warm_preview()
    intake.warm_proposal()
    with guard():  # A file that cannot be read must not hide the corpora below the form.
        source = st.segmented_control(
            "Where is it?", (UPLOADED, BY_PATH), default=UPLOADED, required=True, key="corpora.source"
        )
        path = _uploaded() if source == UPLOADED else _named()
        if path is None:
            return
        if intake.is_several(path) and st.query_params.get("as") != ONE:
            proposed(path, RUN, uploaded=source == UPLOADED)
        else:
            _look(path, uploaded=source == UPLOADED)


def _look(path: Path, *, uploaded: bool) -> None:
    """Ask how to read a file, preview it, and draw the form that imports it. uploaded: True for an upload."""
    left, right = st.columns(2)
    encoding, part = left.selectbox("Encoding", ENCODINGS, key="corpora.encoding"), ""
    if path.is_dir():
        part = right.selectbox(
            "Set to import, if the folder has several", ("", "train", "dev", "test"), key="corpora.part"
        )
    if suffix(path) in ENDINGS and _holds_names(right):
        _names(path, encoding, uploaded=uploaded)
        return
    key = f"corpora.tag_column.{path}"
    tag_column = str(st.session_state.get(key, "")).strip()
    try:
        with st.spinner("Looking at the file"):
            preview = corpora.preview(path, encoding=encoding, part=part or None, tag_column=tag_column)
    except EncodingError as error:
        st.error(f"{plain(str(error))} {CHOOSE_ENCODING}", title="Another encoding?", icon=":material/error:")
        return
    except OptionsError as error:
        if TAG_COLUMN not in str(error):
            raise
        st.error(plain(str(error)), title="Which column holds the tags?", icon=":material/error:")
        _first_sentences(error.examples)
        _tag_column(key)
        return
    _looks(preview)
    if tag_column or any(TAG_COLUMN in note for note in preview.notes):
        _tag_column(key)
    _form(path, preview, {"encoding": encoding, "part": part, "tag_column": tag_column, "move": uploaded})


def _holds_names(place: DeltaGenerator) -> bool:
    """Ask what a text file or a table contains. Return True for a list of names. place: column to draw in."""
    return place.selectbox("What is in it", (SENTENCES, LIST), key="corpora.holds") == LIST


def _names(path: Path, encoding: str, *, uploaded: bool) -> None:
    """Preview a list of names, then draw the form that imports it."""
    st.caption(
        "A text file with one name per line, or a CSV file with the columns name and type. The pages Training and "
        "Label can look these names up in your sentences."
    )
    type = st.text_input(
        "Type of the names",
        key=f"corpora.entity_type.{path}",
        placeholder="DRUG",
        max_chars=LONGEST_NAME,
        help="Used for names to which the file gives no type. Write the type as in your labelled data.",
    ).strip()
    try:
        with st.spinner("Looking at the file"):
            preview = corpora.preview(path, encoding=encoding, format=NAMES, entity_type=type)
    except EncodingError as error:
        st.error(f"{plain(str(error))} {CHOOSE_ENCODING}", title="Another encoding?", icon=":material/error:")
        return
    except OptionsError as error:
        if type or "without a type" not in str(error):
            raise
        st.info("Give the type of the names.", icon=":material/label:")
        return
    _looks(preview)
    with st.form("corpora.import"):
        name = st.text_input("Name", proposed_name(path), key=f"corpora.name.{path}", max_chars=LONGEST_NAME)
        sent = submitted("Import", "corpora.submit", type="primary", icon=":material/download:")
    if sent:
        options = {"path": str(path), "name": name.strip(), "format": NAMES, "entity_type": type}
        _start(options | {"encoding": encoding, "move": uploaded})


def _tag_column(key: str) -> None:
    """Ask which column contains the tags. An answer reruns the page, which then previews the file again."""
    st.text_input(
        "Column of the tags",
        key=key,
        placeholder="its number, counted from 1, or its name in the first line",
        help="The column whose tags (B-PER, I-PER, O) mark the entities.",
    )


def _uploaded() -> Path | None:
    """Return the path of the upload whose token is in the URL. Without a token, draw the uploader and return None."""
    if token := st.query_params.get("upload"):
        return taken(token)
    if refusal := st.session_state.get(REFUSED):
        st.error(plain(refusal), title="This file cannot be read", icon=":material/error:")
    key = f"corpora.file.{st.session_state['corpora.turn']}"
    # The component is invisible but has a height. In the sidebar, this moves no content of the page.
    with st.sidebar:
        _folders(key="corpora.folders", height=1)
    st.file_uploader(
        "Drop all your files here, labelled or not: PDF, Word, OpenDocument, RTF, HTML, mail, Excel, text, JSON, CSV,"
        " Parquet, CoNLL, or a folder or zip of them, up to 500 MB each. Winnow then proposes a role for each file.",
        max_upload_size=500,
        accept_multiple_files=True,
        key=key,
        on_change=_take,
        args=(key,),
    )
    waiting()
    return None


def _take(key: str) -> None:
    """Move an upload to disk before the page is drawn, because the widget would copy it in memory."""
    # The widget also lists files that `_let_go` has deleted from memory. These are no `UploadedFile`.
    files = [file for file in st.session_state[key] or () if isinstance(file, UploadedFile)]
    if not files:  # The widget also calls this when the user or `_let_go` removes a file.
        return
    st.session_state["corpora.turn"] += 1  # The widget's key contains this number, so the next file gets a new one.
    st.session_state[REFUSED] = token = None
    try:
        token = uploads.spool_all([(file.name, file) for file in files])
    except WinnowError as error:
        st.session_state[REFUSED] = str(error)
    for file in files:
        _let_go(file.file_id)
    if token:
        st.query_params["upload"] = token


def _let_go(file_id: str) -> None:
    """Delete an upload from the server's memory. It would otherwise stay there until the browser tab closes."""
    context = get_script_run_ctx()
    if context and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        context.uploaded_file_mgr.remove_file(context.session_id, file_id)


def _named() -> Path | None:
    """Ask for the path of a file or folder, and return it; None before the user gives one.

    The user types it, or goes down the folders that Winnow may read.
    """
    key = f"corpora.path.{st.session_state['corpora.turn']}"
    with st.form("corpora.where", border=False):
        left, right = st.columns((4, 1), vertical_alignment="bottom")
        text = left.text_input("File or folder", key=key, placeholder="/home/me/texts.txt").strip()
        right.form_submit_button("Look at it", width="stretch", key="corpora.look")
    folder, entries = corpora.import_listing(text)
    step = f"{key}.in.{folder}"
    label = f"Or choose in {plain(folder)}" if folder else "Or choose from a folder"
    st.selectbox(label, entries, index=None, key=step, on_change=_step, args=(key, step), placeholder="choose")
    roots = ", ".join(f"**{plain(str(root))}**" for root in allowed_roots())
    st.caption(
        f"Winnow may read {roots}. To allow another folder, start Winnow with its path: "
        "`WINNOW_DATA_DIRS=/data/texts make app`."
    )
    return allowed_path(text, allowed_roots()) if text else None


def _step(key: str, step: str) -> None:
    """Put the folder or file that the user chose in the list into the text field.

    key: key of the text field. step: key of the list.
    """
    chosen = corpora.import_listing(st.session_state[key].strip())[1].get(st.session_state.pop(step) or "")
    if chosen is not None:
        st.session_state[key] = str(chosen)


def _looks(preview: Any) -> None:
    called = "a list of names" if preview.format == NAMES else preview.format
    what = f"Read as **{plain(called)}**, " + ("labelled" if preview.labelled else "not labelled")
    what += f", {count(len(preview.files), 'file')}" * (len(preview.files) > 1)
    st.markdown(what + (". First rows:" if preview.rows else "."))
    _first_sentences(preview.rows)
    for note in preview.notes:
        st.info(plain(note), icon=":material/info:")
    if preview.problems:
        problems = [
            f"{problem.file}{f' line {problem.line}' if problem.line else ''}: {problem.reason}."
            for problem in preview.problems[:3]
        ]
        advice = [CHOOSE_ENCODING] if preview.n_undecodable else []
        title = "Some of the first rows cannot be imported unchanged"
        st.warning("  \n".join([*map(plain, problems), *advice]), title=title, icon=":material/warning:")


def _first_sentences(rows: Sequence[str]) -> None:
    if rows:
        st.html(
            '<ol class="w-sentences" aria-label="First rows">'
            + "".join(f"<li>{escape(row[:300])}</li>" for row in rows)
            + "</ol>"
        )


def _form(path: Path, preview: Any, options: dict[str, Any]) -> None:
    with st.form("corpora.import"):
        name = st.text_input("Name", proposed_name(path), key=f"corpora.name.{path}", max_chars=LONGEST_NAME)
        options |= {"path": str(path), "name": name.strip()}
        if preview.columns and preview.text_column is not None:
            at = preview.columns.index(preview.text_column)
            options["text_column"] = st.selectbox("Column that holds the text", preview.columns, index=at)
        if preview.columns:
            options |= _kept_columns(preview.columns)
        if preview.scheme is not None:
            options["scheme"] = _scheme(preview.scheme)
        if any(ENTITY_TYPE in note for note in preview.notes):
            options["entity_type"] = st.text_input(
                "Entity type", placeholder="ENTITY", key=f"corpora.entity_type.{path}", max_chars=LONGEST_NAME
            ).strip()
        options["annotator"] = asked_annotator(preview.agreement)
        if preview.labelled:
            options["keep_lost"] = st.toggle(
                "Keep sentences that lost an annotation",
                key="corpora.keep_lost",
                help="An annotation cannot be read if it overlaps another one, has a gap or does not fit the text. Its"
                " sentence is then left out, because its labels are incomplete. A text with only binary answers"
                " (Prodigy) is left out too. If you keep such sentences, the missing labels count as O.",
            )
        if preview.format in corpora.CUT_ANYWAY:
            st.caption("Documents are split into sentences, and the file and page of each sentence are stored.")
        elif not preview.labelled:
            options["split"] = st.toggle("Every row is a document: split it into sentences", key="corpora.split")
        if preview.format == "txt":
            units = {"line": "one line", "paragraph": "one paragraph (between empty lines)"}
            options["unit"] = st.selectbox("A row is", list(units), format_func=units.__getitem__)
        if preview.marks is not None:
            options["tokens"] = _tokens(preview.marks)
        sent = submitted("Import", "corpora.submit", type="primary", icon=":material/download:")
    if sent:
        _start(options)


def _kept_columns(columns: Sequence[str]) -> dict[str, str]:
    """Ask which columns name a row's document and its group, and return these options."""
    left, right = st.columns(2)
    choices = ("", *columns)
    return {
        "doc_column": left.selectbox(
            "Column that names its document",
            choices,
            format_func=lambda name: name or "automatic: a column doc, doc_id, document_id or docid",
            key="corpora.doc_column",
        ),
        "group_column": right.selectbox(
            "Column to split by later",
            choices,
            format_func=lambda name: name or "none",
            key="corpora.group_column",
            help="For example the kind of document, or the hospital. You can divide the corpus by this column, and "
            "colour the map by it. Other columns with short values are kept too, and can colour the map.",
        ),
    }


def _scheme(proposal: Any) -> str | None:
    """Ask for the label scheme, and return it: "auto" for the scheme that the tags show, None before the user chooses.

    If the tags leave no doubt, "auto" is preselected. Otherwise, no scheme is.
    """
    if proposal.scheme:
        label = f"{proposal.scheme.upper()}, as its tags show (checked in the whole file)"
        if proposal.outside:
            label = "no entities: every tag is O (checked in the whole file)"
        choices = ("auto", *(scheme for scheme in SCHEMES if scheme != proposal.scheme))
        return st.selectbox("Label scheme", choices, format_func=lambda s: label if s == "auto" else s.upper())
    where = f"Line {proposal.where:,}: " if proposal.where else ""
    st.warning(plain(where + proposal.problem) + ".", title="Which label scheme is it?")
    choices = proposal.candidates or SCHEMES
    return st.selectbox("Label scheme", choices, index=None, format_func=str.upper, placeholder="choose one")


def _tokens(marks: Any) -> str | None:
    """Ask for the rule that splits the text into tokens, and return it; "auto" for the proposed rule."""
    rules = {
        "words": "runs of letters and digits, and single punctuation marks",
        "blanks": "text between spaces, for text that was tokenised before",
    }
    chosen = st.selectbox(
        "Its tokens are",
        list(rules),
        index=list(rules).index(marks.tokens),
        format_func=rules.__getitem__,
        help=f"Proposed because {marks.why}. Choose “text between spaces” to keep the tokens of a text that was "
        "tokenised before.",
    )
    # With "auto", the report of the import gives the reason for the proposed rule.
    return "auto" if chosen == marks.tokens else chosen


def _start(options: dict[str, Any]) -> None:
    if options.get("scheme", "auto") is None:
        st.error("Choose the label scheme first: the same tags mean different entities in different schemes.")
        return
    if options.get("annotator", "") is None:
        st.error("Choose the annotator first: several annotators labelled the same texts differently.")
        return
    run_id = runs.start("add", {key: value for key, value in options.items() if value not in ("", None)})
    for name in ("upload", "as"):
        if name in st.query_params:
            del st.query_params[name]
    st.session_state["corpora.turn"] += 1  # The widget keys contain this number, so the next file gets empty widgets.
    st.session_state.pop(OPEN, None)
    attach(run_id, RUN)
    st.rerun()
