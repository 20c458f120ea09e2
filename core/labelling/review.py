"""`review`: sentences of a labelled corpus whose labels may be wrong, worst first, each with the reasons.

Four checks look for suspicious mentions (SOURCES.md, Suspicious labels). They use taggers that never saw the sentence,
copies of the sentence with other labels, pointwise V-information (PVI), and the labels of a second corpus. A sentence
is listed once, with the reasons of all checks.

artifacts/queue.jsonl   as for `queue`; entities are the current labels, and `why` has the reasons
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from pydantic import field_validator

from core.assisting.skl import DRIFTS, SklOptions, compare, count_types, parse_map, renamed
from core.bias.result import FEW, Mention, mentions_file, read_mentions, unsupported
from core.config import LARGEST_SEED, Config, option
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError, Unfinished
from core.kind import About, Job, Kind
from core.labelling.queue import Queued, write
from core.runs.store import RunStore
from core.selection.score import without_folds
from core.selection.strategies.predictions import fold
from core.shown import count
from core.tagging.finetune import model_folder
from core.text.sentence import Entity, Prediction, Sentence
from core.text.words import token_places
from core.training.on_device import on_device

# Minimum probability of an entity at which a tagger reports a finding.
LEAST = 0.5
# Minimum number of occurrences of a name in the second corpus. The types of rarer names may be due to chance.
OFTEN = 3


class ReviewConfig(Config):
    """Options of a `review` run: the corpus, the taggers that check it, and a second corpus to compare it with."""

    corpus: str = option(..., "Labelled corpus to review.", corpus=True)
    dev: str = option(
        "", "Dev set of the taggers that check the labels; without one, no tagger checks them.", corpus=True
    )
    init: str = option("minilm", "Encoder of the taggers: a Hugging Face name, a folder, or a finished pretrain run.")
    folds: int = option(
        5, "Number of folds. One tagger per fold is trained on the other folds and checks this fold.", ge=2, le=10
    )
    seed: int = option(1, "Seed of the taggers.", ge=0, le=LARGEST_SEED)
    difficulty: str = option("", "A finished difficulty run on the corpus, to list labels whose PVI is not above 0.")
    against: str = option(
        "", "Another labelled corpus, to list names whose type differs between the two corpora.", corpus=True
    )
    type_map: tuple[str, ...] = option(
        (), "OLD=NEW renames a type of `against` (PER=person); OLD= leaves the type out."
    )
    n: int = option(50, "Most sentences to list.", unit="sentences", ge=1, le=1000)

    @field_validator("type_map")
    @classmethod
    def _type_map(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        """Return the OLD=NEW pairs sorted and without blanks. Errors: ConfigError."""
        return tuple(sorted(f"{old}={new}" for old, new in parse_map(pairs).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """Result of a `review` run.

    sentences: number of listed sentences. of: number of different sentences in the corpus. suspicious: number of
    sentences with a finding, listed or not. reasons: {check: number of findings in the whole corpus}, without checks
    that did not run.
    """

    sentences: int
    of: int
    suspicious: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A suspicious mention in the corpus.

    row: row of its sentence. start, end: word offsets. strength: 0 to 1. why: sentence that gives the reason.
    """

    row: int
    start: int
    end: int
    strength: float
    why: str


