"""`map`: lay out T_C and the selected and filtered sentences of a `select` run in two or three dimensions."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np

from core import RESULTS_VERSION
from core.config import Config, option
from core.corpora.corpus import BLOCK, Corpus
from core.encoders import vectors
from core.errors import ConfigError
from core.explore.distinctive_words import count_words, topic_words
from core.explore.result import Layout, MapResult, Topic, write_table
from core.files import replacing
from core.kind import Job, Kind
from core.models.encoder import EncoderOptions
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray, Rows
from core.runs.chunks import chunked
from core.runs.result import read
from core.runs.store import Run, RunStore, run_key
from core.selection import STRATEGIES
from core.selection import result as scores
from core.selection.result import SelectResult
from core.shown import count
from core.stats.draws import short_seed, stratified

CHUNK = 8 * BLOCK  # number of points per chunk of the layout
PARTS = 4


class MapConfig(Config):
    """Options of a `map` run: the selection and its layout."""

    selection: str = option(..., "The `select` run to draw.")
    task: str = option("", "Task corpus (T_C) of the `select` run.", corpus=True, hidden=True)
    domain: str = option("", "Domain corpus (D_C) of the `select` run.", corpus=True, hidden=True)
    sample: int = option(
        20_000, "Sentences that UMAP is fitted on, in equal shares of each class.", unit="sentences", ge=10
    )
    limit: int = option(500_000, "Maximum number of sentences on the map.", unit="sentences", ge=10)
    dimensions: Literal[2, 3] = option(2, "2 for a flat map, 3 for one that can be rotated.")
    neighbours: int = option(
        15, "Neighbours per sentence. Few show details, many show the overall shape.", unit="sentences", ge=3, le=200
    )
    min_distance: float = option(0.1, "Minimum distance between similar points; 0 packs them tightly.", ge=0, le=0.99)
    clusters: int = option(12, "Number of topics (k-means clusters).", ge=1, le=100)
    fast: bool = option(False, "Use all cores for the layout. This is faster, but the map differs every time.")
    seed: int = option(0, "Seed of everything random.", ge=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pile:
    """The n sentences of the map (its points) with their vectors, classes and scores: first T_C, then D_C.

    rows: row of each point in its corpus, shape (n,); the first `n_task` are rows of T_C. vectors: float16 vectors of
    T_C and of D_C. chosen: mask of the selected rows of D_C.
    """

    task: Corpus
    domain: Corpus
    vectors: tuple[Rows, Rows]
    chosen: BoolArray
    scores: FloatArray
    rows: IntArray
    n_task: int

    def kinds(self) -> IntArray:
        """Class of each point, as an index into `CLASSES`, shape (n,)."""
        kinds = np.zeros(len(self.rows), dtype=np.int64)
        kinds[self.n_task :] = 2 - self.chosen[self.rows[self.n_task :]]
        return kinds

    def vectors_at(self, points: IntArray) -> FloatArray:
        """Return the vectors of `points`. The points must be in ascending order, so that those of T_C come first."""
        split = int(np.searchsorted(points, self.n_task))
        task, domain = self.rows[points[:split]], self.rows[points[split:]]
        return np.concatenate([self.vectors[0][task], self.vectors[1][domain]])

    def blocks(self) -> Iterator[tuple[Corpus, IntArray, FloatArray | None]]:
        """Yield all points in order, as blocks (corpus, rows, scores) of one corpus. Scores are None for T_C."""
        for corpus, rows in ((self.task, self.rows[: self.n_task]), (self.domain, self.rows[self.n_task :])):
            for start in range(0, len(rows), BLOCK):
                here = rows[start : start + BLOCK]
                yield corpus, here, self.scores[here] if corpus is self.domain else None


def run(config: MapConfig, job: Job) -> MapResult:
    """Lay out the sentences with UMAP, name their topics, and return the result. Output files: see `explore.result`."""
    pile, embedded = _pile(config, job)
    chosen_points = stratified(pile.kinds(), config.sample, config.seed)
    fitted = np.zeros(len(pile.rows), dtype=bool)
    fitted[chosen_points] = True
    layout_key = _layout_key(config, job, pile, fitted, embedded)
    if twin := _find_twin(job, layout_key):
        earlier = Layout.read(twin)
        coordinates, cluster = np.array(earlier.coordinates), np.array(earlier.cluster)
        clusters = read(twin, MapResult).clusters
        job.context.note(f"The map has the same sentences as run {twin.id}, so the layout of that run is reused.")
    else:
        job.context.part(3, PARTS, "the layout")
        layout = _Layout.make(config, job, pile.vectors_at(chosen_points))
        job.context.part(4, PARTS, "the other sentences and the topics")
        coordinates, cluster = _place_all(config, job, pile, fitted, layout)
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
    """Return a hash of all inputs of the layout: sentences, vectors and options. The selection is not one of them."""
    how = config.model_dump(mode="json", include={"dimensions", "neighbours", "min_distance", "clusters", "fast"})
    points = sha256(pile.rows.astype(np.int64).tobytes() + fitted.tobytes()).hexdigest()
    how |= {"points": points, "task_points": pile.n_task}
    store = RunStore(job.home)
    vectors = {role: store.get(run_id).manifest.key for role, run_id in embedded.items()}
    return run_key("map", how, vectors, seed=config.seed, code_version=RESULTS_VERSION)


def _find_twin(job: Job, layout_key: str) -> Run | None:
    """Return a finished `map` run whose layout has this key, or None."""
    maps = (run for run in RunStore(job.home).list("map") if run.id != job.context.run.id)
    return next(
        (run for run in maps if run.state().state == "succeeded" and read(run, MapResult).layout == layout_key), None
    )


def _pile(config: MapConfig, job: Job) -> tuple[Pile, dict[str, str]]:
    """Embed both corpora and sample the points of the map. Return the points, and {role: id of the `embed` run}.

    Errors: ConfigError.
    """
    store = RunStore(job.home)
    select = store.get(config.selection)
    if select.manifest.kind != "select":
        raise ConfigError(f"selection: {select.id} is a {select.manifest.kind} run; give a finished select run.")
    result, inputs = read(select, SelectResult), select.manifest.inputs
    task, domain = job.corpus(inputs["task"]), job.corpus(inputs["domain"])
    options = {name: select.manifest.config[name] for name in EncoderOptions.model_fields}
    score = store.get(result.score_run)
    runs = {}
    for number, (role, corpus) in enumerate((("task", task), ("domain", domain)), 1):
        job.context.part(number, PARTS, f"the vectors of {corpus.name}")
        some = role == "domain" and score.manifest.kind == vectors.CASCADE and not STRATEGIES[result.strategy].models
        runs[role] = score if some else job.child("embed", corpus=corpus.fingerprint, **options)
    of_domain, norms = vectors.read_any(runs["domain"], len(domain), score.manifest.config["options"])
    shown = np.arange(len(domain))
    if runs["domain"] is score:
        shown = np.flatnonzero(norms)
        job.context.note(
            f"The map shows the {len(shown):,} sentences of {domain.name} that have vectors, and no others."
        )
    chosen = np.zeros(len(domain), dtype=bool)
    chosen[scores.read_rows(select)] = True
    kinds = np.concatenate([np.zeros(len(task), dtype=np.int64), 2 - chosen[shown]])
    everything = np.concatenate([np.arange(len(task)), shown])
    taken = stratified(kinds, config.limit, config.seed)
    if len(taken) < len(kinds):
        job.context.note(f"{len(taken):,} of {len(kinds):,} sentences are on the map, in equal shares of each class.")
    pile = Pile(
        task=task,
        domain=domain,
        vectors=(vectors.read(runs["task"])[0], of_domain),
        chosen=chosen,
        scores=scores.read_values(score),
        rows=everything[taken],
        n_task=int(np.searchsorted(taken, len(task))),
    )
    return pile, {role: run.id for role, run in runs.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Layout of the points that UMAP was fitted on.

    mean, axes: see `Pca`. points: the points after PCA, (m, k). coordinates: their positions on the map, (m, c).
    centres: centres of the topics after PCA, (t, k).
    """

    mean: FloatArray
    axes: FloatArray
    points: FloatArray
    coordinates: FloatArray
    centres: FloatArray

    @classmethod
    def make(cls, config: MapConfig, job: Job, vectors: FloatArray) -> "_Layout":
        """Fit and store the layout. If an earlier attempt stored it, read it, because `fast` is not deterministic."""
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
        seed=None if config.fast else short_seed(config.seed),
        report=report,
    )
    report.stage("finding topics")
    from sklearn.cluster import KMeans

    # k-means needs at least as many distinct points as clusters.
    k = min(config.clusters, len(np.unique(points, axis=0)))
    centres = KMeans(k, n_init=1, random_state=short_seed(config.seed)).fit(points).cluster_centers_
    return {"mean": pca.mean, "axes": pca.axes, "points": points, "coordinates": coordinates, "centres": centres}


