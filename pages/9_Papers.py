"""The page Papers: the tables and figures of five papers, commands that make them, and how Winnow's differ."""

import streamlit as st

from core import papers
from pages.ui.frame import page
from pages.ui.project import page_link
from pages.ui.widgets import command_lines, plain

WHAT = (
    "The papers whose methods Winnow uses. For every table and figure: its content, the page and the command that make "
    "it from your text, and how Winnow's differs. Capitals in a command are placeholders for your corpora."
)


def main() -> None:
    """Draw the page."""
    with page("Papers", WHAT):
        listed = papers.listed()
        tabs = st.tabs([paper.name for paper in listed], key="papers.tab", on_change="rerun", bind="query-params")
        for tab, paper in zip(tabs, listed, strict=True):
            if tab.open:  # Draw only the open tab, because a browser takes long to draw all five.
                with tab:
                    _paper(paper)


def _paper(paper: papers.Paper) -> None:
    st.caption(f"[{plain(paper.title)}]({paper.link})")
    for item in paper.items:
        _item(item)


def _item(item: papers.Item) -> None:
    with st.container(border=True):
        name, where = st.columns([4, 1], vertical_alignment="center")
        name.markdown(f"**{plain(item.item)}**: {plain(item.shows)}")
        with where:
            if item.page:
                page_link(f"pages/{item.page}.py", label=item.page.split("_")[1], icon=":material/arrow_forward:")
        if item.commands:
            command_lines(*(f"python -m core {command}" for command in item.commands))
        st.caption(plain(item.differs))


main()
