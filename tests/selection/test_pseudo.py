"""Pseudo-perplexity against a slow implementation with one mask and one forward pass at a time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from core.errors import Cancelled
from core.reporter import Reporter, Silent
from core.results import Role
from core.selection import make_strategy
from core.selection.base import Batch, Source, Strategy
from core.selection.strategies.perplexity import PseudoPerplexity, _Pass
from tests.conftest import Seal, sentence
from tests.fake_models import tiny_mlm, unigram_mlm

TEXTS = ["The guarantor pays .", "a", "", "Harlow Ltd's price (net) is 20 %", "\u200b", "x y z", "The guarantor pays ."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_mlm(tmp_path_factory.mktemp("mlm"))


@pytest.fixture(autouse=True)
def full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.models.devices._has_bf16", lambda device: False)


def prepared(folder: Path, seal: Seal, *, seed: int = 0, **options: object) -> Strategy:
    strategy = make_strategy("pseudo-perplexity", options, seed)
    strategy.prepare({Role.TASK: Source(corpus=seal(["a b"], "t"), model=folder)}, Silent())
    return strategy


def batch(texts: list[str], report: Reporter | None = None) -> Batch:
    sentences = [sentence(text) for text in texts]
    ids = np.array([int(s.id, 16) for s in sentences], dtype=np.uint64)
    return Batch(ids=ids, sentences=sentences, report=report or Silent())


def naive(folder: Path, text: str, *, within_word: bool = True, max_length: int = 128) -> float:
    """Return equation (1) of Salazar et al. 2020, with one mask at a time; later pieces of a word are hidden too.

    Kauf and Ivanova 2023 proposed to hide them. In a long sentence, a piece is predicted in the first window that
    contains it; the last window is moved back.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    pieces = tokenizer(text, return_tensors="pt", verbose=False)
    whole, all_words = pieces["input_ids"], pieces.word_ids()
    losses, n, room = [], len(all_words) - 2, max_length - 2
    for piece in range(n):
        stop = min(piece // room * room + room, n)
        begin = max(stop - room, 0)
        places = [0, *range(begin + 1, stop + 1), n + 1]
        ids, words, place = whole[:, places], [all_words[i] for i in places], piece - begin + 1
        hidden = ids.clone()
        for later, other in enumerate(words):
            if later == place or (within_word and later > place and other == words[place]):
                hidden[0, later] = tokenizer.mask_token_id
        with torch.no_grad():
            log_probs = model(input_ids=hidden).logits[0, place].double().log_softmax(-1)
        losses.append(-float(log_probs[ids[0, place]]))
    return float(np.exp(np.mean(losses))) if losses else float("nan")


def test_exact_method_equals_one_mask_per_pass(folder: Path, seal: Seal) -> None:
    scores = prepared(folder, seal).score(batch(TEXTS))
    expected = [naive(folder, text) for text in TEXTS]
    np.testing.assert_allclose(scores, expected, rtol=1e-4)
    assert np.isnan(scores[[2, 4]]).all()
    other = naive(folder, TEXTS[0], within_word=False)
    assert abs(other / scores[0] - 1) > 0.01  # proves that hiding the rest of a word matters


def test_windows_change_only_scores_of_long_sentences(
    folder: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["one two", "a word of thirteen", "three four", "abcdefghij" * 3]
    expected = [naive(folder, text, max_length=12) for text in texts]
    np.testing.assert_allclose(prepared(folder, seal, max_length=12).score(batch(texts)), expected, rtol=1e-4)
    for method in ("exact", "sampled", "one-pass"):
        strategy = prepared(folder, seal, max_length=12, method=method)
        scores = strategy.score(batch(texts))
        with monkeypatch.context() as patch:
            # An earlier version cut all sentences like this.
            patch.setattr("core.selection.strategies.perplexity.LONGEST", 0)
            cut = strategy.score(batch(texts))
        assert scores[[0, 2]].tobytes() == cut[[0, 2]].tobytes()
        assert (scores[[1, 3]] != cut[[1, 3]]).all()


def test_logits_are_float32_for_a_bf16_encoder(folder: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = prepared(folder, seal).score(batch(TEXTS[:2]))
    monkeypatch.setattr("core.models.devices._has_bf16", lambda device: True)
    strategy = prepared(folder, seal)
    assert isinstance(strategy, PseudoPerplexity)
    lm = strategy._lm
    assert lm.model.get_input_embeddings().weight.dtype == torch.bfloat16
    logits = lm.logits(torch.tensor([[2, 7, 9, 3]]), None, torch.tensor([1, 2]))
    assert logits.dtype == torch.float32
    assert (logits != logits.bfloat16()).float().mean() > 0.9
    np.testing.assert_allclose(strategy.score(batch(TEXTS[:2])), exact, rtol=0.02)


def test_unigram_model_gives_unigram_perplexity(tmp_path: Path, seal: Seal) -> None:
    folder = unigram_mlm(tmp_path, ["a a a b", "b c"], ["d"])
    shares = {"a": 4, "b": 3, "c": 2, "d": 1}
    total = sum(shares.values()) + 5  # one count for each special piece
    texts = ["a b", "d d d", "c", "a b c d a"]
    expected = [np.exp(-np.mean([np.log(shares[word] / total) for word in text.split()])) for text in texts]
    for method in ("exact", "one-pass"):
        np.testing.assert_allclose(prepared(folder, seal, method=method).score(batch(texts)), expected, rtol=1e-5)
    assert prepared(folder, seal, method="sampled").score(batch(texts))[1:3] == pytest.approx(expected[1:3], rel=1e-5)


def test_sampled_masks_depend_on_id_and_seed(folder: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[_Pass] = []
    whole = PseudoPerplexity._losses

    def spy(self: PseudoPerplexity, looks: Sequence[_Pass]) -> torch.Tensor:
        seen.extend(looks)
        return whole(self, looks)

    monkeypatch.setattr(PseudoPerplexity, "_losses", spy)
    texts = ["abcdefghij klmnopqrst", "a", "uvwxyz"]  # of 20, 1 and 6 pieces
    strategy = prepared(folder, seal, method="sampled", seed=3)
    scores = strategy.score(batch(texts))
    assert len(seen) == 18  # six draws for each text
    assert all(list(look.masked) == list(look.targets) for look in seen)
    assert {(look.read.sentence, len(look.targets)) for look in seen} == {(0, 3), (1, 1), (2, 1)}
    assert len({tuple(look.targets) for look in seen if not look.read.sentence}) > 3  # draws differ
    alone = np.concatenate([strategy.score(batch([text])) for text in reversed(texts)])[::-1]
    np.testing.assert_allclose(alone, scores, rtol=1e-5)
    other = prepared(folder, seal, method="sampled", seed=4).score(batch(texts))
    assert other[0] != pytest.approx(scores[0], rel=1e-3)
    many = prepared(folder, seal, method="sampled", passes=100).score(batch(texts[2:]))
    exact = naive(folder, texts[2], within_word=False)
    assert many[0] == pytest.approx(exact, rel=0.15)  # the mean over many draws of one piece of six


def test_one_pass_method_notes_that_scores_are_not_probabilities(folder: Path, seal: Seal) -> None:
    notes = []

    class Listens(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    strategy = make_strategy("pseudo-perplexity", {"method": "one-pass"}, 0)
    strategy.prepare({Role.TASK: Source(corpus=seal(["a b"], "t"), model=folder)}, Listens())
    assert "not probabilities" in notes[0]


def test_progress_counts_all_sentences_and_cancel_stops_between_passes(
    folder: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.selection.strategies.perplexity.BUDGET", {"cpu": 64})
    progress_seen: list[tuple[int, int | None]] = []

    class Stops(Silent):
        checks = 0

        def progress(self, done: int, total: int | None, unit: str) -> None:
            progress_seen.append((done, total))

        def check(self) -> None:
            self.checks += 1
            if self.checks == 100:
                raise Cancelled("stop")

    strategy = prepared(folder, seal)
    strategy.score(batch(["one two three", "four five"], Stops()))
    assert progress_seen[-1] == (2, 2)
    assert len(progress_seen) > 3
    assert progress_seen == sorted(progress_seen)
    with pytest.raises(Cancelled):
        strategy.score(batch(["one two three " * 8] * 9, Stops()))
