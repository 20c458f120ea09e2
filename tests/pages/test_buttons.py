"""No button without a walk in the browser that presses it, and no walk for a button that is gone."""

import ast
from pathlib import Path

from tests.browser.buttons import BUTTONS, OWN, in_source
from tests.browser.driver import ROOT


def test_every_button_is_registered_with_a_walk_that_presses_it() -> None:
    there = in_source()
    assert not there.get(""), f"{there.get('')}: give the button a key of its own, written beside it"
    missing = {key: where for key, where in there.items() if key not in BUTTONS}
    assert not missing, "nothing presses these; add a line to tests/browser/buttons.py and a press to a walk"
    assert not set(BUTTONS) - set(there), "these buttons are gone"


def test_no_page_acts_on_what_an_ordinary_button_returns() -> None:
    """Another run of the page takes it away before it is drawn; `pressed` and `submitted` keep it, or a callback."""
    sources = (ROOT / "home.py", *(path for path in sorted((ROOT / "pages").rglob("*.py")) if path.stem != OWN))
    acting = [where for path in sources for where in _answers(path)]
    assert not acting, "take the press with `pressed` or `submitted` (pages/ui/presses.py), or act in its on_click"


def _answers(path: Path) -> list[str]:
    """Where a button is drawn for its answer, not as a line of its own."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    lines = [node.value for node in nodes if isinstance(node, ast.Expr)]
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("button", "form_submit_button")
        and node not in lines
    ]