def _place_all(
    config: MapConfig, job: Job, pile: Pile, fitted: BoolArray, layout: _Layout
) -> tuple[FloatArray, IntArray]:
    """Return coordinates (c, n) and topics (n,) of all points.

    A point that UMAP was not fitted on gets a position between its nearest fitted points.
    """
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


def name_topics(pile: Pile, points: IntArray, cluster: IntArray, report: Reporter) -> list[Topic]:
    """Return name and size of each topic. A name consists of words that are over-represented in the fitted points."""
    kinds = cluster[points]
    holding: list[Counter[str]] = [Counter() for _ in range(int(cluster.max()) + 1)]
    split = int(np.searchsorted(points, pile.n_task))
    for corpus, part, kind in (
        (pile.task, pile.rows[points[:split]], kinds[:split]),
        (pile.domain, pile.rows[points[split:]], kinds[split:]),
    ):
        for start in range(0, len(part), BLOCK):
            report.check()
            sentences = corpus.take(part[start : start + BLOCK])
            for topic, sentence in zip(kind[start : start + BLOCK].tolist(), sentences, strict=True):
                holding[topic].update(count_words([sentence.text]).keys())
    counted, sizes = (np.bincount(part, minlength=len(holding)).tolist() for part in (kinds, cluster))
    words = topic_words(holding, counted)
    return [Topic(name=", ".join(name) or "mixed", size=size) for name, size in zip(words, sizes, strict=True)]


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
