"""Versions of the packages that the numbers of a run may depend on."""

import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata

from core import __version__

_PACKAGES = ("numpy", "torch", "transformers", "scikit-learn", "pyarrow", "gensim")


@cache
def versions() -> Mapping[str, str]:
    """Versions by package, of those that are installed."""
    by_package = dict[str, str]()
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):  # a card's machine need not have what word vectors are made by
            by_package[package] = metadata.version(package)
    return {"winnow": __version__, "python": platform.python_version(), **by_package}
