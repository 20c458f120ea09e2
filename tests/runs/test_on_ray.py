"""Chunks on two Ray nodes equal those of one process, even if a worker, a node or the run is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest

from core import cards
from core.encoders.embed import EmbedWork
from core.errors import Cancelled, ModelError
from core.models.encoder import Encoder
from core.models.static import StaticVectors, Words
from core.projects.machine import checked_cluster
from core.reporter import Silent
from core.runs import ray_engine
from core.runs.lock import Lock
from core.runs.on_ray import Actor
from core.runs.store import Run
from core.runs.versions import versions
from core.selection import make_strategy
from core.selection.cascade import EmbedRows, Known, Ranking, RankWork
from tests.clusters import token, two_nodes
from tests.conftest import ROOT, Seal
from tests.runs.works import Squares, made, new_run
from tests.waiting import until

# These tests run alone, because Ray's processes need both cores while they start.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.full,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install -r requirements-cluster.txt"),
]
N, SIZE = 40, 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Start two nodes of one core each."""
    with token(), two_nodes() as (cluster, _):
        yield cluster


def squares(run: Run, on: str, fate: str = "") -> list[bytes]:
    return made(run, on, Squares(run.path, fate), N, SIZE)


def gone(pids: set[int]) -> bool:
    """Return True once these killed processes have ended."""
    deadline = time.monotonic() + 120
    while (left := {pid for pid in pids if psutil.pid_exists(pid)}) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left


@pytest.mark.parametrize("fate", ["", "lost", "frozen"])
def test_two_workers_give_the_same_bytes_even_if_one_is_lost_or_frozen(
    home: Path, cluster: str, fate: str, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = squares(new_run(home, "local"), "local")
    run = new_run(home, "cluster")
    assert squares(run, cluster, fate) == expected
    assert run.result() == {"model": "none"}
    state = run.state()
    assert (state.device, state.done, state.total) == ("workers on Ray: abacus", N, N)
    assert any("A worker on" in note and " died; " in note for note in state.notes) == (fate == "lost")
    assert sum(note.endswith("takes part: 1 core, 0 GPUs.") for note in state.notes) == 2
    assert capfd.readouterr().out == ""  # stdout is reserved for the result of a command
    marks = {int(path.name.removeprefix("process-")) for path in run.path.glob("process-*")}
    assert marks
    assert os.getpid() not in marks
    assert gone(marks)


def test_a_run_continues_without_a_killed_node_and_names_it(home: Path) -> None:
    expected = squares(new_run(home, "local"), "local")
    run = new_run(home, "node")
    with token(), two_nodes() as (cluster, second):

        def stop() -> None:
            until((run.path / "pausing").exists, "a worker is at a chunk")
            second.kill()

        stopper = threading.Thread(target=stop)
        stopper.start()
        assert squares(run, cluster, "node") == expected
        stopper.join()
    assert any(note.startswith("Node ") and note.endswith(" is gone.") for note in run.state().notes)


def test_a_run_whose_process_is_killed_leaves_no_worker_and_is_resumed(home: Path, cluster: str) -> None:
    expected = squares(new_run(home, "local"), "local")
    run = new_run(home, "head")
    words = [sys.executable, "-m", "tests.runs.works", str(home), run.id, "cancelled"]
    process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "WINNOW_ON": cluster})
    until(lambda: (run.path / "pausing").exists() and list(run.chunks.glob("*.npy")), "a chunk is there, one is begun")
    process.kill()
    process.wait()
    assert gone({int(path.name.removeprefix("process-")) for path in run.path.glob("process-*")})
    there = {path.name: path.stat().st_mtime_ns for path in run.chunks.glob("*.npy")}
    assert run.state().state == "interrupted"
    assert squares(run, cluster) == expected
    assert there.items() <= {path.name: path.stat().st_mtime_ns for path in run.chunks.glob("*.npy")}.items()


def test_an_error_of_a_worker_ends_the_run(home: Path, cluster: str) -> None:
    run = new_run(home, "refused")
    with pytest.raises(ModelError, match=r"^row \d+: is not to be squared; take another\.$"):
        squares(run, cluster, "refused")
    assert run.state().state == "failed"
    run = new_run(home, "broken")
    with pytest.raises(RuntimeError, match="ValueError"):
        squares(run, cluster, "broken")
    assert "works.py" in run.log_file.read_text()
    assert "a text of squaring" not in run.log_file.read_text()


def test_a_cancelled_run_leaves_no_worker_two_seconds_later_and_is_resumed_here(home: Path, cluster: str) -> None:
    expected = squares(new_run(home, "local"), "local")
    run = new_run(home, "cancelled")
    cancelled_at = list[float]()

    def stop() -> None:
        until((run.path / "pausing").exists, "a worker is at a chunk")
        cancelled_at.append(time.monotonic())
        run.cancel()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(Cancelled):
        squares(run, cluster, "cancelled")
    stopper.join()
    assert run.state().state == "cancelled"
    marks = {int(path.name.removeprefix("process-")) for path in run.path.glob("process-*")}
    assert marks
    assert gone(marks)
    took = time.monotonic() - cancelled_at[0]
    assert took < 2.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    there = {path.name: path.stat().st_mtime_ns for path in run.chunks.glob("*.npy")}
    assert there
    assert squares(run, "local") == expected
    assert there.items() <= {path.name: path.stat().st_mtime_ns for path in run.chunks.glob("*.npy")}.items()


