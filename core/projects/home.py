"""Access to the corpora and runs of the current project."""

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from core.corpora.library import Library
from core.kinds import KINDS
from core.paths import home
from core.runs.store import RunStore

P = ParamSpec("P")
T = TypeVar("T")


def library() -> Library:
    """Return the library of this project's corpora."""
    return Library(home())


def kept_per_home(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that caches the last `size` results of a function, with separate entries per project."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        of_home: Callable[..., T] = lru_cache(maxsize=size)(lambda folder, *args, **kwargs: function(*args, **kwargs))

        @wraps(function)
        def kept(*args: P.args, **kwargs: P.kwargs) -> T:
            return of_home(home(), *args, **kwargs)

        return kept

    return decorate


def store() -> RunStore:
    """Return the store of this project's runs. All calls return the same store, because it caches what it reads."""
    return store_of(home())


def store_of(folder: Path) -> RunStore:
    """Return the store of the runs in a project's folder."""
    kept = kept_store(folder)
    # The folder is missing if the project was removed, perhaps by another process, and a new one got the same slug.
    if not kept.folder.is_dir():
        kept.folder.mkdir(parents=True, exist_ok=True)
    return kept


@lru_cache
def kept_store(folder: Path) -> RunStore:
    """Return a store of the runs in a project's folder, the same one at each call. Use `store_of`."""
    return RunStore(folder, optioned=KINDS)
