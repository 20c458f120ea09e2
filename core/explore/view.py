"""The map of a selection as pages and commands use it. Points are indices into the map's arrays.

A point is a sentence of T_C or D_C. Rows are rows of D_C. A `map_run` is the id of a `map` run, or
`<id of the map run>@<id of a selection>` (see `of`): the same map, with the classes of another saved selection.

Predicted entities come from finished `tag` runs of D_C.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypedDict, cast

import numpy as np

from core.corpora.columns import distinct_values, kept_names, stored, unique, value_names
from core.corpora.corpus import BLOCK
from core.corpora.hygiene import FLAGS
from core.corpora.writers import COLUMNS, FLAGGED, KEPT, MARKS, Format, Row, further_names, write_selection
from core.encoders import vectors as vectors_of
from core.errors import RunError
from core.explore import result as map_files
from core.explore.distinctive_words import Telling, count_words
from core.explore.plot import HoverRow
from core.explore.result import CLASSES, Hits, MapRow, MapView
from core.explore.zoom_names import ZoomName
from core.explore.zoom_names import zoom_names as named
from core.projects.audit import exporting
from core.projects.home import kept_per_home, library, store
from core.results import FloatArray, IntArray
from core.runs.result import read
from core.runs.store import Run
from core.selection import choice
from core.selection.choose import ranking
from core.selection.evidence import Spans
from core.selection.near import nearest_rows
from core.selection.result import ScoreResult, SelectResult
from core.selection.view import chosen, run_of, scored
from core.shown import short
from core.stats.draws import stratified
from core.tagging.predictions import read_spans
from core.terms import plainly
from core.text.sentence import PLACE, Sentence

READ_BY = ("encoder", "pooling", "max_length", "precision")  # options of a run that determine its sentence vectors
Sort = Literal["score", "tokens", "row", "class"]
Mode = Literal["substring", "words"]


def options(selection: str, **more: object) -> dict[str, object]:
    """Return options of a `map` run for a selection. more: further options, such as `sample` or `seed`."""
    run = run_of(selection)
    inputs = run.manifest.inputs
    return {"selection": run.id, "task": inputs["task"], "domain": inputs["domain"], **more}


def finished(selection: str | None = None) -> list[Run]:
    """Return finished `map` runs, newest first. selection: id of a `select` run; None for the maps of all runs."""
    done = store().list("map", state="succeeded")
    return [run for run in done if selection in (None, run.manifest.config["selection"])]


def of(selection: str) -> str | None:
    """Return the best map for a selection, as a `map_run` (see the module); None if there is none.

    This is the newest map of the selection's own run, else the newest map with the same corpora and encoder. A map of
    another run is drawn with the classes of this selection.
    """
    return next(alike(selection), None)


def alike(selection: str) -> Iterator[str]:
    """Yield the maps that show a selection's corpora with its encoder, as `map_run` (see the module).

    First come the maps of the selection's own run, then those of other runs. Both groups are sorted, newest first.
    """
    run_id = choice.run_of(selection)
    own = [run.id for run in finished(run_id)]
    yield from (each if selection == run_id else f"{each}@{selection}" for each in own)
    wanted = _sentences_of(selection)
    for run in finished():
        if run.id not in own and _sentences_of(run.manifest.config["selection"]) == wanted:
            yield f"{run.id}@{selection}"


def _sentences_of(selection: str) -> tuple[object, ...] | None:
    """Return the corpora and the encoder options of a selection; None if it was removed."""
    try:
        manifest = run_of(selection).manifest
    except RunError:
        return None
    corpora = (manifest.inputs.get(role) for role in ("task", "domain"))
    return (*corpora, *(manifest.config.get(name) for name in READ_BY))


def config(map_run: str) -> dict[str, object]:
    """Return the options of the map's run. Its option `selection` is the `select` run of the shown selection."""
    return {**_run(map_run).manifest.config, "selection": choice.run_of(get(map_run).selection)}


def _run(map_run: str) -> Run:
    return store().get(map_run.partition("@")[0])


def get(map_run: str) -> MapView:
    """Return a finished map with the id of the shown selection as its `selection`. Errors: RunError."""
    run_id, _, selection = map_run.partition("@")
    kept = _get(run_id)
    # The corpora may have been renamed since `kept` was cached.
    task, domain = (library().recall(corpus.fingerprint, len(corpus)) for corpus in (kept.task, kept.domain))
    return replace(kept, selection=selection or kept.selection, task=task, domain=domain)


