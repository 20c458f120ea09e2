"""`skl`: score every sentence of an assisting labelled corpus by how far its entities drift from the primary corpus.

SKL is the symmetric KL divergence of tag distributions (Murthy et al. 2018, 2). An assisting corpus (another language,
hospital or firm) helps if it gives the shared entities the same types as the primary corpus. In each corpus, the counts
of an entity's types become a distribution. The divergence of the two distributions is the entity's drift. A sentence's
score is the mean divergence of its shared entities; 0 means that the corpora agree. A sentence is kept if its score is
below a threshold. The scores do not depend on the threshold, so one run is enough for all thresholds.

The paper does not state which unit is counted or which probability an unseen type gets. Both are options here; the
defaults reproduce the counts printed in the paper (SOURCES.md, SKL).

artifacts/  scores.parquet  sentence (row of the assisting corpus), id, score,
                            overlapping (occurrences of shared entities in the sentence)
            drift.parquet   entity, skl, and its count for each type: `primary TYPE`, `assisting TYPE`
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import field_validator

from core.config import Config, option
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.corpora.writers import write_conll
from core.errors import ConfigError, CorpusError
from core.files import read_back
from core.kind import Job, Kind
from core.models.networks import ON_ENCODER
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray
from core.runs.store import Run
from core.shown import count
from core.text.schemes import Scheme
from core.text.sentence import Entity, Sentence

# Thresholds of Murthy et al. 2018, Fig. 2.
SWEEP = tuple(range(1, 10))
# An entity with an SKL above this value counts as drifting (Murthy et al. 2018, 4.1).
DRIFTS = 1.0
_SCORES, _DRIFT = "scores.parquet", "drift.parquet"

# {entity: {type: count}}
Counts = Mapping[str, Counter[str]]
# {type: new name}; "" removes the type.
TypeMap = Mapping[str, str]


class SklOptions(Config):
    """Options of SKL: what counts as an entity, and how counts become a divergence."""

    unit: Literal["token", "surface"] = option(
        "token", "Unit to compare, in lower case. token: each token of an entity. surface: whole entities."
    )
    floor: float = option(1e-4, "Minimum probability of a type, before normalisation.", gt=0, lt=1)
    add_k: float = option(0.0, "Number added to the count of every type, instead of the floor; 0: use the floor.", ge=0)
    log: Literal["natural", "base2"] = option("natural", "Logarithm: divergence in nats or in bits.")
    min_count: int = option(
        1, "Minimum number of occurrences in each corpus; an entity with fewer does not count as shared.", ge=1
    )
    shrinkage: float = option(
        0.0,
        "Number of pseudo-counts added to each entity, so that a rare entity gets a smaller divergence. They are "
        "distributed over types as in all entities together.",
        ge=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drift:
    """Entities that two labelled corpora share, and the divergence of each entity's types.

    names: the m shared entities in lower case, sorted. types: the t types that occur in either corpus. primary,
    assisting: counts per entity and type, `(m, t)`. skl: `(m,)`, divergence of each entity's types; 0 if the corpora
    agree. seen: number of different entities in the primary corpus and in the assisting corpus, shared or not.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    primary: IntArray
    assisting: IntArray
    skl: FloatArray
    seen: tuple[int, int]


def units(sentence: Sentence, unit: str) -> Iterator[tuple[str, Entity]]:
    """Yield the units that SKL counts, each as (text in lower case, entity).

    unit: `token` for each token of an entity, `surface` for whole entities.
    """
    for entity in sentence.entities or ():
        if unit == "surface":
            yield " ".join(sentence.tokens[entity.start : entity.end]).lower(), entity
            continue
        for place in range(entity.start, entity.end):
            # A token has the type of its entity. `China` in the name of an organisation counts as an organisation
            # (SOURCES.md, SKL).
            yield sentence.tokens[place].lower(), Entity(start=place, end=place + 1, type=entity.type)


