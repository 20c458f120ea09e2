"""Every error Winnow raises on purpose.

    WinnowError
    ├── InputError          what came in is wrong; the sentence says where and what to do
    │   ├── ReadError       a file: `train.conll line 12: ... ; ...`
    │   │   └── OptionsError    as it is to be read; another column or label scheme may mend it
    │   │       └── EncodingError   its bytes are not text in the encoding that was asked for
    │   ├── ConfigError     an option or a combination of options
    │   │   └── Unfinished  a run that an option names, and that has yet to finish
    │   ├── CorpusError     a corpus that is missing, empty, too small or of the wrong sort
    │   │   └── MissingCorpus  one that is not here; it can be added again
    │   ├── PathError       a path that is missing or outside the allowed folders
    │   └── ProjectError    a project that is missing, or cannot be made, changed, taken along or brought in so
    ├── ModelError          an encoder or tagger that cannot be loaded or is not what it claims
    ├── ResourceError       the machine is short of something: disk, memory, a device
    ├── RunError            a run that cannot start, be found or be resumed
    │   └── RunBusy         another process holds the run
    ├── Overtaken           somebody else has changed meanwhile what was shown
    └── Cancelled           somebody asked the run to stop

A message is one sentence: where, what, what was expected, what to do.
On the command line `Cancelled` exits 130, every other one 2; anything else is a bug and exits 1.
"""

import traceback
from collections.abc import Sequence

from core.shown import brief


class WinnowError(Exception):
    """Base of all errors raised on purpose; `str(error)` can be shown to a user as it is.

    permanent: its cause lies in what the run was asked for, so that the same run would end the same way again.
    """

    permanent = False


class InputError(WinnowError):
    """Something that the user gave is wrong."""

    permanent = True


class ReadError(InputError):
    """A file could not be read as asked.

    file: the file's name as the user knows it; line: 1-based, None where no line is to blame.
    """

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        self.file, self.line, self.problem = file, line, brief(problem)
        where = file if line is None else f"{file} line {line}"
        super().__init__(f"{where}: {self.problem}")

    def __reduce__(self) -> tuple[type["ReadError"], tuple[object, ...]]:
        return type(self), (self.file, self.line, self.problem)


class OptionsError(ReadError):
    """A file cannot be read with these options; another column or label scheme may solve it.

    examples: the file's first sentences, for the user's eyes only. They are no part of the message, which is logged.
    """

    def __init__(self, file: str, line: int | None, problem: str, examples: Sequence[str] = ()) -> None:
        super().__init__(file, line, problem)
        self.examples = tuple(examples)

    def __reduce__(self) -> tuple[type["ReadError"], tuple[object, ...]]:
        return type(self), (self.file, self.line, self.problem, self.examples)


class EncodingError(OptionsError):
    """A file's bytes are not text in the encoding that was asked for; another encoding may mend it."""


class ConfigError(InputError):
    """An option is out of its range, or two options contradict each other.

    option: name of the field that the message begins with; "" if it is about several.
    """

    option = ""


class Unfinished(ConfigError):
    """An option names a run that has not finished."""

    permanent = False


class CorpusError(InputError):
    """A corpus is missing, empty, too small, or not of the sort that is needed."""


class MissingCorpus(CorpusError):
    """A corpus is not here, or no longer; who adds it again can go on."""

    permanent = False


class PathError(InputError):
    """A path is missing or lies outside the allowed folders; a file can be put there."""

    permanent = False


class ProjectError(InputError):
    """A project is not here, cannot be changed as asked, or a file is none; made otherwise it can go on."""

    permanent = False


class ModelError(WinnowError):
    """An encoder or tagger cannot be loaded, or its weights are not the expected ones."""


class ResourceError(WinnowError):
    """The machine is short of disk, memory or a device."""


class RunError(WinnowError):
    """A run cannot be started, found or resumed."""


class RunBusy(RunError):
    """Another living process holds this run."""


class Overtaken(WinnowError):
    """Somebody else has changed what was shown here, and what is asked for would silently undo that."""


class Cancelled(WinnowError):
    """The run was asked to stop and did."""


# The last three are what cuBLAS and cuDNN say on a full card, before torch itself finds it full.
_NO_MEMORY = (
    "DefaultCPUAllocator",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


def memory_ran_out(error: BaseException) -> bool:
    """Whether this is Python's, torch's of a device, or torch's of the CPU (a plain RuntimeError); without torch."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    message = str(error) if isinstance(error, RuntimeError) else ""
    return any(words in message for words in _NO_MEMORY)


# Messages of these speak of code, not of data; others (ValueError, KeyError, ...) may quote a corpus.
_SPEAKS_OF_CODE = (RuntimeError, TypeError, AttributeError, IndexError, ArithmeticError, ImportError)


def for_the_log(error: BaseException) -> str:
    """A traceback that quotes nothing of the user's: no value, no text, no file's name."""
    parts = list[str]()
    link: BaseException | None = error
    while link:
        parts += ["Traceback, latest call last:\n", *traceback.format_tb(link.__traceback__)]
        parts.append(f"{type(link).__name__}{_message(link)}\n")
        link = link.__cause__ or link.__context__
    return "".join(parts)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f": [Errno {error.errno}] {error.strerror}"  # without the path
    return f": {error}" if isinstance(error, _SPEAKS_OF_CODE) else " (its message may quote a corpus)"
