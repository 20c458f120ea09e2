"""What is picked on a map, kept beside it: a lasso, a box, a topic, a class, a sentence, the hits of a search.

Its token names it in an address, in a file's name and on the command line: `topic:3`, `class:filtered`, `point:17` say
all of it, `lasso:5e0c91ab` and `box:...` name the file that holds the borders. A search has none: what is searched for
stays out of a browser's history.
"""

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from core.artifacts import choice
from core.artifacts.map import CLASSES
from core.corpora.writers import Format
from core.errors import ConfigError
from core.facade.home import store
from core.facade.maps import alike, classes, export, get, search
from core.facade.selections import kept_budget
from core.results import IntArray

SHAPES = ("lasso", "box")


class Region(TypedDict):
    """What is picked. value: of its kind, such as the borders of a lasso or the number of a topic."""

    kind: str
    value: Any


def kept_region(map_run: str) -> Region | None:
    """The region picked on a map, as `keep_region` kept it last; None: nothing."""
    return _region(choice.read(_folder(map_run), choice.REGION))


def keep_region(map_run: str, region: Region | None) -> None:
    """Keep what is picked on a map, or that nothing is; borders once drawn stay, under their token."""
    kept = _region(region)
    if kept and kept["kind"] in SHAPES:
        choice.write(_folder(map_run), _file(region_token(kept)), kept)
    choice.write(_folder(map_run), choice.REGION, kept)


def region_token(region: Region | None) -> str:
    """A region's short name; "" where none is picked, and for a search."""
    if region is None or region["kind"] == "hits":
        return ""
    value = region["value"]
    if region["kind"] in SHAPES:
        value = hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]
    return f"{region['kind']}:{value}"


def region_of(map_run: str, token: str) -> Region:
    """The region of a token on this map. Errors: ConfigError where there is none."""
    kind, _, value = token.partition(":")
    mapped, number = get(map_run), int(value) if value.isdecimal() and len(value) < 10 else -1
    if kind in SHAPES:
        for kept in (_region(choice.read(_folder(map_run), _file(token))), kept_region(map_run)):
            if kept and region_token(kept) == token:
                return kept
    if kind == "class" and value in CLASSES:
        return Region(kind=kind, value=value)
    if 0 <= number < {"topic": len(mapped.clusters), "point": len(mapped)}.get(kind, 0):
        return Region(kind=kind, value=number)
    raise ConfigError(f"region: {token!r} is not on this map; pick it there again, or copy it from the page's address.")


def region_points(map_run: str, region: Region | None, kinds: IntArray) -> IntArray:
    """`(m,)` the points of a region, drawn or not, ascending; all points of the map for None. kinds: see `classes`."""
    if region is None:
        return np.arange(len(kinds))
    value = region["value"]
    match region["kind"]:
        case "lasso":
            parts = [get(map_run).lasso(corners) for corners in value]
        case "box":
            parts = [get(map_run).box(*sides) for sides in value]
        case "topic":
            parts = [np.flatnonzero(get(map_run).cluster == value)]
        case "class":
            parts = [np.flatnonzero(kinds == CLASSES.index(value))]
        case "hits":
            parts = [search(map_run, *value).points]
        case _:
            parts = [np.array([value])]
    return np.unique(np.concatenate(parts))


def write_region(
    selection: str, token: str, path: Path, format: Format | None = None, budget: str | None = None
) -> Path:
    """Write what a token names, as the page does: on the map of a selection, the newest that knows the token.

    budget: the kept one unless given; what is selected at it counts for a class. Errors: ConfigError, PathError.
    """
    maps = list(alike(selection))
    if not maps:
        raise ConfigError(f"region: {selection} has no map; make one with `map --selection {selection}`.")
    map_run = next((each for each in maps if _known(each, token)), maps[0])
    kinds = classes(map_run, budget)
    return export(map_run, region_points(map_run, region_of(map_run, token), kinds), path, format)


def region_file(selection: str, region: Region | None) -> str:
    """The name of the file that holds a region, without its ending: the selection's, the budget, what is picked."""
    budget = kept_budget(selection).replace("%", "pct")
    return "-".join((f"picked-{selection[-4:]}", budget, region_token(region) or "search")).replace(":", "-")


def region_command(selection: str, token: str, output: str) -> str:
    """The command line that writes a region to `output`, byte for byte what the page gives."""
    return f"python -m core export {selection} {shlex.join(['--region', token, '--output', output])}"


def _known(map_run: str, token: str) -> bool:
    try:
        return bool(region_of(map_run, token))
    except ConfigError:
        return False


def _region(kept: object) -> Region | None:
    """A region as it was kept; None where nothing was, or its file is spoilt."""
    if isinstance(kept, dict) and {"kind", "value"} <= kept.keys():
        return Region(kind=kept["kind"], value=kept["value"])
    return None


def _folder(map_run: str) -> Path:
    return store().get(map_run.partition("@")[0]).path


def _file(token: str) -> str:
    """The name of the file that holds borders; what is no token of ours names none."""
    kind, _, digest = token.partition(":")
    return f"region-{kind}-{digest if digest.isalnum() else ''}.json"
