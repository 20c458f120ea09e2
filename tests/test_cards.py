"""GPUs: one lock per card under any number, reasons why torch cannot use a card, and remedies."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from core import cards, models
from core.errors import ConfigError, ResourceError
from core.projects import machine
from tests.conftest import Command
from tests.fake_cards import GB, H100, T4, V100, Driver

OLD = (*H100[:2], "550.54.15", H100[3])


def test_a_card_has_one_lock_under_any_number(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.shows(H100, T4)
    h100, t4 = (card.lock for card in cards.usable())
    assert h100 != t4
    for visible, locks in {
        "0": [h100],
        "1": [t4],
        "1,0": [t4, h100],
        "GPU-bbbb": [t4],
        "0,7,1": [h100],  # CUDA ignores all cards after an unknown one
        "": [],
        "MIG-1/2,MIG-3": ["mig-1-2", "mig-3"],  # MIG instances count as cards
    }.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert [card.lock for card in cards.usable()] == locks
    # The order of the driver, not CUDA's own; `models` sets it when it is imported.
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID", models.__name__


@pytest.mark.parametrize(
    ("row", "torch", "said"),
    [
        (OLD, "13.0", r"driver 550, this build needs 580; update the driver, or install .*\+cu126"),
        (V100, "13.0", r"its compute capability is 7.0, this build needs 7.5; install .*whl/cu126"),
        (H100, None, r"no support for GPUs; install .*\+cu130"),
        (OLD, None, r"no support for GPUs; install .*\+cu126"),
    ],
)
def test_a_card_that_torch_cannot_use_is_named_with_the_remedy(
    driver: Driver, row: tuple[str, str, str, str], torch: str | None, said: str
) -> None:
    driver.shows(row, torch=torch)
    assert not cards.usable()
    assert machine.device() == "cpu"
    assert machine.memory()[1] != 80_000 * 2**20
    assert re.search(rf"^This machine has a GPU \({row[1]}\), but torch cannot use it: .*{said}", cards.hindrance())


def test_cards_are_listed_by_the_library_and_by_nvidia_smi(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.shows()
    assert (cards.usable(), cards.hindrance()) == ((), "")
    assert cards.machine() == cards.processor() != ""
    driver.shows(V100, T4)
    assert [card.name for card in cards.usable()] == ["Tesla T4"]  # torch can use only this one
    assert cards.hindrance() == ""
    driver.shows(T4, knows_capability=False)  # an old nvidia-smi
    assert [(card.name, card.capability) for card in cards.usable()] == [("Tesla T4", None)]
    driver.shows(H100, T4)
    by_program = cards.installed()
    driver.shows_by_library(H100, T4)
    assert cards.installed() == by_program
    load = cards.load(by_program[1])
    assert load == cards.measured(by_program[1]) == cards.Load(free=70 * GB, total=80 * GB, busy=37)
    nvml = sys.modules["pynvml"]

    def handle(place: int) -> object:
        if place:
            raise nvml.NVMLError("GPU is lost")
        return H100

    setattr(nvml, "nvmlDeviceGetHandleByIndex", handle)  # noqa: B010  a module of the test
    driver.shows(H100)
    assert [card.name for card in cards.installed()] == ["NVIDIA H100"]  # the lost card hides no other
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert cards.hindrance() == "This machine has a GPU (NVIDIA H100), but CUDA_VISIBLE_DEVICES hides it."


def test_a_device_is_chosen_by_variable_or_option(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    driver.shows(H100, T4)
    both = ["NVIDIA H100", "Tesla T4"]
    for choice, names in {"auto": both, "cuda": both, "cuda:1": ["Tesla T4"], "cpu": []}.items():
        monkeypatch.setenv("WINNOW_DEVICE", choice)
        cards.check()
        assert [card.name for card in cards.usable()] == names
        assert cards.hindrance() == ""
    monkeypatch.setenv("WINNOW_DEVICE", "cuda:2")
    given = r"cuda:2 is not available; give cuda:0 \(NVIDIA H100\), cuda:1 \(Tesla T4\)"
    with pytest.raises(ResourceError, match=given):
        cards.check()
    monkeypatch.setenv("WINNOW_DEVICE", "tpu")
    with pytest.raises(ConfigError, match="not a device; give auto, cpu, cuda or cuda:1"):
        cards.usable()
    driver.shows()
    code, _, stderr = command("--device", "cuda:3", "runs", "list")
    assert code == 2
    assert "device: cuda:3 is not available; the driver lists no GPU on this machine (nvidia-smi); give cpu." in stderr
    assert command("--device", "cpu", "runs", "list")[0] == 0
    assert os.environ["WINNOW_DEVICE"] == "cpu"  # workers inherit it


def test_memory_is_measured_on_the_used_card(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.shows(H100, T4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    arguments: list[str] = []
    real = cards._nvidia_smi

    def noted(fields: Sequence[str], *more: str) -> list[list[str]]:
        arguments.extend(more)
        return real(fields, *more)

    monkeypatch.setattr(cards, "_nvidia_smi", noted)
    assert machine.memory() == (70_000 * 2**20, 80_000 * 2**20)
    assert arguments == [f"--id={T4[0]}"]


def test_shortage_names_the_largest_number_of_processes_that_fit(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.shows_by_library(H100, T4)  # 70 GB are free on each
    assert [machine.shortage(35.0 * n, n) for n in (1, 4)] == ["", ""]
    more = "Only 140.0 GB of GPU memory are free, enough for 4 steps at once, not 5."
    assert machine.shortage(35.0 * 5, 5) == more
    assert machine.shortage(160.0, 2) == "Only 140.0 GB of GPU memory are free, too little for one step."
    assert machine.shortage(80.0) == "Only 70.0 GB of GPU memory are free."
    monkeypatch.setenv("WINNOW_DEVICE", "cpu")
    monkeypatch.setattr(machine, "memory", lambda: (9e9, 16e9))
    assert machine.shortage(32.0, 8) == "Only 9.0 GB of memory are free, enough for 2 steps at once, not 8."


def test_doctor_states_why_a_card_is_not_used(driver: Driver, home: Path) -> None:
    """The tests run with a CPU-only build of torch."""
    driver.shows(H100, torch=None)
    text = str(machine.doctor()["device"])
    assert text.startswith("cpu (")
    assert cards.hindrance() in text


def test_doctor_checks_only_cards_that_a_run_may_use(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise torch would describe the first card, which it cannot use."""
    driver.shows(V100, T4, H100)
    shown: list[str] = []
    cards.installed()

    def noted_run(*command: object, env: dict[str, str], **options: object) -> object:
        shown.append(env["CUDA_VISIBLE_DEVICES"])
        return subprocess.CompletedProcess("", 0, stdout="cuda:0 Tesla T4, fp32")

    monkeypatch.setattr(subprocess, "run", noted_run)
    assert machine.doctor()["device"] == "cuda:0 Tesla T4, fp32"
    assert shown == [f"{T4[0]},{H100[0]}"]


def test_listing_the_cards_loads_no_torch(driver: Driver) -> None:
    driver.shows(H100)
    script = "import sys; from core.projects import machine; print(machine.device(), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cpu", "False"]
