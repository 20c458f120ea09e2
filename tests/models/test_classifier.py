"""Inputs of the classifiers behind PVI: one mask for a mention of any length, a window around it, special pieces."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ModelError
from core.models import hub
from core.models.classifier import Classifier, new_classifier
from core.training.settings import classify_preset

with torch.random.fork_rng(devices=[]):
    torch.manual_seed(1)  # the head is random
    TINY = new_classifier("tiny", 3, max_length=16)
CLS, SEP, MASK = 2, 3, 4
WORDS = st.lists(st.text("abc", min_size=1, max_size=5), max_size=8)


def letters(words: list[str]) -> list[int]:
    return [piece for ids in TINY.pieces.of(words) for piece in ids]


@given(WORDS, WORDS)
def test_context_keeps_the_words_nearest_to_its_mask(before: list[str], behind: list[str]) -> None:
    ids = list(TINY.context(before, behind))
    left, right = letters(before), letters(behind)
    at = ids.index(MASK)
    assert (ids[0], ids[-1], ids.count(MASK)) == (CLS, SEP, 1)
    assert ids[1:at] == left[len(left) - (at - 1) :]
    assert ids[at + 1 : -1] == right[: len(ids) - at - 2]
    assert len(ids) == min(16, len(left) + len(right) + 3)
    assert TINY.holds([*before, *behind], more=1) == (len(left) + len(right) + 3 <= 16)
    if len(ids) == 16:  # a side is truncated only if the other side has no more than half
        assert min(len(left), 6) <= at - 1
        assert min(len(right), 6) <= 14 - at


@given(WORDS)
def test_long_name_keeps_its_first_pieces(words: list[str]) -> None:
    assert list(TINY.name(words)) == [CLS, *letters(words)[:14], SEP]


def test_padding_does_not_change_logits() -> None:
    TINY.eval()
    short, long = TINY.name(["ab"]), TINY.context(["abc"] * 3, ["cab"])
    with torch.inference_mode():
        alone, together = torch.cat([TINY([short]), TINY([long])]), TINY([short, long])
    assert torch.allclose(alone, together, atol=0.05)
    assert alone.dtype == torch.float32
    assert not torch.allclose(alone[0], alone[1], atol=0.05)
    tokenizer = hub.load_tokenizer("tiny")
    tokenizer.mask_token = None
    with pytest.raises(ModelError, match="bert: has no mask piece to replace a mention; choose an encoder like BERT"):
        Classifier(hub.load_model("tiny"), tokenizer, 2, pooling="cls", max_length=16, dtype=torch.float32)


@pytest.mark.parametrize(
    ("n", "width", "context", "entity"),
    [
        (23_499, 768, (2, 5e-5, 32), (1, 5e-5, 32)),
        (1_975, 768, (5, 1e-4, 32), (3, 1e-4, 32)),
        (6_176, 768, (5, 1e-4, 32), (3, 1e-4, 32)),
        (26_470, 768, (2, 5e-5, 32), (1, 5e-5, 32)),
        (23_499, 1024, (2, 1e-5, 32), (1, 1e-5, 16)),
        (51_190, 768, (2, 5e-5, 32), (1, 5e-5, 32)),
    ],
    ids=["conll2003", "wnut2017", "twitter", "ace2005", "conll2003 large", "bio but for 3 context epochs"],
)
def test_paper_preset_equals_table_7_except_one_cell(
    n: int, width: int, context: tuple[int, float, int], entity: tuple[int, float, int]
) -> None:
    for view, expected in (("context", context), ("entity", entity)):
        found = classify_preset("paper", view, n, width)  # type: ignore[arg-type]
        assert (found.epochs, found.learning_rate, found.batch_size) == expected
        assert found.head_learning_rate == found.learning_rate
