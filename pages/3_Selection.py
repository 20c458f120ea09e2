"""Selection: score D_C by a strategy, see the distribution, set the budget, take S_C away."""

from typing import Any

import streamlit as st

from core.facade import corpora, runs, selections
from core.facade.runs import Run
from pages.ui.empty import empty
from pages.ui.frame import guard, page
from pages.ui.presses import submitted
from pages.ui.runs.links import attach, attached
from pages.ui.runs.panel import run_panel
from pages.ui.runs.pick import begun, pick_run
from pages.ui.selection.budget import follow_address
from pages.ui.selection.chosen import selected
from pages.ui.widgets import budget_words, config_form, corpus_picker

RUN = "selection.run"
PICKERS = {
    "task": (
        "T_C, your task's text",
        "Sentences like those that your tagger will read, without labels, a few hundred"
        " at least. What is chosen from D_C is to be like them. It cannot do without.",
    ),
    "domain": (
        "D_C, to select from",
        "The large pile of plain text that sentences are chosen from. It cannot do without.",
    ),
    "train": (
        "L_C train, or a list of names",
        "Labelled sentences, or names, for the strategies gazetteer,"
        " ner-selected and cos-mlm-ner; the others do without.",
    ),
    "dev": (
        "L_C dev",
        "Labelled sentences on which ner-selected and cos-mlm-ner stop in time. Copies of its sentences"
        " in D_C are kept out.",
    ),
    "test": ("L_C test", "Copies of its sentences in D_C are kept out, so that no tagger has read its test."),
}
ENCODER = ("encoder", "pooling", "max_length", "precision", "allow_download")
TRAINED = ("encoder", "allow_download")
READING = {
    "vectors": "every sentence of T_C and D_C is embedded anew, by each of them",
    "spans": "the tagger reads every sentence of D_C",
    "text": "it reads every sentence of D_C once for each of its pieces, some thirty times",
}
CHOOSING = ("min_tokens", "max_tokens", "transductive", "seed")
NEEDS = "A selection needs T_C, text like that of your task, and D_C, a large corpus to select from."


def main() -> None:
    """The page."""
    with page("Selection", "Score every sentence of D_C against T_C and keep the best as S_C."):
        run_id = attached("select", RUN)
        if not corpora.listed():
            empty(NEEDS, "selection", "pages/3_Selection.py")
        else:
            with st.expander("What to select", expanded=run_id is None, icon=":material/tune:"):
                _setup()
        if run_id is not None:
            _shown(run_id)


@st.fragment
def _shown(run_id: str) -> None:
    """The run and what it chose; a fragment, so that moving the budget leaves the form above alone."""
    with guard(buttons="selection."):
        if runs.state(run_id).state == "succeeded":
            follow_address(run_id, RUN)
        run_id = pick_run(run_id, RUN, runs.own("select"), "Selection", _label)
        if run_panel(run_id, RUN).state == "succeeded":
            selected(run_id)


def _setup() -> None:
    name = st.selectbox(
        "Strategy",
        list(selections.STRATEGIES),
        index=list(selections.STRATEGIES).index(selections.DEFAULT_STRATEGY),
        format_func=lambda name: f"{name} ({selections.STRATEGIES[name].in_short})",
        key="selection.strategy",
    )
    strategy = selections.STRATEGIES[name]
    st.markdown(f"{strategy.summary} {strategy.trust}")
    _cost(strategy)
    with st.form("selection.form"):
        options = {"strategy": name, **_corpora(), **_budget()}
        with st.expander("More options", icon=":material/settings:"):
            options["options"] = config_form(strategy.Options, list(strategy.Options.model_fields), f"selection.{name}")
            config = runs.RECIPES["select"].config
            options |= config_form(config, CHOOSING, "selection")
            embeds = strategy.reads in ("vectors", "both")
            options |= config_form(config, ENCODER if embeds else TRAINED if strategy.models else (), "selection")
        sent = submitted("Score and select", "selection.start", type="primary", icon=":material/filter_alt:")
    if sent:
        attach(runs.start("select", options), RUN)
        st.rerun()


def _cost(strategy: Any) -> None:
    """What comes before the scores, said before it begins."""
    if not strategy.models:
        return
    tagger = ", then a tagger from it on L_C train, stopped by L_C dev" if "ner" in strategy.models else ""
    domain = corpora.roles().get("domain")
    size = f" Your D_C has {len(corpora.find(domain)):,} sentences." if domain else ""
    st.warning(
        f"This takes longer than the others. First a language model is trained on T_C{tagger}; then "
        f"{READING[strategy.reads]}.{size} Without a GPU that is minutes for thousands of sentences and hours for "
        "hundreds of thousands. What is trained and read is kept: another budget, and most other options, reuse it.",
        icon=":material/hourglass_top:",
    )


def _corpora() -> dict[str, Any]:
    """Who plays which part, prefilled with the parts given on the page Corpora."""
    roles = corpora.roles()
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
    words = {flag: flag.replace("_", " ") for flag in corpora.FLAGS}
    keep = right.multiselect(
        "Keep although flagged as",
        list(words),
        format_func=words.__getitem__,
        key="selection.keep",
        placeholder="nothing: duplicates, leaks, too short, too long stay out",
    )
    return {"budget": budget, "keep": keep}


def _label(run: Run) -> str:
    return begun(run, f"{run.manifest.config['strategy']}, {budget_words(selections.kept_budget(run.id))}")


main()
