"""SKL: how far two labelled corpora disagree on what the entities they share are (Murthy et al. 2018, 2).

An assisting corpus (another language, another hospital, another firm) helps where it calls the shared entities
what the primary one calls them. Counts of types become distributions, two distributions one divergence, the mean
divergence of a sentence's shared entities its score: 0 agrees, and a sentence is kept if its score is below a
threshold. What they leave open (the unit that is counted, what an unseen type's probability is) is an option here;
the defaults reproduce the counts that they print (SOURCES.md, SKL).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from core.config import Config, option
from core.errors import ConfigError
from core.results import BoolArray, FloatArray, IntArray
from core.text.sentence import Entity, Sentence

Counts = Mapping[str, Counter[str]]  # {entity: {type: times}}
TypeMap = Mapping[str, str]  # {type: its name in both corpora, "" to leave it out}


class SklOptions(Config):
    """Options of SKL: the unit that counts as an entity, and how counts become a divergence."""

    unit: Literal["token", "surface"] = option(
        "token", "What is looked up in both corpora, lower-cased: every token inside an entity, or whole entities."
    )
    floor: float = option(1e-4, "Least probability of a type, before the distribution is made to sum to 1.", gt=0, lt=1)
    add_k: float = option(0.0, "Added to the count of every type, instead of the floor; 0: the floor.", ge=0)
    log: Literal["natural", "base2"] = option("natural", "The logarithm: divergence in nats or in bits.")
    min_count: int = option(1, "An entity seen less often than this in either corpus counts as not shared.", ge=1)
    shrinkage: float = option(
        0.0, "Occurrences of an average entity mixed into each one's counts, so that a rare one cannot shout.", ge=0
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drift:
    """The entities that two labelled corpora share, and how far they disagree on each.

    names: m entities (lower-cased), sorted. types: t type names, those of both corpora.
    primary, assisting: `(m, t)` times an entity was seen as a type. skl: `(m,)`, 0 where they agree.
    seen: entities (distinct, in the unit) of the primary and of the assisting corpus, shared or not.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    primary: IntArray
    assisting: IntArray
    skl: FloatArray
    seen: tuple[int, int]


def units(sentence: Sentence, unit: str) -> Iterator[tuple[str, Entity]]:
    """Every countable entity of a sentence: its name, and where it stands as what."""
    for entity in sentence.entities or ():
        if unit == "surface":
            yield " ".join(sentence.tokens[entity.start : entity.end]).lower(), entity
            continue
        for place in range(entity.start, entity.end):
            # By the name it stands in: `China` within an organisation counts as one (SOURCES.md, SKL).
            yield sentence.tokens[place].lower(), Entity(start=place, end=place + 1, type=entity.type)


def count_types(
    sentences: Iterable[Sentence], unit: str, into: dict[str, Counter[str]] | None = None
) -> dict[str, Counter[str]]:
    """{entity: times labelled as each type}, added to the counts of `into`."""
    counts = {} if into is None else into
    for sentence in sentences:
        for name, entity in units(sentence, unit):
            counts.setdefault(name, Counter())[entity.type] += 1
    return counts


def renamed(sentence: Sentence, types: TypeMap) -> Sentence:
    """The sentence with its types' other names; entities of a type that maps to "" are no entities any more."""
    if not types or not sentence.entities:
        return sentence
    entities = (replace(entity, type=types.get(entity.type, entity.type)) for entity in sentence.entities)
    return replace(sentence, entities=tuple(entity for entity in entities if entity.type))


def parse_map(pairs: Sequence[str]) -> dict[str, str]:
    """`("PER=person", "MISC=")` as a `TypeMap`. Errors: ConfigError for a pair without "=" or a type named twice."""
    types: dict[str, str] = {}
    for pair in pairs:
        old, sign, new = (part.strip() for part in pair.partition("="))
        if not (old and sign):
            raise ConfigError(
                f"type_map: {pair!r} is not OLD=NEW; write for example PER=person, or MISC= to leave out."
            )
        if types.setdefault(old, new) != new:
            raise ConfigError(f"type_map: {old!r} is renamed twice, {types[old]!r} and {new!r}; keep one of them.")
    return types


def compare(primary: Counts, assisting: Counts, options: SklOptions) -> Drift:
    """The drift between two tables of counts; symmetric but for which is called what."""
    types = sorted({kind for counts in (primary, assisting) for counter in counts.values() for kind in counter})
    # Sorted, so that rows of the table do not depend on the order of sentences.
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
    """`(m, t)` counts as probabilities above 0, every row summing to 1.

    average: `(t,)` counts of all entities together, what `shrinkage` pulls each towards.
    """
    raised: FloatArray = counts + options.add_k
    if options.shrinkage:
        assert average is not None
        raised = raised + options.shrinkage * average / max(average.sum(), 1)
    shares: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    if not options.add_k:
        # Floored after the division: an unseen type gets the same probability however often the entity was seen.
        shares = np.maximum(shares, options.floor)
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def symmetric_kl(p: FloatArray, q: FloatArray, log: str = "natural") -> FloatArray:
    """`(m,)` (KL(p||q) + KL(q||p)) / 2 of `(m, t)` distributions above 0 (Murthy et al. 2018, eq. 1)."""
    logs = np.log2 if log == "base2" else np.log
    # Both directions in one product: p log(p/q) + q log(q/p) = (p - q)(log p - log q).
    skl: FloatArray = ((p - q) * (logs(p) - logs(q))).sum(axis=1) / 2
    return skl


def score(sentences: Iterable[Sentence], drift: Drift, unit: str) -> tuple[FloatArray, IntArray]:
    """`(n,)` each sentence's mean SKL over the occurrences of shared entities in it (0 where there are none),
    and `(n,)` how many those are."""
    values = dict(zip(drift.names, drift.skl.tolist(), strict=True))
    skls = [[values[name] for name, _ in units(sentence, unit) if name in values] for sentence in sentences]
    overlaps = np.array([len(sentence_skls) for sentence_skls in skls], dtype=np.int64)
    return np.array([sum(sentence_skls) for sentence_skls in skls]) / np.maximum(overlaps, 1), overlaps


def kept(scores: FloatArray, threshold: float) -> BoolArray:
    """`(n,)` True for sentences below the threshold. A threshold of 0 keeps none (Murthy et al. 2018, Fig. 2)."""
    mask: BoolArray = scores < threshold
    return mask
