"""The form that queues sentences to label, draws random ones for a dev and a test set, or reviews labels."""

import streamlit as st

from core.importing import view as corpora
from core.labelling import view as labelling
from core.projects import runs
from core.shown import duration
from core.tagging import view as taggers
from pages.ui.frame import guard
from pages.ui.project import page_link
from pages.ui.runs.links import BIAS, CORPORA, SUGGEST, attach
from pages.ui.widgets import plain, pressed

TRAIN = "Training set: sentences that help training most"
MEASURE = "Dev and test set: random sentences, without suggestions"
REVIEW = "Labelled data: labels that may be wrong"
MEASURES = (
    "Dev and test sentences are drawn at random from the task corpus and labelled without suggestions. If you "
    "chose the sentences, or only accepted suggestions, the measured score would be too high."
)
REVIEWED = "review"  # URL parameter: the corpus to review; session key: True while the form is open for this corpus
NONE = "no other corpus"
SUGGESTED = (
    "Suggested entities, which you accept or correct. Only labels that you accept count. You can choose an imported "
    "list of names, or a finished run of a dictionary, a ready model or a language model on your test set."
)


def asked_for_review() -> bool:
    """Fill the form with the corpus to review that a link on the page Bias put into the URL.

    Return True from then on until the review starts, so that the form stays open.
    """
    corpus = st.query_params.pop(REVIEWED, "")
    if corpus in {each.fingerprint for each in corpora.listed() if each.types}:
        st.session_state["label.purpose"], st.session_state["label.review.corpus"] = REVIEW, corpus
        st.session_state[REVIEWED] = True
    return REVIEWED in st.session_state


def queue_more(key: str) -> None:
    """Draw the form that starts a run of the page Label. key: session key of the run that the page shows."""
    held = corpora.roles()
    measured = "dev" in held and "test" in held
    st.session_state.setdefault("label.purpose", TRAIN if measured or "domain" not in held else MEASURE)
    purpose = st.radio("For", (TRAIN, MEASURE, REVIEW), key="label.purpose", horizontal=True)
    if purpose == REVIEW:
        _review(key)
        return
    needed = ("task", "domain") if purpose == TRAIN else ("task",)
    if missing := [role for role in needed if role not in held]:
        st.info(f"This needs a {' and a '.join(f'{role} corpus' for role in missing)} in use.")
        page_link(CORPORA, label="Choose corpora", icon=":material/library_books:", width="content")
        return
    if purpose == MEASURE:
        st.caption(MEASURES)
    elif not measured:
        st.warning(
            f"There is no dev and test set yet, so no gain can be measured. {MEASURES}", icon=":material/science:"
        )
    n = st.number_input(
        "Sentences", 4, 1000, 25 if purpose == TRAIN else 120, key=f"label.n.{purpose == TRAIN}", width=160
    )
    options, agreed = _queued(int(n)) if purpose == TRAIN else (labelling.draw_options(int(n)), True)
    label = "Queue sentences" if purpose == TRAIN else "Draw sentences"
    if pressed(label, "label.start", type="primary", icon=":material/playlist_add:", disabled=not agreed):
        with guard():
            attach(runs.start("queue" if purpose == TRAIN else "draw", options), key)
            st.rerun()


def _queued(n: int) -> tuple[dict[str, object], bool]:
    """Ask which suggestions the queue should have, and for consent if a host must get the sentences for them.

    Return the options of the queue, and False if the user has not given that consent. n: number of sentences.
    """
    options, others = labelling.queue_options(n), {each.name: each for each in labelling.suggesters()}
    model = str(options.get("model", ""))
    tagger = taggers.here().get(model, model)
    own = f"Tagger {tagger}" if model else "Names of the training set" if "names" in options else "None"
    chosen = None
    if others:
        picked = st.selectbox("Suggestions", [own, *others], key=SUGGEST, help=SUGGESTED)
        chosen = others.get(str(picked))
        options = labelling.queue_options(n, chosen)
        if chosen and chosen.about:
            st.caption(f"{plain(chosen.about)}.")
    if model:
        st.caption(
            f"{'Uncertainty comes' if chosen else 'Suggestions and uncertainty come'} from the tagger {plain(tagger)}."
        )
    else:
        suggested = " Names of the training set are suggested." if "names" in options and chosen is None else ""
        trained = runs.own("finetune", state="succeeded")
        st.caption(
            f"{'No tagger of this project has its model here' if trained else 'There is no tagger yet'}, so the queue "
            f"has typical sentences of similar text.{suggested}"
        )
    if chosen is None or not chosen.host:
        return options, True
    st.warning(plain(chosen.warning), icon=":material/lan:")
    agreed = st.checkbox(plain(f"Send these sentences to {chosen.host}"), key=f"label.allow.{chosen.host}")
    return {**options, "allow_host": chosen.host}, agreed


def _review(key: str) -> None:
    """Draw the form that looks for suspicious labels."""
    held = corpora.roles()
    # Leave out folds, which reviews and strategies make to train their taggers.
    known = {corpus.fingerprint: corpus for corpus in corpora.listed() if corpus.types and "fold" not in corpus.origin}
    labelled = {mark: corpus.name for mark, corpus in known.items()}
    if not labelled:
        st.info("This needs a labelled corpus: sentences whose entities are marked with their types.")
        page_link(CORPORA, label="Import one", icon=":material/library_books:", width="content")
        return
    names, train = list(labelled), held.get("train", "")
    first, second = st.columns(2)
    if st.session_state.get("label.review.corpus") not in labelled:
        st.session_state["label.review.corpus"] = train if train in labelled else names[0]
    corpus = first.selectbox("Corpus to review", names, format_func=labelled.__getitem__, key="label.review.corpus")
    alike = [mark for mark, other in known.items() if mark != corpus and {*other.types} & {*known[str(corpus)].types}]
    others = {"": NONE, **{mark: labelled[mark] for mark in alike}}
    against = second.selectbox(
        "Compare its names with", list(others), 0, others.__getitem__, key=f"label.review.against.{corpus}"
    )
    options = labelling.review_options(str(corpus), str(against))
    checks = ["duplicates of a sentence with other labels"]
    checks += ["five taggers that were not trained on the sentences that they check"] if options["dev"] else []
    checks += ["the information of name and context (PVI)"] if "difficulty" in options else []
    checks += [f"the types of the same names in {plain(others[against])}"] if against else []
    seconds = labelling.review_seconds(options)
    takes = f" The taggers take about {duration(seconds)}." if seconds else ""
    st.caption(f"Checks: {'; '.join(checks)}. Each sentence is listed once, with all reasons.{takes}")
    if corpus in (held.get("dev"), held.get("test")):
        st.warning(
            "This corpus is the dev or the test set. Only labels that look wrong to taggers are corrected, which makes "
            "later scores a little too high; earlier scores cannot be compared with them.",
            icon=":material/science:",
        )
    if not options["dev"]:
        st.warning(
            "No other corpus has the role of dev set, so no tagger checks the labels.", icon=":material/science:"
        )
    if "difficulty" not in options:
        page_link(BIAS, label="Measure PVI too, on Bias", icon=":material/balance:", width="content")
    if pressed("Find suspicious labels", "label.review.start", type="primary", icon=":material/fact_check:"):
        st.session_state.pop(REVIEWED, None)
        attach(runs.start("review", options), key)
        st.rerun()