def test_a_cluster_is_checked_before_anything_is_sent_there(
    home: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = checked_cluster(cluster)
    found = [(machine.cores, machine.cards, machine.guarded, machine.sees_home) for machine in there.machines]
    assert found == [(1, 0, True, True)] * 2
    assert {machine.computer for machine in there.machines} == {cards.processor()}
    assert not there.bad
    monkeypatch.setattr(ray_engine, "versions", lambda: {**versions(), "numpy": "0.1"})
    other = checked_cluster(cluster)
    assert other.bad
    assert "here 0.1" in other.bytes


def test_a_busy_node_answers(home: Path, cluster: str) -> None:
    with ray_engine.engine(cluster.removeprefix("ray:")) as ray:
        busy = [ray.remote(Actor).options(num_cpus=1).remote({}) for _ in "12"]
        ray.get([each.open.remote(None) for each in busy], timeout=60)
        nodes = [node for node in ray.nodes() if node["Alive"]]
        assert [ray_engine._examined(ray, node, Lock(home / "x")).answers for node in nodes] == [True] * 2
        for each in busy:
            ray.kill(each)


def test_a_run_starts_its_own_engine_and_leaves_nothing(
    home: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "PROCESSORS", 1)
    monkeypatch.setenv(
        "RAY_ADDRESS", cluster.removeprefix("ray:")
    )  # otherwise the engine would join this cluster and have two workers
    before, handler = set(Path("/tmp").glob("winnow-*")), signal.getsignal(signal.SIGTERM)
    children = set(psutil.Process().children(recursive=True))
    run = new_run(home, "one")
    assert squares(run, "ray") == squares(new_run(home, "local"), "local")
    assert len(list(run.path.glob("process-*"))) == 1
    assert set(Path("/tmp").glob("winnow-*")) == before
    assert signal.getsignal(signal.SIGTERM) is handler
    assert gone({child.pid for child in set(psutil.Process().children(recursive=True)) - children})


ENTER = """
import os, sys
os.setgid(65534); os.setuid(65534)
try:
    print(os.listdir(sys.argv[1]))
except PermissionError:
    print("refused")
"""


def test_other_accounts_cannot_reach_the_sockets_of_an_engine(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray makes its own folder writable for all accounts, so a private folder contains it."""
    monkeypatch.setattr(ray_engine, "PROCESSORS", 1)
    with ray_engine.engine("") as ray:
        session = Path(ray.nodes()[0]["RayletSocketName"]).parent
        above = session.parents[-1 - len(Path("/tmp").parts)]  # the first folder below /tmp
        assert above.name.startswith(f"winnow-{os.geteuid()}-")
        assert above.stat().st_mode & 0o777 == 0o700
        assert list(session.iterdir())
        if os.getuid() == 0:
            seen = [
                subprocess.run([sys.executable, "-c", ENTER, folder], capture_output=True, text=True, check=True)
                for folder in (above, session)
            ]
            assert [each.stdout.strip() for each in seen] == ["refused"] * 2


def test_vectors_of_two_workers_equal_those_of_one_process(home: Path, cluster: str, seal: Seal) -> None:
    corpus = seal([f"sentence {i} of {'many ' * (i % 7)}words" for i in range(N)])
    work = EmbedWork(corpus=corpus, encoder="tiny", options={"precision": "fp32"})
    expected = made(new_run(home, "local"), "local", work, N, 10)
    assert made(new_run(home, "two"), cluster, work, N, 10) == expected


def test_a_cascade_ranks_and_embeds_the_same_bytes_on_two_workers(home: Path, cluster: str, seal: Seal) -> None:
    corpus = seal([f"sentence {i} of {'many ' * (i % 7)}words" for i in range(N)])
    encoder, rows, texts = Encoder.load("tiny", precision="fp32"), np.arange(1, N, 2), corpus.texts(0, N)
    words = Words.of(texts, encoder.tokenizer)
    statics = [StaticVectors.distil(encoder, words, Silent())]
    known = Known(corpus.ids(), texts, [words])
    ranking = Ranking.fit(make_strategy("knn", {}, 0), statics, known, np.linspace(0, 1, N))
    rank = RankWork(ranking=ranking, corpus=corpus, encoders=["tiny"], allow_download=False)
    embed = EmbedRows(corpus=corpus, encoder="tiny", options={"precision": "fp32"}, rows=rows, part="a sample")
    for work, n in ((rank, N), (embed, len(rows))):
        expected = made(new_run(home, f"local {n}"), "local", work, n, 5)
        assert made(new_run(home, f"two {n}"), cluster, work, n, 5) == expected
