"""`skl`: every sentence of an assisting labelled corpus scored by how far its entities drift from the primary one.

Knows no threshold, so a new one never rescores: what is kept is a pure function of the scores.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from pydantic import field_validator

from core.assisting import skl
from core.assisting.drift import EntityCounts, SklResult, write
from core.assisting.skl import Drift, SklOptions, TypeMap
from core.config import option
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError
from core.kind import About, Job, Kind
from core.reporter import Reporter
from core.shown import count
from core.text.sentence import Sentence

SWEEP = tuple(range(1, 10))  # the thresholds of Murthy et al. 2018, Fig. 2
DRIFTS = 1.0  # an entity drifts above this SKL (Murthy et al. 2018, 4.1)


class SklConfig(SklOptions):
    """Options: the two corpora, and what counts as an entity."""

    primary: str = option(..., "The labelled corpus to do well on.", corpus=True)
    assisting: str = option(..., "Another labelled corpus, to borrow sentences from.", corpus=True)
    type_map: tuple[str, ...] = option(
        (), "OLD=NEW, a type's name in both corpora where they differ (PER=person); OLD= leaves the type out."
    )

    @field_validator("type_map")
    @classmethod
    def _type_map(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        """Write it in one spelling and order. Errors: ConfigError."""
        return tuple(sorted(f"{old}={new}" for old, new in skl.parse_map(pairs).items()))


def run(config: SklConfig, job: Job) -> SklResult:
    """Artifacts: see `artifacts.drift`."""
    primary, assisting = job.corpus(config.primary), job.corpus(config.assisting)
    types = skl.parse_map(config.type_map)
    alone = _check(primary, assisting, types)
    for corpus, names in alone.items():
        job.context.note(_unmapped_note(corpus, names))
    job.context.part(1, 2, "what both corpora call their entities")
    drift = _drift(config, primary, assisting, types, job.context)
    job.context.part(2, 2, f"the sentences of {assisting.name}")
    job.context.stage(f"scoring {assisting.name}")
    parts = [skl.score(block, drift, config.unit) for block in _blocks(assisting, types, job.context)]
    scores, overlaps = (np.concatenate(part) for part in zip(*parts, strict=True))
    write(job.context.run, assisting.ids(), scores, overlaps, drift)
    drifting = int((drift.skl > DRIFTS).sum())
    return SklResult(
        of=len(assisting),
        overlapping=len(drift.names),
        entities=EntityCounts(primary=drift.seen[0], assisting=drift.seen[1], drifting=drifting),
        without_overlap=int((overlaps == 0).sum()),
        kept_below={str(step): int(skl.kept(scores, step).sum()) for step in SWEEP},
        types_of_one_corpus=alone,
    )


def _check(primary: Corpus, assisting: Corpus, types: TypeMap) -> dict[str, list[str]]:
    """{corpus: types that only it has}. Errors: CorpusError where there is nothing to compare."""
    for corpus in (primary, assisting):
        if not corpus.types:
            what = "holds no entity" if corpus.labelled else "is not labelled"
            raise CorpusError(
                f"{corpus.name}: {what}; symmetric KL divergence (SKL) compares labelled corpora, so give one "
                "with entities."
            )
    named = [{types.get(kind, kind) for kind in corpus.types} - {""} for corpus in (primary, assisting)]
    if not named[0] & named[1]:
        of_primary, of_assisting = (", ".join(sorted(each)) or "none" for each in named)
        raise CorpusError(
            f"{assisting.name}: shares no type with {primary.name} ({of_assisting} against {of_primary});"
            " say with a type map which are the same, for example PER=person."
        )
    unshared = {primary.name: sorted(named[0] - named[1]), assisting.name: sorted(named[1] - named[0])}
    return {corpus: names for corpus, names in unshared.items() if names}


def check_trainable(primary: Corpus, types: TypeMap) -> None:
    """Refuse to train under a map that is for looking alone: training takes the primary corpus as it is.

    Errors: ConfigError for a map that gives one of its types another name.
    """
    if moved := [f"{name}={types[name]}" for name in primary.types if types.get(name, name) not in ("", name)]:
        raise ConfigError(
            f"type_map: {', '.join(moved)} renames what {primary.name} itself says, and training leaves that as it is; "
            "rename only types of the assisting corpus, to those of the primary one."
        )


def _unmapped_note(corpus: str, names: list[str]) -> str:
    return (
        f"{', '.join(names)}: only {corpus} has {'this type' if len(names) == 1 else 'these types'}, so such entities"
        " count as drifting as far as they can; map them, or leave them out with OLD=."
    )


def _drift(config: SklConfig, primary: Corpus, assisting: Corpus, types: TypeMap, report: Reporter) -> Drift:
    primary_counts = _counts(config, primary, types, report)
    assisting_counts = _counts(config, assisting, types, report)
    drift = skl.compare(primary_counts, assisting_counts, config)
    if not drift.names:
        least = f" at least {config.min_count} times" if config.min_count > 1 else ""
        raise CorpusError(
            f"{assisting.name}: shares no entity{least} with {primary.name}, so no sentence can be told from another;"
            " use it whole, or choose a corpus that names the same things."
        )
    return drift


def _counts(config: SklConfig, corpus: Corpus, types: TypeMap, report: Reporter) -> skl.Counts:
    report.stage(f"counting the entities of {corpus.name}")
    table: dict[str, Counter[str]] = {}
    for block in _blocks(corpus, types, report):
        skl.count_types(block, config.unit, table)
    return table


def _blocks(corpus: Corpus, types: TypeMap, report: Reporter) -> Iterator[list[Sentence]]:
    done = 0
    for block in corpus.batches():
        yield [skl.renamed(sentence, types) for sentence in block]
        done += len(block)
        report.progress(done, len(corpus), "sentences")
        report.check()


def _outcome(result: SklResult, _: About) -> str:
    overlapping = count(result.overlapping, "entity", "entities")
    return f"{result.entities.drifting:,} of the {overlapping} in both corpora drift"


KIND = Kind(
    "skl",
    SklConfig,
    run,
    SklResult,
    title=lambda run: f"Score {run.corpus(run.config['assisting'])} against {run.corpus(run.config['primary'])}",
    outcome=_outcome,
    page="Assisting",
    opens=True,
)
