"""Tables and figures of the five papers: which page and commands reproduce each, and how the results differ."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_LIST = Path(__file__).resolve().parents[1] / "assets" / "papers.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A table or figure.

    page: its file name without `.py`, "" if only a command makes it. commands: arguments of `python -m core`, with the
    user's corpora and runs in capitals; empty if Winnow does not make it. evidence: how the stored output in PAPERS.md
    falls short of the command.
    """

    item: str
    shows: str
    page: str
    commands: tuple[str, ...]
    differs: str
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper. name: as it is cited."""

    name: str
    title: str
    link: str
    items: tuple[Item, ...]


@cache
def listed() -> tuple[Paper, ...]:
    """Return all papers, in the order of core/SOURCES.md."""
    with _LIST.open("rb") as file:
        return tuple(_paper(**given) for given in tomllib.load(file)["papers"])


def _paper(items: list[dict[str, Any]], **given: str) -> Paper:
    return Paper(**given, items=tuple(Item(**{**item, "commands": tuple(item["commands"])}) for item in items))
