"""The torture itself, a cut of it: kinds that train nothing, in ways that depend on no machine's speed."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.conftest import elsewhere
from tests.forge import Forge
from tests.torture import kinds
from tests.torture.__main__ import Torture, table
from tests.torture.trial import undisturbed

KINDS = ("add", "vectors-import", "robustness")
WAYS = ("kill-writing", "torn", "read-only", "clock-back", "two-workers")


@pytest.fixture(scope="module")
def torture(tmp_path_factory: pytest.TempPathFactory, forge: Forge) -> Iterator[Torture]:
    folder = tmp_path_factory.mktemp("torture")
    with elsewhere(folder / "home") as home:
        kinds.furnish(home, KINDS)
        home.rename(folder / "furnished")
        yield Torture(folder, forge, KINDS, WAYS)


def test_what_was_disturbed_ends_as_undisturbed(torture: Torture) -> None:
    torture.calm = {kind: undisturbed(torture.forge, torture.folder, kind, fresh=False) for kind in KINDS}
    records = [torture.trial(seed, KINDS[seed % 3], way) for seed, way in enumerate(WAYS)]
    assert [record["became"] for record in records] == ["alike"] * len(WAYS), records
    assert all(record["struck"] for record in records[:2])
    assert "0 lost, 0 different, 0 stuck" in table(torture.records())


def test_what_is_different_is_seen(torture: Torture) -> None:
    """The check of the check."""
    calm = undisturbed(torture.forge, torture.folder, "robustness", fresh=False)
    torture.calm["robustness"] = replace(calm, outcome={**calm.outcome, "robustness 1 result": "another"})
    assert torture.trial(9, "robustness", "kill-writing")["became"] == "different"
    assert "1 different" in table(torture.records())
