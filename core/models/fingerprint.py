"""An encoder's fingerprint: 24 hex digits of all that makes it the one it is."""

from functools import lru_cache
from pathlib import Path

from core.isolated import Isolated, is_serving
from core.models.hub import BUNDLED, TINY, folder_of, located
from core.models.model_files import files, fingerprint_of

_process = Isolated(__name__, "start this by the command line if you trust the model")


def fingerprint(name: str, *, allow_download: bool = False) -> str:
    """24 hex digits of an encoder's weights, configuration and tokenizer; not of its path.

    The app's server has a folder that is not its own read by a process of its own. Errors: as of `hub.locate`; there
    ResourceError too, where that takes too long or breaks off.
    """
    if name == TINY:
        return "tiny-1"
    if name == BUNDLED or not is_serving():
        return answer(name, allow_download=allow_download)
    return _answer_isolated(name, _state(folder_of(name, allow_download=allow_download)))


def answer(name: str, *, allow_download: bool = False) -> str:
    """The fingerprint, read by this very process. Errors: ModelError."""
    with located(name, allow_download=allow_download) as folder:
        return fingerprint_of(folder)


@lru_cache(maxsize=32)
def _answer_isolated(name: str, state: tuple[object, ...]) -> str:
    """state: there for the cache alone."""
    return str(_process.ask(name, name=name))


def _state(folder: Path) -> tuple[object, ...]:
    """A value that changes when a file of an encoder does."""
    stats = ((file, file.stat() if file.exists() else None) for file in files(folder))
    return tuple((str(file), stat and (stat.st_mtime_ns, stat.st_size)) for file, stat in stats)
