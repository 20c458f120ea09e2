"""No button without a walk in the browser that presses it, and no walk for a button that is gone."""

from tests.browser.buttons import BUTTONS, in_source


def test_every_button_is_registered_with_a_walk_that_presses_it() -> None:
    there = in_source()
    assert not there.get(""), f"{there.get('')}: give the button a key of its own, written beside it"
    missing = {key: where for key, where in there.items() if key not in BUTTONS}
    assert not missing, "nothing presses these; add a line to tests/browser/buttons.py and a press to a walk"
    assert not set(BUTTONS) - set(there), "these buttons are gone"
