"""`map`: T_C, selected and filtered sentences of a `select` run laid out in two or three dimensions."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np

from core import __version__
from core.config import Config, option
from core.corpora.corpus import BLOCK
from core.encoders import vectors
from core.errors import ConfigError
from core.explore.pile import Pile, name_topics
from core.explore.result import Layout, MapResult, write_table
from core.files import replacing
from core.kind import Job, Kind
from core.models.encoder_options import EncoderOptions
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray
from core.runs.chunks import chunked
from core.runs.result import read
from core.runs.store import Run, RunStore, run_key
from core.selection import result as scores
from core.selection.result import SelectResult
from core.shown import count
from core.stats.draws import stratified

CHUNK = 8 * BLOCK  # points placed at a time
PARTS = 4


class MapConfig(Config):
    """Options: the selection, and how it is laid out."""

    selection: str = option(..., "The `select` run to draw.")
    task: str = option("", "Task corpus (T_C) of that run.", corpus=True, hidden=True)
    domain: str = option("", "Domain corpus (D_C) of that run.", corpus=True, hidden=True)
    sample: int = option(20_000, "UMAP is fitted on so many, equal shares of each class.", unit="sentences", ge=10)
    limit: int = option(500_000, "At most so many are on the map at all.", unit="sentences", ge=10)
    dimensions: Literal[2, 3] = option(2, "2, or 3 for a map to turn.")
    neighbours: int = option(15, "Few show detail, many the whole.", unit="sentences", ge=3, le=200)
    min_distance: float = option(0.1, "How close points may lie; 0 packs them.", ge=0, le=0.99)
    clusters: int = option(12, "Topics found among the points (k-means).", ge=1, le=100)
    fast: bool = option(False, "Lay out on all cores: faster, but another map every time.")
    seed: int = option(0, "Seed of everything random.", ge=0)


def run(config: MapConfig, job: Job) -> MapResult:
    """Artifacts: see `artifacts.map`."""
    pile, embedded = _pile(config, job)
    chosen_points = stratified(pile.kinds(), config.sample, config.seed)
    fitted = np.zeros(len(pile.rows), dtype=bool)
    fitted[chosen_points] = True
    layout_key = _layout_key(config, job, pile, fitted, embedded)
    if twin := _laid_out(job, layout_key):
        earlier = Layout.read(twin)
        coordinates, cluster = np.array(earlier.coordinates), np.array(earlier.cluster)
        clusters = read(twin, MapResult).clusters
        job.context.note(f"The same sentences are laid out in {twin.id} already: its layout is taken over.")
    else:
        job.context.part(3, PARTS, "the layout")
        layout = _Layout.make(config, job, pile.vectors_at(chosen_points))
        job.context.part(4, PARTS, "the other sentences and the topics")
        coordinates, cluster = _everywhere(config, job, pile, fitted, layout)
        job.context.stage("naming topics")
        clusters = name_topics(pile, np.flatnonzero(fitted), cluster, job.context)
    Layout(coordinates=coordinates, rows=pile.rows, fitted=fitted, cluster=cluster).write(job.context.run)
    job.context.stage("writing map.parquet")
    write_table(job.context, coordinates, pile.kinds(), pile.blocks())
    return MapResult(
        points=len(pile.rows),
        task_points=pile.n_task,
        fitted=len(chosen_points),
        of=len(pile.task) + len(pile.domain),
        task=pile.task.fingerprint,
        domain=pile.domain.fingerprint,
        clusters=clusters,
        layout=layout_key,
        embedded=embedded,
    )


def _layout_key(config: MapConfig, job: Job, pile: Pile, fitted: BoolArray, embedded: Mapping[str, str]) -> str:
    """Hash of what the layout depends on: which sentences, their vectors, how they are laid out; not the selection."""
    how = config.model_dump(mode="json", include={"dimensions", "neighbours", "min_distance", "clusters", "fast"})
    points = sha256(pile.rows.astype(np.int64).tobytes() + fitted.tobytes()).hexdigest()
    how |= {"points": points, "task_points": pile.n_task}
    store = RunStore(job.home)
    vectors = {role: store.get(run_id).manifest.key for role, run_id in embedded.items()}
    return run_key("map", how, vectors, seed=config.seed, code_version=__version__)


def _laid_out(job: Job, layout_key: str) -> Run | None:
    """A finished map with this layout."""
    maps = (run for run in RunStore(job.home).list("map") if run.id != job.context.run.id)
    return next(
        (run for run in maps if run.state().state == "succeeded" and read(run, MapResult).layout == layout_key), None
    )


def _pile(config: MapConfig, job: Job) -> tuple[Pile, dict[str, str]]:
    select = RunStore(job.home).get(config.selection)
    if select.manifest.kind != "select":
        raise ConfigError(f"selection: {select.id} is a run of {select.manifest.kind}; give a finished select run.")
    result, inputs = read(select, SelectResult), select.manifest.inputs
    task, domain = job.corpus(inputs["task"]), job.corpus(inputs["domain"])
    options = {name: select.manifest.config[name] for name in EncoderOptions.model_fields}
    runs = {}
    for number, (role, corpus) in enumerate((("task", task), ("domain", domain)), 1):
        job.context.part(number, PARTS, f"the vectors of {corpus.name}")
        runs[role] = job.child("embed", corpus=corpus.fingerprint, **options)
    chosen = np.zeros(len(domain), dtype=bool)
    chosen[scores.read_rows(select)] = True
    kinds = np.concatenate([np.zeros(len(task), dtype=np.int64), 2 - chosen])
    everything = np.concatenate([np.arange(len(task)), np.arange(len(domain))])
    taken = stratified(kinds, config.limit, config.seed)
    if len(taken) < len(kinds):
        job.context.note(f"{len(taken):,} of {len(kinds):,} sentences are on the map, equal shares of each class.")
    pile = Pile(
        task=task,
        domain=domain,
        vectors=(vectors.read(runs["task"])[0], vectors.read(runs["domain"])[0]),
        chosen=chosen,
        scores=scores.read_values(RunStore(job.home).get(result.score_run)),
        rows=everything[taken],
        n_task=int(np.searchsorted(taken, len(task))),
    )
    return pile, {role: run.id for role, run in runs.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Layout of vectors: PCA, the fitted points `(m, k)` and coordinates `(m, c)`, topics' centres `(t, k)`."""

    mean: FloatArray
    axes: FloatArray
    points: FloatArray
    coordinates: FloatArray
    centres: FloatArray

    @classmethod
    def make(cls, config: MapConfig, job: Job, vectors: FloatArray) -> "_Layout":
        """Fitted now, or as an attempt before this one left it: `fast` would lay out another map."""
        path = job.context.run.chunks / "layout.npz"
        if not path.exists():
            with replacing(path) as file:
                np.savez(file, allow_pickle=False, **_fit(config, job.context, vectors))
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**{name: arrays[name] for name in cls.__slots__})


