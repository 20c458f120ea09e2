"""The page Selection: score D_C with a strategy, see the distribution of scores, set the budget, export S_C."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core import terms
from core.corpora.hygiene import FLAGS
from core.errors import ConfigError
from core.importing import view as corpora
from core.importing.result import ROLES
from core.kinds import KINDS
from core.projects import preferences, runs
from core.projects.titles import choice_title
from core.selection import DEFAULT_STRATEGY, STRATEGIES
from core.selection.choice import run_of
from core.shown import count
from pages.ui import checks as data_check
from pages.ui import choice
from pages.ui.empty import empty
from pages.ui.frame import guard, page
from pages.ui.runs.links import SELECTION, attach
from pages.ui.runs.panel import run_panel, where
from pages.ui.selection.chosen import selected
from pages.ui.selection.part import narrowed, narrowed_before, part
from pages.ui.selection.which import which
from pages.ui.terms import term_picker
from pages.ui.widgets import config_form, plain, pressed

NOTES = {
    "task": "Required.",
    "domain": "Required.",
    "train": "A list of names is possible too. Only the strategies gazetteer, ner-selected and cos-mlm-ner use it, "
    "also as parts of the strategy fuse.",
    "dev": "Decides when training stops in ner-selected and cos-mlm-ner. Domain sentences that also occur in the dev "
    "set are test leaks and are left out.",
    "test": "Domain sentences that also occur in the test set are test leaks and are left out, so that no encoder "
    "trains on test sentences.",
}
ENCODER = ("encoder", "pooling", "max_length", "precision", "allow_download")
TRAINED = ("encoder", "allow_download")
READING = {
    "vectors": "each of these models embeds every sentence of the task corpus and of the domain corpus",
    "spans": "the tagger reads every sentence of the domain corpus",
    "text": "the language model reads every sentence of the domain corpus once per token, about thirty times",
}
COMPARED = (
    "a second language model is trained on an equal amount of text from the domain corpus; then both models read the "
    "best sentences of the default strategy several times"
)
CHOOSING = ("min_tokens", "max_tokens", "transductive", "seed")
NEEDS = "A selection needs a task corpus (sentences like those that your tagger will read) and a domain corpus."
WORDS = (terms.TASK, terms.DOMAIN, terms.CHOICE, terms.STRATEGY, terms.BUDGET, terms.SCORE, terms.LEAK, terms.TOKEN)


def main() -> None:
    """Draw the page."""
    with page("Selection", "Give every sentence of the domain corpus a score and keep the best ones.", WORDS):
        shown = choice.attached()
        if not corpora.listed():
            empty(NEEDS, "selection", "pages/3_Selection.py")
        else:
            with st.expander("What to select", expanded=shown is None, icon=":material/tune:"):
                _setup()
        if shown is not None:
            _shown(shown)


@st.fragment
def _shown(shown: str) -> None:
    """Draw a selection and its run. As a fragment, it can be redrawn for a new budget without the form above.

    shown: id of a selection, or of a `select` run that has not finished.
    """
    with guard(buttons="selection."):
        others = [run for run in runs.own("select") if runs.state(run.id).state != "succeeded"]
        if shown in [run.id for run in others]:
            choice.pick(shown, "selection", others)
            run_panel(shown, choice.VISIT)
            return
        choice.follow_address(shown)
        choice.bar(shown, "selection", others)
        if run_panel(run_of(shown), choice.VISIT, what=choice_title(shown)).state == "succeeded":
            selected(shown)


@st.fragment
def _setup() -> None:
    """Draw the form. As a fragment, it can check a typed budget without redrawing the scores below."""
    with guard(buttons="selection.start"):
        _form()


def _form() -> None:
    name = st.selectbox(
        "Strategy",
        list(STRATEGIES),
        index=list(STRATEGIES).index(DEFAULT_STRATEGY),
        format_func=lambda name: f"{name} ({STRATEGIES[name].in_short})",
        key="selection.strategy",
    )
    strategy = STRATEGIES[name]
    st.markdown(f"{strategy.summary} {strategy.trust}")
    _cost(strategy)
    with st.container(border=True):
        options = {"strategy": name, **_corpora()}
        only = part(options["domain"])
        options |= _budget()
        if preferences.expert():
            options |= _more(name, strategy)
        on = where("selection")
        # If an earlier start has stored the sentences to score as a corpus, check that corpus, otherwise all of D_C.
        checked = {**options, "domain": narrowed_before(options["domain"], only)}
        may_start, anyway = _checked(checked)
        icon = ":material/filter_alt:"
        if pressed("Score and select", "selection.start", type="primary", icon=icon, disabled=not may_start):
            options["domain"] = narrowed(options["domain"], only)
            attach(runs.start("select", options, on, run_anyway=anyway), choice.VISIT)
            st.rerun()
    with guard(buttons="selection.which"):
        which(checked, "selection.strategy")


def _checked(options: Mapping[str, object]) -> tuple[bool, bool]:
    """Show the data check of these options, with a button that sets a valid budget.

    Return two values: True if the run may start, and True if it starts despite red items.
    """
    try:
        found = corpora.check_run("select", options)
    except ConfigError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return False, False
    cures = data_check.fitting_budget("selection.budget")
    return data_check.gate(found, "selection", here=SELECTION, cures=cures)


def _more(name: str, strategy: Any) -> dict[str, Any]:
    """Draw the expert's fields, and return the options of the strategy, the selection and the encoder."""
    config = KINDS["select"].config
    with st.expander("More options", icon=":material/settings:"):
        own = config_form(strategy.Options, list(strategy.Options.model_fields), f"selection.{name}")
        others = config_form(
            config, (*CHOOSING, *(("cascade",) if strategy.cascades(strategy.Options()) else ())), "selection"
        )
        others |= config_form(config, _encoder(strategy), "selection")
    return {"options": own, **others}


