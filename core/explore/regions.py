"""Regions that users pick on a map. The regions are stored with the map.

A region is a lasso, a box, a topic, a class, a sentence, a range of scores, values of columns, the hits of a search, or
the intersection of several of these.

A token identifies a region in an address, in a file's name and on the command line. `topic:3`, `class:filtered` and
`point:17` define the region; `lasso:5e0c91ab`, `box:...` and `column:...` name a file with its borders or values.
Tokens joined by commas mean the sentences that lie in all of these regions. A search has no token, so that its words
do not get into the browser's history.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from core.corpora.writers import Format
from core.errors import ConfigError
from core.explore.result import CLASSES
from core.explore.view import Mode, alike, classes, colour_numbers, export, get, search, with_values
from core.paths import home
from core.projects import view as projects
from core.projects.home import store
from core.results import FloatArray, IntArray
from core.runs import journal
from core.selection import choice
from core.selection.view import at
from core.shown import shown

SHAPES = ("lasso", "box")
STORED = (*SHAPES, "column")  # kinds of region that are stored in a file, which is named after the region's token

LONGEST = 60  # maximum number of characters of a region's name
_NAMES = "region-names.json"
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Side = tuple[_Number, _Number]
_VALUES: Mapping[str, TypeAdapter[Any]] = {  # {kind of region: type of its value in JSON}
    "lasso": TypeAdapter(Annotated[list[list[_Side]], Field(min_length=1)]),
    "box": TypeAdapter(Annotated[list[tuple[_Number, _Number, _Number, _Number]], Field(min_length=1)]),
    "score": TypeAdapter(_Side),
    "topic": TypeAdapter(Annotated[int, Field(ge=0)]),
    "point": TypeAdapter(Annotated[int, Field(ge=0)]),
    "class": TypeAdapter(Annotated[str, Field(pattern=f"^({'|'.join(CLASSES)})$")]),
    "hits": TypeAdapter(tuple[str, Mode]),
    "column": TypeAdapter(Annotated[dict[str, Annotated[list[str], Field(min_length=1)]], Field(min_length=1)]),
    "all": TypeAdapter(Annotated[list[dict[str, Any]], Field(min_length=2)]),
}


class Region(TypedDict):
    """A picked region. value: definition of the region, such as the borders of a lasso or the number of a topic."""

    kind: str
    value: Any


def kept_region(map_run: str) -> Region | None:
    """Return the region that `keep_region` stored last for a map, or None."""
    return _read_back(map_run, choice.REGION)


def keep_region(map_run: str, region: Region | None) -> None:
    """Store the region that the user picked on a map, or None if no region is picked.

    Lassos, boxes and column values are also stored in a file that is named after their token.
    """
    for part in parts(region):
        if part["kind"] in STORED:
            choice.write(_folder(map_run), _file(region_token(part)), part)
    choice.write(_folder(map_run), choice.REGION, joined(parts(region)))


def parts(region: Region | None) -> list[Region]:
    """Return the regions whose intersection is `region`; [] for None."""
    if region is None:
        return []
    kept = region["value"] if region["kind"] == "all" else [region]
    return [Region(kind=part["kind"], value=part["value"]) for part in kept]


def joined(regions: Sequence[Region]) -> Region | None:
    """Return the region of the sentences that lie in all of `regions`; None (the whole map) if `regions` is empty."""
    if len(regions) < 2:
        return regions[0] if regions else None
    return Region(kind="all", value=list(regions))


def checked(kind: str, value: object) -> Region | None:
    """Return the region with a kind and a value that a browser sent, or None if the value is not valid for the kind."""
    try:
        return Region(kind=kind, value=_VALUES[kind].validate_json(json.dumps(value), strict=True))
    except (KeyError, ValidationError, RecursionError):
        return None


def named_regions(map_run: str) -> dict[str, str]:
    """Return {token: name} of a map's named lassos and boxes, sorted by name."""
    kept = choice.read(_folder(map_run), _NAMES)
    names = kept.items() if isinstance(kept, dict) else ()
    drawn = ((token, name) for token, name in names if token.startswith(tuple(f"{kind}:" for kind in SHAPES)))
    whole = {token: name for token, name in drawn if isinstance(name, str) and _with_token(map_run, token)}
    return dict(sorted(whole.items(), key=lambda pair: pair[1].casefold()))


