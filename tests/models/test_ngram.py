"""Kneser-Ney n-gram models: golden numbers, sums to one, a slow implementation, and numbers of KenLM."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Cancelled, ConfigError, CorpusError
from core.models.kneser_ney import FALLBACK, closed_form
from core.models.ngram import KneserNey
from tests.reporters import Canceller, Recorder

TRAIN = [
    line.split()
    for line in (
        "the cat sat on the mat",
        "the dog sat on the log",
        "a cat saw the dog",
        "the dog saw a cat",
        "a cat sat on a log",
        "the mat was on the log",
    )
]
TEST = [line.split() for line in ("the cat saw the mat", "a dog sat on the unicorn")]

# Output of `lmplz -o 3 --discount_fallback` (kenlm 0.3.0) for "the cat sat", "the dog sat", "a cat".
LMPLZ = r"""\data\
ngram 1=8
ngram 2=9
ngram 3=8

\1-grams:
-1.146128	<unk>	0
0	<s>	-0.30103
-0.7386427	</s>	0
-0.89625055	the	-0.30103
-0.7386427	cat	-0.30103
-0.7386427	sat	-0.30103
-0.89625055	dog	-0.30103
-0.89625055	a	-0.30103

\2-grams:
-0.46690208	cat </s>	0
-0.22821428	sat </s>	0
-0.40140054	<s> the	-0.30103
-0.46690208	the cat	-0.30103
-0.22821428	a cat	-0.30103
-0.46690208	cat sat	-0.30103
-0.22821428	dog sat	-0.30103
-0.50377345	the dog	-0.30103
-0.63797253	<s> a	-0.30103

\3-grams:
-0.17351383	a cat </s>
-0.09928616	cat sat </s>
-0.09928616	dog sat </s>
-0.37609467	<s> the cat
-0.09928616	<s> a cat
-0.17351383	the cat sat
-0.09928616	the dog sat
-0.39067668	<s> the dog

