"""`doctor --on ray:HOST:PORT`: what a cluster would do to bytes and privacy, and when it is refused."""

import json
from dataclasses import replace

import pytest

from core.facade import cluster
from core.facade.cluster import Cluster
from core.runs import executors
from core.runs.executors.checkup import Machine
from tests.conftest import Command

WARD = Machine(name="ward3", cores=8, cards=0, computer="Xeon", sees_home=True, guarded=True)
OTHER = replace(WARD, name="ward4")


def test_a_cluster_of_one_kind_is_fit() -> None:
    fit = Cluster(on="ray:ward3:6379", machines=[WARD, OTHER])
    assert not fit.bad
    assert fit.bytes.startswith("one kind of machine")
    assert fit.home.startswith("seen from all machines: each also takes steps of an experiment, by --on, or a --share")
    assert "in the clear" in fit.privacy[0]
    assert "A token is asked for, which is no encryption" in fit.privacy[1]
    assert "usage reports" in fit.privacy[2]
    assert fit.lines[0].split() == ["ward3", "8", "cores", "0", "GPUs", "Xeon"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            replace(OTHER, computer="EPYC"),
            "would differ in the last digits, so workers are refused without --mixed: EPYC",
        ),
        (replace(OTHER, differs=("numpy 1.0, here 2.0",)), "ward4 has numpy 1.0, here 2.0"),
        (replace(OTHER, answers=False), "no answer from ward4"),
        (replace(OTHER, guarded=False), "No token is asked for on ward4"),
    ],
)
def test_what_would_be_refused_is_said_before(other: Machine, words: str) -> None:
    bad = Cluster(on="ray:ward3:6379", machines=[WARD, other])
    assert bad.bad
    assert words in "\n".join(bad.lines)
    lines = Cluster(on="ray:ward3:6379", machines=[WARD, replace(OTHER, sees_home=False)]).lines
    [home] = [line for line in lines if line.startswith("home: ")]
    assert home.startswith("home: not seen from ward4: ")
    assert home.endswith("and take no steps of an experiment, by --on or --share.")


def test_the_command_exits_2_if_a_run_would_be_refused(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setenv("WINNOW_ON", "local")
    monkeypatch.setattr(executors, "find_spec", lambda name: name)
    machines = [replace(WARD, guarded=False)]
    monkeypatch.setattr(cluster, "examine", lambda address, home: machines)
    with pytest.raises(SystemExit) as left:
        command("doctor", "--on", "ray:ward3:6379", "--json")
    assert left.value.code == 2
    code, out, said = command("doctor", "--on", "local")
    assert code == 2
    assert json.loads(out)["machines"][0]["name"] == "ward3"  # of the command before
    assert "doctor without --on tells of" in said
