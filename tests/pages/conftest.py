"""What tests of pages share."""

from pathlib import Path

import pytest

from core.facade import preferences


@pytest.fixture
def expert(home: Path) -> None:
    """What only experts need is shown."""
    preferences.set_expert(True)