\end\
"""

corpora = st.lists(st.lists(st.sampled_from("abcde"), max_size=7), min_size=1, max_size=25).filter(any)


class SlowKneserNey:
    """Compute the model by its definition, with plain dicts and recursion."""

    def __init__(self, sentences: Sequence[Sequence[str]], order: int, vocabulary_size: int | None = None) -> None:
        self.order = order
        self.words = sorted({word for sentence in sentences for word in sentence} | {"<unk>", "</s>"})
        self.uniform = 1 / (vocabulary_size or len(self.words))
        raw: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order + 1)]
        for sentence in sentences:
            framed = ("<s>", *sentence, "</s>")
            for n in range(1, order + 1):
                raw[n].update(framed[i : i + n] for i in range(len(framed) - n + 1))
        self.counts: list[dict[tuple[str, ...], int]] = [{}]
        for n in range(1, order + 1):
            left = Counter(gram[1:] for gram in raw[n + 1]) if n < order else Counter()
            self.counts.append(
                {
                    gram: count if n == order or gram[0] == "<s>" else left[gram]
                    for gram, count in raw[n].items()
                    if gram != ("<s>",)
                }
            )
        self.discounts = [FALLBACK, *(self._discounts(counts.values()) or FALLBACK for counts in self.counts[1:])]

    @staticmethod
    def _discounts(counts: Collection[int]) -> tuple[float, ...] | None:
        n = [sum(count == k for count in counts) for k in range(5)]
        if 0 in n[1:4]:
            return None
        y = n[1] / (n[1] + 2 * n[2])
        d = tuple(k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))
        return d if all(0 <= d[k - 1] <= k for k in (1, 2, 3)) else None

    def prob(self, word: str, context: tuple[str, ...] = ()) -> float:
        context = context[max(0, len(context) - self.order + 1) :]
        n = len(context) + 1
        lower = self.prob(word, context[1:]) if context else self.uniform
        after = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == context}
        if not after:
            return lower
        taken = {each: self.discounts[n][min(count, 3) - 1] for each, count in after.items()}
        kept = after.get(word, 0) - taken.get(word, 0)
        return (kept + sum(taken.values()) * lower) / sum(after.values())

    def log10(self, sentence: Sequence[str]) -> float:
        known = [word if word in self.words else "<unk>" for word in sentence]
        framed = ("<s>", *known, "</s>")
        return sum(math.log10(self.prob(framed[i], framed[:i])) for i in range(1, len(framed)))


class TestGolden:
    """SOURCES.md, Golden numbers."""

    def test_order_5_equals_the_golden_numbers(self) -> None:
        recorder = Recorder()
        model = KneserNey.fit(TRAIN, report=recorder)
        (note,) = recorder.notes
        assert "too small" in note
        assert "2, 3, 4, 5" in note
        assert len(model.vocabulary) - 1 == 12
        assert model.discounts[0] == pytest.approx((0.2308, 1.7231, 2.5385), abs=5e-5)
        assert model.discounts[0] == closed_form(3, 5, 2, 1)
        assert model.discounts[1:] == (FALLBACK,) * 4
        assert model.fallback_orders == (2, 3, 4, 5)
        assert model.score(TEST).log10 == pytest.approx([-4.32546, -6.56858], abs=5e-6)
        perplexities = model.perplexities(TEST)
        assert perplexities == pytest.approx([5.2591, 8.6770], abs=5e-5)
        assert perplexities.sum() == pytest.approx(13.9361, abs=5e-5)
        assert perplexities.mean() == pytest.approx(6.9680, abs=5e-5)
        assert model.score(TEST).corpus_perplexity() == pytest.approx(6.8866, abs=5e-5)
        assert model.perplexities(TEST, count_end=False) == pytest.approx([7.3298, 12.4384], abs=5e-5)
        without_end = model.score(TEST).corpus_perplexity(count_end=False)
        assert without_end == pytest.approx(10 ** ((4.32546 + 6.56858) / 11), abs=5e-4)
        assert KneserNey.fit(TRAIN, order=1).discounts[0] == pytest.approx((0.2, 1.1, 2.2))  # as in lmplz

    @pytest.mark.parametrize(
        ("order", "vocabulary_size", "expected"),
        [
            (2, None, [-3.9464948, -5.7824416]),
            (2, 1000, [-4.3958974, -8.6209993]),
            (3, None, [-3.7233996, -6.1311417]),
            (3, 1000, [-3.9687042, -8.9330845]),
            (5, None, [-4.3254595, -6.5685811]),
            (5, 1000, [-4.5707641, -9.3620443]),
        ],
    )
    def test_scores_equal_lmplz(self, order: int, vocabulary_size: int | None, expected: list[float]) -> None:
        """kenlm 0.3.0: `lmplz -o ORDER --discount_fallback --vocab_pad SIZE`, then `kenlm.Model.score`."""
        model = KneserNey.fit(TRAIN, order=order, vocabulary_size=vocabulary_size)
        assert model.score(TEST).log10 == pytest.approx(expected, rel=1e-6)

    def test_probabilities_and_back_offs_equal_lmplz(self) -> None:
        """An unseen word after a context costs the context's back-off and its probability after a shorter context."""
        model = KneserNey.fit([["the", "cat", "sat"], ["the", "dog", "sat"], ["a", "cat"]], order=3)
        rows = [line.split("\t") for line in LMPLZ.splitlines() if "\t" in line]
        assert [sum(gram.count(" ") == n for _, gram, *_ in rows) for n in range(3)] == [len(t) for t in model.tables]
        for log10, spelled, *backoff in rows:
            *context, word = gram = spelled.split(" ")
            if gram != ["<s>"]:
                assert math.log10(model.prob(word, context)) == pytest.approx(float(log10), rel=1e-5), spelled
            if backoff and "</s>" not in gram and "<unk>" not in gram:
                factor = model.prob("<unk>", gram) / model.prob("<unk>", gram[1:])
                assert math.log10(factor) == pytest.approx(float(backoff[0]), rel=1e-5), spelled


def test_discounts_follow_the_closed_form_or_are_none() -> None:
    assert closed_form(100, 40, 20, 12) == pytest.approx((0.555556, 1.166667, 1.666667), abs=5e-7)
    assert closed_form(2, 1, 1, 0) == pytest.approx((0.5, 0.5, 3.0))  # at the bounds of the valid range
    for n in ((0, 4, 2, 1), (9, 0, 2, 1), (9, 4, 0, 1), (10, 3, 60, 1), (1, 1, 1, 40)):
        assert closed_form(*n) is None


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("padding", [0, 500])
def test_probabilities_after_every_context_sum_to_one(order: int, padding: int) -> None:
    """Contexts: all of up to two words, and all that occur. Words: all known words and `padding` unseen words."""
    model = KneserNey.fit(TRAIN, order=order, vocabulary_size=12 + padding)
    words = [word for word in model.vocabulary if word != "<s>"]
    framed = [("<s>", *sentence) for sentence in TRAIN]
    contexts = {line[i:j] for line in framed for j in range(len(line) + 1) for i in range(max(0, j - 4), j)}
    for length in range(3):
        contexts |= set(product([*words, "<s>", "unicorn"], repeat=length))
    for context in sorted(contexts):
        total = sum(model.prob(word, context) for word in words) + padding * model.prob("unicorn", context)
        assert total == pytest.approx(1, abs=2e-6), context


