"""Read a file that may be compressed, up to a limit."""

import bz2
import gzip
import zlib
from pathlib import Path

from core.errors import ReadError

MOST_BYTES = 200_000_000  # largest size of a list of names, when unpacked


def unpacked(path: Path) -> bytes:
    """Return the bytes of a file. A `.gz` or `.bz2` file is unpacked.

    Errors: ReadError if the file is damaged, or larger than `MOST_BYTES` when unpacked.
    """
    try:
        with path.open("rb") as raw:
            packed = {".gz": lambda: gzip.GzipFile(fileobj=raw), ".bz2": lambda: bz2.BZ2File(raw)}
            data = packed.get(path.suffix.lower(), lambda: raw)().read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ReadError(path.name, None, "cannot be unpacked; copy it again.") from error
    if len(data) > MOST_BYTES:
        raise ReadError(path.name, None, f"is larger than {MOST_BYTES / 1e6:.0f} MB; give a shorter list of names.")
    return data