def count_types(
    sentences: Iterable[Sentence], unit: str, into: dict[str, Counter[str]] | None = None
) -> dict[str, Counter[str]]:
    """Count how often each entity has each type in `sentences`. Return {entity: {type: count}}.

    If `into` is given, add the counts to it, and return `into`.
    """
    counts = {} if into is None else into
    for sentence in sentences:
        for name, entity in units(sentence, unit):
            counts.setdefault(name, Counter())[entity.type] += 1
    return counts


def renamed(sentence: Sentence, types: TypeMap) -> Sentence:
    """Return the sentence with renamed types. If the new name of a type is "", its entities are removed."""
    if not types or not sentence.entities:
        return sentence
    entities = (replace(entity, type=types.get(entity.type, entity.type)) for entity in sentence.entities)
    return replace(sentence, entities=tuple(entity for entity in entities if entity.type))


def parse_map(pairs: Sequence[str]) -> dict[str, str]:
    """Convert pairs such as `("PER=person", "MISC=")` to {old type: new type}.

    Errors: ConfigError for a pair without "=", or a type with two new names.
    """
    types: dict[str, str] = {}
    for pair in pairs:
        old, sign, new = (part.strip() for part in pair.partition("="))
        if not (old and sign):
            raise ConfigError(
                f"type_map: {pair!r} is not OLD=NEW; write for example PER=person, or MISC= to leave MISC out."
            )
        if types.setdefault(old, new) != new:
            raise ConfigError(
                f"type_map: {old!r} is mapped to two types, {types[old]!r} and {new!r}; keep one of them."
            )
    return types


def compare(primary: Counts, assisting: Counts, options: SklOptions) -> Drift:
    """Return the entities that both corpora share, with their SKL. SKL is the same if the two corpora are swapped."""
    types = sorted({kind for counts in (primary, assisting) for counter in counts.values() for kind in counter})
    # Sort the entities, so that the rows do not depend on the order of sentences.
    shared = sorted(
        name
        for name in primary.keys() & assisting.keys()
        if min(primary[name].total(), assisting[name].total()) >= options.min_count
    )
    primary_table, assisting_table = _table(primary, shared, types), _table(assisting, shared, types)
    average = (primary_table + assisting_table).sum(axis=0)
    p, q = distributions(primary_table, options, average), distributions(assisting_table, options, average)
    return Drift(
        names=tuple(shared),
        types=tuple(types),
        primary=primary_table,
        assisting=assisting_table,
        skl=symmetric_kl(p, q, options.log),
        seen=(len(primary), len(assisting)),
    )


def _table(counts: Counts, names: Sequence[str], types: Sequence[str]) -> IntArray:
    table: IntArray = np.array([[counts[name][kind] for kind in types] for name in names], dtype=np.int64)
    return table.reshape(len(names), len(types))


def distributions(counts: IntArray, options: SklOptions, average: IntArray | None = None) -> FloatArray:
    """Return the probabilities of counts `(m, t)`. All are above 0, and each row sums to 1.

    average: `(t,)` counts of all entities together. The option `shrinkage` pulls each row towards their distribution.
    """
    raised: FloatArray = counts + options.add_k
    if options.shrinkage:
        assert average is not None
        raised = raised + options.shrinkage * average / max(average.sum(), 1)
    shares: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    if not options.add_k:
        # Apply the floor after the division, so that an unseen type has the same probability for rare and frequent
        # entities.
        shares = np.maximum(shares, options.floor)
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def symmetric_kl(p: FloatArray, q: FloatArray, log: str = "natural") -> FloatArray:
    """Return (KL(p||q) + KL(q||p)) / 2 of each pair of rows, `(m,)` (Murthy et al. 2018, eq. 1).

    p, q: probabilities `(m, t)` above 0. log: natural or base2.
    """
    logs = np.log2 if log == "base2" else np.log
    # One product gives both directions: p log(p/q) + q log(q/p) = (p - q)(log p - log q).
    skl: FloatArray = ((p - q) * (logs(p) - logs(q))).sum(axis=1) / 2
    return skl


