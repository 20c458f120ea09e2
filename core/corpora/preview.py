"""Preview files and check Arrow files in a separate process, because a forged file may kill the process reading it."""

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.corpora.formats.detect import kind_of, looks_like_arrow, records
from core.corpora.formats.folders import files_of
from core.corpora.formats.ledger import Ledger
from core.corpora.readers import Preview, ReadOptions, sniff
from core.errors import WinnowError
from core.isolated import Isolated

_process = Isolated(__name__, "import it on the command line (python -m core corpus add) if you trust it")
_whole_files = Isolated(__name__, "write it again, or save it as CSV or JSON lines", seconds=3600, spare=False)
ready = _process.ready


def preview(path: Path, options: ReadOptions) -> Preview:
    """Return the result of `readers.sniff`, which runs in a separate process for at most 20 seconds.

    Errors: those of `sniff` and `Isolated.ask`.
    """
    from pydantic import TypeAdapter  # imported here, so that the separate process starts faster

    answered = _process.ask(path.name, path=str(path), options=asdict(options), whole=False)
    return TypeAdapter(Preview).validate_python(answered)


def dry_run(path: Path, options: ReadOptions) -> None:
    """Read every Parquet and Arrow file in `path` to its end in a separate process, before the import reads it.

    Native code reads these files, and a forged file may crash it. Errors: ResourceError if a file kills the process.
    """
    for file in files_of(path, options):
        if looks_like_arrow(file):
            _whole_files.ask(file.name, path=str(file), options=asdict(options), whole=True)


def answer(path: str, options: Mapping[str, Any], *, whole: bool) -> dict[str, object] | None:
    """Return the preview of a file as JSON values. Called in the separate process.

    whole: True to read the file to its end and return None. Errors are then ignored, because the import will report
    them.
    """
    file, asked = Path(path), ReadOptions(**options)
    if not whole:
        return asdict(sniff(file, asked))
    with suppress(WinnowError, MemoryError):
        deque(records(file, kind_of(file, asked), Ledger(asked)), maxlen=0)
    return None
