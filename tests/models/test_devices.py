"""Threads of a pool, and batches that overlap with tokenisation or with copies from a GPU."""

from collections.abc import Iterator
from threading import Event, get_ident

import pytest
import torch

from core.models import devices
from core.models.devices import pick_dtype, side_by_side, single_threads
from core.runs.spread import Ahead


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Restore the number of torch's threads after each test."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_idle_pool_thread_keeps_one_torch_thread() -> None:
    """A pool thread can be idle during an evaluation on the dev set; its sums must not depend on that."""
    with single_threads(1) as pool:
        pool.submit(lambda: None).result()  # the thread exists but has computed nothing
        torch.set_num_threads(2)
        assert pool.submit(torch.get_num_threads).result() == 1
        assert torch.get_num_threads() == 2


def test_gpu_starts_the_next_batch_before_fetching_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    happened, card = list[str](), torch.device("cuda")

    def work(i: int) -> tuple[int, torch.Tensor]:
        happened.append(f"started {i}")
        return i, torch.tensor([i])

    def arrived(key: int, result: torch.Tensor, event: object) -> tuple[int, torch.Tensor]:
        happened.append(f"fetched {key}")
        return key, result

    monkeypatch.setattr(devices, "_arrived", arrived)
    assert [int(result) for _, result in side_by_side(work, range(3), card)] == [0, 1, 2]
    assert happened == ["started 0", "started 1", "fetched 0", "started 2", "fetched 1", "fetched 2"]
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert pick_dtype("auto", card, frozen=True) == torch.float16
    assert pick_dtype("auto", card) == pick_dtype("fp32", card, frozen=True) == torch.float32


def test_text_is_tokenised_ahead_of_the_current_batch() -> None:
    """One block at a time, in one thread, in the order of the requests."""
    started, at_work = Event(), list[tuple[int, int]]()

    def work(i: int) -> int:
        at_work.append((i, get_ident()))
        if i == 8:
            started.set()
        return 10 * i

    with Ahead(work) as ahead:
        assert ahead.take(0, 8) == 0
        assert started.wait(10)  # before it is requested
        assert ahead.take(8, 16) == 80
        assert ahead.take(24, None) == 240  # chunk 16 was finished before a kill
    assert [i for i, _ in at_work] == [0, 8, 16, 24]
    assert len({thread for _, thread in at_work}) == 1
