"""`doctor --on ray:HOST:PORT`: what a cluster would do to bytes and privacy, and when it is refused."""

import json
import sys
from dataclasses import replace

import pytest

from core.cli.main import run_main
from core.projects import cluster
from core.projects.cluster import Cluster
from core.runs import executors
from core.runs.executors.checkup import Machine

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


def test_who_does_not_see_the_home_cannot_share() -> None:
    lines = Cluster(on="ray:ward3:6379", machines=[WARD, replace(OTHER, sees_home=False)]).lines
    [home] = [line for line in lines if line.startswith("home: ")]
    assert home.startswith(
        "home: not seen from ward4: these score by words, compute with no other model than they have"
    )
    assert home.endswith("and take no steps of an experiment, by --on or --share.")


def test_the_command_exits_2_where_a_run_would_be_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINNOW_ON", "local")
    monkeypatch.setattr(executors, "find_spec", lambda name: name)
    machines = [replace(WARD, guarded=False)]
    monkeypatch.setattr(cluster, "examine", lambda address, home: machines)
    monkeypatch.setattr(sys, "argv", ["winnow", "doctor", "--on", "ray:ward3:6379", "--json"])
    with pytest.raises(SystemExit) as left:
        run_main()
    assert left.value.code == 2
    assert json.loads(capsys.readouterr().out)["machines"][0]["name"] == "ward3"
    monkeypatch.setattr(sys, "argv", ["winnow", "doctor", "--on", "local"])
    assert run_main() == 2
    assert "doctor without --on tells of" in capsys.readouterr().err
