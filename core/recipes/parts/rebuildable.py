"""What may be rebuilt: training data alone, never a split that taggers are tested on (SOURCES.md, Rebuilding)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import get_args

from core.corpora.corpus import Corpus, Library
from core.errors import ConfigError, CorpusError
from core.recipes.base import Job
from core.recipes.robustness import Kind
from core.reconstruction.training import key_of
from core.runs.store import RunStore
from core.text.sentence import Sentence

TESTING = ("finetune", "experiment", "assist", "evaluate")  # kinds of runs that have a test split
SHARED, STOCK = 0.1, 20  # more than both, as a share of the smaller corpus and in sentences, is no stock phrase
NEARLY = 0.9  # of the smaller corpus: the one is, or holds, the other, however small it is
HELD_OUT = ("dev", "test", "also_test", "holdout")  # inputs of a run that no training set may be made from
_OTHER_PARTS = ("dev", "devel", "valid", "validation", "val", "test")  # of a corpus whose name says train


def refuse_tests(corpus: Corpus, store: RunStore) -> None:
    """Errors: ConfigError if `corpus` is a robustness set, or a test split of any run in `store`."""
    if corpus.origin.get("kind") in get_args(Kind):
        raise ConfigError(
            f"{corpus.name}: is a robustness set ({corpus.origin['kind']}), made for testing; only training data is"
            " rebuilt, so give a training split."
        )
    for run in store.list(*TESTING):
        inputs = run.manifest.inputs.items()
        roles = {role.partition(".")[0] for role, fingerprint in inputs if fingerprint == corpus.fingerprint}
        if roles & {"test", "also_test"}:
            raise ConfigError(
                f"{corpus.name}: is a test split of the run {run.id}; only training data is rebuilt, so give a"
                " training split, or remove that run if it was tested on training data."
            )


def held_out(train: Corpus, sentences: Sequence[Sentence], holdout: Sequence[str], job: Job) -> list[str]:
    """Texts of `holdout`, which must not be made. sentences: of `train`, all.

    Errors: CorpusError where the training corpus is a held-out split or holds one.
    """
    if not holdout:
        job.context.note(
            "No held-out split was named, so nothing tells this corpus from a test split; name dev and test."
        )
    train_keys = {key_of(sentence.text) for sentence in sentences}
    held_texts: list[str] = []
    for reference in holdout:
        corpus = job.corpus(reference)
        texts = [sentence.text for sentence in chain.from_iterable(corpus.batches())]
        held_keys = set(map(key_of, texts))
        shared, smaller = len(train_keys & held_keys), min(len(train_keys), len(held_keys))
        if shared >= NEARLY * smaller or shared > max(STOCK, SHARED * smaller):
            raise CorpusError(
                f"{train.name}: {shared:,} of its sentences are in the held-out {corpus.name}; only training data is"
                " rebuilt, so give a training split."
            )
        if shared:
            job.context.note(f"{shared:,} sentences are in {corpus.name} too; they stay as they are and give nothing.")
        held_texts += texts
    return held_texts


def splits_beside(train: Corpus, roles: Mapping[str, str], library: Library, store: RunStore) -> tuple[list[str], str]:
    """Fingerprints of the held-out splits that go with `train`, and where that is known from, in words.

    Looked for among the splits of runs that trained on it, or on what it was made from; then among the parts given on
    the page Corpora, if it is the training part or made from that; then among corpora of its name with dev or test for
    train. The first of these that knows any counts. `([], "")` where none does: nobody else's splits are taken.
    """
    here = {corpus.fingerprint: corpus for corpus in library.list() if corpus.labelled}
    family = {corpus.fingerprint: corpus for corpus in _family(train, here)}
    evidence = {
        "held out in its own trainings": _of_runs(set(family), store),
        "given as dev and test on the page Corpora": [
            roles[role] for role in ("dev", "test") if role in roles and roles.get("train") in family
        ],
        "found by their names": [
            other for other in here for corpus in family.values() if _named_beside(corpus, here[other])
        ],
    }
    for source, fingerprints in evidence.items():
        if kept := [other for other in dict.fromkeys(fingerprints) if other in here and other not in family]:
            return kept, source
    return [], ""


def _family(train: Corpus, here: Mapping[str, Corpus]) -> Iterator[Corpus]:
    """`train`, what it was made from, what that was made from."""
    corpus: Corpus | None = train
    seen: set[str] = set()
    while corpus and corpus.fingerprint not in seen:
        yield corpus
        seen.add(corpus.fingerprint)
        corpus = here.get(corpus.parent)


def _of_runs(trained_on: set[str], store: RunStore) -> list[str]:
    """Held-out splits of every training with such a training split; a rebuild's own list is a choice, no evidence."""
    runs = [run.manifest.inputs for run in store.list(*TESTING)]
    return [
        fingerprint
        for inputs in runs
        if inputs.get("train") in trained_on
        for name, fingerprint in inputs.items()
        if name.partition(".")[0] in HELD_OUT
    ]


def _named_beside(train: Corpus, other: Corpus) -> bool:
    """Whether a name of `other` is one of `train` with a held-out part in the place of train: news-train, news-dev."""
    parts = "|".join(_OTHER_PARTS)
    patterns = [
        re.sub(r"(?<![a-z])train(?:ing)?(?![a-z])", f"(?:{parts})", re.escape(name.lower()))
        for name in _names(train)
        if re.search(r"(?<![a-z])train(?:ing)?(?![a-z])", name.lower())
    ]
    return any(re.fullmatch(pattern, name.lower()) for pattern in patterns for name in _names(other))


def _names(corpus: Corpus) -> set[str]:
    return {corpus.name, *corpus.names}
