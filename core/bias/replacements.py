"""Less informative names and more informative contexts: the methods of Ma et al. 2023, sections 4.3 and 4.4.

Methods A (random2low), B (highc2low) and C (redundant2low) replace names by names of low PVI. If too few names or
contexts have high PVI to reach the rate, the thresholds of "high" are lowered step by step.

Methods I (random2high) and II (low2high) replace contexts. They delete the whole sentence, and with it the contexts of
all its mentions. A copy of a retained sentence replaces the deleted one. The mentions of the retained sentence have the
same types, and all its contexts have high PVI. The copy gets the names of the deleted sentence, so the size and the
types of the set stay the same. If no retained sentence fits, single mentions get the words around another mention
(`stretches`; SOURCES.md, Rebuilding).

DataAug (Dai and Adel 2020) follows MINER's code, as in Ma et al. 2023. Each sentence with an entity gets one copy. The
copy has typos in one entity, or another entity of the same type and similar spelling (SOURCES.md, DataAug).
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log
from random import Random
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from core.bias.pools import Pools
from core.bias.result import Edit
from core.bias.training_sentences import (
    Name,
    Rebuilt,
    Taken,
    Training,
    edits_of,
    folded,
    is_content_word,
    name_of,
    ordered,
    renamed,
    same_name,
    slip,
    surface,
    with_text,
)
from core.results import BoolArray, FloatArray, IntArray
from core.text.sentence import Entity, Sentence

# Maximum number of times that new names are drawn for a sentence. Drawing stops once the renamed sentence is neither in
# the set nor held out.
NAME_TRIES = 20
# Maximum number of retained sentences or mentions to try until a copy is new to the set and all its names change.
CONTEXT_TRIES = 50
# Minimum number of words of a context that replaces a deleted context.
ENOUGH = 3
# Unicode categories of opening punctuation, such as "(".
OPENING = ("Ps", "Pi")
# Function that returns the mentions to change, out of those in a pool, in the order in which they are changed.
Order = Callable[[Training, Sequence[int], Random], list[int]]
# Types of a sentence's mentions, sorted.
Types = tuple[str, ...]
K = TypeVar("K", tuple[str, str], tuple[str, Name])


def random2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method A: copy random sentences, and replace their high-PVI names by low-PVI names of the same type.

    Mentions are drawn at random. The renamed copies are added to the set. Drawn mentions of one sentence share one
    copy.
    """
    return _renamed_set(training, ladder, rate, seed, source=_high_names, order=_shuffled, kind="random2low")


def highc2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method B: like `random2low`, but change only mentions whose context also has high PVI."""
    source: Callable[[Pools], BoolArray] = lambda pools: pools.entity_high & pools.context_high
    return _renamed_set(training, ladder, rate, seed, source=source, order=_shuffled, kind="highc2low")


def redundant2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method C: replace redundant names by low-PVI names of their type, without adding sentences.

    Among mentions with the same high-PVI name, keep one at random. Among the kept mentions whose names share a content
    word, keep one at random. All other mentions are redundant. Those with the most frequent names are changed first.
    """
    kind, order = "redundant2low", _redundant
    return _renamed_set(training, ladder, rate, seed, source=_high_names, order=order, kind=kind, in_place=True)


def _high_names(pools: Pools) -> BoolArray:
    return pools.entity_high


def _shuffled(training: Training, mentions: Sequence[int], rng: Random) -> list[int]:
    return rng.sample(mentions, len(mentions))


def _redundant(training: Training, mentions: Sequence[int], rng: Random) -> list[int]:
    """Return the redundant mentions (see `redundant2low`), in the order in which they are renamed."""
    by_name: dict[tuple[str, Name], list[int]] = defaultdict(list)
    for mention in mentions:
        by_name[training.kinds[mention], training.names[mention]].append(mention)
    stays, extra = list[int](), list[int]()
    for group in _largest_first(by_name):
        # Keep a random mention, so that the result does not depend on the order of sentences.
        first, *others = rng.sample(group, len(group))
        stays.append(first)
        extra += others
    by_word: dict[tuple[str, str], list[int]] = defaultdict(list)
    for mention in sorted(stays):
        # Sorted, because the order of a set of strings differs between processes.
        for word in sorted({word.casefold() for word in training.names[mention] if is_content_word(word)}):
            by_word[training.kinds[mention], word].append(mention)
    kept, gone = set[int](), set[int]()
    for group in _largest_first(by_word):
        left = [mention for mention in group if mention not in gone]
        if left and kept.isdisjoint(left):
            # A kept mention is never removed later, although it is also in the groups of the other words of its name.
            kept.add(rng.choice(left))
        more = [mention for mention in left if mention not in kept]
        gone.update(more)
        extra += more
    return extra


