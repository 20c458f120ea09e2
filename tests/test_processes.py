"""Work in several processes: results in order, errors, cancelling, and processes that end."""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import psutil
import pytest

from core import processes
from core.errors import Cancelled, ReadError, ResourceError
from core.processes import in_processes
from core.reporter import Reporter, Silent
from tests.conftest import ROOT
from tests.reporters import Canceller
from tests.waiting import until


def slower_first(add: int, item: int, _: Reporter) -> tuple[int, int]:
    """Take longer for earlier items, and return the sum and the process."""
    time.sleep(0.2 if item < 2 else 0)
    return item + add, os.getpid()


def failing(item: int, _: Reporter) -> int:
    if item == 3:
        raise ReadError("a.txt", 7, "it is damaged.")
    return item


def dying(item: int, _: Reporter) -> int:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def sleeping(item: int, _: Reporter) -> int:
    time.sleep(600)
    return item


@pytest.fixture(autouse=True)
def _three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 3)


def test_results_come_in_order_from_several_processes() -> None:
    found = list(in_processes(partial(slower_first, 10), range(40), Silent(), pays=True))
    assert [value for value, _ in found] == list(range(10, 50))
    assert len({pid for _, pid in found} - {os.getpid()}) == 3


def test_one_core_and_few_items_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    few = list(in_processes(partial(slower_first, 0), range(3), Silent(), pays=False))
    monkeypatch.setattr(processes, "cores", lambda: 1)
    alone = list(in_processes(partial(slower_first, 0), range(3), Silent(), pays=True))
    assert few == alone == [(i, os.getpid()) for i in range(3)]


def waiting_for(folder: Path, item: int, _: Reporter) -> int:
    """Note the item; the first one waits for the file `go`."""
    (folder / str(item)).touch()
    while not item and not (folder / "go").exists():
        time.sleep(0.01)
    return item


def test_few_results_are_kept_while_the_first_item_takes_long(tmp_path: Path) -> None:
    begin = time.monotonic()

    class Watching(Silent):
        def check(self) -> None:
            if time.monotonic() < begin + 3:
                assert len(list(tmp_path.iterdir())) <= 9
            else:
                (tmp_path / "go").touch()

    assert list(in_processes(partial(waiting_for, tmp_path), range(30), Watching(), pays=True)) == list(range(30))


def test_an_error_of_the_work_keeps_its_file_and_line() -> None:
    found = in_processes(failing, range(9), Silent(), pays=True)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ReadError, match=r"a\.txt line 7: it is damaged"):
        next(found)


def test_an_error_of_the_items_comes_after_the_results_before_it() -> None:
    def damaged() -> Iterator[int]:
        yield from range(2)
        raise ReadError("a.txt", 7, "it is damaged.")

    found = in_processes(partial(slower_first, 0), damaged(), Silent(), pays=True)
    assert [next(found)[0] for _ in range(2)] == [0, 1]
    with pytest.raises(ReadError, match=r"a\.txt line 7: it is damaged"):
        next(found)


def test_a_process_that_dies_is_reported() -> None:
    with pytest.raises(ResourceError, match="ended a process of this run, probably because memory ran out"):
        list(in_processes(dying, range(9), Silent(), pays=True))


def test_cancelling_and_closing_end_all_processes() -> None:
    with pytest.raises(Cancelled):
        list(in_processes(sleeping, range(9), Canceller(2), pays=True))
    with closing(in_processes(failing, range(9), Silent(), pays=True)) as found:
        next(found)
    left = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    assert not [child for child in left if "core.processes" in " ".join(child.cmdline())]


def test_a_process_finds_winnow_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "__init__.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert list(in_processes(failing_never, range(4), Silent(), pays=True)) == [0, 1, 2, 3]


def test_a_process_finds_packages_in_pythonpath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("def same(item, report):\n    return item\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    same = importlib.import_module("only_here").same
    assert list(in_processes(same, range(4), Silent(), pays=True)) == [0, 1, 2, 3]


def failing_never(item: int, _: Reporter) -> int:
    return item


SCRIPT = """
from core import processes
from core.reporter import Silent
from tests.test_processes import slowly
processes.cores = lambda: 2
for pid in processes.in_processes(slowly, range(10_000), Silent(), pays=True):
    print(pid, flush=True)
"""


def slowly(_: int, __: Reporter) -> int:
    time.sleep(0.1)
    return os.getpid()


def test_processes_end_with_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pids = {int(parent.stdout.readline()) for _ in range(6)}
        parent.kill()
    assert len(pids) == 2
    until(lambda: not any(map(psutil.pid_exists, pids)), "both processes end")
