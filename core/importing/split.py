"""`split`: divide a corpus into train, dev and test, or T_C and D_C, by documents, sentences or an imported column.

Duplicates and near duplicates (`corpora.hygiene`) stay in one part (SOURCES.md, Splits).
"""

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import field_validator, model_validator

from core.config import Config, option
from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.importing.audit import Flagging
from core.importing.result import Part, SplitResult, read_audit
from core.kind import About, Job, Kind
from core.results import BoolArray, IntArray
from core.stats.draws import dealt, kept_in_smallest

USUAL_NAMES = {2: ("train", "test"), 3: ("train", "dev", "test")}
# Names of the two parts of a split by values: sentences with the given values, and all other sentences.
BY_VALUE = ("task", "domain")


class SplitConfig(Config):
    """Options of a `split` run: the corpus, the units that stay whole, and the sizes of the parts."""

    corpus: str = option(..., "The corpus to split, labelled or not.", corpus=True)
    by: Literal["document", "sentence", "column"] = option(
        "document",
        "The unit that stays whole: a document, a sentence, or all rows with one value of an imported column.",
    )
    shares: tuple[float, ...] = option(
        (70.0, 10.0, 20.0), "Relative sizes of the parts, for example percentages (70,10,20) or counts (35100,2000)."
    )
    values: tuple[str, ...] = option(
        (),
        "With --by column: sentences with these values are the first part, all others the second; shares is ignored.",
    )
    names: tuple[str, ...] = option(
        (),
        "Names of the parts, which follow the corpus's name in the names of the new corpora (loans-train). Default: "
        "train,dev,test for three parts; train,test for two parts; task,domain if values are given.",
    )
    keep_copies: bool = option(
        False,
        "Keep duplicates in all parts, and only count them. Otherwise, only the smallest part keeps them.",
    )
    seed: int = option(0, "Seed of the random division.", ge=0)

    @field_validator("shares")
    @classmethod
    def _shares(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if len(shares) < 2 or not all(0 < share < float("inf") for share in shares):
            raise ValueError("expected at least two shares, all above 0, for example 70,10,20")
        return shares

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.values and self.by != "column":
            raise ValueError("values are only used if the split is by column; add --by column, or leave values out")
        parts = 2 if self.values else len(self.shares)
        if self.names and (len(self.names) != parts or len(set(self.names)) != parts or not all(self.names)):
            raise ValueError(f"expected {parts} different names, one per part")
        if not self.names and not self.values and parts not in USUAL_NAMES:
            raise ValueError(f"give names for {parts} parts")
        return self

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts."""
        return self.names or (BY_VALUE if self.values else USUAL_NAMES[len(self.shares)])


def run(config: SplitConfig, job: Job) -> SplitResult:
    """Store each part as a corpus, with the rows in their original order; no artifacts."""
    corpus = job.corpus(config.corpus)
    units = _units(corpus, config.by)
    job.context.part(1, 2, "copies")
    copies = read_audit(job.child("audit", corpus=corpus.fingerprint, **Flagging().model_dump())).cluster
    job.context.part(2, 2, "parts")
    job.context.stage("splitting")
    if config.by == "sentence" and not config.keep_copies:
        units = copies
    part = _by_value(corpus, config.values) if config.values else _drawn(config, units)
    kept, divided = kept_in_smallest(part, copies)
    whole, named = np.bincount(part, minlength=len(config.parts)), dict[str, IntArray]()
    for k, name in enumerate(config.parts):
        rows = np.flatnonzero((part == k) & (kept | config.keep_copies))
        if not len(rows):
            raise ConfigError(_nothing(config, corpus, name, len(np.unique(units))))
        named[name] = rows
    sealed = {name: _sealed(config, job, corpus, name, rows) for name, rows in named.items()}
    _, sizes = np.unique(copies, return_counts=True)
    return SplitResult(
        parts=[
            Part(
                name=name,
                corpus=sealed[name].fingerprint,
                sentences=len(rows),
                tokens=sealed[name].n_tokens,
                units=len(np.unique(units[rows])),
                left_out=int(n) - len(rows),
                types=dict(sealed[name].types),
            )
            for (name, rows), n in zip(named.items(), whole, strict=True)
        ],
        units=len(np.unique(units)),
        copies=int(sizes[sizes > 1].sum()),
        divided=divided,
    )


def _nothing(config: SplitConfig, corpus: Corpus, name: str, units: int) -> str:
    """Return the error message for a part that would be empty. units: number of units in the corpus."""
    if config.values and name == config.parts[1]:
        return (
            f"values: no sentence of {corpus.name} is left for {name}, because all its sentences, or their duplicates,"
            " have the given values. Give fewer values, or keep duplicates (--keep-copies)."
        )
    what = {"document": "documents", "sentence": "sentences without duplicates", "column": "values"}[config.by]
    return (
        f"shares: no sentence of {corpus.name} is left for {name}, because the corpus has {units:,} {what} for "
        f"{len(config.parts)} parts, and duplicates stay in one part. Give fewer parts, split by smaller units, or "
        "keep duplicates (--keep-copies)."
    )


def _sealed(config: SplitConfig, job: Job, corpus: Corpus, name: str, rows: IntArray) -> Corpus:
    how = {"values": list(config.values)} if config.values else {"shares": list(config.shares), "seed": config.seed}
    origin = {"run": job.context.run.id, "from": corpus.fingerprint, "part": name, "by": config.by, **how}
    return job.library.subset(corpus, rows, name=f"{corpus.name}-{name}", origin=origin)


def _units(corpus: Corpus, by: str) -> IntArray:
    """Return the unit of each row, shape (n,). Rows of the same unit must stay in the same part."""
    rows = np.arange(len(corpus))
    if by == "sentence":
        return rows
    column = corpus.column("doc" if by == "document" else "group")
    if column.null_count == len(column):
        nothing = "document" if by == "document" else "value of a column"
        raise ConfigError(
            f"by: no sentence of {corpus.name} has a {nothing}; import it again and name the column "
            f"({'doc' if by == 'document' else 'group'}_column), or split it by sentence."
        )
    numbers: IntArray = pc.fill_null(column.combine_chunks().dictionary_encode().indices, -1).to_numpy()
    # Each sentence without a document is a separate unit.
    if by == "document":
        return np.where(numbers < 0, len(corpus) + rows, numbers)
    return numbers.astype(np.int64)


def _by_value(corpus: Corpus, values: Sequence[str]) -> IntArray:
    """Return the part of each row, shape (n,): 0 if the row's value is in `values`, else 1."""
    column = corpus.column("group")
    here = set(column.unique().to_pylist()) - {None}
    if missing := sorted(set(values) - here):
        known = ", ".join(sorted(here)[:12])
        raise ConfigError(f"values: no sentence of {corpus.name} has {missing[0]!r}; its values are {known}.")
    chosen: BoolArray = pc.is_in(column, pa.array(values)).to_numpy()
    return np.where(chosen, 0, 1)


def _drawn(config: SplitConfig, units: IntArray) -> IntArray:
    """Return a random part for each row, shape (n,)."""
    part = np.empty(len(units), dtype=np.int64)
    for k, rows in enumerate(dealt(units, config.shares, config.seed)):
        part[rows] = k
    return part


def _outcome(result: SplitResult, _: About) -> str:
    return ", ".join(f"{part.name} {part.sentences:,}" for part in result.parts) + " sentences"


KIND = Kind(
    "split",
    SplitConfig,
    run,
    SplitResult,
    title=lambda run: f"Divide {run.corpus(run.config['corpus'])} by {run.config['by']}",
    outcome=_outcome,
    page="Corpora",
    command=("corpus", "split"),
    positional=("corpus",),
)
