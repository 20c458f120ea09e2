"""Masking and masked language models: proportions, special pieces, heads at masked positions, pseudo-perplexity."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoModelForMaskedLM, BertConfig, DistilBertConfig, RobertaConfig

from core.errors import ModelError
from core.models import hub
from core.models.mlm import MaskedLM, Masking, begin_head, head_parameters, pseudo_perplexity
from core.reporter import Silent

N = 100_000
SPECIAL = {0, 1, 2, 3, 4}  # of `tiny`: [PAD] [UNK] [CLS] [SEP] [MASK]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return hub.load_tokenizer("tiny")


def flat(seed: int = 0, width: int = 20) -> tuple[np.ndarray, ...]:
    """Return `N` pieces in rows of `width` with special pieces at both ends; every word has two pieces."""
    ids = np.random.default_rng(seed).integers(5, 193, N).astype(np.int32)
    places = np.arange(N) % width
    ids[places == 0], ids[places == width - 1] = 2, 3
    begins = (places % 2 == 1) | (places == 0)
    return ids, np.arange(N) // width, places, begins


@pytest.mark.parametrize("unit", ["piece", "word", "span"])
def test_masking_selects_15_percent_split_80_10_10(tokenizer: Any, unit: Any) -> None:
    ids, rows, places, begins = flat()
    seen, chosen = Masking.of(tokenizer, unit=unit).draw(ids, rows, places, begins, epoch=0)
    free = ~np.isin(ids, list(SPECIAL))
    assert not chosen[~free].any()
    assert abs(chosen[free].mean() - 0.15) < 0.005
    masked, kept = seen[chosen] == 4, seen[chosen] == ids[chosen]
    assert abs(masked.mean() - 0.8) < 0.01
    assert abs(kept.mean() - 0.1) < 0.01  # a random piece equals the original in 1 of 188 cases
    other = seen[chosen][~masked & ~kept]
    assert abs(len(other) / chosen.sum() - 0.1) < 0.01
    assert set(other.tolist()) == set(range(5, 193))  # no special piece
    assert (seen[~chosen] == ids[~chosen]).all()
    if unit == "word":
        words = np.cumsum(begins)
        share = np.bincount(words[free], chosen[free]) / np.maximum(np.bincount(words[free]), 1)
        assert set(share.tolist()) == {0.0, 1.0}  # a word is masked completely or not at all
    with pytest.raises(ModelError, match="no mask piece"):
        Masking.of(SimpleNamespace(mask_token_id=None))


def test_masks_depend_only_on_epoch_row_and_seed(tokenizer: Any) -> None:
    ids, rows, places, begins = flat()
    masking = Masking.of(tokenizer, seed=7)
    whole = masking.draw(ids, rows, places, begins, epoch=3)[1]
    some = (rows % 3 == 1) & (rows > 5)
    part = masking.draw(ids[some], rows[some], places[some], begins[some], epoch=3)[1]
    assert (part == whole[some]).all()
    for other in (
        masking.draw(ids, rows, places, begins, epoch=4)[1],
        Masking.of(tokenizer, seed=8).draw(ids, rows, places, begins, epoch=3)[1],
        masking.draw(ids, rows + 1, places, begins, epoch=3)[1],
    ):
        # Independent draws of 15% agree in 15% of the chosen.
        assert abs((other & whole).sum() / whole.sum() - 0.15) < 0.02


def test_span_masking_masks_longer_spans_but_not_more_pieces(tokenizer: Any) -> None:
    ids, rows, places, begins = flat()
    alone, joined = (
        Masking.of(tokenizer, probability=0.2, unit=unit).draw(ids, rows, places, begins, epoch=0)[1]
        for unit in ("piece", "span")
    )
    assert joined.sum() == alone.sum()
    beside = [(mask[1:] & mask[:-1] & (rows[1:] == rows[:-1])).sum() for mask in (alone, joined)]
    assert beside[1] > 2 * beside[0]


SMALL = {"vocab_size": 193, "num_attention_heads": 2, "pad_token_id": 0}
FAMILIES = {
    "bert": BertConfig(**SMALL, hidden_size=16, num_hidden_layers=1, intermediate_size=32),
    "roberta": RobertaConfig(**SMALL, hidden_size=16, num_hidden_layers=1, intermediate_size=32),
    "distilbert": DistilBertConfig(vocab_size=193, dim=16, n_layers=1, n_heads=2, hidden_dim=32, pad_token_id=0),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_head_at_masked_positions_equals_the_full_head(tokenizer: Any, family: str) -> None:
    torch.manual_seed(0)
    lm = MaskedLM(AutoModelForMaskedLM.from_config(FAMILIES[family]).eval(), tokenizer, has_head=True)
    ids, none = torch.randint(5, 193, (6, 17)), torch.zeros(0, dtype=torch.int64)
    nothing = lm.loss(ids, None, none, none)
    torch.autograd.backward(nothing)
    assert nothing.item() == 0.0
    lm.model.zero_grad()
    attend = (torch.arange(17) < torch.tensor([17, 17, 9, 12, 5, 17])[:, None]).long()
    at = torch.tensor([1, 5, 20, 36, 55, 70, 71, 90])
    wanted = ids.flatten()[at]
    torch.autograd.backward(lm.loss(ids, attend, at, wanted).div(len(at)))
    ours = {name: p.grad.clone() for name, p in lm.model.named_parameters() if p.grad is not None}
    lm.model.zero_grad()
    labels = torch.full((6, 17), -100)
    labels.view(-1)[at] = wanted
    full = lm.model(input_ids=ids, attention_mask=attend, labels=labels).loss
    full.backward()
    assert lm.loss(ids, attend, at, wanted).item() / len(at) == pytest.approx(full.item(), rel=1e-5)
    for name, parameter in lm.model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-5, atol=1e-6)


def test_missing_head_starts_from_embeddings_and_frequencies(tmp_path: Path) -> None:
    assert not MaskedLM.load(hub.BUNDLED, device="cpu").has_head
    lm = MaskedLM.load("tiny", device="cpu")
    assert not lm.has_head
    AutoModel.from_config(lm.model.config).save_pretrained(tmp_path)
    lm.tokenizer.save_pretrained(tmp_path)
    lm = MaskedLM.load(str(tmp_path), device="cpu")
    assert not lm.has_head
    counts = np.arange(193)
    begin_head(lm, counts)
    head = lm.model.cls.predictions
    assert torch.equal(head.transform.dense.weight, torch.eye(64))
    assert head.decoder.weight is lm.model.get_input_embeddings().weight
    share = (counts + 1) / (counts.sum() + 193)
    np.testing.assert_allclose(head.decoder.bias.detach().numpy(), np.log(share), rtol=1e-5)
    own = ["bias", *(f"transform.{part}.{kind}" for part in ("dense", "LayerNorm") for kind in ("weight", "bias"))]
    assert set(head_parameters(lm.model)) == {f"cls.predictions.{name}" for name in own}


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(5, 192), min_size=1, max_size=9), st.integers(1, 40))
def test_pseudo_perplexity_equals_one_mask_per_pass(pieces: list[int], budget: int) -> None:
    lm = MaskedLM.load("tiny", device="cpu")
    row = np.array([2, *pieces, 3], dtype=np.int32)
    found, passes = pseudo_perplexity(lm, [row], pieces=budget, report=Silent())
    losses = []
    for place in range(1, len(row) - 1):
        ids = torch.from_numpy(row.astype(np.int64))[None].clone()
        ids[0, place] = 4
        with torch.inference_mode():
            shares = lm.model.eval()(input_ids=ids).logits[0, place].log_softmax(-1)
        losses.append(-float(shares[int(row[place])]))
    assert passes == 1
    assert found == pytest.approx(float(np.exp(np.mean(losses))), rel=1e-4)


def test_pseudo_perplexity_is_bounded_in_time_and_nan_without_rows() -> None:
    lm = MaskedLM.load("tiny", device="cpu")
    rows = [np.array([2, 10, 11, 3], dtype=np.int32)] * 5
    assert pseudo_perplexity(lm, rows, pieces=100, report=Silent(), seconds=0.0)[1] == 1
    assert np.isnan(pseudo_perplexity(lm, [], pieces=100, report=Silent())[0])
