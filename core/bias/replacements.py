"""Less informative names and more informative contexts: the methods of Ma et al. 2023, sections 4.3 and 4.4.

Methods A (random2low), B (highc2low) and C (redundant2low) replace names by names of low PVI. If too few names or
contexts have high PVI to reach the rate, the thresholds of "high" are lowered step by step.

Methods I (random2high) and II (low2high) replace contexts. A context is deleted with its whole sentence, and so are the
contexts of the sentence's other mentions. A copy of a retained sentence replaces the deleted one. The mentions of the
retained sentence have the same types, and all its contexts have high PVI. The copy gets the names of the deleted
sentence, so the size and the types of the set stay the same. If no retained sentence fits, single mentions get the
words around another mention (`stretches`; SOURCES.md, Rebuilding).

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

NAME_TRIES = 20  # draws of new names until the sentence is neither in the set nor held out
CONTEXT_TRIES = 50  # retained sentences or mentions to try until a copy is new to the set and all its names change
ENOUGH = 3  # minimum number of words of a context that replaces a deleted one
OPENING = ("Ps", "Pi")  # Unicode categories of punctuation that belongs to the words after it
Order = Callable[[Training, Sequence[int], Random], list[int]]  # returns the mentions of a pool to change, in order
Types = tuple[str, ...]  # types of a sentence's mentions, sorted
K = TypeVar("K", tuple[str, str], tuple[str, Name])


def random2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method A: draw random mentions whose names have high PVI, and give them low-PVI names of their type.

    The renamed sentences are added as copies. Mentions of one sentence share one copy.
    """
    return _renamed_set(training, ladder, rate, seed, source=_high_names, order=_shuffled, kind="random2low")


def highc2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method B: like `random2low`, but only change mentions whose context has high PVI too."""
    source: Callable[[Pools], BoolArray] = lambda pools: pools.entity_high & pools.context_high
    return _renamed_set(training, ladder, rate, seed, source=source, order=_shuffled, kind="highc2low")


def redundant2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method C: rename redundant mentions in place. They get low-PVI names of their type.

    Among mentions with the same high-PVI name, keep one at random. Among the names that then share a content word, keep
    one at random. All other mentions are redundant; those with the most frequent names are changed first.
    """
    kind, order = "redundant2low", _redundant
    return _renamed_set(training, ladder, rate, seed, source=_high_names, order=order, kind=kind, in_place=True)


def _high_names(pools: Pools) -> BoolArray:
    return pools.entity_high


def _shuffled(training: Training, mentions: Sequence[int], rng: Random) -> list[int]:
    return rng.sample(mentions, len(mentions))


def _redundant(training: Training, mentions: Sequence[int], rng: Random) -> list[int]:
    """Return the redundant mentions, see `redundant2low`, in the order in which they are renamed."""
    by_name: dict[tuple[str, Name], list[int]] = defaultdict(list)
    for mention in mentions:
        by_name[training.kinds[mention], training.names[mention]].append(mention)
    stays, extra = list[int](), list[int]()
    for group in _largest_first(by_name):
        # The mention to keep is random, so that it does not depend on the order of sentences.
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
            # Keep this mention in all later groups: a group of another word of its name could remove it otherwise.
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
    """Rename mentions of the pool `source`. ladder: pools, most demanding first; the first that suffices is used."""
    wanted, low = training.wanted(rate), _LowNames(training, ladder[0])
    for pools in ladder:
        rng = Random(seed)
        # Leave out mentions without another low name of their type: they cannot be renamed, but would use up the rate.
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
    """Names of low PVI by type, one entry per mention. None comes from a held-out sentence."""

    def __init__(self, training: Training, pools: Pools) -> None:
        self.training = training
        self.names: dict[str, list[Name]] = defaultdict(list)
        for mention in _indices(pools.entity_low & training.free):
            self.names[training.kinds[mention]].append(training.names[mention])
        self.folded = {kind: set(map(folded, names)) for kind, names in self.names.items()}

    def has_other(self, mention: int) -> bool:
        """Return True if the mention's type has a low name other than its own."""
        return bool(self.folded.get(self.training.kinds[mention], set()) - {folded(self.training.names[mention])})

    def rename(self, row: int, mentions: Iterable[int], taken: Taken, rng: Random) -> Sentence | None:
        """Return the sentence at `row` with another name for each of `mentions`; None if no draw is new to the set."""
        for _ in range(NAME_TRIES):
            names = {int(self.training.places[mention]): self._other(mention, rng) for mention in mentions}
            edited = renamed(self.training.sentences[row], names)
            if taken.admit(edited.text):
                return edited
        return None

    def _other(self, mention: int, rng: Random) -> Name:
        # The loop ends, because `has_other` holds for every mention that is renamed.
        while same_name(name := rng.choice(self.names[self.training.kinds[mention]]), self.training.names[mention]):
            pass
        return name


