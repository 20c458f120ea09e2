"""The list of the papers' tables and figures: its commands and pages exist, and the page Papers shows it."""

import re
import shlex

import click

from core import papers
from core.cli.main import main
from pages.ui.widgets import plain
from tests.lab.benchmarks.bench_papers import LINES, PAGE, RUNS, page, read
from tests.pages.drawing import ROOT, opened, texts

ITEMS = [(paper.name, item) for paper in papers.listed() for item in paper.items]
COMMANDS = sorted({command for _, item in ITEMS for command in item.commands})


def understood(command: str) -> None:
    """Parse a command; its name, options and choices must be valid. Its corpora need not exist."""
    words = shlex.split(command)
    group: click.Command = main
    while isinstance(group, click.Group):
        group = group.commands[words.pop(0)]
    group.make_context(command, words)


def test_every_command_of_the_list_and_of_the_benchmark_is_valid() -> None:
    run = {command for items in RUNS.values() for commands in items.values() for command in commands}
    for command in sorted({*COMMANDS, *run}):
        understood(command)


def test_every_item_has_a_page_and_a_command_or_is_not_implemented() -> None:
    for _, item in ITEMS:
        assert not item.page or (ROOT / "pages" / f"{item.page}.py").exists(), item
        assert item.commands or item.differs.startswith("Not implemented"), item
    names = [(name, item.item) for name, item in ITEMS]
    assert len(set(names)) == len(names)
    assert not re.search(r"\bS[0-4]\b", repr(ITEMS))


def test_page_shows_every_item_of_every_paper() -> None:
    app, commands = opened("pages/9_Papers.py"), set[str]()
    for paper in papers.listed():
        app.session_state["papers.tab"] = paper.name
        app.run()
        page_text = texts(app)
        for item in paper.items:
            assert all(plain(each) in page_text for each in (item.item, item.shows, item.differs)), item
        shown = {code.value for code in app.code}
        assert shown == {f"python -m core {command}" for item in paper.items for command in item.commands}
        commands |= shown
    assert commands == {f"python -m core {command}" for command in COMMANDS}


def test_committed_table_matches_the_list_and_the_results() -> None:
    listed = {paper.name: {item.item for item in paper.items} for paper in papers.listed()}
    assert all(set(items) <= listed[name] for name, items in RUNS.items())
    assert PAGE.read_text(encoding="utf-8") == page(read(LINES))