def _encoder(strategy: Any) -> tuple[str, ...]:
    """Return the names of the encoder options that a strategy needs.

    A strategy that combines the ranks of other strategies gets all encoder options, because these may embed sentences.
    """
    if strategy.reads in ("vectors", "both") or strategy.others(strategy.Options()):
        return ENCODER
    return TRAINED if strategy.models else ()


def _cost(strategy: Any) -> None:
    """If a strategy trains models before it scores, show a warning with the steps and their expected time."""
    if not strategy.models:
        return
    tagger = ", then a tagger is trained from this model on the labelled data" if "ner" in strategy.models else ""
    reading = COMPARED if "prior" in strategy.models else READING[strategy.reads]
    domain = corpora.roles().get("domain")
    size = f" Your domain corpus has {count(len(corpora.find(domain)), 'sentence')}." if domain else ""
    st.warning(
        f"This takes longer than other strategies. First a language model is trained on the task corpus{tagger}; then "
        f"{reading}.{size} Without a GPU, this takes minutes for thousands of sentences and hours "
        "for hundreds of thousands. Models and scores are stored and reused for another budget and most other options.",
        icon=":material/hourglass_top:",
    )


def _corpora() -> dict[str, Any]:
    """Ask for the corpora by role, and return them as options. The default is the roles set on the page Corpora.

    The fields are collapsed if the project has a task corpus and a domain corpus.
    """
    roles = corpora.roles()
    picked = {}
    names = ", ".join(corpora.find(roles[role]).name for role in NOTES if role in roles)
    suffices = {"task", "domain"} <= roles.keys()
    with st.expander(f"Corpora: {plain(names)}" if names else "Corpora", expanded=not suffices):
        for row in (("task", "domain"), ("train", "dev", "test")):
            for column, role in zip(st.columns(len(row)), row, strict=True):
                with column:
                    # The key contains the corpus in use, so that the field is reset if the role changes elsewhere.
                    key, held = f"selection.{role}.{roles.get(role)}", roles.get(role)
                    picked[role] = term_picker(ROLES[role], key, held, NOTES[role]) or ""
    holdout = [fingerprint for fingerprint in (picked.pop("test"),) if fingerprint]
    return {**picked, "holdout": holdout}


def _budget() -> dict[str, Any]:
    left, right = st.columns(2)
    # Set the default here and not in the field, because a button also sets this value.
    st.session_state.setdefault("selection.budget", data_check.FITS)
    budget = left.text_input(
        "Budget",
        key="selection.budget",
        help="A number of sentences (1000) or tokens (50000tokens), a share of the domain corpus (20%), or "
        "a threshold of the score (threshold:0.75).",
    )
    words = {flag: flag.replace("_", " ") for flag in FLAGS}
    keep = right.multiselect(
        "Include even if flagged as",
        list(words),
        format_func=words.__getitem__,
        key="selection.keep",
        placeholder="none: leave out all flagged sentences",
    )
    return {"budget": budget, "keep": keep}


main()
