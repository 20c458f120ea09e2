"""Whom pip would ask on this machine, by the user's own settings: said before anybody asks for a package."""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from core.errors import ModelError

_USUAL = "https://pypi.org/simple"  # pip's own
_SECTIONS = ("global", "download", ":env:")  # the later one goes before
_NO = ("", "0", "false", "no", "off")


def hosts() -> Sequence[str]:
    """The hosts, and the folders of this machine, that `pip download` asks, each once; of an address nothing else,
    since it may hold a password. Errors: ModelError where there is no pip."""
    return _hosts(tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("PIP_"))))


@lru_cache(maxsize=4)
def _hosts(environment: tuple[tuple[str, str], ...]) -> Sequence[str]:
    """environment: there for the cache alone; asking pip takes half a second."""
    settings = _settings()
    places = [] if settings.get("no-index", "").lower() not in _NO else [settings.get("index-url", _USUAL)]
    if places:
        places += settings.get("extra-index-url", "").split()
    places += settings.get("find-links", "").split()
    return tuple(dict.fromkeys(_host(place) for place in places))


def _settings() -> Mapping[str, str]:
    command = (sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelError(
            "No package can be fetched, since this Python has no pip that works; install pip beside Winnow."
        )
    by_section: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        by_section.setdefault(section, {})[option] = str(ast.literal_eval(value))
    settings: dict[str, str] = {}
    for section in _SECTIONS:
        settings |= by_section.get(section, {})
    return settings


def _host(place: str) -> str:
    """`pypi.org` of `https://me:secret@pypi.org/simple`; the path of a folder."""
    parts = urlsplit(place)
    return parts.hostname or parts.path or place
