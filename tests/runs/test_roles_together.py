"""Two windows give parts at the same time: none is lost."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.artifacts import roles
from core.facade import corpora
from tests.conftest import Seal


def test_a_part_that_is_given_while_another_is_written_waits_for_it(
    seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (seal([f"sentence {i} ."], f"c{i}").fingerprint for i in range(2))
    write, given = roles._write, threading.Event()

    def give() -> None:
        corpora.set_role("dev", second)
        given.set()

    other = threading.Thread(target=give)

    def slowly(home: Path, after: Mapping[str, str], former: Mapping[str, str] | None = None) -> None:
        """What was read is written only after the other window had its time to come between."""
        monkeypatch.setattr(roles, "_write", write)
        other.start()
        assert not given.wait(0.5), "the other window did not wait"
        write(home, after, former)

    monkeypatch.setattr(roles, "_write", slowly)
    corpora.set_role("task", first)
    other.join(10)
    assert corpora.roles() == {"task": first, "dev": second}
