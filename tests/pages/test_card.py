"""What pages say of a GPU: which one, what is free on it, how busy it is; and why one that is here is not used."""

import pytest
import torch

from core.facade import machine
from core.training import events
from pages.ui.widgets import plain
from tests.fake_cards import H100, T4, Driver
from tests.pages.test_pages import opened, texts
from tests.pages.test_training import PAGE, POINTS, charts, log, metric, metrics, parts, tuned  # noqa: F401


def test_home_names_the_card_and_what_is_free_on_it(driver: Driver) -> None:
    driver.tells(H100, T4)
    assert "NVIDIA H100 (70 GB of 80 GB free) and 1 more" in texts(opened("home.py"))


def test_a_card_that_torch_cannot_use_is_no_gpu(driver: Driver) -> None:
    driver.shows((*H100[:2], "550.54", "9.0"))
    app = opened("home.py")
    assert "no GPU" in texts(app)
    (warning,) = app.warning
    assert "driver 550, this build needs 580" in machine.hindrance()
    assert warning.value == plain(machine.hindrance())


def test_before_a_training_it_is_said_why_the_processor_will_do_it(driver: Driver, parts: dict[str, str]) -> None:  # noqa: F811
    driver.shows(H100, torch=None)
    assert plain(machine.hindrance()) in [warning.value for warning in opened(PAGE).warning]
    driver.shows(H100)
    app = opened(PAGE)
    assert not app.warning
    assert not any("No GPU here" in info.value for info in app.info)


def test_the_card_s_memory_and_work_are_points_of_curves(
    driver: Driver,
    parts: dict[str, str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver.tells(H100, busy=lambda: 83)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 5_500_000_000)
    points = events._of_card(torch.device("cuda"))
    assert points == {"gpu_memory_gb": 5.5, "gpu_used_gb": 10.0, "gpu_busy": 83.0}
    assert events._of_card(torch.device("cpu")) == {}
    tuned(parts, *POINTS, *(metric(f"{name}@1", value, 40) for name, value in points.items()), ("cancelled", {}))
    app = opened(PAGE)
    assert {"GPU memory, most taken (GB)", "GPU memory in use (GB)", "GPU busy (%)"} < set(charts(app))
    assert metrics(app)["GPU busy"] == "83%"


def test_without_the_library_torch_s_own_number_is_left(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.shows(H100)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 5_500_000_000)
    assert events._of_card(torch.device("cuda")) == {"gpu_memory_gb": 5.5}
