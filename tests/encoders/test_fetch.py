"""Runs of `fetch`: consent, progress, cancelling, resuming, and refusal on a machine that is offline."""

import json
from pathlib import Path

import pytest

from core import shown_command as commands
from core.encoders import view as encoders
from core.encoders.fetch import FetchResult
from core.errors import Cancelled, ConfigError, ModelError
from core.project_list import shared_home
from core.projects import runs
from core.runs.events import Event
from core.runs.result import read
from tests.conftest import Command
from tests.homes import done
from tests.packages import NAME, PARTS, Index, offer_small

AGREED = {"encoder": NAME, "allow_download": True}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    index = offer_small(tmp_path, monkeypatch)
    index.lay()
    return index


def test_encoder_commands_list_and_fetch_with_progress(index: Index, home: Path, command: Command) -> None:
    assert commands.command("fetch", AGREED) == f"python -m core encoders get {NAME}"
    bundled, small = encoders.known()
    assert (bundled.name, bundled.here, small.name, small.here) == ("minilm", True, NAME, False)
    listed = command("encoders", "list")[1]
    assert f"MB: python -m core encoders get {NAME}" in listed
    assert "minilm" in listed
    code, out, err = command("encoders", "get", NAME, "--json")
    assert code == 0, err
    assert json.loads(out)["folder"] == str(shared_home(home) / "encoders" / NAME)
    rows = json.loads(command("encoders", "list", "--json")[1])["encoders"]
    assert {row["name"]: row["here"] for row in rows} == {"minilm": True, NAME: True}
    assert f"use it with --encoder {NAME}" in command("encoders", "get", NAME)[1]
    run = runs.listed("fetch")[-1]
    seen = run.events()[0]
    assert read(run, FetchResult) == FetchResult(encoder=NAME, folder=str(shared_home(home) / "encoders" / NAME))
    assert [event.data["name"] for event in seen if event.kind == "stage"] == [f"fetching {NAME}", f"checking {NAME}"]
    assert {event.data["unit"] for event in seen if event.kind == "progress"} <= {"MB", "files"}
    assert any("sha256" in note for note in run.state().notes)
    assert not list(run.checkpoints.rglob("*.zip"))
    (shared_home(home) / "encoders" / NAME).rename(home / "elsewhere")
    assert command("encoders", "get", NAME)[0] == 0  # fetched again
    assert (shared_home(home) / "encoders" / NAME).is_dir()


def test_fetch_needs_consent_a_known_name_and_a_network(
    index: Index, home: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    for options, says in (
        ({"encoder": NAME}, "only with your consent"),
        ({"encoder": NAME, "allow_download": False}, "only with your consent"),
        ({**AGREED, "encoder": "bert"}, "'bert' is not offered; choose one of small"),
        ({**AGREED, "encoder": "../runs"}, "is not offered"),
    ):
        for begin in (runs.start, runs.execute):
            with pytest.raises(ConfigError, match=says):
                begin("fetch", options)
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    with pytest.raises(ConfigError, match="stay offline"):
        runs.start("fetch", AGREED)
    assert command("encoders", "get", NAME)[0] == 2
    assert not runs.listed()
    assert not (shared_home(home) / "encoders").exists()


def test_cancelled_fetch_resumes(index: Index, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_while_checking(event: Event) -> None:
        if event.kind == "stage" and event.data["name"].startswith("checking"):
            runs.listed("fetch")[0].cancel_file.touch()

    monkeypatch.setattr("core.runs.context.CHECK_SECONDS", 0.0)
    with pytest.raises(Cancelled):
        runs.execute("fetch", AGREED, stop_while_checking)
    [run] = runs.listed("fetch")
    assert run.state().state == "cancelled"
    assert not (shared_home(home) / "encoders" / NAME).exists()
    for part in range(PARTS):
        index.package(part).unlink()  # all packages were fetched before the run was cancelled
    runs.go_on(run.id)
    assert run.state().state == "succeeded"
    assert (shared_home(home) / "encoders" / NAME / "model.safetensors").exists()


def test_failed_fetch_leaves_no_weights_and_can_be_retried(index: Index, home: Path) -> None:
    spoilt = bytearray(index.files["model.safetensors"])
    spoilt[100] ^= 1
    index.lay({"model.safetensors": bytes(spoilt)})
    with pytest.raises(ModelError, match="so nothing was kept"):
        done("fetch", AGREED)
    [run] = runs.listed("fetch")
    assert (run.state().state, run.state().permanent) == ("failed", False)
    assert sum(file.stat().st_size for file in shared_home(home).rglob("*") if file.is_file()) < len(spoilt) / 4
    index.lay()
    assert runs.go_on(run.id)["encoder"] == NAME