def _largest_first(groups: dict[K, list[int]]) -> list[list[int]]:
    return [groups[key] for key in sorted(groups, key=lambda key: (-len(groups[key]), key))]


def _renamed_set(
    training: Training,
    ladder: Sequence[Pools],
    rate: float,
    seed: int,
    *,
    source: Callable[[Pools], BoolArray],
    order: Order,
    kind: str,
    in_place: bool = False,
) -> Rebuilt:
    """Return a set in which mentions of the pool `source` have new names, in place or in added copies.

    ladder: pools, highest thresholds first; the first with enough mentions is used. order: function that selects and
    sorts the mentions to change.
    """
    wanted, low = training.wanted(rate), _LowNames(training, ladder[0])
    for pools in ladder:
        rng = Random(seed)
        # Leave out mentions whose type has no other low name. They cannot be renamed, but would count towards the rate.
        waiting = order(training, [m for m in _indices(source(pools) & training.free) if low.has_other(m)], rng)
        if len(waiting) >= wanted:
            break
    sentences, edits = list(training.sentences), list[Edit]()
    taken = Taken((sentence.text for sentence in sentences), training.closed)
    visited = set[int]()
    while waiting and (lacking := wanted - len(edits)):
        batch, waiting = waiting[:lacking], waiting[lacking:]
        for row, mentions in training.by_row(batch).items():
            if row not in visited and (edited := low.rename(row, mentions, taken, rng)):
                original, places = training.sentences[row], training.places[mentions].tolist()
                to, copy_of = (row, None) if in_place else (len(sentences), row)
                edits += edits_of(original, edited, places, row=to, copy_of=copy_of, kind=kind)
                sentences[to : to + 1] = [edited]
            visited.add(row)
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted, reached=pools.reached)


class _LowNames:
    """Names of low PVI by type, one entry per mention. Names from held-out sentences are left out."""

    def __init__(self, training: Training, pools: Pools) -> None:
        self.training = training
        self.names: dict[str, list[Name]] = defaultdict(list)
        for mention in _indices(pools.entity_low & training.free):
            self.names[training.kinds[mention]].append(training.names[mention])
        self.folded = {kind: set(map(folded, names)) for kind, names in self.names.items()}

    def has_other(self, mention: int) -> bool:
        """Return True if the mention's type has a low-PVI name other than the mention's own."""
        return bool(self.folded.get(self.training.kinds[mention], set()) - {folded(self.training.names[mention])})

    def rename(self, row: int, mentions: Iterable[int], taken: Taken, rng: Random) -> Sentence | None:
        """Return the sentence at `row` with random new names for `mentions`.

        Return None if every drawn result is already in the set or held out.
        """
        for _ in range(NAME_TRIES):
            names = {int(self.training.places[mention]): self._other(mention, rng) for mention in mentions}
            edited = renamed(self.training.sentences[row], names)
            if taken.admit(edited.text):
                return edited
        return None

    def _other(self, mention: int, rng: Random) -> Name:
        # The loop ends, because `has_other` is true for every mention that is renamed.
        while same_name(name := rng.choice(self.names[self.training.kinds[mention]]), self.training.names[mention]):
            pass
        return name


def _indices(mask: BoolArray) -> list[int]:
    indices: list[int] = np.flatnonzero(mask).tolist()
    return indices


