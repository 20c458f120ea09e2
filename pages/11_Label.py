"""The page Label: label the sentences that help training most, check suspicious labels, and train again."""

import streamlit as st

from core import shown_command as commands
from core import terms
from core.importing import view as corpora
from core.labelling import view as labelling
from core.projects import runs
from pages.ui.empty import empty
from pages.ui.frame import page
from pages.ui.label.agreement import agreement, annotator
from pages.ui.label.editor import editor
from pages.ui.label.outcome import guidelines, learning_curve, taken_away
from pages.ui.label.setup import asked_for_review, queue_more
from pages.ui.runs.links import attached
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import same_command

RUN = "label.run"
WHAT = (
    "Label the sentences that are expected to help training most, or random ones for a dev and a test set. You can "
    "also check labels that may be wrong."
)
NEEDS = (
    "Labelling needs a task corpus: sentences like those that your tagger will read. To queue sentences, add a domain "
    "corpus."
)
WORDS = (terms.TASK, terms.DOMAIN, terms.LABELS, terms.DEV, terms.TEST, terms.TAGGER)


def main() -> None:
    """Draw the page."""
    with page("Label", WHAT, WORDS):
        if not corpora.listed():
            empty(NEEDS, "label", "pages/11_Label.py")
            return
        asked = asked_for_review()
        run_id = attached(labelling.KINDS, RUN)
        finished = run_id is not None and runs.state(run_id).state == "succeeded"
        with st.expander("What to label", expanded=asked or run_id is None, icon=":material/tune:"):
            queue_more(RUN)
            if run_id is not None and finished:
                run_panel(run_id, RUN)
        if run_id is None or (not finished and run_panel(run_id, RUN).state != "succeeded"):
            return
        if not labelling.is_text_here(run_id):
            st.info("Not shown: the corpus of these sentences was removed.", icon=":material/link_off:")
            return
        if not labelling.to_label(run_id):
            st.info("No suspicious label was found by these checks.", icon=":material/check:")
            return
        left, right = st.columns([5, 2])
        with right:
            name = annotator()
            guidelines()
        if name is not None:
            with left:
                editor(run_id, name)
                taken_away(run_id, name)
        agreement(run_id)
        learning_curve()
        run = runs.get(run_id)
        same_command("label.command", commands.command(run.manifest.kind, run.manifest.config))


main()
