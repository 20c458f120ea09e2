"""`queue`: the sentences of D_C whose labels are expected to help most (SOURCES.md, Labelling queue).

With a tagger, sentences are ordered by similarity to T_C plus the tagger's uncertainty, both standardised. A sentence
that resembles earlier ones moves down (maximal marginal relevance). A sentence is left out if its longest entity is
also the longest entity of an earlier sentence. Without a tagger, the sentences most similar to T_C are clustered, and
the queue has the sentence nearest to the centre of each cluster. Suggestions are the entities that the tagger, a list
of names or a reference variant (`suggest.py`) finds. Suggestions of lists and reference variants do not change the
order.

artifacts/queue.jsonl   one sentence per line: row of D_C, id, similarity, uncertainty, [[start, end, type], ...]
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import field_validator, model_validator

from core.config import option
from core.corpora import hygiene
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.dictionary.dictionary import resolved
from core.encoders import vectors
from core.errors import ConfigError, CorpusError
from core.files import write_atomic
from core.importing.audit import Flagging
from core.kind import About, Job, Kind
from core.labelling import answers, suggest
from core.models.encoder import encoder_options
from core.paths import home
from core.results import FloatArray, IntArray
from core.runs.run import Run
from core.runs.store import RunStore
from core.selection import involved
from core.selection.result import Scored, withheld_flags
from core.selection.score import ScoreConfig
from core.selection.select import mmr
from core.shown import count
from core.stats.draws import short_seed
from core.tagging.finetune import model_folder
from core.tagging.predict import ModelConfig
from core.text.cut import over_tokens, recut
from core.text.names import Dictionary
from core.text.sentence import Entity, Prediction, Sentence
from core.text.words import fold
from core.training.on_device import on_device

# Number of most similar sentences that are considered: POOL times the length of the queue, but at least LEAST.
POOL, LEAST = 40, 1000
# Number of sentences that are clustered without a tagger, as a multiple of the length of the queue.
CLUSTERED = 10
# Weight of a sentence's score in maximal marginal relevance. Dissimilarity to earlier sentences has weight 0.3.
TRADE = 0.7
FILE = "queue.jsonl"


class QueueConfig(ScoreConfig):
    """Options of a `queue` run: those of a `score` run, the tagger, the suggestions, and the number of sentences."""

    model: str = option(
        "", "Tagger that makes suggestions and measures uncertainty: a fine-tuning run, or a model folder."
    )
    names: tuple[str, ...] = option(
        (),
        "Labelled corpora whose names are suggested instead of the tagger's entities, such as lists of names or the "
        "training set.",
        corpus=True,
    )
    suggest: str = option(
        "",
        "Finished dictionary, zero-shot or llm run. The entities that it finds are suggested instead of "
        "the tagger's entities.",
    )
    allow_host: str = option(
        "",
        "Host of the language model of `suggest`, if it is another computer. Queued sentences are sent to this host.",
    )
    n: int = option(25, "Sentences to label.", unit="sentences", ge=1, le=1000)
    answered: tuple[int, ...] = option((), "Rows of D_C that were answered in earlier queues.", hidden=True)
    tagger: str = option("", "Hash of the tagger, if it is a folder.", hidden=True)

    def settled(self) -> Self:
        """Return the options with the tagger's hash, and with the rows of D_C that were answered in earlier queues.

        These rows are not queued again. Errors: those of `suggest.source`; ModelError if the tagger is missing.
        """
        tagger = ModelConfig(model=self.model).settled().weights if self.model else ""
        host = suggest.source(self.suggest, self.allow_host, home())[1] if self.suggest else ""
        return (
            super()
            .settled()
            .model_copy(update={"answered": answered_rows(self.domain), "allow_host": host, "tagger": tagger})
        )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.suggest and self.names:
            raise ConfigError("names, suggest: only one of them can make the suggestions; give one.")
        if self.allow_host and not self.suggest:
            raise ConfigError("allow_host: without suggest, no text is sent to another computer; leave the option out.")
        return self

    @field_validator("model", "suggest")
    @classmethod
    def _stripped(cls, reference: str) -> str:
        return reference.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A sentence of the queue. row: its row in D_C. similarity: its score by the strategy, in the strategy's unit.

    uncertainty: 1 minus the probability of the tagger's best tags, per token; 0 without a tagger. entities: the
    suggestions; () in a `draw` run. why: reasons why the labels may be wrong; () except in a `review` run.
    """

    row: int
    id: str
    similarity: float
    uncertainty: float
    entities: tuple[Entity, ...]
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueResult:
    """Result of a `queue` or `draw` run. of: number of sentences that were considered.

    unit: unit of the similarity. types: entity types that suggestions can have.
    """

    sentences: int
    of: int
    unit: str
    types: tuple[str, ...]


