"""A stranger's Parquet and Arrow files, read once to their end in a process apart before an import goes near them.

Their reader is native code, which a forged file may kill, and the process of an import has a run to look after.
"""

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.corpora.formats.detect import kind_of, looks_like_arrow, records
from core.corpora.formats.folders import files_of
from core.corpora.formats.ledger import Ledger
from core.corpora.readers import ReadOptions
from core.errors import WinnowError
from core.isolated import Isolated

_process = Isolated(__name__, "write it again, or save it as CSV or JSON lines", seconds=3600, spare=False)


def dry_run(path: Path, options: ReadOptions) -> None:
    """Return once every such file of `path` was read without harm. Errors: ResourceError if one kills its reader."""
    for file in files_of(path, options):
        if looks_like_arrow(file):
            _process.ask(file.name, path=str(file), options=asdict(options))


def answer(path: str, options: Mapping[str, Any]) -> None:
    """The other process's part. What else is wrong with the file, the import says itself."""
    file, asked = Path(path), ReadOptions(**options)
    with suppress(WinnowError, MemoryError):
        deque(records(file, kind_of(file, asked), Ledger(asked)), maxlen=0)
