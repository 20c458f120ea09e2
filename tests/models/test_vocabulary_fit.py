"""Fit of a vocabulary to a text, and states of words in each layer of an encoder."""

import numpy as np
import pytest
from transformers import BertTokenizerFast

from core.encoders.transfer import word_states
from core.errors import Cancelled
from core.models import hub
from core.models.bilstm import FrozenStates
from core.models.vocabulary_fit import remarks, vocabulary_fit
from core.reporter import Silent
from tests.conftest import sentence
from tests.reporters import Canceller

ROWS = [sentence("Bob met Ann in Rome"), sentence(""), sentence("a b c " * 60), sentence("x" * 300 + " y")]


def test_word_states_equal_those_of_the_frozen_encoder() -> None:
    """Sentences are encoded one by one without padding, long sentences in windows."""
    states = word_states("tiny", ROWS, Silent(), max_length=64)
    frozen = FrozenStates("tiny", max_length=64)
    # Without the embeddings.
    expected = np.concatenate([frozen.of([row])[0].numpy() for row in ROWS if row.tokens])[:, 1:]
    assert states.shape == (2, sum(len(row.tokens) for row in ROWS), 64)
    assert np.abs(states.transpose(1, 0, 2) - expected).max() < 0.05
    with pytest.raises(Cancelled):
        word_states("tiny", ROWS, Canceller())


def tokenizer(pieces: str, *, lower: bool) -> BertTokenizerFast:
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces.split()]
    return BertTokenizerFast(vocab={piece: i for i, piece in enumerate(names)}, do_lower_case=lower)


TEXT = [sentence("Rome is old"), sentence("the end of Rome"), sentence("zebra the the the the the")]
LOWER, BOTH = "rome is old the end of", "rome Rome is old the The end of"


def test_vocabulary_fit_equals_counts_of_the_text() -> None:
    fit = vocabulary_fit(tokenizer(BOTH, lower=False), TEXT, 7)
    assert fit.unknown == pytest.approx(1 / 13)  # zebra
    assert fit.pieces == 1
    assert (fit.case_lost, fit.cased) == (0, True)
    assert fit.longer == pytest.approx(1 / 3)  # six words and two special pieces


@pytest.mark.parametrize(
    ("pieces", "lower", "lost", "cased", "words"),
    [
        (LOWER, True, 1.0, False, "Uncased: 100% of the words with a capital"),
        (BOTH, True, 1.0, True, "tokenizer lower-cases 100%"),
        (BOTH, False, 0.0, True, ""),
    ],
)
def test_remarks_mention_lost_capitals(pieces: str, lower: bool, lost: float, cased: bool, words: str) -> None:
    fit = vocabulary_fit(tokenizer(pieces, lower=lower), TEXT[:2], 128)
    assert (fit.case_lost, fit.cased) == (lost, cased)
    assert words in " ".join(remarks("a", fit))
    assert bool(remarks("a", fit)) == bool(words)


def test_remarks_on_the_bundled_encoder_mention_case_and_language() -> None:
    bundled, german = hub.load_tokenizer("minilm"), [sentence("Donaudampfschifffahrt Bundesverfassungsgericht")]
    assert "cuts a word into" in " ".join(remarks("a", vocabulary_fit(bundled, german, 128)))
    fit = vocabulary_fit(bundled, TEXT, 128)
    assert (fit.case_lost, fit.cased) == (1, False)
    text = " ".join(remarks("minilm", fit))
    assert "cuts a word into" not in text
    assert "Uncased and English" in text
