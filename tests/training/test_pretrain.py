"""Masked language modelling: rows, steps, several processes, fitting of a new head, and exact resuming."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.errors import Cancelled
from core.models.mlm import MaskedLM, Masking, head_parameters
from core.reporter import Silent
from core.training import pretrain as module
from core.training.events import EventCallback, last_checkpoint
from core.training.mlm_settings import Settings
from core.training.pretrain import Piles, Pretraining, pretrain
from core.training.steps import Examples, Steps, near_equal, packed, pieces_until, tokenised
from tests.reporters import Recorder

RNG = np.random.default_rng(0)
TEXTS = [" ".join("".join(RNG.choice(list("abcdefg"), 3)) for _ in range(RNG.integers(1, 12))) for _ in range(60)]
SETTINGS = Settings(epochs=2, batch_size=8, learning_rate=1e-3)


def model() -> MaskedLM:
    return MaskedLM.load("tiny", device="cpu")


def examples(lm: MaskedLM) -> Examples:
    return tokenised([TEXTS[:40], TEXTS[40:]], lm.tokenizer, max_length=40, n=60, report=Silent())


def piles(lm: MaskedLM) -> Piles:
    rows = examples(lm)
    held = rows.take(np.arange(50, 60))
    return Piles(train=rows.take(np.arange(50)), draw=lambda epoch: np.arange(50), task=held, general=held)


def one_text(lm: MaskedLM) -> Piles:
    """Return a single text as training data: dev loss rises with every epoch, for all seeds and numbers of threads."""
    given = piles(lm)
    return replace(given, train=given.train.take(np.zeros(50, np.int64)))


def steps(rows: Examples, **kw: Any) -> Steps:
    masking = Masking.of(model().tokenizer, seed=1)
    given = {"batch_size": 8, "pieces": 40, "pad": 0, "total": 14} | kw
    return Steps(rows, masking, lambda epoch: np.arange(len(rows)), **given)


class Stopping(Silent):
    """Cancel after `at` steps of pre-training."""

    def __init__(self, at: int) -> None:
        self.at, self.training, self.done = at, False, 0

    def stage(self, name: str) -> None:
        self.training = name == "pre-training"

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self.done = done

    def check(self) -> None:
        if self.training and self.done >= self.at:
            raise Cancelled("stop")


def test_blockwise_tokenisation_equals_row_by_row() -> None:
    lm = model()
    rows = examples(lm)
    assert rows.ids.dtype == np.int32
    for row, text in enumerate(TEXTS):
        assert rows.ids[rows.at(np.array([row]))].tolist() == lm.tokenizer(text)["input_ids"]
    starts = rows.ends - rows.lengths
    for row, word in enumerate(text.split()[0] for text in TEXTS[:3]):
        assert rows.begins[starts[row] :][: 2 + len(word)].tolist() == [True, True, *[False] * (len(word) - 1), True]


def test_long_text_is_split_into_rows_without_loss() -> None:
    lm = model()
    whole = examples(lm)
    rows = tokenised([TEXTS[:40], TEXTS[40:]], lm.tokenizer, max_length=24, n=60, report=Silent())
    texts = np.cumsum(rows.first) - 1
    assert len(rows) > len(whole) == rows.first.sum()
    for text in range(len(whole)):
        own = rows.take(np.flatnonzero(texts == text))
        n = whole.lengths[text]
        assert len(own) == (1 if n <= 24 else -(-(n - 2) // 22))
        assert own.lengths.max() <= 24
        assert own.lengths.max() - own.lengths.min() <= 1
        pieces, begins = own.ids, own.begins
        ordinary = whole.take(np.array([text]))
        assert pieces[pieces > 4].tolist() == ordinary.ids[ordinary.ids > 4].tolist()
        assert [row[[0, -1]].tolist() for row in np.split(pieces, own.ends[:-1])] == [[2, 3]] * len(own)
        assert begins[own.ends - own.lengths + 1].all()  # a split word begins again in the next row
    short = np.flatnonzero(whole.lengths <= 24)
    alone = rows.take(np.flatnonzero(np.isin(texts, short)))
    assert (alone.ids.tolist(), alone.begins.tolist()) == tuple(
        each.tolist() for each in (whole.take(short).ids, whole.take(short).begins)
    )


def test_packed_rows_are_full_without_loss() -> None:
    lm = model()
    rows = examples(lm)
    full = packed(rows, lm.tokenizer, 16)
    assert set(full.lengths[:-1].tolist()) == {16}
    assert rows.ids[rows.ids > 4].tolist() == full.ids[full.ids > 4].tolist()
    assert (full.ids == 3).sum() == len(rows) + len(full)  # one separator per sentence, one at the end of each row


@pytest.mark.parametrize("pieces", [10, 100])
def test_micro_batches_cover_every_row_with_little_padding(pieces: int) -> None:
    lengths = np.random.default_rng(1).integers(3, 30, 100)
    parts = list(near_equal(lengths, pieces=pieces, rows=16))
    assert sorted(np.concatenate(parts).tolist()) == list(range(100))
    for part in parts:
        assert len(part) == 1 or len(part) * lengths[part].max() <= pieces
        assert lengths[part].min() * 1.15 >= lengths[part].max()
    lm = model()
    whole, *others = (module._steps(lm, piles(lm), replace(SETTINGS, accumulation=parts)) for parts in (1, 2, 4))
    for cut, n in zip(others, (2, 4), strict=True):  # smaller micro-batches, but the same step
        for i in range(len(whole)):
            assert (cut[i]["pieces"], cut[i]["masked"]) == (whole[i]["pieces"], whole[i]["masked"])
            assert max(len(micro[0]) for micro in cut[i]["micro"]) <= -(-SETTINGS.batch_size // n)


def test_a_step_equals_one_big_padded_batch() -> None:
    lm = model()
    lm.model.eval()
    step = steps(examples(lm))[2]
    assert len(step["micro"]) > 2
    for ids, attend, at, wanted in step["micro"]:
        torch.autograd.backward(lm.loss(ids, attend, at, wanted) / step["masked"])
    ours = {name: p.grad.clone() for name, p in lm.model.named_parameters() if p.grad is not None}
    width = max(ids.shape[1] for ids, *_ in step["micro"])
    ids, attend, labels = (torch.full((8, width), fill) for fill in (0, 0, -100))
    line = 0
    for micro, mask, at, wanted in step["micro"]:
        for row in range(len(micro)):
            n = micro.shape[1] if mask is None else int(mask[row].sum())
            ids[line, :n], attend[line, :n] = micro[row, :n], 1
            mine = at // micro.shape[1] == row
            labels[line, at[mine] % micro.shape[1]] = wanted[mine]
            line += 1
    lm.model.zero_grad()
    lm.model(input_ids=ids, attention_mask=attend, labels=labels).loss.backward()
    assert line == 8
    assert int((labels >= 0).sum()) == step["masked"]
    for name, parameter in lm.model.named_parameters():
        if name in ours:
            torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_epoch_covers_every_row_once_in_a_new_order() -> None:
    rows = examples(model())
    all_steps = steps(rows)
    assert all_steps.an_epoch == 8
    order = [all_steps._plan(epoch)[1].tolist() for epoch in (0, 1)]
    assert sorted(order[0]) == sorted(order[1]) == list(range(60))
    assert order[0] != order[1]
    assert sum(all_steps[i]["pieces"] for i in range(8)) == len(rows.ids)
    assert all_steps[0]["masked"] == steps(rows)[0]["masked"]
    seen = np.cumsum([all_steps[i]["pieces"] for i in range(14)])
    for wanted in (1, int(seen[3]), int(seen[3]) + 1, int(seen[11])):
        assert pieces_until(steps(rows), wanted) == int(np.searchsorted(seen, wanted)) + 1


@pytest.mark.parametrize("world", [2, 3, 11])
def test_processes_together_train_on_the_batch_of_one(world: int) -> None:
    rows = examples(model())
    alone = steps(rows)[7]  # the epoch's last step has 4 rows, fewer than 11 processes
    shares = [steps(rows, rank=rank, world=world)[7] for rank in range(world)]
    assert {(share["masked"], share["pieces"]) for share in shares} == {(alone["masked"], alone["pieces"])}
    found = [
        sorted(piece for share in given for *_, wanted in share["micro"] for piece in wanted.tolist())
        for given in ([alone], shares)
    ]
    assert found[0] == found[1]
    assert all(share["micro"] for share in shares)


def test_encoder_is_frozen_while_its_head_is_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = model()
    before = {name: weight.clone() for name, weight in lm.model.base_model.state_dict().items()}
    head = {name: weight.detach().clone() for name, weight in head_parameters(lm.model).items()}
    found: dict[str, bool] = {}

    def stop(*given: Any, **kw: Any) -> Any:
        after = lm.model.base_model.state_dict()
        found["still"] = all(torch.equal(weight, after[name]) for name, weight in before.items())
        found["fitted"] = not any(torch.equal(head[name], now) for name, now in head_parameters(lm.model).items())
        raise Cancelled("stop")

    monkeypatch.setattr(module, "_pretrain", stop)
    with pytest.raises(Cancelled):
        pretrain(lm, piles(lm), SETTINGS, folder=tmp_path, report=Silent())
    assert found == {"still": True, "fitted": True}
    assert all(parameter.requires_grad for parameter in lm.model.parameters())


def test_number_of_threads_does_not_change_the_language_model(tmp_path: Path) -> None:
    before, made = torch.get_num_threads(), list[MaskedLM]()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(1)
            made.append(lm := model())
            pretrain(lm, piles(lm), replace(SETTINGS, epochs=1), folder=tmp_path / str(threads), report=Silent())
    finally:
        torch.set_num_threads(before)
    same(*made)


def same(lm: MaskedLM, other: MaskedLM) -> None:
    torch.testing.assert_close(lm.model.state_dict(), other.model.state_dict(), rtol=0, atol=0)


def test_training_cancelled_in_an_epoch_resumes_exactly(tmp_path: Path) -> None:
    undisturbed_model, resumed_model, recorder = model(), model(), Recorder()
    undisturbed = pretrain(
        undisturbed_model, piles(undisturbed_model), SETTINGS, folder=tmp_path / "undisturbed", report=Silent()
    )
    with pytest.raises(Cancelled):
        pretrain(model(), piles(model()), SETTINGS, folder=tmp_path / "resumed", report=Stopping(at=3))
    checkpoint = last_checkpoint(tmp_path / "resumed")
    assert checkpoint is not None
    assert checkpoint.name == "checkpoint-4"  # of 14 steps, 7 an epoch
    torch.manual_seed(99)
    resumed = pretrain(resumed_model, piles(resumed_model), SETTINGS, folder=tmp_path / "resumed", report=Silent())
    assert (resumed.dev_loss, resumed.pseudo_perplexity) == (undisturbed.dev_loss, undisturbed.pseudo_perplexity)
    assert len(undisturbed.dev_loss) == 2
    assert undisturbed.dev_loss[-1] < undisturbed.before["dev_loss_task"]
    same(undisturbed_model, resumed_model)
    fast, last = replace(SETTINGS, epochs=4, learning_rate=0.3), model()
    found = pretrain(last, piles(last), fast, folder=tmp_path / "last", report=recorder)
    assert len(found.dev_loss) == 4  # without patience, the last epoch is kept and a note names a better epoch
    assert any("Set patience to keep the best one" in note for note in recorder.notes) == (
        np.argmin(found.dev_loss) < 3
    )
    assert not (tmp_path / "last" / "best.safetensors").exists()


def test_training_cancelled_at_early_stopping_resumes_exactly(tmp_path: Path) -> None:
    """Dev loss rises after the first epoch; the run is cancelled in the evaluation that ends the training."""
    rising = replace(SETTINGS, epochs=8, learning_rate=0.01, patience=2)
    undisturbed_model, resumed_model, recorder = model(), model(), Recorder()
    undisturbed = pretrain(
        undisturbed_model, one_text(undisturbed_model), rising, folder=tmp_path / "undisturbed", report=recorder
    )
    best = int(np.argmin(undisturbed.dev_loss))
    assert len(undisturbed.dev_loss) == best + 3 < 8
    assert undisturbed.steps < 56
    assert any(f"after epoch {best + 1} of {best + 3}, which is kept" in note for note in recorder.notes)
    own: dict[str, Any] = {"events": EventCallback(Silent()), "rate": 0.0, "report": Silent()}
    laid, given = steps(examples(undisturbed_model), pieces=2048), one_text(undisturbed_model)
    trainer = Pretraining(undisturbed_model, laid, rising, piles=given, folder=tmp_path / "again", **own)
    assert trainer.dev_loss(given.task) == pytest.approx(
        undisturbed.dev_loss[best], rel=1e-5
    )  # the best epoch's weights
    with pytest.raises(Cancelled):
        pretrain(model(), given, rising, folder=tmp_path / "resumed", report=Stopping(at=undisturbed.steps))
    resumed = pretrain(resumed_model, one_text(resumed_model), rising, folder=tmp_path / "resumed", report=Silent())
    assert (resumed.steps, resumed.dev_loss, resumed.pseudo_perplexity) == (
        undisturbed.steps,
        undisturbed.dev_loss,
        undisturbed.pseudo_perplexity,
    )
    same(undisturbed_model, resumed_model)
