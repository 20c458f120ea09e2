"""What every page has around it: configuration, sidebar, and the card that an error becomes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from core import facade
from pages.ui.widgets import plain

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
PAGES = {
    "": (("app.py", "Home", ":material/home:"),),
    "Prepare": (("pages/1_Corpora.py", "Corpora", ":material/library_books:"),),
    "Analyse": (
        ("pages/2_Similarity.py", "Similarity", ":material/join_inner:"),
        ("pages/3_Selection.py", "Selection", ":material/filter_alt:"),
        ("pages/4_Explore.py", "Explore", ":material/scatter_plot:"),
        ("pages/7_Bias.py", "Bias", ":material/psychology_alt:"),
        ("pages/8_Assisting.py", "Assisting", ":material/balance:"),
    ),
    "Train": (("pages/5_Training.py", "Training", ":material/model_training:"),),
    "Deliver": (("pages/6_Results.py", "Results", ":material/leaderboard:"),),
}
logger = logging.getLogger("winnow.pages")


@contextmanager
def page(title: str, summary: str) -> Iterator[None]:
    """A page's frame; the body runs inside `guard`. Must come before any other Streamlit call."""
    st.set_page_config(
        page_title=title if title == "Winnow" else f"{title} · Winnow",
        page_icon=str(ASSETS / "icon.svg"),
        layout="wide",
    )
    st.html(ASSETS / "style.css")
    _sidebar()
    with guard():
        st.title(title, anchor=False)
        st.caption(summary)
        yield


@contextmanager
def guard() -> Iterator[None]:
    """Our own errors say what to do; anything else is a bug, told neutrally, its traceback in the log.

    Around every page and, since those run on their own, around every fragment.
    """
    try:
        yield
    except facade.WinnowError as error:
        st.error(plain(str(error)), title="This did not work", icon=":material/error:")
    except Exception:
        _log_file()
        logger.exception("a page failed")
        where = plain(str(facade.home() / "app.log"))
        text = f"Your data and your runs are as they were. Details are in the log, {where}; reload the page to go on."
        st.error(text, title="This is a bug in Winnow", icon=":material/bug_report:")


def _sidebar() -> None:
    st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))
    with st.sidebar:
        for group, pages in PAGES.items():
            if group:
                st.caption(group)
            for path, label, icon in pages:
                st.page_link(path, label=label, icon=icon, width="stretch")
        st.space("small")
        local_badge()


def local_badge() -> None:
    """The promise that a browser test keeps."""
    st.badge(
        "Nothing leaves this machine",
        icon=":material/lock:",
        color="green",
        help="Winnow sends nothing anywhere: no telemetry, no fonts, no models fetched unless you ask for one.",
    )


def _log_file() -> None:
    if not logger.handlers:
        facade.home().mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(facade.home() / "app.log", encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
