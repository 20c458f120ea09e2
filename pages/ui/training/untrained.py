"""Tag test sets without training: by lists of names, a ready model, or a language model."""

from typing import Any

import streamlit as st

from core.errors import ConfigError
from core.experiment import results
from core.importing import view as corpora
from core.kinds import KINDS
from core.labelling import view as labelling
from core.shown import duration
from core.tagging.evaluations import OverSeeds
from core.zero_shot.folders import FETCH
from pages.ui.project import page_link, switch_page
from pages.ui.results.pair import with_interval
from pages.ui.runs.links import CORPORA, LABEL, RESULTS, SUGGEST
from pages.ui.training.others import language_model, ready_model
from pages.ui.training.parts import several, splits
from pages.ui.widgets import config_form, corpus_picker, listed, plain, pressed, table

KEY = "training.untrained"
WAYS = {"dictionary": "Look names up", "zero-shot": "A ready model", "llm": "A language model"}
# {kind of run: roles of the corpora to ask for}
READS = {"dictionary": ("test",), "zero-shot": ("dev", "test"), "llm": ("train", "test")}
WHAT = {
    "dictionary": "Finds names from lists, or from the training set, in the test set.",
    "zero-shot": "Tags the test set with a token classifier that others trained. It is loaded from a folder, without a "
    "connection.",
    "llm": "Asks a language model that you run for the entities of each test sentence. The prompt contains examples "
    "from the training set.",
}
LISTS = (
    "There is no list of names in this project. Import one on Corpora: a text or CSV file with a name per line. Until "
    "then you can look up the names of a training set."
)
MODEL = (
    "This program fetches no language model. Install for example Ollama from ollama.com, fetch a model with `ollama "
    "pull qwen3:8b`, and give its name, qwen3:8b. Any OpenAI-compatible server on this computer works."
)
HEADINGS = {
    "type": "Type",
    "precision": "Precision (%)",
    "recall": "Recall (%)",
    "f1": "Score (F1)",
    "entities": "Entities",
}


def options() -> tuple[str, dict[str, Any]] | None:
    """Ask how to tag the test sets. Return the kind of run and its options; None while something is missing."""
    kind = st.segmented_control(
        "Way", list(WAYS), format_func=WAYS.__getitem__, default="dictionary", required=True, key=f"{KEY}.way"
    )
    st.caption(plain(WHAT[kind]))
    picked = splits("untrained", READS[kind])
    further = several("Further test sets", f"{KEY}.also_test", "Each gets its own score.", labelled=True)
    asked = {"dictionary": _dictionary, "zero-shot": _ready_model, "llm": _language_model}[kind]()
    test = tuple(dict.fromkeys(filter(None, (picked.pop("test"), *further))))
    if not test:
        st.info("Pick a test set.")
        return None
    if kind == "llm" and not picked["train"]:
        st.info("Pick a training set. It gives the types to ask for, and the examples.")
        return None
    if asked is None:
        return None
    found = {**picked, "test": test, **asked}
    try:
        KINDS[kind].config.parse(found)
    except ConfigError as error:
        st.info(plain(str(error)))
        return None
    if kind == "llm":
        seconds, basis = results.seconds_to_ask(str(found["model"]), test)
        st.caption(plain(f"Time: about {duration(seconds)}. {basis}"))
    return kind, found


def _dictionary() -> dict[str, Any] | None:
    lists, roles = corpora.lists_of_names(), corpora.roles()
    if not lists:
        st.info(LISTS)
        page_link(CORPORA, label="Import a list of names", icon=":material/upload_file:")
    at_first = [corpus.fingerprint for corpus in lists] or [roles[role] for role in ("train",) if role in roles]
    # The key contains the preselected lists of names, so that a list imported later is preselected too.
    key = f"{KEY}.names.{'.'.join(at_first)}"
    why = "You can also pick other labelled corpora. Their names are then used as a list."
    names = several("Lists of names", key, why, labelled=True, at_first=at_first)
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    with left:
        inside = corpus_picker("Text of the domain", f"{KEY}.inside", None, help="Such as the task corpus.")
    with middle:
        why = "Names that are more common in this text than in the text of the domain are left out."
        outside = corpus_picker("Text of other domains", f"{KEY}.outside", None, help=why)
    with right:
        case = config_form(KINDS["dictionary"].config, ("case_sensitive",), KEY)
    if not names:
        st.info("Pick at least one list of names.")
        return None
    if bool(inside) != bool(outside):
        st.info("Pick both a text of the domain and a text of other domains, or neither.")
        return None
    return {"names": names, "inside": inside or "", "outside": outside or "", **case}


def _ready_model() -> dict[str, Any] | None:
    left, right = st.columns(2)
    with left:
        folder = ready_model(KEY)
    maps = right.text_input(
        "Types by another name",
        key=f"{KEY}.type_map",
        placeholder="PER=person",
        help="Needed if a type has another name in the model than in your labels.",
    )
    if not folder:
        st.info(FETCH)
        return None
    return {"model": folder, "type_map": listed(maps)}


def _language_model() -> dict[str, Any] | None:
    left, right = st.columns(2)
    with left:
        asked = language_model(KEY)
    with right:
        few = config_form(KINDS["llm"].config, ("examples",), KEY, {"examples": "Examples before each sentence"})
    if asked is None:
        st.info(MODEL)
        return None
    return {**asked, **few}


def result(run_id: str) -> None:
    """Show the scores of a finished run, and links to the pages that can use its entities."""
    run = results.untrained(run_id)
    st.caption(plain(run.about))
    for name, test in run.tests:
        _scores(name, test)
    with st.container(horizontal=True, vertical_alignment="center"):
        if pressed("Suggest these entities as labels", "training.untrained.label", icon=":material/label:"):
            st.session_state[SUGGEST] = labelling.suggester_of(run_id)
            switch_page(LABEL)
        for other in run.experiments[:1]:
            label = "Compare with taggers on this test set"
            page_link(RESULTS, label=label, icon=":material/leaderboard:", query={"run": other})


def _scores(name: str, test: OverSeeds) -> None:
    st.metric(f"Test score (F1) on {plain(name)}", f"{test.mean:.1f}", width="content")
    rows = [
        {
            "type": line.type,
            "precision": f"{line.precision:.1f}",
            "recall": f"{line.recall:.1f}",
            "f1": with_interval(line.f1, test.intervals.get(line.type)),
            "entities": f"{line.support:,}",
        }
        for line in test.report
    ]
    table(rows, HEADINGS, f"Score by type on {name}", names=("type",))
