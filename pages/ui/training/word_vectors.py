"""External word vectors on Training: a list, an import form, and pickers for the forms."""

import streamlit as st

from core.importing import view as corpora
from core.kinds import KINDS
from core.paths import allowed_roots
from core.projects import runs
from core.tagging import view as training
from pages.ui.frame import guard
from pages.ui.presses import submitted
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import config_form, plain, table

RUN = "training.vectors.run"
HELP = "word2vec, GloVe or fastText (.vec) as text, plain or .gz; read where it lies, however large."


def vectors_import() -> None:
    """Draw the imported vectors, the import form, and the progress of the latest import."""
    with st.expander("External word vectors (GloVe, word2vec, fastText)", icon=":material/match_word:"):
        if here := list(training.imported_vectors().values()):
            names = {"name": "Name", "words": "Words", "dimension": "Numbers a word"}
            rows = [{key: getattr(one, key) for key in names} for one in here]
            table(rows, names, "Word vectors that are here", names=("name",))
        with guard():
            _form()
        begun = next(iter(runs.own("vectors-import")), None)
        if begun and runs.state(begun.id).state != "succeeded":
            run_panel(begun.id, RUN)


def _form() -> None:
    with st.form("training.vectors.form", border=False):
        path = st.text_input("File", key="training.vectors.path", placeholder="/home/me/glove.6B.100d.txt", help=HELP)
        left, right = st.columns(2)
        config = KINDS["vectors-import"].config
        with left:
            options = config_form(config, ("name",), "training.vectors")
        with right:
            options |= config_form(config, ("most_words",), "training.vectors", {"most_words": "Its first"})
        sent = submitted("Read the vectors", "training.vectors.start", icon=":material/download:")
    st.caption(
        "For variants vectors:NAME of an experiment with a BiLSTM, and for Fine-tune under Custom, network bilstm or "
        f"charcnn. Files may lie in {', '.join(plain(str(root)) for root in allowed_roots())}."
    )
    if sent and not path.strip():
        st.info("Say where the file lies.")
    elif sent:
        runs.start("vectors-import", {**options, "path": str(corpora.import_path(path.strip()))})
        st.rerun()


def picked(name: str, label: str, key: str, why: str) -> str:
    """Ask for one of the imported vectors, or none. name: of the option."""
    names = ["", *(one.name for one in training.imported_vectors().values())]
    return str(st.selectbox(label, names, format_func=lambda name: name or "none", key=f"{key}.{name}", help=why))


def several_picked(key: str) -> tuple[str, ...]:
    """Ask for several of the imported vectors; () if there are none."""
    names = [one.name for one in training.imported_vectors().values()]
    if not names:
        return ()
    why = "A variant vectors:NAME each; all variants' words are as long as these."
    return tuple(st.multiselect("External word vectors", names, key=key, placeholder="none", help=why))