def answered_rows(domain: str) -> tuple[int, ...]:
    """Return the rows of D_C that were answered in earlier queues of this project, in ascending order.

    If the file of a queue is damaged, only its sentences up to the damage are known.
    """
    rows = set[int]()
    mark = Library(home()).find(domain).fingerprint
    for run in RunStore(home()).list("queue", state="succeeded"):
        if run.manifest.inputs["domain"] == mark and (latest := answers.read(run.path).latest):
            with suppress(CorpusError):
                for place, queued in enumerate(read(run)):
                    rows |= {queued.row} if place in latest else set()
    return tuple(sorted(rows))


def run(config: QueueConfig, job: Job) -> QueueResult:
    """Score D_C, let the tagger predict the most similar sentences, and put the best ones into a queue."""
    if config.model:
        model_folder(config.model, job)  # A run without a tagger is refused before D_C is scored, which may take hours.
    held_out = tuple(dict.fromkeys(filter(None, (*config.holdout, config.dev))))
    audit = job.child("audit", corpus=config.domain, held_out=held_out, **Flagging().model_dump())
    given = config.model_dump(include=set(ScoreConfig.model_fields)) | {"holdout": held_out}
    trains = any("ner" in each.models for each in involved(config.strategy, config.options))
    given["dev"] = config.dev if trains else ""
    score = job.child("score", **given)
    scored = Scored.read(score, audit, job.library)
    eligible = scored.eligible(withheld_flags(()))
    job.context.stage("leaving out labelled sentences")
    pool = unlabelled(
        eligible[~np.isin(eligible, config.answered)],
        max(POOL * config.n, LEAST),
        scored.domain,
        [job.corpus(config.train)] if config.train else [],
    )
    if not len(pool):
        raise CorpusError(
            f"{scored.domain.name}: every sentence is a duplicate, labelled already, too short or too long. Import a "
            "larger domain corpus."
        )
    run = job.child("embed", corpus=config.domain, **encoder_options(config))
    job.context.stage("ordering the sentences")
    rows, sentences = vectors.read(run)[0][pool], list(scored.domain.take(pool))
    similar = scored.scores.values[pool]
    found = [Prediction(entities=(), confidence=())] * len(pool)
    doubts: FloatArray = np.zeros(len(pool))
    types: tuple[str, ...] = ()
    if config.model:
        found, doubts, types = _ask(config, job, scored.domain.tokens == "words", sentences)
        relevance = standardised(similar if scored.scores.prefer == "high" else -similar) + standardised(doubts)
        best = np.argsort(-relevance, kind="stable")
        spread = mmr(rows[best], relevance[best], "high", min(3 * config.n, len(best)), trade=TRADE, report=job.context)
        chosen = without_repeats(best[spread].tolist(), sentences, found)[: config.n]
    else:
        chosen = centres(rows[: CLUSTERED * config.n], config.n, seed=config.seed)
    picked, suggested = [sentences[i] for i in chosen], [found[i] for i in chosen]
    if config.suggest:
        suggested = suggest.predictions(config.suggest, config.allow_host, picked, job)
        types = tuple(sorted({entity.type for each in suggested for entity in each.entities}))
    elif config.names:
        known = Dictionary(resolved([job.corpus(mark) for mark in config.names])[0])
        suggested, types = [known.predict(sentence) for sentence in picked], tuple(sorted({*known.types.values()}))
    queued = [
        Queued(
            row=int(pool[i]),
            id=sentence.id,
            similarity=float(similar[i]),
            uncertainty=float(doubts[i]),
            entities=prediction.entities,
        )
        for i, sentence, prediction in zip(chosen, picked, suggested, strict=True)
    ]
    write(job.context.run, queued)
    return QueueResult(sentences=len(queued), of=len(pool), unit=scored.scores.unit, types=types)


def unlabelled(rows: IntArray, n: int, domain: Corpus, train: Sequence[Corpus]) -> IntArray:
    """Return the first `n` of `rows` whose sentences do not repeat a training sentence, by the rules for test leaks.

    Only as many rows as needed are compared. An audit of all of D_C would take a minute per million rows, after each
    change of the training set.
    """
    kept: IntArray = rows[:0]
    while train and len(rows) and len(kept) < n:
        some, rows = rows[:n], rows[n:]
        copied = hygiene.leaks([sentence.text for sentence in domain.take(some)], train)
        kept = np.concatenate([kept, some[~copied]])
    return (kept if train else rows)[:n]