@kept_per_home(4)
def _get(run_id: str) -> MapView:
    """Read a finished map. The last maps that were read are cached."""
    return MapView.read(store().get(run_id), library())


def classes(map_run: str, budget: str | None = None, keep: Sequence[str] | None = None) -> IntArray:
    """Return the class of each point, as an index into `CLASSES` (T_C, selected, filtered), uint8 `(n,)`.

    The classes include the user's edits of the selection.
    budget: None for the selection's own budget. keep: flags that do not exclude a sentence; None for those of its run.
    """
    mapped = get(map_run)
    return mapped.classes(chosen(mapped.selection, budget, keep).rows)


@kept_per_home(8)
def kept_columns(map_run: str) -> dict[str, bool]:
    """Return {column: True if a sentence of D_C or T_C has a value} for the columns doc, file, group and page."""
    mapped = get(map_run)
    corpora = (mapped.domain, mapped.task)
    names = ("doc", "file", "group", "page")
    return {name: any(stored(corpus, name).null_count < len(corpus) for corpus in corpora) for name in names}


@kept_per_home(8)
def further_columns(map_run: str) -> dict[str, bool]:
    """Return {further column of the imported files: True if all its values are numbers}.

    Columns with a single value are left out.
    """
    corpora = (get(map_run).task, get(map_run).domain)
    names = sorted({name for corpus in corpora for name in value_names(corpus)})
    values = {name: set[str]().union(*(distinct_values(corpus, name) for corpus in corpora)) for name in names}
    return {name: all(map(_is_number, distinct)) for name, distinct in values.items() if len(distinct) > 1}


def _is_number(text: str) -> bool:
    """Return True if `text` is a finite number."""
    try:
        # Python accepts 1_000 as a number, but other programs do not.
        return bool(np.isfinite(float(text))) and "_" not in text
    except ValueError:
        return False


MOST_VALUES = 2_000  # maximum number of values of a column to filter by; a page sends all values to the browser

MOST_GROUPS = 20_000  # maximum number of values of a column to group by

UNKNOWN = "unknown"  # shown for a missing value

TOPIC = ""  # stands for the topics in a list of columns, because no column has an empty name

Values = tuple[Sequence[str], IntArray]  # different values, and the index of each point's value, shape (n,)


@kept_per_home(4)
def filter_values(map_run: str) -> dict[str, dict[str, int]]:
    """Return {column: {value: number of points}} for the columns to filter by, with the most frequent value first.

    Columns are `doc`, `file`, `group` and the further columns of the imported files. A column with one value or with
    more than MOST_VALUES is left out.
    """
    values = {name: _values(map_run, name) for name in group_columns(map_run)[1:]}
    return {name: _counted(*each) for name, each in values.items() if 1 < len(each[0]) <= MOST_VALUES}


def numbers(map_run: str, column: str) -> list[str]:
    """Return the values of a column in ascending order if all are numbers, else []. column: see `filter_values`."""
    held = filter_values(map_run).get(column, {}).keys() - {UNKNOWN}
    # A further column `doc`, `file` or `group` of one corpus shares its name with the documents of the other.
    if not further_columns(map_run).get(column) or not all(map(_is_number, held)):
        return []
    return sorted(held, key=float)


@kept_per_home(4)
def group_columns(map_run: str) -> list[str]:
    """Return the columns that `groups` accepts: TOPIC, then all columns that have 2 to MOST_GROUPS different values."""
    corpora = (get(map_run).task, get(map_run).domain)
    names = [*(name for name in ("doc", "file", "group") if kept_columns(map_run)[name]), *further_columns(map_run)]
    found = {name: {value or UNKNOWN for corpus in corpora for value in unique(corpus, name)} for name in names}
    return [TOPIC, *(name for name, values in found.items() if 1 < len(values) <= MOST_GROUPS)]


