"""Training of MINER: copies with other names in each epoch, the contrastive loss, and exact resuming."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import set_seed

from core.errors import Cancelled
from core.models.span import SpanTagger, half_squared_distance
from core.models.taggers import new_span_tagger
from core.reporter import Reporter, Silent
from core.tagging.network import OtherNames
from core.text.sentence import Paired
from core.training.finetune import Epochs, finetune
from core.training.rows import PRIMARY, Contrasted, OneCorpus, in_parts
from core.training.threads import Threads
from tests.conftest import sentence
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES, Killed, Listener, largest_difference

COPY = OtherNames(TRAIN).copy
LAST = replace(SETTINGS, last=True)  # every step influences the final weights
ROWS = [(one, 1.0, PRIMARY) for one in TRAIN]


def make(seed: int = 1, beta: float = 0.05, gamma: float = 0.05) -> SpanTagger:
    set_seed(seed)
    return new_span_tagger("tiny", TYPES, precision="fp32", max_length=64, beta=beta, gamma=gamma)


def train(
    folder: Path, report: Reporter | None = None, tagger: SpanTagger | None = None, checkpoint_seconds: float = 1e9
) -> tuple[Epochs, SpanTagger]:
    tagger = tagger or make()
    own: dict[str, Any] = {"folder": folder, "report": report or Silent(), "checkpoint_seconds": checkpoint_seconds}
    return finetune(tagger, TRAIN, DEV, LAST, seed=1, types=TYPES, copies=COPY, **own), tagger


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Epochs, SpanTagger]:
    return train(tmp_path_factory.mktemp("calm"))


@pytest.mark.parametrize(("after", "error"), [(4, Killed()), (6, Cancelled("stop"))], ids=["killed", "cancelled"])
def test_resumed_training_equals_an_undisturbed_one(
    undisturbed: tuple[Epochs, SpanTagger], tmp_path: Path, after: int, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        train(tmp_path, Listener(after, error), checkpoint_seconds=0.0)
    epochs, tagger = train(tmp_path, tagger=make(seed=99), checkpoint_seconds=0.0)
    assert epochs.dev_f1 == undisturbed[0].dev_f1
    assert largest_difference(tagger, undisturbed[1]) == 0.0


def test_number_of_threads_does_not_change_miner_and_the_critic_learns(
    undisturbed: tuple[Epochs, SpanTagger], tmp_path: Path
) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        epochs, alone = train(tmp_path)
    finally:
        torch.set_num_threads(before)
    assert largest_difference(alone, undisturbed[1]) == 0.0
    assert max(epochs.dev_f1) > 30
    assert alone.contrast
    began = make().contrast
    assert began
    moved = [not torch.equal(a, b) for a, b in zip(alone.contrast.parameters(), began.parameters(), strict=True)]
    assert all(moved)


def test_dropout_per_thread_is_deterministic() -> None:
    """Dropout is also applied to the span layer, which is outside the encoder."""
    tagger = make()
    tagger.train()
    parts = [tagger.batch(TRAIN[i::2]) for i in (0, 1)]
    with Threads(tagger.model, tagger) as threads:
        first, second = (float(threads.gradients(lambda part: tagger(**part)["loss"], parts, 7)) for _ in range(2))
    assert first == second


def test_batches_equal_plain_training_with_new_copies_per_epoch() -> None:
    paired = Contrasted(OneCorpus(ROWS), COPY)
    first, second = (paired.keys(np.random.default_rng([1, epoch])) for epoch in (0, 1))
    assert [key for key, _ in first] == OneCorpus(ROWS).keys(np.random.default_rng([1, 0]))
    assert first == paired.keys(np.random.default_rng([1, 0]))
    pairs = [[(row, paired[row, draw][0][0]) for row, draw in keys] for keys in (first, second)]
    copies = [{row: one.other.text for row, one in each if isinstance(one, Paired)} for each in pairs]
    assert copies[0].keys() == copies[1].keys()
    assert copies[0] != copies[1]


def test_copies_replace_names_by_others_of_their_type() -> None:
    long = [(i, i + 5, "ORG") for i in (0, 6)]
    train = [sentence("Ada met Bob in Rome", [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "LOC")])]
    train += [sentence("Mary Ann Smith ran", [(0, 3, "PER")]), sentence("a b c d e and f g h i j", long)]
    for draw in range(20):
        one = OtherNames(train).copy(train[0], draw)
        assert isinstance(one, Paired)
        names = [" ".join(one.other.tokens[a:b]) for _, (a, b) in one.pairs]
        assert [place for place, _ in one.pairs] == [(0, 1), (2, 3)]  # Rome is the only LOC
        assert names[0] in ("Bob", "Mary Ann Smith")
        assert names[1] in ("Ada", "Mary Ann Smith")
        assert one.other.tokens[-2:] == ("in", "Rome")
    assert OtherNames(train).copy(train[2], 1) is train[2]


def test_contrastive_loss_compares_copies_of_a_name_in_proportion() -> None:
    tagger = make(beta=2.0, gamma=0.0).eval()
    plain = make(beta=0.0, gamma=0.0).eval()
    whole = [COPY(one, 3) for one in TRAIN[:6]]
    words = sum(len(one.tokens) for one in whole)
    assert largest_difference(plain.span, tagger.span) == 0.0  # type: ignore[arg-type]
    with torch.no_grad():
        batch = tagger.batch(whole)
        added = float(tagger(**batch)["loss"] - plain(**plain.batch(TRAIN[:6]))["loss"])
        own, other = list[torch.Tensor](), list[torch.Tensor]()
        for one in [one for one in whole if isinstance(one, Paired)]:
            for (a, b), (c, d) in one.pairs:
                for sentence_, start, end, into in ((one.own, a, b, own), (one.other, c, d, other)):
                    features = tagger.features([sentence_])
                    spans = features["spans"]
                    at = (spans["first"] == start) & (spans["last"] == end - 1)
                    into.append(tagger.represented(features, (1, len(sentence_.tokens)))[at][0])
        assert added == pytest.approx(2 * float(half_squared_distance(torch.stack(own), torch.stack(other))), rel=1e-4)
        rows = [(one, 1.0, PRIMARY) for one in whole]
        parts = [tagger.batch(*zip(*part, strict=True)) for part in in_parts(rows, tagger, 2)]
        assert sum(part["features"]["primary"] for part in parts) == words
        for part in parts:
            step, alone = part | {"num_items_in_batch": words}, tagger(**part)["loss"] - plain(**part)["loss"]
            share = float(alone) * part["features"]["primary"] / words
            assert float(tagger(**step)["loss"] - plain(**step)["loss"]) == pytest.approx(share, rel=1e-4)
