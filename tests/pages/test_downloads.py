"""A download that cannot be made shows Winnow's error message, and no log quotes its content."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from core.experiment import deliver
from core.project_list import shared_home
from pages.ui import frame
from pages.ui.middleware import Downloads
from pages.ui.project import later
from tests.pages.drawing import add
from tests.test_logs import QUOTING


def answer(work: Callable[[], Any]) -> BackendOperationResponse:
    """Return the answer to a browser that requests the file."""
    files = MediaFileManager(MemoryMediaFileStorage("/media"))
    request = BackendOperationRequest(request_id="one")
    request.deferred_file.file_id = files.add_deferred(later(work), "text/csv", "0.0")
    with ThreadPoolExecutor(1) as thread:  # a browser test leaves this thread's event loop running
        return thread.submit(lambda: asyncio.run(Downloads(lambda: files).handle(request, "session"))).result()


def test_download_has_an_address(home: Path) -> None:
    sent = answer(lambda: b"a,b\n")
    assert (sent.request_id, sent.error_msg) == ("one", "")
    assert sent.deferred_file.url.startswith("/media/")


def test_download_from_a_removed_run_names_the_run(home: Path) -> None:
    run_id = "20260101-000000-experiment-dead"
    problem = answer(partial(deliver.board_csv, run_id)).error_msg
    assert problem.startswith(f"There is no run '{run_id}' in this project")
    assert not (shared_home(home) / "app.log").exists()


def test_download_of_a_removed_file_names_the_file(home: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("One clause .\n")
    run = add(tmp_path / "text.txt")
    file = run.artifacts / "rejects.jsonl"
    assert answer(partial(deliver.take_bytes, run.id, file)).error_msg.startswith(f"{file}: is missing")


def test_download_on_a_full_disk_names_the_disk(home: Path) -> None:
    def full() -> bytes:
        raise OSError(28, "No space left on device", "/exports/x")

    assert answer(full).error_msg.startswith("/exports/x: its disk is full")


@pytest.mark.parametrize("fails", QUOTING)
def test_bug_in_a_download_is_shown_neutrally_and_logged_without_text(
    fails: Callable[[], None],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(frame, "logger", logging.getLogger(f"winnow.pages.{home}"))
    problem = answer(fails).error_msg
    assert problem.startswith("This is a bug in Winnow. Your data and your runs have not changed.")
    log = (shared_home(home) / "app.log").read_text()
    assert f"in {fails.__name__}" in log
    assert "Zyxname" not in problem + log + "".join(capfd.readouterr()) + caplog.text