def _fit(config: MapConfig, report: Reporter, vectors: FloatArray) -> dict[str, FloatArray]:
    from core.explore import projection

    report.stage("reducing to 50 dimensions")
    pca = projection.Pca.fit(vectors)
    points = pca(vectors)
    coordinates = projection.fit(
        points,
        dimensions=config.dimensions,
        neighbours=config.neighbours,
        min_distance=config.min_distance,
        seed=None if config.fast else config.seed,
        report=report,
    )
    report.stage("finding topics")
    from sklearn.cluster import KMeans

    # k-means asks for as many different points as clusters.
    k = min(config.clusters, len(np.unique(points, axis=0)))
    centres = KMeans(k, n_init=1, random_state=config.seed).fit(points).cluster_centers_
    return {"mean": pca.mean, "axes": pca.axes, "points": points, "coordinates": coordinates, "centres": centres}


def _everywhere(
    config: MapConfig, job: Job, pile: Pile, fitted: BoolArray, layout: _Layout
) -> tuple[FloatArray, IntArray]:
    """Coordinates `(c, n)` and topics `(n,)` of all points."""
    from core.explore import projection

    pca = projection.Pca(mean=layout.mean, axes=layout.axes)
    others = np.flatnonzero(~fitted)

    def topics(points: FloatArray) -> IntArray:
        halves = (layout.centres**2).sum(axis=1) / 2
        return np.asarray((points @ layout.centres.T - halves).argmax(axis=1))

    def compute(start: int, stop: int, report: Reporter) -> FloatArray:
        points = pca(pile.vectors_at(others[start:stop]))
        places = projection.place(points, layout.points, layout.coordinates, config.neighbours, report)
        return np.column_stack([places, topics(points)]).astype(np.float32)

    coordinates = np.empty((config.dimensions, len(fitted)), dtype=np.float32)
    cluster = np.empty(len(fitted), dtype=np.int16)
    coordinates[:, fitted], cluster[fitted] = layout.coordinates.T, topics(layout.points)
    if len(others):
        job.context.stage("placing the other sentences")
        placed = np.concatenate([np.load(path) for path in chunked(job.context, len(others), CHUNK, compute, "place")])
        coordinates[:, others], cluster[others] = placed[:, :-1].T, placed[:, -1]
    return coordinates, cluster


KIND = Kind(
    "map",
    MapConfig,
    run,
    MapResult,
    title=lambda run: f"Map {run.selection(run.config['selection'])}",
    outcome=lambda result, _: f"{count(result.points, 'sentence')} laid out",
    page="Explore",
    opens=True,
)
