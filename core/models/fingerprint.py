"""An encoder's fingerprint: 24 hex digits of its weights, configuration and tokenizer."""

from functools import lru_cache

from core.isolated import Isolated, is_serving
from core.models.hub import BUNDLED, TINY, folder_of, located
from core.models.model_files import fingerprint_of, state

_process = Isolated(__name__, "use the command line if you trust the model")


def fingerprint(name: str, *, allow_download: bool = False) -> str:
    """Return 24 hex digits that depend on an encoder's weights, configuration and tokenizer, but not on its path.

    In the app's server, a separate process reads all folders except the bundled one. Errors: those of `hub.located`; in
    the server also ResourceError if reading takes too long or the process dies.
    """
    if name == TINY:
        return "tiny-1"
    if name == BUNDLED or not is_serving():
        return answer(name, allow_download=allow_download)
    return _answer_isolated(name, tuple(state(folder_of(name, allow_download=allow_download))))


def answer(name: str, *, allow_download: bool = False) -> str:
    """Return the fingerprint, computed in this process. Errors: ModelError."""
    with located(name, allow_download=allow_download) as folder:
        return fingerprint_of(folder)


@lru_cache(maxsize=32)
def _answer_isolated(name: str, at: tuple[object, ...]) -> str:
    """Return the fingerprint, computed in a separate process. at: state of the folder, a part of the cache key."""
    return str(_process.ask(name, name=name))
