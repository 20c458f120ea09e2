"""All errors that Winnow raises on purpose.

    WinnowError
    ├── InputError          the user's input is wrong
    │   ├── ReadError       a file: `train.conll line 12: ... ; ...`
    │   │   └── OptionsError    a file that cannot be read with these options, such as the column or label scheme
    │   │       └── EncodingError   a file whose bytes are not text in the chosen encoding
    │   ├── ConfigError     an option or a combination of options
    │   │   └── Unfinished  an option names a run that has not finished
    │   ├── CorpusError     a corpus that is missing, empty, too small or of the wrong kind
    │   │   └── MissingCorpus  a missing corpus, which can be added again
    │   ├── PathError       a path that is missing or outside the allowed folders
    │   └── ProjectError    a project that is missing, or cannot be made, changed, exported or imported
    ├── ModelError          an encoder or tagger that cannot be loaded, or that has other weights than expected
    ├── ResourceError       disk, memory or a device that is missing or full
    ├── RunError            a run that cannot start, be found or be resumed
    │   └── RunBusy         another process holds the run
    ├── Overtaken           another user has changed what was shown
    └── Cancelled           the run was asked to stop

Each message names the place of the problem, what is wrong, what was expected and what to do.
On the command line, the exit code is 130 for `Cancelled`, 2 for all other errors here, and 1 for a bug.
"""

import traceback
from collections.abc import Sequence

from core.shown import brief


class WinnowError(Exception):
    """Base of all errors raised on purpose. `str(error)` can be shown to users.

    permanent: True if the run's options are the cause, so that the same run would fail again.
    """

    permanent = False


class InputError(WinnowError):
    """The user's input is wrong."""

    permanent = True


class ReadError(InputError):
    """A file could not be read.

    file: name of the file, as the user knows it. line: number of the line, from 1; None if unknown.
    """

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        self.file, self.line, self.problem = file, line, brief(problem)
        where = file if line is None else f"{file} line {line}"
        super().__init__(f"{where}: {self.problem}")

    def __reduce__(self) -> tuple[type["ReadError"], tuple[object, ...]]:
        return type(self), (self.file, self.line, self.problem)


class OptionsError(ReadError):
    """A file cannot be read with these options. With another column or label scheme, it may be readable.

    examples: first sentences of the file, for the user only. The message, which is logged, does not contain them.
    """

    def __init__(self, file: str, line: int | None, problem: str, examples: Sequence[str] = ()) -> None:
        super().__init__(file, line, problem)
        self.examples = tuple(examples)

    def __reduce__(self) -> tuple[type["ReadError"], tuple[object, ...]]:
        return type(self), (self.file, self.line, self.problem, self.examples)


class EncodingError(OptionsError):
    """A file's bytes are not text in the chosen encoding; another encoding may work."""


class ConfigError(InputError):
    """An option is out of its range, or two options contradict each other.

    option: name of the option, which begins the message; "" if the error is about several options.
    """

    option = ""


class Unfinished(ConfigError):
    """An option names a run that has not finished."""

    permanent = False


class CorpusError(InputError):
    """A corpus is missing, empty, too small, or of the wrong kind."""


class MissingCorpus(CorpusError):
    """A corpus does not exist or was removed; the user can import it again."""

    permanent = False


class PathError(InputError):
    """A path is missing or outside the allowed folders."""

    permanent = False


class ProjectError(InputError):
    """A project is missing or cannot be changed, or a file is not a project."""

    permanent = False


class ModelError(WinnowError):
    """An encoder or tagger cannot be loaded, or its weights are not the expected ones."""


class ResourceError(WinnowError):
    """Disk, memory or a device is missing or full."""


class RunError(WinnowError):
    """A run cannot be started, found or resumed."""


class RunBusy(RunError):
    """Another living process holds this run."""


class Overtaken(WinnowError):
    """An action would silently overwrite a change that another user has made since the page was shown."""


class Cancelled(WinnowError):
    """The run was asked to stop, and stopped."""


# Parts of out-of-memory messages. The last three come from cuBLAS and cuDNN, which may fail before torch on a full GPU.
_NO_MEMORY = (
    "DefaultCPUAllocator",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


def memory_ran_out(error: BaseException) -> bool:
    """Return True for an out-of-memory error of Python, a device, or torch's CPU allocator. Does not import torch."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    message = str(error) if isinstance(error, RuntimeError) else ""
    return any(words in message for words in _NO_MEMORY)


# Errors whose messages describe code. Messages of other errors (ValueError, KeyError, ...) may quote a corpus.
_SPEAKS_OF_CODE = (RuntimeError, TypeError, AttributeError, IndexError, ArithmeticError, ImportError)


def for_the_log(error: BaseException) -> str:
    """Return a traceback without the user's data: no values, no text, no file names."""
    parts = list[str]()
    link: BaseException | None = error
    while link:
        parts += ["Traceback, latest call last:\n", *traceback.format_tb(link.__traceback__)]
        parts.append(f"{type(link).__name__}{_message(link)}\n")
        link = link.__cause__ or link.__context__
    return "".join(parts)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f": [Errno {error.errno}] {error.strerror}"  # leave out the path
    return f": {error}" if isinstance(error, _SPEAKS_OF_CODE) else " (message left out, because it may quote a corpus)"