def score(sentences: Iterable[Sentence], drift: Drift, unit: str) -> tuple[FloatArray, IntArray]:
    """Return the score of each sentence, and its number of occurrences of shared entities, both `(n,)`.

    The score is the mean SKL over these occurrences; 0 if the sentence has none.
    """
    values = dict(zip(drift.names, drift.skl.tolist(), strict=True))
    skls = [[values[name] for name, _ in units(sentence, unit) if name in values] for sentence in sentences]
    overlaps = np.array([len(sentence_skls) for sentence_skls in skls], dtype=np.int64)
    return np.array([sum(sentence_skls) for sentence_skls in skls]) / np.maximum(overlaps, 1), overlaps


def kept(scores: FloatArray, threshold: float) -> BoolArray:
    """Return a mask `(n,)` of scores below the threshold. Threshold 0 keeps nothing (Murthy et al. 2018, Fig. 2)."""
    mask: BoolArray = scores < threshold
    return mask


class SklConfig(SklOptions):
    """Options of an `skl` run: the two corpora, and which types of the two mean the same."""

    primary: str = option(..., "Your labelled corpus.", corpus=True)
    assisting: str = option(..., "Another labelled corpus to borrow sentences from.", corpus=True)
    type_map: tuple[str, ...] = option(
        (), "OLD=NEW renames a type in both corpora, if they name it differently (PER=person). OLD= leaves it out."
    )

    @field_validator("type_map")
    @classmethod
    def _type_map(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        """Return the OLD=NEW pairs sorted and without blanks. Errors: ConfigError."""
        return tuple(sorted(f"{old}={new}" for old, new in parse_map(pairs).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityCounts:
    """Number of different entities in each corpus, and number of shared entities with an SKL above `DRIFTS`."""

    primary: int
    assisting: int
    drifting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SklResult:
    """Result of an `skl` run.

    of: number of sentences in the assisting corpus. overlapping: number of different shared entities. without_overlap:
    number of sentences without a shared entity. kept_below: {threshold: number of kept sentences}. types_of_one_corpus:
    {corpus name: types that only this corpus has}.
    """

    of: int
    overlapping: int
    entities: EntityCounts
    without_overlap: int
    kept_below: Mapping[str, int]
    types_of_one_corpus: Mapping[str, Sequence[str]]


def run(config: SklConfig, job: Job) -> SklResult:
    """Count the entities of both corpora, compare their types, and score the sentences of the assisting corpus."""
    primary, assisting = job.corpus(config.primary), job.corpus(config.assisting)
    types = parse_map(config.type_map)
    alone = _check(primary, assisting, types)
    if unknown := sorted(types.keys() - primary.types.keys() - assisting.types.keys()):
        job.context.note(f"Types of the type map that neither corpus has: {', '.join(unknown)}. Check their spelling.")
    for corpus, names in alone.items():
        job.context.note(
            f"{', '.join(names)}: only {corpus} has {'this type' if len(names) == 1 else 'these types'}, so their "
            "entities get the largest possible drift; map the types, or leave them out with OLD=."
        )
    job.context.part(1, 2, "the types of the entities in both corpora")
    drift = _drift(config, primary, assisting, types, job.context)
    job.context.part(2, 2, f"the sentences of {assisting.name}")
    job.context.stage(f"scoring {assisting.name}")
    parts = [score(block, drift, config.unit) for block in _blocks(assisting, types, job.context)]
    scores, overlaps = (np.concatenate(part) for part in zip(*parts, strict=True))
    write(job.context.run, assisting.ids(), scores, overlaps, drift)
    drifting = int((drift.skl > DRIFTS).sum())
    return SklResult(
        of=len(assisting),
        overlapping=len(drift.names),
        entities=EntityCounts(primary=drift.seen[0], assisting=drift.seen[1], drifting=drifting),
        without_overlap=int((overlaps == 0).sum()),
        kept_below={str(step): int(kept(scores, step).sum()) for step in SWEEP},
        types_of_one_corpus=alone,
    )


def _check(primary: Corpus, assisting: Corpus, types: TypeMap) -> dict[str, list[str]]:
    """Return {corpus: types that only this corpus has}. Errors: CorpusError if there is nothing to compare."""
    for corpus in (primary, assisting):
        if not corpus.types:
            what = "has no entity" if corpus.labelled else "is not labelled"
            raise CorpusError(
                f"{corpus.name}: {what}; symmetric KL divergence (SKL) compares labelled corpora, so give one "
                "with entities."
            )
    named = [{types.get(kind, kind) for kind in corpus.types} - {""} for corpus in (primary, assisting)]
    if not named[0] & named[1]:
        of_primary, of_assisting = (", ".join(sorted(each)) or "none" for each in named)
        raise CorpusError(
            f"{assisting.name}: shares no type with {primary.name} ({of_assisting} against {of_primary});"
            " give a type map for types that mean the same, for example PER=person."
        )
    unshared = {primary.name: sorted(named[0] - named[1]), assisting.name: sorted(named[1] - named[0])}
    return {corpus: names for corpus, names in unshared.items() if names}


def check_trainable(primary: Corpus, types: TypeMap) -> None:
    """Raise a ConfigError if the map renames a type of the primary corpus.

    Training uses the primary corpus unchanged, so its types would not match the renamed ones.
    """
    if moved := [f"{name}={types[name]}" for name in primary.types if types.get(name, name) not in ("", name)]:
        raise ConfigError(
            f"type_map: {', '.join(moved)} renames a type of {primary.name}, but training uses that corpus unchanged; "
            "rename only types of the assisting corpus, to types of the primary corpus."
        )


def _drift(config: SklConfig, primary: Corpus, assisting: Corpus, types: TypeMap, report: Reporter) -> Drift:
    primary_counts = _counts(config, primary, types, report)
    assisting_counts = _counts(config, assisting, types, report)
    drift = compare(primary_counts, assisting_counts, config)
    if not drift.names:
        least = f" at least {config.min_count} times" if config.min_count > 1 else ""
        raise CorpusError(
            f"{assisting.name}: shares no entity{least} with {primary.name}, so all sentences get the same score;"
            " use the whole corpus, or choose a corpus with the same entities."
        )
    return drift


def _counts(config: SklConfig, corpus: Corpus, types: TypeMap, report: Reporter) -> Counts:
    report.stage(f"counting the entities of {corpus.name}")
    table: dict[str, Counter[str]] = {}
    for block in _blocks(corpus, types, report):
        count_types(block, config.unit, table)
    return table


def _blocks(corpus: Corpus, types: TypeMap, report: Reporter) -> Iterator[list[Sentence]]:
    done = 0
    for block in corpus.batches():
        yield [renamed(sentence, types) for sentence in block]
        done += len(block)
        report.progress(done, len(corpus), "sentences")
        report.check()


def write(run: Run, ids: IntArray, scores: FloatArray, overlaps: IntArray, drift: Drift) -> None:
    """Write the scores and the drift table as Parquet.

    ids, scores, overlaps: `(n,)`, one per sentence of the assisting corpus. drift: the shared entities.
    """
    columns = {
        "sentence": np.arange(len(scores)),
        "id": [f"{number:016x}" for number in ids.tolist()],
        "score": scores,
        "overlapping": overlaps,
    }
    pq.write_table(pa.table(columns), run.artifacts / _SCORES)
    entities: dict[str, object] = {"entity": list(drift.names), "skl": drift.skl}
    for side, table in (("primary", drift.primary), ("assisting", drift.assisting)):
        entities |= {f"{side} {name}": table[:, index] for index, name in enumerate(drift.types)}
    pq.write_table(pa.table(entities), run.artifacts / _DRIFT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRow:
    """One shared entity.

    primary, assisting: counts per type in each corpus, as text. in_primary, in_assisting: total count in each corpus.
    """

    entity: str
    skl: float
    primary: str
    assisting: str
    in_primary: int
    in_assisting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLabels:
    """Assisting sentences to train on.

    assisting: fingerprint of a corpus that has only these sentences. assisting_types: all types of the assisting
    corpus, if these sentences lack some of them.
    """

    assisting: str
    assisting_types: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, object]:
        """Options that make `finetune` train on the assisting sentences too."""
        types = {"assisting_types": self.assisting_types} if self.assisting_types else {}
        return {"assisting": self.assisting, **types}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One entity in an assisting sentence that also occurs in the primary corpus.

    type: its type in this sentence. usual: its most frequent type in the primary corpus.
    """

    start: int
    end: int
    type: str
    usual: str
    skl: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assisted:
    """A finished `skl` run.

    scores: `(n,)`, one per sentence of the assisting corpus. overlaps: `(n,)`, number of occurrences of shared entities
    in each sentence. names: the m shared entities. types: the t types that occur in either corpus. skl: `(m,)`, SKL of
    each shared entity. counts: {"primary" or "assisting": counts per entity and type, `(m, t)`}.
    """

    run: str
    primary: Corpus
    assisting: Corpus
    type_map: TypeMap
    unit: str
    scores: FloatArray
    overlaps: IntArray
    names: tuple[str, ...]
    types: tuple[str, ...]
    skl: FloatArray
    counts: Mapping[str, IntArray]

    @classmethod
    def read(cls, run: Run, library: Library) -> Self:
        """Return a finished run, read from its files.

        If one of its corpora was removed, this still works. Only reading sentences of that corpus raises CorpusError.
        """
        with read_back(run.artifacts, _SCORES, _DRIFT):
            scores, drift = (pq.read_table(run.artifacts / name) for name in (_SCORES, _DRIFT))
        types = [name.removeprefix("primary ") for name in drift.column_names if name.startswith("primary ")]
        return cls(
            run=run.id,
            primary=library.recall(run.manifest.inputs["primary"]),
            assisting=library.recall(run.manifest.inputs["assisting"], len(scores)),
            type_map=parse_map(run.manifest.config["type_map"]),
            unit=run.manifest.config["unit"],
            scores=scores["score"].to_numpy(),
            overlaps=scores["overlapping"].to_numpy(),
            names=tuple(drift["entity"].to_pylist()),
            types=tuple(types),
            skl=drift["skl"].to_numpy(),
            counts={
                side: np.column_stack([drift[f"{side} {name}"].to_numpy() for name in types])
                for side in ("primary", "assisting")
            },
        )

    def kept(self, threshold: float) -> IntArray:
        """Return the rows `(k,)` of the sentences with a score below the threshold, in order."""
        return np.flatnonzero(kept(self.scores, threshold))

    def sentences(self, rows: IntArray) -> list[Sentence]:
        """Return the sentences at `rows` of the assisting corpus, with the types renamed by the type map."""
        return [renamed(sentence, self.type_map) for sentence in self.assisting.take(rows)]

    def marks(self, sentence: Sentence) -> list[Mark]:
        """Return the shared entities of `sentence`. Get it from the method `sentences`, which renames its types."""
        rows = {name: row for row, name in enumerate(self.names)}
        usual = self.counts["primary"].argmax(axis=1)
        return [
            Mark(
                start=entity.start,
                end=entity.end,
                type=entity.type,
                usual=self.types[usual[row]],
                skl=float(self.skl[row]),
            )
            for name, entity in units(sentence, self.unit)
            if (row := rows.get(name)) is not None
        ]

    def table(self) -> list[DriftRow]:
        """Return one row per shared entity, largest SKL first. Among equal SKLs, frequent entities come first."""
        primary, assisting = self.counts["primary"], self.counts["assisting"]
        often = np.minimum(primary.sum(axis=1), assisting.sum(axis=1))
        return [
            DriftRow(
                entity=self.names[row],
                skl=float(self.skl[row]),
                primary=self._types_in_words(primary[row]),
                assisting=self._types_in_words(assisting[row]),
                in_primary=int(primary[row].sum()),
                in_assisting=int(assisting[row].sum()),
            )
            # Round SKL, so that entities whose SKL differs only by rounding errors are sorted by frequency.
            for row in np.lexsort((-often, -self.skl.round(6))).tolist()
        ]

    def _types_in_words(self, counts: IntArray) -> str:
        order = np.argsort(-counts, kind="stable")
        return ", ".join(f"{self.types[column]} {counts[column]}" for column in order if counts[column])

    def seal(self, threshold: float, library: Library) -> Corpus:
        """Store the kept sentences as a corpus. If all are kept, return the whole assisting corpus (see `mapped`).

        Errors: ConfigError if none is kept.
        """
        rows = _some(self.kept(threshold), threshold)
        if len(rows) == len(self.assisting):
            return mapped(self.assisting, self.primary, self.type_map, library)
        return library.seal(
            iter(self.sentences(rows)),
            name=f"{self.assisting.name} for {self.primary.name}, SKL below {threshold:g}",
            origin={"run": self.run, "from": self.assisting.fingerprint, "threshold": threshold},
            labelled=True,
        )

    def shared_labels(self, threshold: float, network: str, library: Library) -> SharedLabels:
        """Return the kept sentences as training data for a network.

        Errors: ConfigError if none is kept. ConfigError or CorpusError if the network cannot learn from them.
        """
        corpus = self.seal(threshold, library)
        check_assisting(network, corpus, self.primary.types)
        types = {self.type_map.get(name, name) for name in self.assisting.types} - {""}
        more = network not in ON_ENCODER and types != set(corpus.types)
        return SharedLabels(assisting=corpus.fingerprint, assisting_types=tuple(sorted(types)) if more else ())

    def export(self, threshold: float, path: Path, scheme: Scheme = "iob2") -> int:
        """Write the kept sentences as CoNLL and return their number. Errors: ConfigError if none is kept."""
        return write_conll(self.sentences(_some(self.kept(threshold), threshold)), path, scheme)


def mapped(assisting: Corpus, primary: Corpus, types: TypeMap, library: Library) -> Corpus:
    """Return the assisting corpus with renamed types, or unchanged if the map renames none of its types."""
    if all(types.get(name, name) == name for name in assisting.types):
        return assisting  # storing it again would only duplicate the corpus under another name
    return library.seal(
        (renamed(sentence, types) for block in assisting.batches() for sentence in block),
        name=f"{assisting.name} for {primary.name}, all",
        origin={"from": assisting.fingerprint},
        labelled=True,
    )


def random_part(whole: Corpus, n: int, draw: int, network: str, library: Library) -> SharedLabels:
    """Draw `n` random sentences of an assisting corpus, as the baseline for a threshold that keeps `n` sentences."""
    if n >= len(whole):
        return SharedLabels(assisting=whole.fingerprint)
    rows = np.sort(np.random.default_rng(draw).choice(len(whole), n, replace=False))
    part = library.subset(
        whole, rows, name=f"{whole.name}, {n:,} at random, draw {draw}", origin={"from": whole.fingerprint}
    )
    more = network not in ON_ENCODER and set(whole.types) != set(part.types)
    return SharedLabels(assisting=part.fingerprint, assisting_types=tuple(sorted(whole.types)) if more else ())


def _some(rows: IntArray, threshold: float) -> IntArray:
    if not len(rows):
        raise ConfigError(
            f"threshold: no sentence has a symmetric KL divergence (SKL) below {threshold:g}; give a higher "
            "threshold, such as 1."
        )
    return rows


def check_assisting(network: str, corpus: Corpus, types: Collection[str]) -> None:
    """Raise an error if the network cannot learn from an assisting corpus.

    types: types of the training set. Errors: CorpusError, ConfigError.
    """
    if not corpus.types:
        raise CorpusError(
            f"{corpus.name}: has no labelled entity, so it cannot assist; give a labelled corpus, or a higher"
            " threshold."
        )
    if network in ON_ENCODER and (strange := sorted(set(corpus.types) - set(types))):
        raise ConfigError(
            f"assisting: {', '.join(strange)} {'is no type' if len(strange) == 1 else 'are no types'} of the"
            " training sentences; map or leave out types with skl's type map, or choose the network charcnn, which"
            " keeps the types of both corpora apart."
        )


KIND = Kind(
    "skl",
    SklConfig,
    run,
    SklResult,
    title=lambda run: f"Score {run.corpus(run.config['assisting'])} against {run.corpus(run.config['primary'])}",
    outcome=lambda result, _: (
        f"{result.entities.drifting:,} of {count(result.overlapping, 'shared entity', 'shared entities')}"
        f" drift (SKL above {DRIFTS:g})"
    ),
    page="Assisting",
    opens=True,
)
