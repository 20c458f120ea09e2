"""One thread is one thread, whenever it begins to compute."""

from collections.abc import Iterator

import pytest
import torch

from core.models.devices import single_threads


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_a_thread_that_had_nothing_to_do_yet_computes_alone_when_others_were_asked_for_more() -> None:
    """A thread of a pool may stay idle for a step, while dev is evaluated; its sums must not depend on that."""
    with single_threads(1) as pool:
        pool.submit(lambda: None).result()  # the thread is there and has computed nothing
        torch.set_num_threads(2)
        assert pool.submit(torch.get_num_threads).result() == 1
        assert torch.get_num_threads() == 2
