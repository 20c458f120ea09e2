"""Selection: score D_C by a strategy, see the distribution, set the budget, take S_C away."""

from typing import Any

import streamlit as st

from core import facade
from pages.ui.chosen import results
from pages.ui.frame import page
from pages.ui.run_panel import attach, attached, run_panel
from pages.ui.widgets import config_form, corpus_picker, sample_buttons

RUN = "selection.run"
SOURCES = {
    "classifier": "ours, the default",
    "knn": "ours",
    "cos-pretrained": "the papers' first strategy",
    "cos-mlm": "the papers' second",
    "cos-mlm-ner": "the papers' third",
    "ner-selected": "the papers' fourth",
    "pseudo-perplexity": "the papers' fifth",
    "ngram-perplexity": "the papers', on n-grams",
    "gazetteer": "the papers', by names",
    "length-matched-random": "control",
    "random": "control",
}
PICKERS = {
    "task": ("T_C, your task's text", "required"),
    "domain": ("D_C, to select from", "required"),
    "train": ("L_C train, or a list of names", "for gazetteer, ner-selected and cos-mlm-ner"),
    "dev": ("L_C dev", "for ner-selected and cos-mlm-ner; its sentences are kept out"),
    "test": ("L_C test", "its sentences are kept out"),
}
ENCODER = ("encoder", "pooling", "max_length", "precision", "allow_download")
TRAINED = ("encoder", "allow_download")
READING = {
    "vectors": "every sentence of T_C and D_C is embedded anew, by each of them",
    "spans": "the tagger reads every sentence of D_C",
    "text": "it reads every sentence of D_C once for each of its pieces, some thirty times",
}
CHOOSING = ("min_tokens", "max_tokens", "transductive", "seed")


def main() -> None:
    """The page."""
    with page("Selection", "Score every sentence of D_C against T_C and keep the best as S_C."):
        if not facade.corpora():
            st.info("A selection needs T_C, text like that of your task, and D_C, a large corpus to select from.")
            sample_buttons("selection", "pages/3_Selection.py")
            st.page_link("pages/1_Corpora.py", label="Import your own corpora", icon=":material/library_books:")
            return
        run_id = attached("select", RUN)
        with st.expander("What to select", expanded=run_id is None, icon=":material/tune:"):
            _setup()
        if run_id is not None:
            run_id = _pick_run(run_id)
            if run_panel(run_id, RUN).state == "succeeded":
                results(run_id)


def _setup() -> None:
    name = st.selectbox(
        "Strategy",
        list(facade.STRATEGIES),
        index=list(facade.STRATEGIES).index(facade.DEFAULT_STRATEGY),
        format_func=lambda name: f"{name} ({SOURCES[name]})" if name in SOURCES else name,
        key="selection.strategy",
    )
    strategy = facade.STRATEGIES[name]
    st.markdown(f"{strategy.summary} {strategy.trust}")
    _cost(strategy)
    with st.form("selection.form"):
        options = {"strategy": name, **_corpora(), **_budget()}
        with st.expander("More options", icon=":material/settings:"):
            options["options"] = config_form(strategy.Options, list(strategy.Options.model_fields), f"selection.{name}")
            config = facade.RECIPES["select"].config
            options |= config_form(config, CHOOSING, "selection")
            embeds = strategy.reads in ("vectors", "both")
            options |= config_form(config, ENCODER if embeds else TRAINED if strategy.models else (), "selection")
        sent = st.form_submit_button(
            "Score and select", type="primary", icon=":material/filter_alt:", key="selection.start"
        )
    if sent:
        attach(facade.start("select", options), RUN)
        st.rerun()


def _cost(strategy: Any) -> None:
    """What comes before the scores, said before it begins."""
    if not strategy.models:
        return
    tagger = ", then a tagger from it on L_C train, stopped by L_C dev" if "ner" in strategy.models else ""
    domain = facade.roles().get("domain")
    size = f" Your D_C has {len(facade.corpus(domain)):,} sentences." if domain else ""
    st.warning(
        f"This takes longer than the others. First a language model is trained on T_C{tagger}; then "
        f"{READING[strategy.reads]}.{size} Without a GPU that is minutes for thousands of sentences and hours for "
        "hundreds of thousands. What is trained and read is kept: another budget, and most other options, reuse it.",
        icon=":material/hourglass_top:",
    )


def _corpora() -> dict[str, Any]:
    """Who plays which part, prefilled with the parts given on the page Corpora."""
    roles = facade.roles()
    picked = {}
    for row in (("task", "domain"), ("train", "dev", "test")):
        for column, role in zip(st.columns(len(row)), row, strict=True):
            label, why = PICKERS[role]
            with column:
                picked[role] = (
                    corpus_picker(label, f"selection.{role}.{roles.get(role)}", roles.get(role), help=why) or ""
                )
    holdout = [fingerprint for fingerprint in (picked.pop("test"),) if fingerprint]
    return {**picked, "holdout": holdout}


def _budget() -> dict[str, Any]:
    left, right = st.columns(2)
    budget = left.text_input(
        "Budget", "10%", key="selection.budget", help="1000 (sentences), 50000tokens, 20% of D_C, or threshold:0.75"
    )
    words = {flag: flag.replace("_", " ") for flag in facade.FLAGS}
    keep = right.multiselect(
        "Keep although flagged as",
        list(words),
        format_func=words.__getitem__,
        key="selection.keep",
        placeholder="nothing: duplicates, leaks, too short, too long stay out",
    )
    return {"budget": budget, "keep": keep}


def _pick_run(run_id: str) -> str:
    """The selection to look at, where there are several."""
    runs = {run.id: run.manifest.config for run in facade.runs("select") if run.manifest.parent is None}
    if len(runs) < 2:
        return run_id

    def label(name: str) -> str:
        return f"{runs[name]['strategy']}, {runs[name]['budget']} ({name[9:11]}:{name[11:13]} UTC, {name[-4:]})"

    picked = st.selectbox(
        "Selection", list(runs), index=list(runs).index(run_id), format_func=label, key=f"selection.which.{run_id}"
    )
    if picked != run_id:
        attach(picked, RUN)
        st.rerun()
    return run_id


main()
