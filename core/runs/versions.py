"""Versions of the packages that a run's results may depend on."""

import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata

from core import __version__

_PACKAGES = ("numpy", "torch", "transformers", "scikit-learn", "pyarrow", "gensim")


@cache
def versions() -> Mapping[str, str]:
    """Return {name: version} of Winnow, Python and the installed packages that results depend on."""
    by_package = dict[str, str]()
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):  # gensim is only needed to train word vectors
            by_package[package] = metadata.version(package)
    return {"winnow": __version__, "python": platform.python_version(), **by_package}
