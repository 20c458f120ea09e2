"""The page Similarity: find the source closest to the task corpus, and see how well similarity predicts F1."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core import terms
from core.corpora.corpus import Corpus
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import preferences, runs
from core.runs.result import read
from core.similarity.measures import MEASURES
from core.similarity.result import SimilarityResult
from pages.ui import checks as data_check
from pages.ui.empty import empty
from pages.ui.frame import page
from pages.ui.runs.links import attach, attached
from pages.ui.runs.panel import run_panel
from pages.ui.runs.words import last_duration
from pages.ui.similarity.results import named, results
from pages.ui.similarity.worth import worth
from pages.ui.terms import grey
from pages.ui.widgets import config_form, corpus_labels, plain, submitted

RUN = "similarity.run"
SAMPLING = (
    "cap_tokens",
    "min_source_tokens",
    "target_tokens",
    "draws",
    "sizes",
    "parts",
    "tokens",
    "lowercase",
    "seed",
)
FINE = ("order", "skip_end", "tagger", "dimension", "window", "negative", "min_count", "skipgram_epochs", "workers")
JOINED = "Only sources can be joined. Pick each corpus under **Sources to join into one** as a source too."
NEEDS = "A comparison needs a task corpus and one or more source corpora."
WORDS = (
    *(terms.TASK, terms.DOMAIN, terms.TOKEN, terms.SCORE),
    *(terms.SURPRISE, terms.SHIFT, terms.SHARED, terms.SHARED_CONTENT),
)


def main() -> None:
    """Draw the page."""
    with page(
        "Similarity",
        "Find the corpus closest to the task corpus by words, word sequences and contexts.",
        WORDS,
    ):
        run_id = attached("similarity", RUN)
        measured, predicted = st.tabs(["Which source is closest?", "What do the measures predict?"])
        with measured:
            _measured(run_id)
        with predicted:
            worth(run_id)


def _measured(run_id: str | None) -> None:
    if run_id is None and not corpora.listed():
        empty(NEEDS, "similarity", "pages/2_Similarity.py")
        return
    with st.expander("What to compare", expanded=run_id is None, icon=":material/tune:"):
        _setup()
    if run_id is not None and run_panel(run_id, RUN).state == "succeeded":
        results(run_id, _target(run_id))


def _setup() -> None:
    known = {corpus.fingerprint: corpus for corpus in corpora.listed()}
    roles = corpora.roles()
    own = [
        mark for mark, corpus in known.items() if not (corpus.labelled or corpus.derived) and mark != roles.get("task")
    ]
    with st.form("similarity.form"):
        options: dict[str, Any] = {
            "target": _pick(f"{grey(terms.TASK)}, or several", known, [roles.get("task")], "target"),
            "source": _pick("Sources: corpora that you might pre-train on", known, own[:8], "source"),
            "measure": st.multiselect(
                "Measures",
                list(MEASURES),
                list(MEASURES),
                format_func=named,
                key="similarity.measure",
            ),
        }
        joined: list[str] = []
        if preferences.expert():
            config = KINDS["similarity"].config
            with st.expander("Sample and details", icon=":material/settings:"):
                joined = _pick("Sources to join into one", known, [], "together")
                options |= config_form(config, SAMPLING, "similarity")
                options |= config_form(config, FINE, "similarity")
        data_check.show(corpora.check_run("similarity", options), "similarity")
        st.caption(plain(last_duration("similarity")))
        sent = submitted("Compare", "similarity.start", type="primary", icon=":material/balance:")
    if sent and not (options["target"] and options["source"]):
        st.info(NEEDS, icon=":material/arrow_upward:")
    elif sent and not set(joined) <= set(options["source"]):
        st.info(JOINED, icon=":material/arrow_upward:")
    elif sent:
        attach(runs.start("similarity", {**options, "together": _together(options["source"], joined)}), RUN)
        st.rerun()


def _pick(label: str, known: dict[str, Corpus], chosen: Sequence[str | None], name: str) -> list[str]:
    names = corpus_labels(known.values())
    return st.multiselect(
        label,
        list(names),
        [mark for mark in chosen if mark in names],
        format_func=names.__getitem__,
        key=f"similarity.{name}",
        placeholder="pick corpora",
    )


def _together(sources: list[str], joined: list[str]) -> list[str]:
    """Return the option `together`: the positions of the joined sources, counted from 1, such as ["1+3"]."""
    places = [str(sources.index(mark) + 1) for mark in joined if mark in sources]
    return ["+".join(places)] if len(places) > 1 else []


def _target(run_id: str) -> str:
    targets = list(read(runs.get(run_id), SimilarityResult).targets)
    if len(targets) < 2:
        return targets[0]
    return str(st.selectbox("Target", targets, key=f"similarity.target.{run_id}"))


main()
