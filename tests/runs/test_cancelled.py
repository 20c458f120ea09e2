"""Who helps a cancelled run to its end: whoever cancelled it, and the app that starts after; never whoever looks."""

import os
from pathlib import Path
from signal import SIGKILL, Signals

import pytest

from core.facade import runs
from core.facade.home import store
from core.facade.removals import sweep
from core.recipes import RECIPES
from core.recipes.base import register
from core.runs.lock import Worker
from tests.patience import until


def test_a_look_signals_nobody_and_the_app_that_starts_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Signals] = []
    monkeypatch.setattr(Worker, "signal", lambda self, number: sent.append(number))
    recipe = RECIPES["add"]
    run = register(recipe, recipe.config.parse({"path": "x.txt"}), store())
    assert run.lock.acquire(run.id)
    try:
        assert run.cancel()
        os.utime(run.cancel_file, (0, 0))  # its grace is long over
        assert runs.state(run.id).cancelling
        assert sent == []
        sweep()
        assert until(lambda: sent)[0] == SIGKILL
    finally:
        run.cancel_file.unlink()
        run.lock.release()
