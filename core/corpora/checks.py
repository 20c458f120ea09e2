"""Check the data before a run. Each check is green, amber or red, and has one sentence and one remedy.

The counts come from a corpus's about.json and from single columns of its Parquet file. They are cached per process,
because the content of a corpus folder never changes. A sample is up to 500 sentences from 10 places of the corpus.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Literal

import numpy as np

from core.config import Budget
from core.corpora.corpus import Corpus
from core.shown import count
from core.terms import LEAST_TASK
from core.text.sentence import Sentence

Level = Literal["green", "amber", "red"]
LEVELS: tuple[Level, ...] = ("green", "amber", "red")
ROLE_NAMES: Mapping[str, str] = {
    "task": "task corpus (T_C)",
    "domain": "domain corpus (D_C)",
    "train": "training set",
    "dev": "dev set",
    "test": "test set",
}
LABELS = ("train", "dev", "test")

# The check `task_in_domain` is amber if at least half of T_C's sentences also occur in D_C.
TASK_INSIDE = 0.5
# If a labelled set has fewer than 10 entities of a type, the F1 of this type is not reliable.
TYPE_ENTITIES = 10
# With fewer than 300 entities in the dev set, one entity changes dev F1 by over 0.3 points.
DEV_ENTITIES = 300
# The check `upper_case` is amber if at least 90% of the sentences are in capitals.
UPPER_CASE = 0.9
# The check `garbled` is amber if at least 1% of the sentences have characters that an earlier conversion garbled.
GARBLED = 0.01
# The check `documents` is amber if at least 10% of the sentences have more than 200 tokens. Few sentences have over
# 100 tokens, even in contracts.
LONG_TOKENS, LONG_SHARE = 200, 0.1
# A sentence for the user lists at most four names; further names are only counted.
NAMED = 4
# A sample has 50 sentences from each of 10 places. Only one or two row groups per place are read, so sampling a large
# corpus takes as long as sampling a small one.
_PLACES, _PER_PLACE = 10, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradictions:
    """Counts of contradictory labels.

    texts: number of texts that occur with different labels. sentences: number of sentences with one of these texts.
    """

    texts: int = 0
    sentences: int = 0

    @property
    def in_words(self) -> str:
        """The counts and a remedy as text for the user; "" if there are no contradictions."""
        if not self.texts:
            return ""
        several = self.texts > 1
        return (
            f"{self.texts:,} text{'s occur' if several else ' occurs'} more than once with different labels "
            f"({self.sentences:,} sentences). Decide on one labelling, or remove these sentences. If several people"
            " labelled them, add their names: in a column `annotator`, or in CoNLL as a line `# annotator = NAME`."
            " Then import with --annotator NAME."
        )


class ContradictionCounter:
    """Counts contradictory labels in a stream of sentences. It stores two small numbers per distinct text."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._contradicted = set[str]()

    def add(self, sentence: Sentence) -> None:
        """Count a sentence. Sentences without labels are ignored."""
        if sentence.entities is None:
            return
        self._times[sentence.id] = self._times.get(sentence.id, 0) + 1
        labels = hash(labels_of(sentence))
        if self._first.setdefault(sentence.id, labels) != labels:
            self._contradicted.add(sentence.id)

    def watched(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield `sentences` unchanged and count each one."""
        for sentence in sentences:
            self.add(sentence)
            yield sentence

    @property
    def found(self) -> Contradictions:
        """Counts of contradictory labels in the sentences so far."""
        n = sum(self._times[text] for text in self._contradicted)
        return Contradictions(texts=len(self._contradicted), sentences=n)


def contradictions(sentences: Iterable[Sentence]) -> Contradictions:
    """Count the texts that occur with different labels. `sentences` may come from several labelled sets."""
    counter = ContradictionCounter()
    for sentence in sentences:
        counter.add(sentence)
    return counter.found


def labels_of(sentence: Sentence) -> tuple[tuple[int, int, str], ...]:
    """Return (start, end, type) of each entity, sorted.

    Positions count characters without white space, so that labels can be compared if two files tokenise a text
    differently.
    """
    at = list(accumulate(map(len, sentence.tokens), initial=0))
    return tuple(sorted((at[e.start], at[e.end], e.type) for e in sentence.entities or ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of one check.

    sentence: the finding, as one sentence. cure: label of the button that leads to the remedy on `page`. command:
    command that is the remedy on the command line. final: True if the run would certainly fail, so that the user cannot
    overrule the check.
    """

    name: str
    level: Level
    sentence: str
    cure: str
    page: Literal["corpora", "selection", "training"] = "corpora"
    command: str = "python -m core corpus add FILES"
    final: bool = False


def worst(checks: Iterable[Check]) -> Level:
    """Return the worst level of the checks; green if there are none."""
    return max((check.level for check in checks), key=LEVELS.index, default="green")


def task_size(task: Corpus, strategies: Mapping[str, int]) -> Check:
    """Check that T_C has enough sentences. strategies: {strategy: minimum number of sentences that it needs}."""
    n, what = len(task), f"The {ROLE_NAMES['task']} has {count(len(task), 'sentence')}"
    lacking = [name for name, least in strategies.items() if n < least]
    green = Check(name="task size", level="green", sentence=f"{what}.", cure="Add task sentences")
    if lacking:
        least = strategies[lacking[0]]
        return replace(
            green, level="red", sentence=f"{what}; the strategy {lacking[0]} is not reliable with fewer than {least}."
        )
    if n < LEAST_TASK:
        why = f"with fewer than {LEAST_TASK}, scores depend too much on single sentences"
        return replace(green, level="amber", sentence=f"{what}; {why}.")
    return green


def task_in_domain(task: Corpus, domain: Corpus) -> Check:
    """Check that T_C is not D_C and does not overlap too much with it. Sentences are compared by their hashes."""
    inside, covered = _shared(task.path, domain.path)
    words = f"{ROLE_NAMES['task']} and the {ROLE_NAMES['domain']}"
    found = Check(
        name="task in domain",
        level="green",
        sentence=f"{inside:.0%} of the sentences of the {ROLE_NAMES['task']} also occur in the {ROLE_NAMES['domain']}.",
        cure="Choose another domain corpus",
    )
    if inside == covered == 1:
        return replace(found, level="red", sentence=f"The {words} have the same sentences, so selection has no effect.")
    if inside >= TASK_INSIDE:
        why = "these sentences will be selected first, but teach the encoder nothing new"
        return replace(found, level="amber", sentence=f"{found.sentence.removesuffix('.')}; {why}.")
    return found


def budget_fits(budgets: Sequence[str], domain: Corpus) -> Check:
    """Check that D_C is large enough for each budget."""
    size = {"sentences": domain.n_sentences, "tokens": domain.n_tokens}
    found = Check(
        name="budget",
        level="green",
        sentence=f"The {ROLE_NAMES['domain']} has {count(len(domain), 'sentence')}, enough for the budget.",
        cure="Choose a smaller budget",
        page="selection",
        command="python -m core select --budget 10%",
    )
    for budget in map(Budget.parse, budgets):
        if (most := size.get(budget.unit)) is not None and budget.value > most:
            holds = f"the {ROLE_NAMES['domain']} has {most:,}"
            sentence = f"The budget asks for {int(budget.value):,} {budget.unit}, but {holds}."
            return replace(found, level="red", sentence=sentence, final=True)
    return found


def entities_present(corpora: Mapping[str, Corpus]) -> Check:
    """Check that every labelled set contains at least one entity."""
    empty = [ROLE_NAMES.get(role, role) for role, corpus in corpora.items() if not sum(corpus.types.values())]
    found = Check(
        name="entities",
        level="green",
        sentence="Every labelled set contains entities.",
        cure="Import labelled data with entities",
    )
    if plain := [ROLE_NAMES.get(role, role) for role, corpus in corpora.items() if not corpus.labelled]:
        sentence = f"The {listed(plain)} {_is(plain)} not labelled; taggers need labels for training and testing."
        return replace(found, level="red", sentence=sentence)
    if empty:
        has = "has" if len(empty) == 1 else "have"
        why = "taggers need entities for training and testing"
        # Without entities in the training set, fine-tuning fails. In an experiment, it fails only after minutes of
        # pre-training.
        final = ROLE_NAMES["train"] in empty
        return replace(found, level="red", sentence=f"The {listed(empty)} {has} no entity; {why}.", final=final)
    return found


def types_covered(corpora: Mapping[str, Corpus]) -> Check:
    """Check that each entity type has at least `TYPE_ENTITIES` entities in every labelled set that has entities."""
    corpora = {role: corpus for role, corpus in corpora.items() if sum(corpus.types.values())}
    types = sorted({name for corpus in corpora.values() for name in corpus.types})
    few = []
    for name in types:
        counts = {ROLE_NAMES.get(role, role): corpus.types.get(name, 0) for role, corpus in corpora.items()}
        lacking = [
            f"{n:,} in the {role}" if n else f"none in the {role}" for role, n in counts.items() if n < TYPE_ENTITIES
        ]
        few += [f"{name} ({', '.join(lacking)})"] if lacking else []
    found = Check(
        name="types",
        level="green",
        sentence=f"Every entity type has at least {TYPE_ENTITIES} entities in every set.",
        cure="Add labelled sentences",
    )
    if few:
        return replace(
            found,
            level="amber",
            sentence=f"Types with fewer than {TYPE_ENTITIES} entities, whose F1 is unreliable: {listed(few)}.",
        )
    return found


def dev_size(dev: Corpus) -> Check:
    """Check that the dev set has enough entities to compare epochs."""
    n = sum(dev.types.values())
    what = f"The {ROLE_NAMES['dev']} has {n:,} entit{'y' if n == 1 else 'ies'}"
    found = Check(name="dev size", level="green", sentence=f"{what}.", cure="Add sentences to the dev set")
    if n < DEV_ENTITIES:
        why = f"with fewer than {DEV_ENTITIES}, dev F1 and every choice by it depend partly on chance"
        return replace(found, level="amber", sentence=f"{what}; {why}.")
    return found


def train_in_others(train: Corpus, others: Mapping[str, Corpus]) -> Check:
    """Check for training sentences that also occur, word for word, in the dev or test set."""
    found = Check(
        name="train in test",
        level="green",
        sentence="No training sentence occurs word for word in the dev or test set.",
        cure="Divide the labelled data again",
        command="python -m core corpus split TRAIN --by sentence",
    )
    partly, whole = [], []
    for role, corpus in others.items():
        _, seen = _shared(train.path, corpus.path)
        if seen:
            partly.append(
                f"{seen:.0%} of the {ROLE_NAMES.get(role, role)}" if seen >= 0.01 else ROLE_NAMES.get(role, role)
            )
        if seen == 1 and role == "test":
            whole.append(ROLE_NAMES.get(role, role))
    if whole:
        sentence = f"Every sentence of the {listed(whole)} is also a training sentence: F1 only shows memorisation."
        return replace(found, level="amber", sentence=sentence)
    if partly:
        sentence = f"Training sentences also occur in the dev or test set ({listed(partly)}): F1 will be too high."
        return replace(found, level="amber", sentence=sentence)
    return found


def upper_case(corpora: Mapping[str, Corpus]) -> Check:
    """Check for text that is all in capitals, in which a capital letter does not distinguish a name."""
    loud = [ROLE_NAMES.get(role, role) for role, corpus in corpora.items() if _texture(corpus).upper >= UPPER_CASE]
    found = Check(
        name="upper case", level="green", sentence="No corpus is all upper case.", cure="Import text in normal case"
    )
    if loud:
        why = "capitals then do not distinguish names, and taggers are less accurate"
        return replace(found, level="amber", sentence=f"The {listed(loud)} {_is(loud)} all upper case; {why}.")
    return found


def garbled(corpora: Mapping[str, Corpus]) -> Check:
    """Check for text that was stored after it had been read in a wrong encoding."""
    bad = [
        f"{ROLE_NAMES.get(role, role)} ({share:.0%})"
        for role, corpus in corpora.items()
        if (share := _texture(corpus).garbled) >= GARBLED
    ]
    found = Check(
        name="encoding",
        level="green",
        sentence="No corpus has garbled characters.",
        cure="Export the text again, as UTF-8",
    )
    if bad:
        how = 'such as "Ã¼" instead of "ü"'
        why = "the text was read in a wrong encoding, before the import or by it"
        return replace(found, level="amber", sentence=f"Garbled characters, {how}: {listed(bad)}; {why}.")
    return found


def documents(corpora: Mapping[str, Corpus]) -> Check:
    """Check for very long sentences, which are probably whole documents."""
    long = [
        f"{ROLE_NAMES.get(role, role)} ({share:.0%})"
        for role, corpus in corpora.items()
        if (share := _texture(corpus).long) >= LONG_SHARE
    ]
    found = Check(
        name="documents",
        level="green",
        sentence=f"Few sentences have more than {LONG_TOKENS} tokens.",
        cure="Import again and split into sentences",
        command="python -m core corpus add FILES --split",
    )
    if long:
        why = "these are probably whole documents, and longer than the encoder can read"
        sentence = f"Sentences of more than {LONG_TOKENS} tokens: {listed(long)}; {why}."
        return replace(found, level="amber", sentence=sentence)
    return found


def contradictory(corpora: Mapping[str, Corpus]) -> Check:
    """Check for equal sentences with different labels inside one labelled set."""
    found = Check(
        name="contradictions",
        level="green",
        sentence="No sentence occurs twice with different labels.",
        cure="Correct the labels",
    )
    wrong = []
    for role, corpus in corpora.items():
        found_here = _contradictions(corpus.path) if corpus.labelled else Contradictions()
        if found_here.texts:
            wrong.append(f"{ROLE_NAMES.get(role, role)} ({found_here.sentences:,} of {len(corpus):,})")
    if wrong:
        sentence = f"Sentences that occur more than once with different labels: {listed(wrong)}."
        return replace(found, level="amber", sentence=sentence)
    return found


def sample(corpus: Corpus) -> tuple[str, ...]:
    """Return the texts of up to 500 sentences from 10 evenly spaced places of a corpus."""
    return _sample(corpus.path, len(corpus))


def listed(names: Sequence[str]) -> str:
    """Join names to text such as "a, b, c, d and 3 more". Only the first `NAMED` names are listed."""
    more = len(names) - NAMED
    if more > 0:
        return f"{', '.join(names[:NAMED])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texture:
    """Shares of unusual sentences in a corpus.

    upper: share of sentences in capitals, among sampled sentences with letters that have case. garbled: share of
    sampled sentences that `_is_garbled` finds. long: share of sentences with more than `LONG_TOKENS` tokens, among all.
    """

    upper: float
    garbled: float
    long: float


def _texture(corpus: Corpus) -> _Texture:
    return _texture_at(corpus.path, len(corpus))


@lru_cache(512)
def _texture_at(path: Path, n: int) -> _Texture:
    texts = _sample(path, n)
    cased = [text for text in texts if text.lower() != text.upper()]
    upper = sum(text == text.upper() for text in cased) / max(len(cased), 1)
    bad = sum(map(_is_garbled, texts)) / max(len(texts), 1)
    counts = _at(path, n).length_counts()
    return _Texture(upper=upper, garbled=bad, long=int(counts[LONG_TOKENS + 1 :].sum()) / max(int(counts.sum()), 1))


def _is_garbled(text: str) -> bool:
    """Return True if a text has lost characters, or is UTF-8 that was read as Windows-1252 or Latin-1.

    Windows-1252 that was read as Latin-1 has control characters (U+0080 to U+009F) instead of quotes and dashes.
    """
    if text.isascii():
        return False
    if "\ufffd" in text or any("\x80" <= char <= "\x9f" for char in text):
        return True
    try:
        b"".join(char.encode("latin-1" if char <= "\xff" else "cp1252") for char in text).decode("utf-8")
    except UnicodeError:
        return False
    return True


@lru_cache(64)
def _sample(path: Path, n: int) -> tuple[str, ...]:
    corpus = _at(path, n)
    if n <= _PLACES * _PER_PLACE:
        return tuple(corpus.texts(0, n))
    starts = np.linspace(0, n - _PER_PLACE, _PLACES).astype(int).tolist()
    return tuple(text for start in starts for text in corpus.texts(start, start + _PER_PLACE))


@lru_cache(512)
def _shared(one: Path, other: Path) -> tuple[float, float]:
    """Return the share of each corpus's distinct sentences that also occur in the other corpus.

    one, other: folders of the corpora.
    """
    if one == other:
        return 1.0, 1.0
    ours, theirs = (np.unique(_at(path, 0).ids()) for path in (one, other))
    n = len(np.intersect1d(ours, theirs, assume_unique=True))
    return n / max(len(ours), 1), n / max(len(theirs), 1)


@lru_cache(512)
def _contradictions(path: Path) -> Contradictions:
    return contradictions(sentence for batch in _at(path, 0).batches() for sentence in batch)


def _at(path: Path, n: int) -> Corpus:
    """Return a `Corpus` that reads the sentences and columns in the folder `path`. Its other fields are placeholders.

    n: number of sentences, 0 if the caller does not need it.
    """
    return Corpus(fingerprint=path.name, name=path.name, n_sentences=n, n_tokens=0, labelled=False, path=path)
