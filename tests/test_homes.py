"""Prepared homes: built once, copied per test, and guarded against tests that write into shared files."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.homes import Homes


def test_a_home_is_built_once_and_copies_share_no_file_that_changes(tmp_path: Path) -> None:
    built = list[Path]()

    def build(home: Path) -> Mapping[str, str]:
        built.append(home)
        np.save(home / "scores.npy", np.arange(3))
        (home / "events.jsonl").write_text("one\n")
        return {"run": "a"}

    for name in ("first", "second"):
        assert Homes(tmp_path).copy(build, tmp_path / name) == {"run": "a"}
        with (tmp_path / name / "events.jsonl").open("a") as log:
            log.write("two\n")
    assert len(built) == 1
    assert (built[0] / "events.jsonl").read_text() == "one\n"
    np.save(tmp_path / "second" / "scores.npy", np.arange(4))
    with pytest.raises(AssertionError, match=r"in place: \['scores.npy'\]"):
        Homes(tmp_path).copy(build, tmp_path / "third")


def test_a_build_that_failed_is_repeated(tmp_path: Path) -> None:
    def build(home: Path) -> Mapping[str, str]:
        (home / "half").touch()
        if next(attempts) == 0:
            raise OSError("full")
        return {}

    attempts = iter(range(2))
    with pytest.raises(OSError, match="full"):
        Homes(tmp_path).copy(build, tmp_path / "first")
    assert Homes(tmp_path).copy(build, tmp_path / "second") == {}