def name_region(map_run: str, region: Region, name: str) -> None:
    """Name a lasso or a box of a map. A name longer than LONGEST is cut; "" removes the name. Errors: RunBusy."""
    choice.write(_folder(map_run), _file(region_token(region)), _region(region))
    with journal.changing(home()):
        names = {**named_regions(map_run), region_token(region): " ".join(shown(name).split())[:LONGEST]}
        choice.write(_folder(map_run), _NAMES, {token: name for token, name in names.items() if name} or None)


def region_token(region: Region | None) -> str:
    """Return the token that identifies a region, such as `topic:3`; "" for None and for a search."""
    tokens = [_token(part) for part in parts(region)]
    return ",".join(tokens) if all(tokens) else ""


def _token(region: Region) -> str:
    if region["kind"] == "hits":
        return ""
    value = region["value"]
    if region["kind"] == "score":
        return f"score:{value[0]:.6g}~{value[1]:.6g}"
    if region["kind"] in STORED:
        value = hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]
    return f"{region['kind']}:{value}"


def region_of(map_run: str, token: str) -> Region:
    """Return the region of a map with a token, such as `topic:3`, or with a name.

    Errors: ConfigError if there is no such region, or if several regions have this name.
    """
    if region := _with_token(map_run, token):
        return region
    # A name may contain commas and colons, as a token does.
    named = [each for each, name in named_regions(map_run).items() if name == token]
    if len(named) > 1:
        raise ConfigError(
            f"region: {len(named)} regions of this map are named {token!r}; give one of them as {' or '.join(named)}."
        )
    if region := _with_token(map_run, named[0]) if named else None:
        return region
    if "," in token and ":" in token:
        return Region(kind="all", value=[region_of(map_run, part) for part in token.split(",")[:LONGEST]])
    raise ConfigError(
        f"region: {token!r} is not on this map; pick it on the map again, or copy it from the page's address."
    )


def _with_token(map_run: str, token: str) -> Region | None:
    """Return the region of a map with the token of a single region, or None."""
    kind, _, value = token.partition(":")
    # At most 9 digits, because the token may come from an address, and `int` raises an error for thousands of digits.
    mapped, number = get(map_run), int(value) if value.isdecimal() and len(value) < 10 else -1
    if kind in STORED:
        for kept in (_read_back(map_run, _file(token)), *parts(kept_region(map_run))):
            if kept and region_token(kept) == token:
                return kept
    if kind == "class" and value in CLASSES:
        return Region(kind=kind, value=value)
    if kind == "score" and (bounds := _bounds(value)):
        return Region(kind=kind, value=bounds)
    if 0 <= number < {"topic": len(mapped.clusters), "point": len(mapped)}.get(kind, 0):
        return Region(kind=kind, value=number)
    return None


def region_points(map_run: str, region: Region | None, kinds: IntArray) -> IntArray:
    """Return the points of a region, ascending `(m,)`, whether they are drawn or not; all points for None.

    kinds: result of `classes`.
    """
    inside = np.arange(len(kinds))
    for part in parts(region):
        inside = np.intersect1d(inside, _points(map_run, part, kinds))
    return inside


def _points(map_run: str, region: Region, kinds: IntArray) -> IntArray:
    value = region["value"]
    match region["kind"]:
        case "lasso":
            inside = np.concatenate([get(map_run).lasso(corners) for corners in value])
        case "box":
            inside = np.concatenate([get(map_run).box(*sides) for sides in value])
        case "topic":
            inside = np.flatnonzero(get(map_run).cluster == value)
        case "class":
            inside = np.flatnonzero(kinds == CLASSES.index(value))
        case "hits":
            inside = search(map_run, *value).points
        case "score":
            inside = _scoring(map_run, *value)
        case "column":
            inside = with_values(map_run, value)
        case _:
            inside = np.array([value])
    return inside