def _counted(names: Sequence[str], codes: IntArray) -> dict[str, int]:
    counts = np.bincount(codes, minlength=len(names))
    return {names[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable").tolist()}


def with_values(map_run: str, wanted: Mapping[str, Sequence[str]]) -> IntArray:
    """Return the points whose value is in `wanted[column]` for each column of `wanted`; see `filter_values`."""
    inside, further = np.full(len(get(map_run)), True), further_columns(map_run)
    for column, values in wanted.items():
        # Regions that an earlier version stored call the document `source`.
        name = "doc" if column == "source" and column not in further else column
        known = name in ("doc", "file", "group") or name in further
        names, codes = _values(map_run, name) if known else ((), np.zeros(len(inside), dtype=np.int32))
        inside &= np.isin(codes, [i for i, each in enumerate(names) if each in values])
    return np.flatnonzero(inside)


def _values(map_run: str, column: str) -> Values:
    return _coded(map_run.partition("@")[0], column)  # a column does not depend on the selection


@kept_per_home(8)
def _coded(run_id: str, column: str) -> Values:
    return _get(run_id).coded(column, UNKNOWN)


class GroupRow(TypedDict):
    """Points with the same topic, or with the same value in a column.

    value: number of the topic, or the value. task, domain: number of points of T_C and of D_C. score: mean score of the
    points of D_C; NaN without scores.
    """

    value: int | str
    name: str
    task: int
    domain: int
    selected: int
    score: float


def groups(map_run: str, points: IntArray, kinds: IntArray, column: str) -> list[GroupRow]:
    """Group `points` by their value in a column, and return the groups, largest first. column: see `group_columns`."""
    mapped = get(map_run)
    topics = tuple(topic.name for topic in mapped.clusters)
    names, codes = (topics, np.asarray(mapped.cluster)) if column == TOPIC else _values(map_run, column)
    here, n = codes[points], len(names)
    task, selected, filtered = (np.bincount(here[kinds[points] == kind], minlength=n) for kind in range(len(CLASSES)))
    scores = colour_numbers(map_run, points, "score")
    known = np.isfinite(scores)
    sums, counts = np.bincount(here[known], scores[known], n), np.bincount(here[known], minlength=n)
    means = np.divide(sums, counts, out=np.full(n, np.nan), where=counts > 0)
    sizes = task + selected + filtered
    return [
        {
            "value": i if column == TOPIC else names[i],
            "name": names[i],
            "task": int(task[i]),
            "domain": int(selected[i] + filtered[i]),
            "selected": int(selected[i]),
            "score": float(means[i]),
        }
        for i in np.argsort(-sizes, kind="stable").tolist()
        if sizes[i]
    ]


def column_numbers(map_run: str, points: IntArray, column: str) -> FloatArray:
    """Return the numbers of `points` in a further column of the imported files; NaN for missing values."""
    return np.array([float(value or "nan") for value in get(map_run).further_values(points, column)])


def column_names(map_run: str, points: IntArray, column: str) -> list[str]:
    """Return the values of `points` in a further column of the imported files; UNKNOWN for missing values."""
    return [value or UNKNOWN for value in get(map_run).further_values(points, column)]


def colour_numbers(map_run: str, points: IntArray, by: Literal["score", "length", "page"]) -> FloatArray:
    """Return the numbers by which `points` are coloured: their scores, lengths or pages; NaN if unknown."""
    mapped = get(map_run)
    if by == "page":
        return np.array([np.nan if page is None else page for page in mapped.stored_at(points, "page")], dtype=float)
    if by == "score":
        return mapped.values(points, scored(mapped.selection).scores.values)
    return mapped.values(points, *(stored(corpus, "n_tokens").to_numpy() for corpus in (mapped.domain, mapped.task)))


def colour_names(map_run: str, points: IntArray, by: Literal["class", "cluster", "doc", "file", "group"]) -> list[str]:
    """Return the names by which `points` are coloured: names of their classes, topics, documents, files or groups."""
    mapped = get(map_run)
    if by == "class":
        return [CLASSES[kind] for kind in classes(map_run)[points].tolist()]
    if by == "cluster":
        return [mapped.clusters[kind].name for kind in mapped.cluster[points].tolist()]
    return [str(name) if name else UNKNOWN for name in mapped.stored_at(points, by)]


def hover(map_run: str, points: IntArray, width: int = 120) -> list[HoverRow]:
    """Return the contents of the points' tooltips as plain text, which the caller must escape.

    width: maximum number of characters of a sentence.
    """
    mapped = get(map_run)
    scores = mapped.values(points, scored(mapped.selection).scores.values).tolist()
    texts = (text if len(text) <= width else text[: width - 1] + "…" for text in mapped.texts(points))
    rows = zip(scores, mapped.rows[points].tolist(), texts, mapped.places(points), strict=True)
    return [HoverRow(score=score, row=row, text=text, place=place) for score, row, text, place in rows]


def class_counts(points: IntArray, kinds: IntArray) -> dict[str, tuple[int, int]]:
    """Return {term for a class: (number among `points`, number on the map)}, for texts like "47 of 412 selected"."""
    inside, all_ = (np.bincount(part, minlength=len(CLASSES)).tolist() for part in (kinds[points], kinds))
    return {plainly(name): (inside[i], all_[i]) for i, name in enumerate(CLASSES)}


def page_of(
    map_run: str,
    points: IntArray,
    kinds: IntArray,
    *,
    sort: Sort = "score",
    descending: bool | None = None,
    page: int = 0,
    size: int = 50,
) -> list[MapRow]:
    """Return one page of a sorted table of `points`. Only the text of this page is read.

    descending: None sorts scores from best to worst, and other columns in ascending order. page: number of the page,
    from 0. size: rows per page. Points of T_C have no score and are therefore last in a table sorted by score.
    """
    mapped, scores = get(map_run), scored(get(map_run).selection)
    points = np.asarray(points, dtype=np.int64)
    keys = _keys(map_run, points, kinds, sort)
    down = (sort == "score" and scores.scores.prefer == "high") if descending is None else descending
    # Negate the keys instead of reversing the result, so that NaN of T_C sorts last and ties keep their order.
    here = points[np.argsort(-keys if down else keys, kind="stable")][page * size : (page + 1) * size]
    return mapped.table(here, kinds, scores)


def _keys(map_run: str, points: IntArray, kinds: IntArray, sort: Sort) -> FloatArray:
    if sort in ("score", "tokens"):
        return colour_numbers(map_run, points, "score" if sort == "score" else "length")
    return np.asarray(kinds if sort == "class" else get(map_run).rows)[points].astype(np.float64)


@kept_per_home(8)
def search(map_run: str, query: str, mode: Mode = "substring") -> Hits:
    """Return the sentences of D_C and T_C that contain `query`, ignoring case. Sentences outside the map are included.

    mode: `words` finds sentences that have all words of `query` in any order.
    """
    return get(map_run).search(query, mode)


def telling_words(map_run: str, points: IntArray, n: int = 30) -> list[Telling]:
    """Return words over-represented in `points` (log-odds with an informative prior), highest z first.

    Cached for the last few sets of points, because a page asks again on every rerun.
    """
    return _telling_words(map_run, np.asarray(points, dtype=np.int64).tobytes(), n)


@kept_per_home(8)
def _telling_words(map_run: str, points: bytes, n: int) -> list[Telling]:
    return get(map_run).telling(np.frombuffer(points, dtype=np.int64), n)


def zoom_names(map_run: str) -> list[list[ZoomName]]:
    """Return the names of small groups of points for each level of `WIDTHS`. Only fitted points are grouped."""
    return _zoom_names(map_run.partition("@")[0])  # the layout does not depend on the selection


@kept_per_home(4)
def _zoom_names(run_id: str) -> list[list[ZoomName]]:
    mapped = _get(run_id)
    points = np.flatnonzero(mapped.fitted)
    words = [frozenset(count_words([text])) for text in mapped.texts(points)]
    return named(mapped.xy[0][points], mapped.xy[1][points], words)


@exporting
def export(
    map_run: str, points: IntArray, path: Path, format: Format | None = None, kinds: IntArray | None = None
) -> Path:
    """Write the sentences of `points` as .txt, .jsonl, .parquet or .csv, best first and T_C last. Return `path`.

    Except in .txt, each sentence of D_C also has its rank by score among all of D_C, its class and its flags (`MARKS`).
    format: default is the format of the path's suffix. kinds: class of every point of the map; default is `classes`.
    """
    mapped = get(map_run)
    scores = scored(mapped.selection)
    points = np.asarray(points, dtype=np.int64)
    keys = mapped.values(points, scores.scores.values)
    points = points[np.argsort(-keys if scores.scores.prefer == "high" else keys, kind="stable")]
    corpora = (mapped.domain, mapped.task)
    kept = [name for name in KEPT if any(name in kept_names(corpus) for corpus in corpora)]
    further = sorted({name for corpus in corpora for name in value_names(corpus)})
    names = further_names(further, kept, (*COLUMNS, *MARKS, *PLACE))
    kinds = classes(map_run) if kinds is None else kinds
    ranks = np.zeros(len(mapped.domain), dtype=np.int64)
    # By score, because `scores.order` of a diverse selection is another order. Without a score, the rank stays 0.
    by_score = ranking(scores.scores.values, scores.scores.prefer)
    ranks[by_score] = np.arange(1, len(by_score) + 1)
    blocks = (points[i : i + BLOCK] for i in range(0, len(points), BLOCK))
    rows = (row for block in blocks for row in _rows(mapped, block, mapped.table(block, kinds, scores), ranks, names))
    write_selection(rows, path, format, marks=MARKS, kept=kept, more=tuple(names.values()))
    return path


def _rows(
    mapped: MapView, points: IntArray, table: Sequence[MapRow], ranks: IntArray, names: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the rows of an export.

    table: the sentences of `points`. ranks: rank by score of each row of D_C, 0 without a score. names: {further column
    of the imported files: its name in the export}.
    """
    docs, groups = (cast(list[str | None], mapped.stored_at(points, name)) for name in ("doc", "group"))
    columns = cast(list[list[tuple[str, str]] | None], mapped.stored_at(points, "columns"))
    for row, doc, group, further in zip(table, docs, groups, columns, strict=True):
        yield {
            "id": row["id"],
            "text": row["text"],
            "row": row["row"],
            "score": row["score"],
            "rank": None if row["corpus"] == "T_C" else int(ranks[row["row"]]) or None,
            "doc": doc,
            "group": group,
            "file": row["file"],
            "page": row["page"],
            "more": {names[name]: value for name, value in further or () if name in names},
            "marks": {} if row["corpus"] == "T_C" else _marks(row),
        }


def _marks(row: MapRow) -> dict[str, bool]:
    flags = {name: flag in row["flags"] for name, flag in zip(FLAGGED, FLAGS, strict=True)}
    return {"selected": row["class"] == "selected", **flags}


def pairs(map_run: str, kinds: IntArray, n: int = 20) -> list[tuple[MapRow, MapRow, float]]:
    """Return `n` triples: a selected sentence, the filtered sentence of the map nearest to it, and their cosine.

    Mahapatra et al. 2022, Fig. 3a. The selected sentences are drawn at random with the map's seed, so that they
    represent the whole selection and not only its best sentences.
    """
    mapped = get(map_run)
    selected, filtered = (np.flatnonzero(kinds == kind) for kind in (1, 2))
    if not len(selected) or not len(filtered):
        return []
    sample = selected[stratified(np.zeros(len(selected), dtype=np.int64), n, mapped.seed)]
    try:
        run = store().get(mapped.embedded["domain"])
        vectors, _ = vectors_of.read_any(run, len(mapped.domain), run.manifest.config.get("options", {}))
    except RunError as error:
        raise RunError(
            f"sentence vectors of {short(mapped.domain.name)}: are not in this project, because exported projects and "
            "the finished samples leave them out. To compute them, switch on Expert and make a map with another seed "
            "on the tab Map."
        ) from error
    which, cosines = nearest_rows(vectors, mapped.rows[sample], mapped.rows[filtered])
    scores = scored(mapped.selection)
    rows = [mapped.table(points, kinds, scores) for points in (sample, filtered[which])]
    return list(zip(*rows, cosines.tolist(), strict=True))


def table_file(map_run: str) -> Path:
    """Return the path of the map's Parquet table, which Embedding Atlas and notebooks open."""
    return map_files.table_file(_run(map_run))


def tag_runs(choice_id: str) -> list[Run]:
    """Return the finished `tag` runs of D_C that a selection's scores used.

    If there are none, return only the latest finished `tag` run of D_C; [] if D_C was never tagged.
    """
    select = run_of(choice_id)
    score = store().get(read(select, SelectResult).score_run)
    own = read(score, ScoreResult).made_by.get("tag", ())
    done = store().list("tag", state="succeeded")
    if sources := [run for run in done if run.id in own]:
        return sources
    return [run for run in done if run.manifest.inputs["corpus"] == select.manifest.inputs["domain"]][:1]


@kept_per_home(4)
def _spans(run_id: str) -> Spans:
    return read_spans(store().get(run_id))


def entity_types(choice_id: str) -> Sequence[str]:
    """Return the entity types of the taggers that tagged D_C; empty if D_C was never tagged."""
    by_tagger = [_spans(run.id) for run in tag_runs(choice_id)]
    return sorted({name for spans in by_tagger for name in spans.types})


def entity_counts(map_run: str, points: IntArray) -> FloatArray:
    """Return how many entities the taggers predicted in each of `points` on average, `(m,)`; NaN for T_C."""
    mapped = get(map_run)
    counts = [_spans(run.id).totals() for run in tag_runs(mapped.selection)]
    return mapped.values(points, np.mean(counts, axis=0))


def with_entities(choice_id: str, row: int) -> Sentence | None:
    """Return a sentence of D_C with the entities that the first tagger predicted; None if D_C was never tagged."""
    runs = tag_runs(choice_id)
    if not runs:
        return None
    sentence = scored(choice_id).domain.take([row])[0]
    return replace(sentence, entities=_spans(runs[0].id).entities(row))
