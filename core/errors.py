"""Every error Winnow raises on purpose.

    WinnowError
    ├── InputError          what came in is wrong; the sentence says where and what to do
    │   ├── ReadError       a file: `train.conll line 12: ... ; ...`
    │   ├── ConfigError     an option or a combination of options
    │   ├── CorpusError     a corpus that is missing, empty, too small or of the wrong sort
    │   └── PathError       a path that is missing or outside the allowed folders
    ├── ModelError          an encoder or tagger that cannot be loaded or is not what it claims
    ├── ResourceError       the machine is short of something: disk, memory, a device
    ├── RunError            a run that cannot start, be found or be resumed
    │   └── RunBusy         another process holds the run
    └── Cancelled           somebody asked the run to stop

A message is one sentence: where, what, what was expected, what to do.
On the command line `Cancelled` exits 130, every other one 2; anything else is a bug and exits 1.
"""


class WinnowError(Exception):
    """Base of all errors raised on purpose; `str(error)` can be shown to a user as it is."""


class InputError(WinnowError):
    """What the user gave is wrong."""


class ReadError(InputError):
    """A file could not be read as asked.

    file: the file's name as the user knows it; line: 1-based, None where no line is to blame.
    """

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        self.file, self.line, self.problem = file, line, problem
        where = file if line is None else f"{file} line {line}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[type["ReadError"], tuple[str, int | None, str]]:
        return type(self), (self.file, self.line, self.problem)


class ConfigError(InputError):
    """An option is out of its range, or two options contradict each other."""


class CorpusError(InputError):
    """A corpus is missing, empty, too small, or not of the sort that is needed."""


class PathError(InputError):
    """A path is missing or lies outside the allowed folders."""


class ModelError(WinnowError):
    """An encoder or tagger cannot be loaded, or its weights are not the expected ones."""


class ResourceError(WinnowError):
    """The machine is short of disk, memory or a device."""


class RunError(WinnowError):
    """A run cannot be started, found or resumed."""


class RunBusy(RunError):
    """Another living process holds this run."""


class Cancelled(WinnowError):
    """The run was asked to stop and did."""


def memory_ran_out(error: BaseException) -> bool:
    """Whether this is Python's, torch's of a device, or torch's of the CPU (a plain RuntimeError); without torch."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    told = str(error) if isinstance(error, RuntimeError) else ""
    return "DefaultCPUAllocator" in told or "out of memory" in told
