"""What an `skl` run leaves, looked at: what a threshold keeps, which entities drift. Nothing is scored again.

artifacts/  scores.parquet  sentence (a row of the assisting corpus), id, score, overlapping
            drift.parquet   entity, skl, and how often it has each type: `primary TYPE`, `assisting TYPE`
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.assisting import skl
from core.assisting.skl import Drift, TypeMap
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.corpora.writers import write_conll
from core.errors import ConfigError, CorpusError
from core.files import read_back
from core.models.networks import ON_ENCODER
from core.results import FloatArray, IntArray
from core.runs.store import Run
from core.text.schemes import Scheme
from core.text.sentence import Sentence

_SCORES, _DRIFT = "scores.parquet", "drift.parquet"


def write(run: Run, ids: IntArray, scores: FloatArray, overlaps: IntArray, drift: Drift) -> None:
    """ids, scores, overlaps: `(n,)` of the assisting corpus's sentences."""
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
class EntityCounts:
    """Entities of each corpus, and how many of the shared ones drift."""

    primary: int
    assisting: int
    drifting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SklResult:
    """Result of an `skl` run.

    of: sentences of the assisting corpus. overlapping: entities that both corpora have. without_overlap: sentences that
    hold none of these. kept_below: sentences by threshold. types_of_one_corpus: by the corpus's name.
    """

    of: int
    overlapping: int
    entities: EntityCounts
    without_overlap: int
    kept_below: Mapping[str, int]
    types_of_one_corpus: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRow:
    """A shared entity. primary, assisting: its types and their times there, commonest first; in_...: times in all."""

    entity: str
    skl: float
    primary: str
    assisting: str
    in_primary: int
    in_assisting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLabels:
    """The sentences that a network may learn from too.

    assisting: the corpus's fingerprint. assisting_types: of what it is a part of, where that has others; else none.
    """

    assisting: str
    assisting_types: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, object]:
        """Options of `finetune`."""
        types = {"assisting_types": self.assisting_types} if self.assisting_types else {}
        return {"assisting": self.assisting, **types}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An entity of an assisting sentence that the primary corpus has too: `usual` is its commonest type there."""

    start: int
    end: int
    type: str
    usual: str
    skl: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assisted:
    """A finished `skl` run, read.

    scores: `(n,)` of the assisting corpus's sentences. overlaps: `(n,)` occurrences of shared entities in each.
    names, types, skl, counts: m entities, t types, `(m,)`, {"primary", "assisting"}: `(m, t)`.
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
        """Read a finished run. Of a removed corpus the numbers stay, and its sentences raise CorpusError."""
        with read_back(run.artifacts, _SCORES, _DRIFT):
            scores, drift = (pq.read_table(run.artifacts / name) for name in (_SCORES, _DRIFT))
        types = [name.removeprefix("primary ") for name in drift.column_names if name.startswith("primary ")]
        return cls(
            run=run.id,
            primary=library.recall(run.manifest.inputs["primary"]),
            assisting=library.recall(run.manifest.inputs["assisting"], len(scores)),
            type_map=skl.parse_map(run.manifest.config["type_map"]),
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
        """`(k,)` rows of the assisting corpus that are below the threshold, in order."""
        return np.flatnonzero(skl.kept(self.scores, threshold))

    def sentences(self, rows: IntArray) -> list[Sentence]:
        """The sentences at `rows`, their types named as the map says."""
        return [skl.renamed(sentence, self.type_map) for sentence in self.assisting.take(rows)]

    def marks(self, sentence: Sentence) -> list[Mark]:
        """The shared entities of one of `sentences`."""
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
            for name, entity in skl.units(sentence, self.unit)
            if (row := rows.get(name)) is not None
        ]

    def table(self) -> list[DriftRow]:
        """The drift table, farthest first, of those as far the more frequent first."""
        # Rounded below, so that frequency orders what differs by arithmetic noise alone.
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
            # Rounded: what drifts alike but for the last digits goes by how often it occurs.
            for row in np.lexsort((-often, -self.skl.round(6))).tolist()
        ]

    def _types_in_words(self, counts: IntArray) -> str:
        order = np.argsort(-counts, kind="stable")
        return ", ".join(f"{self.types[column]} {counts[column]}" for column in order if counts[column])

    def seal(self, threshold: float, library: Library) -> Corpus:
        """The kept sentences as a corpus of their own; all of them as `mapped` has it. Errors: ConfigError for none."""
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
        """The kept sentences, for a network to learn from too.

        Errors: ConfigError, CorpusError where none is kept or the network cannot learn from them.
        """
        corpus = self.seal(threshold, library)
        check_assisting(network, corpus, self.primary.types)
        types = {self.type_map.get(name, name) for name in self.assisting.types} - {""}
        more = network not in ON_ENCODER and types != set(corpus.types)
        return SharedLabels(assisting=corpus.fingerprint, assisting_types=tuple(sorted(types)) if more else ())

    def export(self, threshold: float, path: Path, scheme: Scheme = "iob2") -> int:
        """Write the kept sentences as CoNLL; how many there are. Errors: ConfigError where none is kept."""
        return write_conll(self.sentences(_some(self.kept(threshold), threshold)), path, scheme)


def mapped(assisting: Corpus, primary: Corpus, types: TypeMap, library: Library) -> Corpus:
    """All of an assisting corpus, its types named as the map says: itself where the map changes none of them."""
    if all(types.get(name, name) == name for name in assisting.types):
        return assisting  # sealed again, it would be the same content under another name
    return library.seal(
        (skl.renamed(sentence, types) for block in assisting.batches() for sentence in block),
        name=f"{assisting.name} for {primary.name}, all",
        origin={"from": assisting.fingerprint},
        labelled=True,
    )


def random_part(whole: Corpus, n: int, draw: int, network: str, library: Library) -> SharedLabels:
    """Draw as many sentences of a whole assisting corpus as a threshold keeps: what keeping those must beat."""
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
            f"threshold: no sentence has a symmetric KL divergence (SKL) below {threshold:g}; give more, such as 1."
        )
    return rows


def check_assisting(network: str, corpus: Corpus, types: Collection[str]) -> None:
    """types: of the training sentences. Errors: CorpusError, ConfigError where a network cannot learn from a corpus."""
    if not corpus.types:
        raise CorpusError(
            f"{corpus.name}: holds no labelled entity, so it cannot assist; give a labelled corpus, or a higher"
            " threshold."
        )
    if network in ON_ENCODER and (strange := sorted(set(corpus.types) - set(types))):
        raise ConfigError(
            f"assisting: {', '.join(strange)} {'is no type' if len(strange) == 1 else 'are no types'} of the"
            " training sentences; map or leave out types with skl's type map, or choose the network charcnn, which"
            " keeps them apart."
        )
