"""What may be rebuilt: training data alone, never a split that taggers are tested on (SOURCES.md, Rebuilding)."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import get_args

from core.bias.robustness import Perturbation
from core.bias.training_sentences import key_of
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError
from core.importing.splits import TESTING
from core.runs.store import RunStore
from core.text.sentence import Sentence

SHARED, STOCK = 0.1, 20  # more than both, as a share of the smaller corpus and in sentences, is no stock phrase
NEARLY = 0.9  # of the smaller corpus: the one is, or holds, the other, however small it is


def refuse_tests(corpus: Corpus, store: RunStore) -> None:
    """Errors: ConfigError if `corpus` is a robustness set, or a test split of any run in `store`."""
    if corpus.origin.get("kind") in get_args(Perturbation):
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


def held_out(
    train: Corpus, sentences: Sequence[Sentence], holdout: Sequence[Corpus], note: Callable[[str], None]
) -> list[str]:
    """Texts of `holdout`, which must not be made. sentences: of `train`, all. note: takes what is worth saying.

    Errors: CorpusError where the training corpus is a held-out split or holds one.
    """
    if not holdout:
        note("No held-out split was named, so this corpus may be one; name its dev and test sets.")
    train_keys = {key_of(sentence.text) for sentence in sentences}
    held_texts: list[str] = []
    for corpus in holdout:
        texts = [sentence.text for sentence in chain.from_iterable(corpus.batches())]
        held_keys = set(map(key_of, texts))
        shared, smaller = len(train_keys & held_keys), min(len(train_keys), len(held_keys))
        if shared >= NEARLY * smaller or shared > max(STOCK, SHARED * smaller):
            raise CorpusError(
                f"{train.name}: {shared:,} of its sentences are in the held-out {corpus.name}; only training data is"
                " rebuilt, so give a training split."
            )
        if shared:
            note(f"{shared:,} sentences are in {corpus.name} too; they stay as they are and give nothing.")
        held_texts += texts
    return held_texts