def _ask(
    config: QueueConfig, job: Job, raw: bool, sentences: Sequence[Sentence]
) -> tuple[list[Prediction], FloatArray, tuple[str, ...]]:
    """Return the tagger's entities and uncertainty for each sentence, and the tagger's types.

    raw: True if Winnow cut D_C into tokens; the sentences are then cut again as in the tagger's training set.
    """
    from core.models.taggers import load_tagger

    with on_device(job, alone=False):
        job.context.stage("loading the tagger")
        tagger = load_tagger(Path(model_folder(config.model, job)))
        read = [recut(one, tagger.cut) for one in sentences] if raw and tagger.cut else sentences
        job.context.stage("asking the tagger")
        found, doubts = tagger.predict(read, job.context), tagger.doubts(read, job.context)
    pairs = zip(found, read, sentences, strict=True)
    return [over_tokens(each, cut.tokens, own.tokens) for each, cut, own in pairs], doubts, tagger.types


def standardised(values: FloatArray) -> FloatArray:
    """Return the values minus their mean, divided by their standard deviation; zeros if all values are equal."""
    spread = float(values.std())
    return (values - values.mean()) / spread if spread else np.zeros(len(values))


def without_repeats(order: Sequence[int], sentences: Sequence[Sentence], found: Sequence[Prediction]) -> list[int]:
    """Return `order` without sentences whose longest entity is also the longest entity of an earlier sentence."""
    seen, kept = set[str](), list[int]()
    for i in order:
        name = _main_entity(sentences[i], found[i].entities)
        if name is None or name not in seen:
            kept.append(i)
            seen |= {name} if name else set()
    return kept


def _main_entity(sentence: Sentence, entities: Sequence[Entity]) -> str | None:
    if not entities:
        return None
    longest = max(entities, key=lambda entity: (entity.end - entity.start, -entity.start))
    return fold(" ".join(sentence.tokens[longest.start : longest.end])) or None


def centres(rows: FloatArray, n: int, *, seed: int) -> list[int]:
    """Group the rows into `n` clusters. Return the index of the row nearest to each centre, best score first.

    rows: `(m, d)` unit vectors, best score first. If fewer than `n` rows are distinct, equal or nearly equal rows fill
    the rest of the result.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = np.ascontiguousarray(rows, dtype=np.float32)
    k = min(n, len(np.unique(rows, axis=0)))
    if k == len(rows):
        return list(range(k))
    with warnings.catch_warnings():
        # Clusters are empty if rows differ only by rounding errors, as vectors of equal pieces in two batches do.
        warnings.simplefilter("ignore", ConvergenceWarning)
        clusters = KMeans(k, n_init=1, random_state=short_seed(seed)).fit(rows)
    distances = ((rows - clusters.cluster_centers_[clusters.labels_]) ** 2).sum(1)
    nearest = [
        min(np.flatnonzero(clusters.labels_ == i), key=lambda row: (distances[row], row))
        for i in np.unique(clusters.labels_)
    ]
    rest = [row for row in range(len(rows)) if row not in nearest]
    return sorted(map(int, nearest)) + rest[: n - len(nearest)]


def write(run: Run, queued: Sequence[Queued]) -> None:
    """Write the sentences of a queue to the run's artifacts."""
    lines = (
        json.dumps({**asdict(each), "entities": [[*asdict(e).values()] for e in each.entities]}) for each in queued
    )
    write_atomic(run.artifacts / FILE, "".join(f"{line}\n" for line in lines).encode())


def read(run: Run) -> Iterator[Queued]:
    """Yield the sentences of a queue, in order. Errors: CorpusError if the file is damaged."""
    try:
        for line in (run.artifacts / FILE).read_text("utf-8").splitlines():
            row = json.loads(line)
            entities = tuple(Entity(start=start, end=end, type=type) for start, end, type in row["entities"])
            yield Queued(**{**row, "entities": entities, "why": tuple(map(str, row.get("why", ())))})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CorpusError(f"run {run.id}: its queue cannot be read; start a new run.") from error


def _title(run: About) -> str:
    return f"Queue {count(run.config['n'], 'sentence')} of {run.corpus(run.config['domain'])} to label"


KIND = Kind(
    "queue",
    QueueConfig,
    run,
    QueueResult,
    title=_title,
    outcome=lambda result, _: f"{count(result.sentences, 'sentence')} to label, from the {result.of:,} most similar",
    page="Label",
    opens=True,
    command=("label", "next"),
)
