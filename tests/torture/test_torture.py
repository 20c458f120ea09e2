"""A short torture test: kinds without training, with disturbances that do not depend on speed."""

import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import psutil
import pytest

from core.kinds import KINDS
from core.project_list import shared_home
from tests import smallest_options
from tests.conftest import elsewhere
from tests.fork_server import ForkServer
from tests.lab.torture import kinds, ways
from tests.lab.torture.__main__ import KILLS, Torture, table
from tests.lab.torture.trial import Trial, undisturbed
from tests.waiting import until

pytestmark = pytest.mark.full

QUICK = ("add", "vectors-import", "robustness")
WAYS = ("kill-writing", "torn", "read-only", "clock-back", "two-workers")


@pytest.fixture(scope="module")
def torture(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Iterator[Torture]:
    folder = tmp_path_factory.mktemp("torture")
    with elsewhere(folder / "home") as home:
        kinds.furnish(home, QUICK)
        shared_home(home).rename(folder / "furnished")
        yield Torture(folder, fork_server, QUICK, WAYS)


def test_disturbed_runs_equal_undisturbed_ones(torture: Torture) -> None:
    torture.calm = {kind: undisturbed(torture.fork_server, torture.folder, kind, fresh=False) for kind in QUICK}
    records = [torture.trial(seed, QUICK[seed % 3], way) for seed, way in enumerate(WAYS)]
    assert [record["became"] for record in records] == ["alike"] * len(WAYS), records
    assert all(record["struck"] for record in records[:2])
    assert "0 lost, 0 different, 0 stuck" in table(torture.records())
    assert all(record["date"] and record["machine"] for record in records)


def test_trials_of_several_calls_share_one_log(torture: Torture, tmp_path: Path) -> None:
    """A later call, also on another machine, continues after the last seed with the kinds that were tried least."""
    log = tmp_path / "log.jsonl"
    for _ in range(2):
        again = Torture(torture.folder, torture.fork_server, QUICK[:2], WAYS[:1], log=log)
        again.calm = {kind: undisturbed(torture.fork_server, torture.folder, kind, fresh=False) for kind in QUICK[:2]}
        again.until(inf, 1, 5)
    assert [(record["seed"], record["kind"]) for record in again.records()] in (
        [(5, "add"), (6, "vectors-import")],
        [(5, "vectors-import"), (6, "add")],
    )


def test_the_table_counts_kills_separately() -> None:
    def record(way: str, struck: int, became: str = "alike") -> dict[str, object]:
        return {"kind": "add", "way": way, "struck": struck, "became": became}

    assert set(ways.WAYS) > KILLS
    text = table([record("kill", 3), record("torn", 2), record("full", 2), record("two-apps", 1, "lost")])
    assert "| add | 3 | 2 | 2 | 1 (1 bad) |" in text
    assert text.endswith("8 disturbances, 5 of them kills, 3 runs alike, 1 lost, 0 different, 0 stuck")


def test_every_kind_can_be_tortured() -> None:
    """Kinds that other runs start are listed here; all others occur in `smallest_options` and `kinds`."""
    children = {
        "audit",
        "calibrate",
        "cascade",
        "embed",
        "finetune",
        "pretrain",
        "score",
        "select",
        "skl",
        "tag",
        "vectors",
    }
    named = {name for name in KINDS if f'"{name}":' in Path(smallest_options.__file__).read_text()}
    assert named | children == set(KINDS)


def test_a_run_of_an_unknown_worker_is_not_counted_as_lost(torture: Torture, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app that is killed right after it started a worker leaves no record of the worker."""
    calm = undisturbed(torture.fork_server, torture.folder, "robustness", fresh=False)
    trial = Trial(torture.fork_server, torture.folder, "robustness", calm, random.Random(0))
    first = trial.worker(halt=calm.operations // 2)
    until(lambda: psutil.Process(first.pid).status() == psutil.STATUS_STOPPED, "it is halfway")
    assert trial.again().lock.held()
    rest = trial.rest

    def goes_on() -> None:
        first.send_signal(signal.SIGCONT)
        rest()

    monkeypatch.setattr(trial, "rest", goes_on)
    assert trial.ended() == ("alike", "")


def test_a_different_outcome_is_found(torture: Torture) -> None:
    """This proves that the test can fail."""
    calm = undisturbed(torture.fork_server, torture.folder, "robustness", fresh=False)
    torture.calm["robustness"] = replace(calm, outcome={**calm.outcome, "robustness 1 result": "another"})
    assert torture.trial(9, "robustness", "kill-writing")["became"] == "different"
    assert "1 different" in table(torture.records())
