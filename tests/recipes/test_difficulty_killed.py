"""A `difficulty` run in real processes: killed within a fold, it ends with the same bytes as undisturbed."""

from collections.abc import Callable
from signal import SIGKILL

from core.projects import removals
from core.runs import launch
from tests.conftest import Seal
from tests.patience import until
from tests.recipes.test_difficulty import QUICK, planted
from tests.recipes.test_training_killed import begin, finished, forked, no_process_left

__all__ = ["forked", "no_process_left"]


def test_a_run_killed_within_a_fold_ends_as_undisturbed(seal: Seal, forked: Callable[[], None]) -> None:
    corpus = seal(planted(40, {"A": ("a", "xyz"), "B": ("b", "xyz")}), labelled=True)
    options = {**QUICK, "train": corpus.fingerprint, "batch_size": 2, "context_epochs": 4, "entity_epochs": 4}
    calm = finished("difficulty", options)
    told, table = {**calm.result(), "seconds": 0}, (calm.artifacts / "mentions.parquet").read_bytes()
    removals.remove_run(calm.id)

    forked()
    run = begin("difficulty", options)
    until(lambda: list(run.chunks.glob("*.npz")))
    worker = run.worker()
    assert worker
    worker.signal(SIGKILL)
    until(lambda: not run.state().active)
    assert run.state().state == "interrupted"
    there = {path.name: path.stat().st_mtime_ns for path in run.chunks.glob("*.npz")}
    assert 0 < len(there) < 4

    launch.start(run)
    until(lambda: not run.state().active)
    assert run.state().state == "succeeded", run.log_tail()
    now = {path.name: path.stat().st_mtime_ns for path in run.chunks.glob("*.npz")}
    assert len(now) == 4
    assert there.items() <= now.items()  # what was finished has not been made again
    assert {**run.result(), "seconds": 0} == told
    assert (run.artifacts / "mentions.parquet").read_bytes() == table