def run(config: ReviewConfig, job: Job) -> ReviewResult:
    """Run the checks, and list the sentences that most probably have a wrong label."""
    corpus = job.corpus(config.corpus)
    if not corpus.types:
        raise CorpusError(f"{corpus.name}: has no labelled entity, so there is nothing to review; label it first.")
    job.context.stage("reading the labels")
    sentences = list(chain.from_iterable(corpus.batches()))
    found = {"copies": copies(sentences)}
    if config.difficulty:
        found["pvi"] = unlearnable(sentences, _mentions(config, job))
    if config.against:
        found["other corpus"] = drifting(sentences, job.corpus(config.against), parse_map(config.type_map))
    if config.dev == config.corpus:
        raise ConfigError("dev: is the corpus to review; give another labelled corpus, or leave the option out.")
    if config.dev and (folds := _folds(config.folds, corpus, sentences)):
        found["taggers"] = _by_taggers(config, job, corpus, sentences, folds)
    elif config.dev:
        job.context.note(
            f"{corpus.name}: too few labelled sentences to train taggers on, so no tagger checked the labels."
        )
    ranked = ordered(found.values())
    queued = [
        Queued(
            row=row,
            id=sentences[row].id,
            similarity=0.0,
            uncertainty=0.0,
            entities=tuple(sorted(sentences[row].entities or ())),
            why=why,
        )
        for row, why in _once(ranked, sentences)
    ]
    write(job.context.run, queued[: config.n])
    return ReviewResult(
        sentences=len(queued[: config.n]),
        of=len({sentence.id for sentence in sentences}),
        suspicious=len(queued),
        reasons={name: len(findings) for name, findings in found.items()},
    )


def ordered(checks: Iterable[Sequence[Finding]]) -> list[tuple[int, float, tuple[str, ...]]]:
    """Return (row, strength, reasons) of each row with a finding, strongest first. checks: findings of each check.

    A mention's strength is the sum of its strengths in all checks. A sentence is as strong as its strongest mention.
    Findings that overlap count as one mention, because checks may differ in start and end.
    """
    by_row = defaultdict[int, list[tuple[int, Finding]]](list)
    for check, findings in enumerate(checks):
        for finding in findings:
            by_row[finding.row].append((check, finding))
    rows = []
    for row, own in sorted(by_row.items()):
        sums = []
        for _, one in own:
            strongest = dict[int, float]()
            for check, other in own:
                if _overlap(one, other):
                    strongest[check] = max(other.strength, strongest.get(check, 0.0))
            sums.append(sum(strongest.values()))
        whys = dict.fromkeys(one.why for _, one in sorted(own, key=lambda pair: (pair[1].start, -pair[1].strength)))
        rows.append((row, max(sums), tuple(whys)))
    return sorted(rows, key=lambda found: -found[1])


def _overlap(one: Finding, other: Finding) -> bool:
    return one is other or (one.start < other.end and other.start < one.end)


