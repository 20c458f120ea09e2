"""Whom pip would ask: by its settings in the environment and in files, without what is secret in an address."""

import sys
from pathlib import Path

import pytest

from core.errors import ModelError
from core.models import offered
from core.models.offered import hosts


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A configuration of pip that is this test's alone."""
    import os

    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "pip.conf"
    file.write_text("")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
    offered._hosts.cache_clear()
    return file


def test_the_environment_overrides_the_configuration_file(
    without_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hosts()[0] == "pypi.org"
    without_settings.write_text(
        "[global]\nindex-url = https://me:secret@mirror.example/simple\nfind-links = /srv/wheels\n"
    )
    monkeypatch.setenv("PIP_FIND_LINKS", "/srv/wheels")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://other.example:8080/simple file:///opt/more")
    assert hosts() == ("mirror.example", "other.example", "/opt/more", "/srv/wheels")
    monkeypatch.setenv("PIP_INDEX_URL", "https://nearer.example/simple")
    assert hosts()[0] == "nearer.example"
    assert "secret" not in str(hosts())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "/srv/a /srv/b")
    assert hosts() == ("/srv/a", "/srv/b")
    offered._hosts.cache_clear()
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(ModelError, match="no pip that works"):
        hosts()