@settings(max_examples=200, deadline=None)
@given(corpora, corpora, st.integers(1, 5), st.sampled_from([0, 0, 7]))
def test_kneser_ney_equals_a_slow_implementation(
    train: list[list[str]], test: list[list[str]], order: int, padding: int
) -> None:
    own = len(set().union(*train)) + 2
    model = KneserNey.fit(train, order=order, vocabulary_size=own + padding)
    slow = SlowKneserNey(train, order, own + padding)
    for n, discounts in enumerate(model.discounts, 1):
        assert discounts == pytest.approx(slow.discounts[n])
    with np.errstate(divide="ignore"):
        expected = [slow.log10(sentence) for sentence in test]
        assert model.score(test).log10 == pytest.approx(expected, rel=1e-5)
    for context in ((), ("<s>",), ("x", "a"), ("a", "b", "a")):  # some have unknown words or exceed the order
        for word in ("a", "</s>", "unicorn"):
            known = word if word in model.vocabulary else "<unk>"
            assert model.prob(word, context) == pytest.approx(slow.prob(known, context), rel=1e-5)


class TestScores:
    def test_unknown_words_are_counted_and_can_be_left_out(self) -> None:
        model = KneserNey.fit(TRAIN)
        scores = model.score([*TEST, ["unicorn", "unicorn"], []])
        assert scores.oov.tolist() == [0, 1, 2, 0]
        assert scores.tokens.tolist() == [5, 6, 2, 0]
        assert scores.oov_log10[0] == 0
        unicorn = math.log10(model.prob("unicorn", TEST[1][:-1]))
        assert scores.oov_log10[1] == pytest.approx(unicorn)
        without = scores.perplexities(exclude_oov=True)
        assert without[0] == scores.perplexities()[0]
        assert without[1] == pytest.approx(10 ** (-(scores.log10[1] - unicorn) / 6))
        known = model.prob("</s>", ["unicorn"])
        assert without[2] == pytest.approx(1 / known, rel=1e-6)

    def test_perplexity_of_nothing_is_nan(self) -> None:
        scores = KneserNey.fit(TRAIN).score([[], ["cat"]])
        assert np.isnan(scores.perplexities(count_end=False)).tolist() == [True, False]
        assert np.isfinite(scores.perplexities()).all()
        empty = KneserNey.fit(TRAIN).score([])
        assert empty.log10.shape == (0,)
        assert math.isnan(empty.corpus_perplexity())

    def test_scores_are_deterministic_and_independent_of_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(3)
        many = [[f"w{n}" for n in rng.zipf(1.5, size=rng.integers(0, 30)) % 200] for _ in range(300)]
        model, again = (KneserNey.fit(iter(many[:200])) for _ in range(2))
        whole = model.score(many).log10
        assert (again.score(many).log10 == whole).all()
        parts = [model.score(many[i : i + 7]).log10 for i in range(0, len(many), 7)]
        assert (np.concatenate(parts) == whole).all()
        monkeypatch.setattr("core.models.ngram._SCORED", 50)
        monkeypatch.setattr("core.models.ngram._READ", 3)
        assert (KneserNey.fit(many[:200]).score(many).log10 == whole).all()

    def test_reserved_tokens_are_skipped_in_training_and_unknown_in_scoring(self) -> None:
        marked = [["<s>", *TRAIN[0][:2], "<unk>", *TRAIN[0][2:], "</s>"], ["</s>"], *TRAIN[1:]]
        model, plain = KneserNey.fit(marked), KneserNey.fit([TRAIN[0], [], *TRAIN[1:]])
        assert (model.score(TEST).log10 == plain.score(TEST).log10).all()
        scores = model.score([["the", "<s>", "cat"], ["the", "</s>", "cat"], ["the", "unicorn", "cat"]])
        assert scores.oov.tolist() == [1, 1, 1]
        assert scores.log10[0] == scores.log10[1] == scores.log10[2]


def test_wrong_input_is_refused_and_fitting_can_be_cancelled() -> None:
    empty: list[list[list[str]]] = [[], [[], []], [["<s>", "</s>"]]]
    for sentences in empty:
        with pytest.raises(CorpusError, match="no tokens"):
            KneserNey.fit(sentences)
    with pytest.raises(ConfigError, match="order: 0"):
        KneserNey.fit(TRAIN, order=0)
    assert KneserNey.fit(TRAIN, vocabulary_size=12).order == 5
    with pytest.raises(ConfigError, match="the 12 words of the corpus"):
        KneserNey.fit(TRAIN, vocabulary_size=11)
    with pytest.raises(Cancelled):
        KneserNey.fit(TRAIN, report=Canceller())
    with pytest.raises(Cancelled):
        KneserNey.fit(TRAIN).score(TEST, report=Canceller())