def _once(
    ranked: Iterable[tuple[int, float, tuple[str, ...]]], sentences: Sequence[Sentence]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (row, reasons) of the first row of each text in `ranked`, which has the strongest finding first.

    Other copies of a sentence are skipped, because an answer counts for all copies.
    """
    seen = set[str]()
    for row, _, why in ranked:
        if sentences[row].id not in seen:
            seen.add(sentences[row].id)
            yield row, why


def copies(sentences: Sequence[Sentence]) -> list[Finding]:
    """Return findings for each entity that some copies of a sentence have and other copies lack.

    Copies have the same text and tokens.
    """
    rows = defaultdict[tuple[str, tuple[str, ...]], list[int]](list)
    for row, sentence in enumerate(sentences):
        rows[sentence.id, sentence.tokens].append(row)
    found = []
    for alike in rows.values():
        each = {row: set(sentences[row].entities or ()) for row in alike}
        everywhere, anywhere = set.intersection(*each.values()), set.union(*each.values())
        times = Counter(entity for labels in each.values() for entity in labels)
        for entity in sorted(anywhere - everywhere):
            why = (
                f"“{_name(sentences[alike[0]], entity)}” is {entity.type} in {times[entity]:,} of {len(alike):,} "
                "copies of this sentence."
            )
            found += [Finding(row=row, start=entity.start, end=entity.end, strength=1.0, why=why) for row in alike]
    return found


def unlearnable(sentences: Sequence[Sentence], mentions: Sequence[Mention]) -> list[Finding]:
    """Return a finding for each mention whose name and context both fail to support its type (both PVIs at most 0).

    The name and the context each change the probability of the type by a factor. The strength is 1 minus the larger
    factor. It is 0 for types with fewer than `FEW` mentions, because their PVI is too uncertain.
    """
    times = Counter(mention.type for mention in mentions)
    return [
        Finding(
            row=mention.row,
            start=mention.start,
            end=mention.end,
            strength=1 - 2.0 ** min(max(mention.pvi_entity, mention.pvi_context), 0.0)
            if times[mention.type] >= FEW
            else 0.0,
            why=f"“{mention.surface}”: neither the name nor its context supports {mention.type}.",
        )
        for mention in (mentions[number] for number in unsupported(mentions))
        if mention.row < len(sentences)
    ]


def _mentions(config: ReviewConfig, job: Job) -> list[Mention]:
    """Return the mentions that the `difficulty` run measured. Errors: ConfigError, RunError, Unfinished."""
    run = RunStore(job.home).get(config.difficulty)
    if run.manifest.kind != "difficulty" or run.state().state != "succeeded":
        raise Unfinished(
            f"difficulty: {run.id} is not a finished difficulty run; run `difficulty` on the corpus first."
        )
    if run.manifest.inputs["train"] != config.corpus:
        raise ConfigError(f"difficulty: {run.id} measured another corpus; run `difficulty` on the corpus to review.")
    return read_mentions(mentions_file(run))


def drifting(sentences: Sequence[Sentence], against: Corpus, types: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each mention whose name usually has another type in a second corpus (SKL above `DRIFTS`).

    The strength of a finding is the share of the usual type in the second corpus. Only types of both corpora are
    compared, and only names that occur at least `OFTEN` times in the second corpus. types: {type of the second corpus:
    the same type's name in the reviewed corpus}. Errors: CorpusError if the second corpus has no entity, or no type of
    the reviewed corpus.
    """
    if not against.types:
        raise CorpusError(
            f"{against.name}: has no labelled entity, so nothing can be compared; give a labelled corpus."
        )
    theirs = count_types((renamed(s, types) for block in against.batches() for s in block), "surface")
    ours = count_types(sentences, "surface")
    both = {kind for counts in theirs.values() for kind in counts} & {
        kind for counts in ours.values() for kind in counts
    }
    if not both:
        raise CorpusError(f"{against.name}: has no type of this corpus; give a type map, for example PER=person.")
    drift = compare(_only(ours, both), _only(theirs, both), SklOptions(unit="surface"))
    rows = {name: row for row, name in enumerate(drift.names) if drift.skl[row] > DRIFTS}
    found = []
    for row, sentence in enumerate(sentences):
        for entity in sentence.entities or ():
            name = " ".join(sentence.tokens[entity.start : entity.end])
            if entity.type not in both or (place := rows.get(name.lower())) is None:
                continue
            counts = drift.assisting[place]
            usual, total = int(counts.argmax()), int(counts.sum())
            own = int(counts[drift.types.index(entity.type)])
            if total >= OFTEN and counts[usual] > own:
                times = f"{int(counts[usual]):,} of {total:,} times"
                found.append(
                    Finding(
                        row=row,
                        start=entity.start,
                        end=entity.end,
                        strength=float(counts[usual] / total),
                        why=f"“{name}” is {entity.type} here, but {drift.types[usual]} {times} in {against.name}.",
                    )
                )
    return found


def _only(counts: Mapping[str, Counter[str]], types: set[str]) -> dict[str, Counter[str]]:
    """Return the counts of the given types only, without names that have none of them."""
    kept = {name: Counter({kind: n for kind, n in own.items() if kind in types}) for name, own in counts.items()}
    return {name: own for name, own in kept.items() if own}


def _folds(most: int, corpus: Corpus, sentences: Sequence[Sentence]) -> int:
    """Return the largest possible number of folds up to `most`; 0 if no number is possible.

    Each fold must have a sentence to check, and the other folds must have an entity to learn from.
    """
    for folds in range(most, 1, -1):
        own = fold(corpus.ids(), folds)
        with_entity = {int(number) for number, sentence in zip(own, sentences, strict=True) if sentence.entities}
        if len(set(own.tolist())) == folds and len(with_entity) > 1:
            return folds
    return 0


def _by_taggers(
    config: ReviewConfig, job: Job, corpus: Corpus, sentences: Sequence[Sentence], folds: int
) -> list[Finding]:
    """Train one tagger per fold on the other folds. Return the findings of each tagger on its fold."""
    from core.models.taggers import load_tagger

    given = {"init": config.init, "dev": config.dev, "seeds": (config.seed,)}
    parts = without_folds(job, corpus, folds)
    trained = []
    for number, part in enumerate(parts, 1):
        job.context.part(number, len(parts), f"tagger {number} of {len(parts)}")
        trained.append(model_folder(job.child("finetune", train=part.fingerprint, **given).id, job))
    fold_of = fold(corpus.ids(), folds)
    found = []
    with on_device(job, alone=False):
        job.context.stage("checking the labels")
        for number, folder in enumerate(trained):
            tagger = load_tagger(Path(folder))
            rows = np.flatnonzero(fold_of == number).tolist()
            own = [sentences[row] for row in rows]
            predictions, beliefs = tagger.predict(own, job.context), tagger.beliefs(own, job.context)
            for row, prediction, belief in zip(rows, predictions, beliefs, strict=True):
                found += disagreements(row, sentences[row], prediction, belief)
    return found


def disagreements(row: int, sentence: Sentence, found: Prediction, beliefs: Sequence[float]) -> list[Finding]:
    """Compare the labels of a sentence with the entities of a tagger that did not train on it, and return the findings.

    found: the tagger's entities with their probabilities. beliefs: the tagger's probability of each label, in order. A
    label is suspicious if its probability is at most 1 - `LEAST`. The reason then names the tagger's entities that
    overlap the label. An entity that overlaps no label is suspicious if its probability is at least `LEAST`.
    """
    labels = sorted(sentence.entities or ())
    pairs = list(zip(found.entities, found.confidence, strict=True))
    findings = []
    for label, belief in zip(labels, beliefs, strict=True):
        # The condition is also true for NaN, which means that the tagger does not know the type.
        if not belief <= 1 - LEAST:
            continue
        name = _name(sentence, label)
        others = [e for e in found.entities if e.start < label.end and label.start < e.end]
        said = " and ".join(f"{e.type} “{_name(sentence, e)}”" for e in others) or "no entity"
        why = f"{label.type} “{name}”: a tagger that never saw this sentence finds {said} here."
        if label in others:
            why = f"{label.type} “{name}”: a tagger that never saw this sentence is unsure of the label ({belief:.0%})."
        findings.append(Finding(row=row, start=label.start, end=label.end, strength=1 - belief, why=why))
    for entity, sure in pairs:
        if sure >= LEAST and not any(entity.start < label.end and label.start < entity.end for label in labels):
            why = (
                f"“{_name(sentence, entity)}” has no label; a tagger that never saw this sentence finds {entity.type}."
            )
            findings.append(Finding(row=row, start=entity.start, end=entity.end, strength=sure, why=why))
    return findings


def _name(sentence: Sentence, entity: Entity) -> str:
    """Return the text of an entity. If its tokens are not in the sentence's text, join them by blanks."""
    try:
        places = token_places(sentence.text, sentence.tokens)
    except CorpusError:
        return " ".join(sentence.tokens[entity.start : entity.end])
    return sentence.text[places[entity.start][0] : places[entity.end - 1][1]]


def _outcome(result: ReviewResult, _: About) -> str:
    return f"{count(result.suspicious, 'sentence')} of {result.of:,} with a suspicious label"


KIND = Kind(
    "review",
    ReviewConfig,
    run,
    ReviewResult,
    title=lambda run: f"Review the labels of {run.corpus(run.config['corpus'])}",
    outcome=_outcome,
    page="Label",
    opens=True,
    command=("label", "review"),
)
