"""A page without data: what it needs, where to get it, and a picture of what it will show."""

from base64 import b64encode
from pathlib import Path

import streamlit as st

from core.importing import view as corpora
from core.projects import view as projects
from core.samples.sets import sample_sets
from pages.ui.project import open_project, page_link, switch_page
from pages.ui.runs.links import CORPORA
from pages.ui.widgets import is_dark, pressed

PICTURES = Path(__file__).resolve().parents[2] / "assets" / "pictures"  # screenshots made by `make pictures`

WIDTH = 720  # pixels

SHOWN = {  # {page: alternative text of its picture}
    "home": "The steps with the result of each: texts, the selection, the answer with its interval, the report.",
    "corpora": "The task corpus: size, flagged sentences, a histogram of sentence lengths, and five examples.",
    "selection": "A histogram of scores with the cut-off, and the sentences closest to the task corpus.",
    "explore": "A map of the task corpus, selected and other sentences, with topics, and a table of the sentences.",
    "label": "A sentence with its suggested entities, the types and keys of the editor, and the progress.",
    "training": "Curves of a training run: the loss, and the dev score over all types and by type.",
    "results": "The verdict in a sentence, scores of each variant with intervals, and the leaderboard.",
    "similarity": "Two sources compared by four measures, in a table and as bars; a sentence names the closest.",
    "bias": "Bits that names and contexts reveal about the type of a mention, on average and per mention.",
    "assisting": "A histogram of scores of the other corpus, and sentences just above and just below the threshold.",
    "runs": "A table of runs with the result of each, and the differences between two of them.",
}


def empty(sentence: str, key: str, then: str, make: str = "") -> None:
    """Show a page that has no data yet: what it needs, where the user gets that, and a picture of the page.

    If `make` is given and there are corpora, link to the page `then` with the label `make`. Otherwise draw buttons
    that open a sample and lead to `then`, and a link to import corpora.
    sentence: what the page needs; "" to show no such sentence. key: name of the page, also prefix of the widget keys.
    """
    if sentence:
        st.info(sentence)
    if make and corpora.listed():
        page_link(then, label=make, icon=":material/arrow_forward:")
    else:
        sample_buttons(key, then)
        page_link(CORPORA, label="Import your own corpora", icon=":material/library_books:")
    picture(key)


def picture(name: str) -> None:
    """Draw the picture of a page with data, light or dark as the user's theme. Draw nothing if it does not exist."""
    file = PICTURES / f"{name}-{'dark' if is_dark() else 'light'}.webp"
    if file.is_file():
        # Embed the picture, because Streamlit would convert an image file to a JPEG of low quality.
        encoded = b64encode(file.read_bytes()).decode("ascii")
        caption = "This page with the finished legal sample."
        # Give the container the width, because it shrinks in a narrow window and an image would not.
        with st.container(width=WIDTH, border=True):
            st.image(f"data:image/webp;base64,{encoded}", caption, "stretch", alt=SHOWN.get(name, caption))


def sample_buttons(key: str, then: str) -> None:
    """Draw a button per sample that imports its corpora and leads to the page `then`. key: prefix of the widget keys.

    A sample that would replace corpora in use opens in a separate project, on the page Home.
    """
    held, samples = corpora.roles(), sample_sets()
    apart = [sample.name for sample in samples if corpora.sample_replaces(sample.name)]
    with st.container(horizontal=True):
        for number, sample in enumerate(samples):
            label, style = f"Open the {sample.name} sample", "secondary" if number or held else "primary"
            if pressed(label, f"{key}.sample.{sample.name}", type=style, help=sample.description):
                with st.spinner("Reading the sample"):
                    if sample.name in apart:
                        open_project(projects.open_sample(sample.name))
                        return
                    corpora.open_sample(sample.name)
                switch_page(then)
    if held and apart:
        which = "A sample" if len(apart) == len(samples) else f"The {' or '.join(apart)} sample"
        st.caption(f"{which} opens in a separate project, because this project has corpora in use.")