def scores_on_map(map_run: str, points: IntArray) -> FloatArray:
    """Return the scores of those `points` that have a score, `(k,)`."""
    values = colour_numbers(map_run, points, "score")
    return values[np.isfinite(values)]


def _scoring(map_run: str, low: float, high: float) -> IntArray:
    values = colour_numbers(map_run, np.arange(len(get(map_run))), "score")
    # Widen the range a little, because a bound is rounded to six digits and its score may lie slightly outside.
    spare = 1e-5 * max(abs(low), abs(high))
    return np.flatnonzero((values >= low - spare) & (values <= high + spare))


def _bounds(text: str) -> tuple[float, float] | None:
    try:
        low, high = map(float, text.split("~"))
    except ValueError:
        return None
    return (low, high) if -inf < low <= high < inf else None


def write_region(
    selection: str, token: str, path: Path, format: Format | None = None, budget: str | None = None
) -> Path:
    """Write the sentences of a region to a file, and return its path. The page Explore writes the same file.

    token: identifies the region on the newest map of the selection that has this region. budget: determines which
    sentences are selected; by default the selection's own budget. Errors: ConfigError, PathError.
    """
    maps = list(alike(selection))
    if not maps:
        run_id = choice.run_of(selection)
        raise ConfigError(f"region: {selection} has no map; make one with `map --selection {run_id}`.")
    map_run = next((each for each in maps if _known(each, token)), maps[0])
    kinds = classes(map_run, budget)
    return export(map_run, region_points(map_run, region_of(map_run, token), kinds), path, format, kinds)


def region_file(selection: str, map_run: str, region: Region | None) -> str:
    """Return a file name for a region, without suffix, such as `lasso_5e0c-1a2b-20pct` or `boilerplate-1a2b-20pct`.

    The digits between hyphens, here `1a2b`, are the end of the run's id. When the run is removed, its exports are found
    by these digits, so the words before the digits have no hyphen.
    """
    now, token = at(selection), region_token(region)
    name = re.sub(r"\W+", "_", named_regions(map_run).get(token, "")).strip("_")
    kinds = [part["kind"] for part in parts(region)]
    words = name or "_".join([*kinds, hashlib.sha256(token.encode()).hexdigest()[:4]] if token else ["search"])
    return f"{words}-{now.mark}-{now.budget.replace('%', 'pct').replace(':', '-')}"


def region_command(selection: str, token: str, output: str) -> str:
    """Return the command line that writes a region to `output`. The file is the same as from the page Explore."""
    begins = ["python", "-m", "core", *projects.option(), "export", selection]
    return shlex.join([*begins, "--region", token, "--output", output])


def _known(map_run: str, token: str) -> bool:
    try:
        return bool(region_of(map_run, token))
    except ConfigError:
        return False


def _region(kept: object) -> Region | None:
    """Return a stored value as a `Region`; None if it is not a region."""
    if isinstance(kept, dict) and {"kind", "value"} <= kept.keys():
        return Region(kind=kept["kind"], value=kept["value"])
    return None


def _read_back(map_run: str, name: str) -> Region | None:
    """Return the region in a file of a map's run; None if it is missing, damaged or not valid on this map."""
    kept = _region(choice.read(_folder(map_run), name))
    return kept if kept and _sound(map_run, kept) else None


def _sound(map_run: str, kept: Region, *, part: bool = False) -> bool:
    """Return True if a stored region is valid on this map. part: True for one of several regions of an intersection."""
    region = checked(kept["kind"], kept["value"]) if isinstance(kept["kind"], str) else None
    if region is None or (part and region["kind"] == "all"):
        return False
    if region["kind"] == "all":
        return all((each := _region(one)) is not None and _sound(map_run, each, part=True) for one in region["value"])
    most = {"topic": lambda: len(get(map_run).clusters), "point": lambda: len(get(map_run))}.get(region["kind"])
    return most is None or region["value"] < most()


def _folder(map_run: str) -> Path:
    return store().get(map_run.partition("@")[0]).path


def _file(token: str) -> str:
    """Return the name of a region's file. A digest with unexpected characters is dropped, because it may be a path."""
    kind, _, digest = token.partition(":")
    return f"region-{kind}-{digest if digest.isalnum() else ''}.json"