def _indices(mask: BoolArray) -> list[int]:
    indices: list[int] = np.flatnonzero(mask).tolist()
    return indices


def random2high(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method I: delete random contexts and put their names into retained contexts of high PVI."""
    rng, high = Random(seed), ladder[0].context_high
    rows = list(training.by_row(range(len(training))))
    poor = np.ones(len(training), dtype=np.bool_)
    plan = _plan(training, high, rng.sample(rows, len(rows)), poor, training.wanted(rate))
    return _apply(training, plan, training.wanted(rate), rng=rng, kind="random2high")


def low2high(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """Method II: like `random2high`, but delete the least informative contexts.

    Mentions are ranked by context PVI within their type. Sentences with the lowest mean rank are deleted first. A
    sentence whose contexts are all high is kept.
    """
    # Ranks, not bits: types differ in their entropy, so by bits rare types would all be deleted first or last.
    ranks, high = _ranks(training), ladder[0].context_high
    rows = training.by_row(range(len(training)))
    order = {row: float(ranks[mentions].mean()) for row, mentions in rows.items() if not high[mentions].all()}
    measured = [row for row, rank in order.items() if not np.isnan(rank)]
    measured.sort(key=lambda row: (order[row], row))
    plan = _plan(training, high, measured, ~high, training.wanted(rate))
    return _apply(training, plan, training.wanted(rate), rng=Random(seed), kind="low2high")


def _ranks(training: Training) -> FloatArray:
    """Return ranks of context PVI within the type, `(m,)` from 0 to 1, NaN if unmeasured. Ties share a mean rank."""
    kinds = np.array(training.kinds, dtype=np.str_)
    ranks = np.full(len(training), np.nan)
    for kind in np.unique(kinds):
        mentions = np.flatnonzero((kinds == kind) & ~np.isnan(training.context))
        # Not scipy.stats.rankdata, because scipy.stats takes a second to import and pages would wait for it.
        _, places, times = np.unique(training.context[mentions], return_inverse=True, return_counts=True)
        ranks[mentions] = (np.cumsum(times) - (times - 1) / 2)[places] / max(len(mentions), 1)
    return ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Contexts to delete, and retained contexts that replace them.

    whole: rows to replace as whole sentences. by_mention: {row: mentions whose contexts are replaced one by one}. Rows
    of `whole` are also in `by_mention`, in case no retained sentence gives a new copy. sentences: {types: retained rows
    whose contexts are all high}. mentions: {type: retained mentions whose context may be copied}.
    """

    whole: set[int]
    by_mention: dict[int, list[int]]
    sentences: dict[Types, list[int]]
    mentions: dict[str, list[int]]


def _plan(training: Training, high: BoolArray, order: Iterable[int], poor: BoolArray, wanted: int) -> _Plan:
    """Choose the rows whose contexts are deleted, in `order`, until they hold `wanted` mentions.

    high: `(m,)` mask of contexts of high PVI. poor: `(m,)` mask of the mentions whose context may be replaced alone,
    without the rest of the sentence.
    """
    free = training.by_row(_indices(training.free))
    all_high = {row for row, mentions in free.items() if high[mentions].all()}
    lending = {
        mention
        for row, mentions in free.items()
        for mention, words in zip(mentions, context_words(training.sentences[row]), strict=True)
        if high[mention] and words >= ENOUGH
    }
    # A deleted context is replaced by another sentence with the same types, or by the context of another mention of its
    # type. Always retain at least one such sentence, or one such mention.
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
    """Puts names of deleted sentences into random retained contexts, unless the set already has the result."""

    training: Training
    plan: _Plan
    taken: Taken
    rng: Random
    kind: str

    def whole(self, row: int) -> tuple[Sentence, list[Edit]] | None:
        """Return a copy of a retained sentence with the names of `row`; None if no copy is new to the set."""
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
        """Return the sentence at `row` with other contexts around `mentions`; None if no draw is new."""
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
        """Draw retained mentions of the same type and another name, whose context may be lent."""
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
    """Return {index of an entity in `host`: its new name}; {} if a name would stay the same.

    The new names are those of `deleted`, matched by type from the left.
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

    The stretches are ordered from the left and cover the sentence.

    The cut between two mentions is at the punctuation nearest to the middle, or at the middle if there is none.
    """
    cuts = [0]
    for left, right in pairwise(ordered(sentence)):
        middle = (left.end + right.start) / 2
        marks = [cut for i in range(left.end, right.start) if (cut := _cut(sentence.tokens[i], i)) is not None]
        cuts.append(min(marks, key=lambda cut: (abs(cut - middle), cut), default=int(middle)))
    return list(pairwise([*cuts, len(sentence.tokens)]))


def _cut(token: str, i: int) -> int | None:
    """Return the offset of a cut at `token`: before an opening mark, after other punctuation; None for a word."""
    if any(letter.isalnum() for letter in token):
        return None
    return i if unicodedata.category(token[0]) in OPENING else i + 1


def context_words(sentence: Sentence) -> list[int]:
    """Return the number of words around the name in each mention's stretch, without punctuation."""
    return [
        sum(
            any(letter.isalnum() for letter in sentence.tokens[i]) for i in (*range(a, name.start), *range(name.end, b))
        )
        for (a, b), name in zip(stretches(sentence), ordered(sentence), strict=True)
    ]


def moved(sentence: Sentence, lenders: Mapping[int, tuple[Sentence, int]]) -> Sentence:
    """Return `sentence` with the words around its names taken from other mentions. Types and names stay.

    lenders: {index of a name, from the left: (another sentence, index of the mention whose context is taken)}.
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
    """Return the words of a mention's stretch before and after its name."""
    (start, end), name = stretches(sentence)[place], ordered(sentence)[place]
    return sentence.tokens[start : name.start], sentence.tokens[name.end : end]


if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Split = Callable[[str], Sequence[tuple[str, str]]]  # pieces of a word: (vocabulary entry, letters in the word)

GUARDED = 0.3  # share of a type's pieces that get no typo: those with the highest PMI with the type
NEAREST = 10  # names of similar spelling to draw from
LONGEST = 40  # characters compared per name, to bound memory; names differ earlier
TRIES = 5  # draws of a mention and a kind of change, after which a sentence gets no copy
_OUTSIDE = "O"


def dataaug(training: Training, split: Split, seed: int, *, typo_share: float = 0.5) -> Rebuilt:
    """Add one copy per sentence, with a typo or another name. typo_share: probability of a typo.

    split: function that returns the pieces of a word; their letters together form the word. If one kind of change gives
    no name, the other kind is tried. A sentence gets no copy if neither kind gives a new copy.
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
    """Return {type: pieces typical of the type, by PMI}. Words outside entities count as one more type.

    Among pieces of equal PMI the more frequent come first.
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
        # Rounded, because equal PMIs may differ in the last bits of the logarithm.
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
    """Return `name` with one typo in each piece that is not guarded; None if that changes nothing."""
    words = tuple(
        "".join(letters if piece in guarded else slip(letters, rng) or letters for piece, letters in split(word))
        for word in name
    )
    return words if words != name else None


class _Spelling:
    """Names of each type, to find those of similar spelling."""

    def __init__(self, training: Training) -> None:
        names: dict[str, set[Name]] = defaultdict(set)
        for name, kind, free in zip(training.names, training.kinds, training.free, strict=True):
            names[kind] |= {name} if free else set()
        self.names = {kind: sorted(names[kind]) for kind in sorted(names)}
        self.letters = {kind: _letters([surface(name) for name in of_kind]) for kind, of_kind in self.names.items()}
        self._nearest = cache(self._find)

    def near(self, name: Name, kind: str, rng: Random) -> Name | None:
        """Draw one of the `NEAREST` names closest to `name` in spelling; None if there are none.

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
    """Return code points `(l, n)`, one column per text, padded with 0, and lengths `(n,)`."""
    texts = [text[:LONGEST] for text in texts]
    codes = np.zeros((max(map(len, texts), default=1), len(texts)), np.int32)
    for column, text in enumerate(texts):
        codes[: len(text), column] = [ord(letter) for letter in text]
    return codes, np.array([len(text) for text in texts], dtype=np.int64)


def levenshtein(text: str, others: tuple[IntArray, IntArray]) -> IntArray:
    """Return edit distances `(n,)` from `text` to each of `others` (see `_letters`).

    Dynamic programming over all of `others` at once, one row of the table per letter of `text`.
    """
    codes, lengths = others
    steps = np.arange(len(codes) + 1, dtype=np.int16)[:, None]
    line = np.repeat(steps, len(lengths), axis=1)
    for done, letter in enumerate(text[:LONGEST], 1):
        best = np.minimum(line[1:] + 1, line[:-1] + (codes != ord(letter)))
        line = np.concatenate([np.full((1, len(lengths)), done, np.int16), best])
        line = np.minimum.accumulate(line - steps, axis=0) + steps  # an insertion costs 1 per step
    distances: IntArray = line[lengths, np.arange(len(lengths))]
    return distances
