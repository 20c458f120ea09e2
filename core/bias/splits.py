"""Which dev and test splits go with a training corpus, as runs, roles and names say."""

import re
from collections.abc import Iterator, Mapping

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.runs.store import RunStore

TESTING = ("finetune", "experiment", "assist", "evaluate")  # kinds of runs that have a test split
HELD_OUT = ("dev", "test", "also_test", "holdout")  # inputs of a run that no training set may be made from
_OTHER_PARTS = ("dev", "devel", "valid", "validation", "val", "test")  # of a corpus whose name says train


def of(train: Corpus, roles: Mapping[str, str], library: Library, store: RunStore) -> tuple[list[str], str]:
    """Fingerprints of the held-out splits that go with `train`, and where that is known from, in words.

    Looked for among the splits of runs that trained on it, or on what it was made from; then among the parts given on
    the page Corpora, if it is the training part or made from that; then among corpora of its name with dev or test for
    train. The first of these that knows any counts. `([], "")` where none does: nobody else's splits are taken.
    """
    here = {corpus.fingerprint: corpus for corpus in library.list() if corpus.labelled}
    family = {corpus.fingerprint: corpus for corpus in _family(train, here)}
    evidence = {
        "held out in its own trainings": _of_runs(set(family), store),
        "given as dev and test sets, on the page Corpora": [
            roles[role] for role in ("dev", "test") if role in roles and roles.get("train") in family
        ],
        "found by their names": [
            other for other in here for corpus in family.values() if _named_as_part(corpus, here[other])
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


def _named_as_part(train: Corpus, other: Corpus) -> bool:
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
