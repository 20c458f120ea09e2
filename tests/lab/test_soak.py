"""Tests of the rules that judge the lines of a soak. The soak itself takes an hour and is not run here."""

from dataclasses import replace

import pytest

from tests.lab.soak import Line, judged

pytestmark = pytest.mark.full

SOUND = Line(
    date="2026-01-01T00:00:00Z",
    machine="x86_64, 2 cores, load 1.0",
    minute=1.0,
    memory=400 << 20,
    all_memory=600 << 20,
    handles=60,
    threads=30,
    processes=2,
    temporary=3,
    pages=20,
    runs=4,
    seconds=0.8,
    gauge=10.0,
)


def test_an_hour_in_which_nothing_grows_is_right() -> None:
    """Memory of the first pages, and values that go up and down, do not count as growth."""
    lines = [replace(SOUND, memory=(300 + 100 * (i > 5) + i % 3) << 20, handles=60 + i % 4) for i in range(60)]
    assert judged(lines) == []


@pytest.mark.parametrize(
    ("name", "a_minute", "words"),
    [
        ("handles", 1, "handles grew from 90 to 110"),
        ("threads", 1, "threads grew from 60 to 80"),
        ("temporary", 1, "temporary grew from 32 to 52"),
        ("processes", 1, "processes grew from 32 to 52"),
        ("memory", 8 << 20, "memory grew"),
        ("seconds", 0.05, "at the end"),
    ],
)
def test_what_grows_is_named(name: str, a_minute: float, words: str) -> None:
    lines = [replace(SOUND, **{name: getattr(SOUND, name) + i * a_minute}) for i in range(60)]
    [wrong] = judged(lines)
    assert words in wrong


def test_a_load_in_the_middle_hides_no_slowdown() -> None:
    """Other load slows the machine down from minute 20 to minute 40."""
    lines = [replace(SOUND, seconds=0.8 if i < 20 else 2.0 if i < 40 else 1.6) for i in range(60)]
    assert judged(lines) == ["pages took 0.80 s (80 times the gauge), and 1.60 s (160 times) at the end"]


def test_no_page_is_no_quick_page() -> None:
    lines = [replace(SOUND, seconds=0.8 if 20 <= i < 40 else None) for i in range(60)]
    assert judged(lines) == ["no page was drawn at the end"]
    assert judged([replace(SOUND, seconds=None if i < 20 else 0.8) for i in range(60)]) == []


def test_a_machine_that_slows_down_is_no_slowdown_of_pages() -> None:
    lines = [replace(SOUND, seconds=0.8 * slow, gauge=10 * slow) for slow in (1.0, 1.5, 1.9) for _ in range(20)]
    assert judged(lines) == []


def test_too_much_memory_a_problem_and_too_short_a_time_are_named() -> None:
    lines = [replace(SOUND, memory=1100 << 20), replace(SOUND, problems=["a page broke"])]
    assert judged(lines) == [
        "2026-01-01T00:00:00Z: a page broke",
        "the app took 1100 MB",
        "2 minutes say nothing of what grows",
    ]