def random2high(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method I: delete random contexts, and put their names into retained contexts of high PVI."""
    rng, high = Random(seed), ladder[0].context_high
    rows = list(training.by_row(range(len(training))))
    poor = np.ones(len(training), dtype=np.bool_)
    plan = _plan(training, high, rng.sample(rows, len(rows)), poor, training.wanted(rate))
    return _apply(training, plan, training.wanted(rate), rng=rng, kind="random2high")


def low2high(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method II: like `random2high`, but delete the least informative contexts instead of random ones.

    Mentions are ranked by context PVI within their type. Sentences with the lowest mean rank are deleted first. A
    sentence whose contexts all have high PVI is kept.
    """
    # Compare ranks within a type and not bits. The range of PVI differs between types, so sorting by bits would delete
    # all mentions of some types first.
    ranks, high = _ranks(training), ladder[0].context_high
    rows = training.by_row(range(len(training)))
    order = {row: float(ranks[mentions].mean()) for row, mentions in rows.items() if not high[mentions].all()}
    measured = [row for row, rank in order.items() if not np.isnan(rank)]
    measured.sort(key=lambda row: (order[row], row))
    plan = _plan(training, high, measured, ~high, training.wanted(rate))
    return _apply(training, plan, training.wanted(rate), rng=Random(seed), kind="low2high")


def _ranks(training: Training) -> FloatArray:
    """Return the rank of each mention's context PVI within its type, `(m,)`: 1 is highest; NaN if not measured.

    Mentions with equal PVI get their mean rank.
    """
    kinds = np.array(training.kinds, dtype=np.str_)
    ranks = np.full(len(training), np.nan)
    for kind in np.unique(kinds):
        mentions = np.flatnonzero((kinds == kind) & ~np.isnan(training.context))
        # scipy.stats.rankdata would do the same, but scipy.stats takes a second to import, and pages would wait for it.
        _, places, times = np.unique(training.context[mentions], return_inverse=True, return_counts=True)
        ranks[mentions] = (np.cumsum(times) - (times - 1) / 2)[places] / max(len(mentions), 1)
    return ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Contexts to delete, and retained contexts that replace them.

    whole: rows to replace as whole sentences. by_mention: {row: mentions whose contexts are replaced one by one}. Rows
    of `whole` are also in `by_mention`, in case no retained sentence can replace them. sentences: {types: retained rows
    whose contexts all have high PVI}. mentions: {type: retained mentions whose context may be copied}.
    """

    whole: set[int]
    by_mention: dict[int, list[int]]
    sentences: dict[Types, list[int]]
    mentions: dict[str, list[int]]


def _plan(training: Training, high: BoolArray, order: Iterable[int], poor: BoolArray, wanted: int) -> _Plan:
    """Return the plan that deletes the contexts of rows, in `order`, until `wanted` mentions are affected.

    high: `(m,)` mask of contexts of high PVI. poor: `(m,)` mask of the mentions whose context may be replaced without
    the rest of the sentence.
    """
    free = training.by_row(_indices(training.free))
    all_high = {row for row, mentions in free.items() if high[mentions].all()}
    lending = {
        mention
        for row, mentions in free.items()
        for mention, words in zip(mentions, context_words(training.sentences[row]), strict=True)
        if high[mention] and words >= ENOUGH
    }
    # A deleted sentence is replaced by another one with the same types, and a deleted context by the context of another
    # mention of its type. So always retain at least one sentence or mention that can replace the deleted ones.
    sentences = Counter(_types(training.sentences[row]) for row in all_high)
    mentions = Counter(training.kinds[m] for m in lending)
    whole, by_mention, promised = set[int](), dict[int, list[int]](), set[Types]()
    for row in order:
        if not wanted:
            break
        types = _types(training.sentences[row])
        own = Counter(training.kinds[m] for m in free.get(row, ()) if m in lending)
        others = sentences[types] - (row in all_high)
        last = (types in promised and not others) or any(mentions[kind] == n for kind, n in own.items())
        if row not in free or last:
            continue
        singly = [m for m in free[row] if poor[m] and mentions[training.kinds[m]] > own[training.kinds[m]]]
        if others and len(types) <= wanted:
            whole.add(row)
            promised.add(types)
            wanted -= len(types)
        elif singly := singly[:wanted]:
            wanted -= len(singly)
        else:
            continue
        by_mention[row] = singly
        sentences[types] = others
        mentions -= own
    retained: dict[Types, list[int]] = defaultdict(list)
    for row in sorted(all_high.difference(by_mention)):
        retained[_types(training.sentences[row])].append(row)
    by_kind: dict[str, list[int]] = defaultdict(list)
    for mention in sorted(lending):
        if int(training.rows[mention]) not in by_mention:
            by_kind[training.kinds[mention]].append(mention)
    return _Plan(whole=whole, by_mention=by_mention, sentences=retained, mentions=by_kind)


def _types(sentence: Sentence) -> Types:
    return tuple(sorted(entity.type for entity in sentence.entities or ()))


def _apply(training: Training, plan: _Plan, wanted: int, *, rng: Random, kind: str) -> Rebuilt:
    taken = Taken((sentence.text for sentence in training.sentences), training.closed)
    mover = _Mover(training=training, plan=plan, taken=taken, rng=rng, kind=kind)
    sentences, edits = list(training.sentences), list[Edit]()
    for row, mentions in plan.by_mention.items():
        if done := (row in plan.whole and mover.whole(row)) or mover.singly(row, mentions):
            sentences[row] = done[0]
            edits += done[1]
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mover:
    """Puts names of deleted sentences into random retained contexts, and skips results that the set already has."""

    training: Training
    plan: _Plan
    taken: Taken
    rng: Random
    kind: str

    def whole(self, row: int) -> tuple[Sentence, list[Edit]] | None:
        """Return a copy of a retained sentence with the names of the sentence at `row`, and its edits.

        Return None if every copy is already in the set or held out, or leaves a name unchanged.
        """
        deleted = self.training.sentences[row]
        fitting = self.plan.sentences[_types(deleted)]
        for lender in self.rng.sample(fitting, min(CONTEXT_TRIES, len(fitting))):
            source = self.training.sentences[lender]
            names = _seats(source, deleted)
            if names and self.taken.admit((copy := renamed(source, names)).text):
                log = edits_of(source, copy, names, row=row, copy_of=lender, kind=self.kind, context_of=lender)
                return copy, log
        return None

    def singly(self, row: int, mentions: Sequence[int]) -> tuple[Sentence, list[Edit]] | None:
        """Return the sentence at `row` with random other contexts around `mentions`, and its edits.

        Return None if no context fits, or every drawn result is already in the set or held out.
        """
        sentence, places = self.training.sentences[row], self.training.places
        lenders = {mention: fitting for mention in mentions if (fitting := self._fitting(mention))}
        for _ in range(CONTEXT_TRIES if lenders else 0):
            chosen = {mention: self.rng.choice(fitting) for mention, fitting in lenders.items()}
            lent = {
                int(places[mention]): (self.training.sentences[self.training.rows[lender]], int(places[lender]))
                for mention, lender in chosen.items()
            }
            edited = moved(sentence, lent)
            if self.taken.admit(edited.text):
                return edited, [self._edit(edited, *pair) for pair in chosen.items()]
        return None

    def _fitting(self, mention: int) -> list[int]:
        """Return retained mentions, in random order, that can lend their context to `mention`.

        They have the same type and another name.
        """
        names, lenders = self.training.names, self.plan.mentions.get(self.training.kinds[mention], [])
        drawn = self.rng.sample(lenders, min(CONTEXT_TRIES, len(lenders)))
        return [lender for lender in drawn if not same_name(names[lender], names[mention])]

    def _edit(self, edited: Sentence, mention: int, lender: int) -> Edit:
        name = ordered(edited)[int(self.training.places[mention])]
        return Edit(
            row=int(self.training.rows[mention]),
            copy_of=None,
            start=name.start,
            end=name.end,
            type=name.type,
            before=surface(self.training.names[lender]),
            after=surface(name_of(edited, name)),
            kind=self.kind,
            context_of=int(self.training.rows[lender]),
        )


def _seats(host: Sentence, deleted: Sentence) -> dict[int, Name]:
    """Return {index of an entity in `host`: its new name}; {} if any new name equals the old one.

    The new names are those of `deleted`, assigned from left to right among entities of the same type.
    """
    waiting: dict[str, list[Name]] = defaultdict(list)
    for entity in ordered(deleted):
        waiting[entity.type].append(name_of(deleted, entity))
    names: dict[int, Name] = {}
    for place, entity in enumerate(ordered(host)):
        names[place] = waiting[entity.type].pop(0)
        if same_name(names[place], name_of(host, entity)):
            return {}
    return names


def stretches(sentence: Sentence) -> list[tuple[int, int]]:
    """Return the (start, end) of each mention's stretch: the mention and the words around it.

    The stretches are ordered from the left and together cover the sentence. Two neighbouring stretches meet at the
    punctuation nearest to the middle between the two mentions; without punctuation, in the middle.
    """
    cuts = [0]
    for left, right in pairwise(ordered(sentence)):
        middle = (left.end + right.start) / 2
        marks = [cut for i in range(left.end, right.start) if (cut := _cut(sentence.tokens[i], i)) is not None]
        cuts.append(min(marks, key=lambda cut: (abs(cut - middle), cut), default=int(middle)))
    return list(pairwise([*cuts, len(sentence.tokens)]))


def _cut(token: str, i: int) -> int | None:
    """Return the offset at which to cut: before an opening mark, or after other punctuation. Return None for a word."""
    if any(letter.isalnum() for letter in token):
        return None
    return i if unicodedata.category(token[0]) in OPENING else i + 1


def context_words(sentence: Sentence) -> list[int]:
    """Return the number of context words in each mention's stretch (`stretches`), without punctuation."""
    return [
        sum(
            any(letter.isalnum() for letter in sentence.tokens[i]) for i in (*range(a, name.start), *range(name.end, b))
        )
        for (a, b), name in zip(stretches(sentence), ordered(sentence), strict=True)
    ]


def moved(sentence: Sentence, lenders: Mapping[int, tuple[Sentence, int]]) -> Sentence:
    """Return `sentence` with the words around its names taken from other mentions. Types and names do not change.

    lenders: {index of a name, from the left: (another sentence, index of the mention whose surrounding words are
    used)}.
    """
    tokens: list[str] = []
    entities: list[Entity] = []
    for place, name in enumerate(ordered(sentence)):
        before, after = _around(*lenders.get(place, (sentence, place)))
        start = len(tokens) + len(before)
        entities.append(Entity(start=start, end=start + name.end - name.start, type=name.type))
        tokens += [*before, *name_of(sentence, name), *after]
    return with_text(sentence, tokens, entities)


def _around(sentence: Sentence, place: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words before and after the name in a mention's stretch. place: index of the mention, from the left."""
    (start, end), name = stretches(sentence)[place], ordered(sentence)[place]
    return sentence.tokens[start : name.start], sentence.tokens[name.end : end]


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Function that returns the pieces of a word, each as (vocabulary entry, letters of the word).
Split = Callable[[str], Sequence[tuple[str, str]]]

# Share of a type's pieces that get no typo: those with the highest PMI with the type.
GUARDED = 0.3
# Number of names of similar spelling to draw from.
NEAREST = 10
# Number of characters compared per name, to limit memory. Names almost always differ earlier.
LONGEST = 40
# Maximum number of draws (of a mention and a kind of change) per sentence. If all fail, the sentence gets no copy.
TRIES = 5
_OUTSIDE = "O"


def dataaug(training: Training, split: Split, seed: int, *, typo_share: float = 0.5) -> Rebuilt:
    """Return the set with one more copy of each sentence with an entity. The copy has a typo or another name.

    split: function that returns the pieces of a word; the pieces' letters joined are the word. typo_share: probability
    of a typo. If a typo is not possible, another name is tried, and the reverse. A sentence gets no copy if neither
    gives a sentence that is new to the set.
    """
    rng = Random(seed)
    guarded = guard(training, split)
    spelling = _Spelling(training)
    sentences, edits = list(training.sentences), list[Edit]()
    taken = Taken((sentence.text for sentence in sentences), training.closed)
    rows = training.by_row(np.flatnonzero(training.free).tolist())
    for row in rows:
        sentence = training.sentences[row]
        for _ in range(TRIES):
            place = rng.randrange(len(sentence.entities or ()))
            entity = ordered(sentence)[place]
            name = name_of(sentence, entity)
            kinds = ("typo", "mention") if rng.random() < typo_share else ("mention", "typo")
            for kind in kinds:
                new_name = (
                    with_typos(name, guarded[entity.type], split, rng)
                    if kind == "typo"
                    else spelling.near(name, entity.type, rng)
                )
                if new_name:
                    break
            if new_name and taken.admit((copy := renamed(sentence, {place: new_name})).text):
                edits += edits_of(sentence, copy, [place], row=len(sentences), copy_of=row, kind=kind)
                sentences.append(copy)
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=len(rows))


def guard(training: Training, split: Split) -> dict[str, set[str]]:
    """Return {type: its typical pieces}: those with the highest PMI with the type.

    `GUARDED` is their share of the type's pieces. Words outside entities count as one more type. Among pieces of equal
    PMI, the more frequent ones come first.
    """
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, name in zip(training.kinds, training.names, strict=True):
        words[kind].update(name)
    outside: Counter[str] = Counter()
    for sentence in training.sentences:
        outside.update(sentence.tokens)
        for entity in sentence.entities or ():
            outside.subtract(name_of(sentence, entity))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, of_kind in (*words.items(), (_OUTSIDE, +outside)):
        for word, n in of_kind.items():
            for piece, _ in split(word):
                counts[kind][piece] += n
    total: Counter[str] = sum(counts.values(), Counter())
    n = total.total()

    def best(pieces: Counter[str]) -> list[str]:
        pmi = {piece: log(times * n / (total[piece] * pieces.total())) for piece, times in pieces.items()}
        # Round the PMI, because rounding errors of the logarithm can make equal values differ.
        return sorted(pieces, key=lambda piece: (-round(pmi[piece], 9), -pieces[piece], piece))

    return {kind: set(best(pieces)[: int(GUARDED * len(pieces))]) for kind, pieces in counts.items()}


def by_tokenizer(tokenizer: "PreTrainedTokenizerBase") -> Split:
    """Return a function that splits a word into the pieces of a fast tokenizer.

    A word stays whole if the tokenizer drops some of its letters.
    """

    @cache
    def split(word: str) -> Sequence[tuple[str, str]]:
        encoding = tokenizer(word, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        names = tokenizer.convert_ids_to_tokens(encoding["input_ids"])
        pieces = [(name, word[a:b]) for name, (a, b) in zip(names, encoding["offset_mapping"], strict=True)]
        return pieces if "".join(letters for _, letters in pieces) == word else [(word, word)]

    return split


def with_typos(name: Name, guarded: set[str], split: Split, rng: Random) -> Name | None:
    """Return `name` with one typo in each piece, except the pieces in `guarded`; None if no piece changes."""
    words = tuple(
        "".join(letters if piece in guarded else slip(letters, rng) or letters for piece, letters in split(word))
        for word in name
    )
    return words if words != name else None


class _Spelling:
    """Index of the names of each type, to find names of similar spelling."""

    def __init__(self, training: Training) -> None:
        names: dict[str, set[Name]] = defaultdict(set)
        for name, kind, free in zip(training.names, training.kinds, training.free, strict=True):
            names[kind] |= {name} if free else set()
        self.names = {kind: sorted(names[kind]) for kind in sorted(names)}
        self.letters = {kind: _letters([surface(name) for name in of_kind]) for kind, of_kind in self.names.items()}
        self._nearest = cache(self._find)

    def near(self, name: Name, kind: str, rng: Random) -> Name | None:
        """Draw one of the `NEAREST` names closest to `name` in spelling; None if the type has no other name.

        Names that differ from `name` only in case do not count.
        """
        nearest = self._nearest(name, kind)
        return rng.choice(nearest) if nearest else None

    def _find(self, name: Name, kind: str) -> list[Name]:
        distances = levenshtein(surface(name), self.letters[kind])
        nearest: list[Name] = []
        for i in np.argsort(distances, kind="stable").tolist():
            other = self.names[kind][i]
            if not same_name(other, name):
                nearest.append(other)
            if len(nearest) == NEAREST:
                break
        return nearest


def _letters(texts: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return the code points of texts, `(l, n)`, one column per text, padded with 0; and the lengths, `(n,)`."""
    texts = [text[:LONGEST] for text in texts]
    codes = np.zeros((max(map(len, texts), default=1), len(texts)), np.int32)
    for column, text in enumerate(texts):
        codes[: len(text), column] = [ord(letter) for letter in text]
    return codes, np.array([len(text) for text in texts], dtype=np.int64)


def levenshtein(text: str, others: tuple[IntArray, IntArray]) -> IntArray:
    """Return edit distances `(n,)` from `text` to each of `others` (see `_letters`).

    The algorithm is dynamic programming over all `others` at once, with one row of the table per letter of `text`.
    """
    codes, lengths = others
    steps = np.arange(len(codes) + 1, dtype=np.int16)[:, None]
    line = np.repeat(steps, len(lengths), axis=1)
    for done, letter in enumerate(text[:LONGEST], 1):
        best = np.minimum(line[1:] + 1, line[:-1] + (codes != ord(letter)))
        line = np.concatenate([np.full((1, len(lengths)), done, np.int16), best])
        # Insertions cost 1 per letter. Subtract this cost (`steps`), take the running minimum, and add the cost again.
        line = np.minimum.accumulate(line - steps, axis=0) + steps
    distances: IntArray = line[lengths, np.arange(len(lengths))]
    return distances
