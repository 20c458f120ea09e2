"""Tables and figures of the five papers: the page and commands that reproduce each, and how the results differ."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_LIST = Path(__file__).resolve().parents[1] / "assets" / "papers.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A table or figure of a paper.

    item: label in the paper, such as "Table 2". shows: content of the table or figure. page: file name,
    without `.py`, of the page that shows it; "" if only a command produces it. commands: arguments of `python -m core`,
    with placeholders in capitals for the user's corpora and runs; () if Winnow does not produce it. differs: how
    Winnow's result differs from the paper's. evidence: limits of the output stored in PAPERS.md, such as fewer seeds;
    "" for none.
    """

    item: str
    shows: str
    page: str
    commands: tuple[str, ...]
    differs: str
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper. name: how it is cited, such as "Mahapatra et al. 2022"."""

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
