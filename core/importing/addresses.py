"""Files that are not on this machine: what lies at an address that the user named, and writing to one."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from core.corpora import remote
from core.corpora.remote import is_address, named, outgoing
from core.importing import uploads
from core.projects.home import home

__all__ = ["fetched", "is_address", "named", "outgoing", "try_output"]


def try_output(output: str) -> None:
    """Errors: PathError where an output is at an address that cannot be reached: before hours of work, not after."""
    if is_address(output):
        remote.reach(output)


def fetched(addresses: Sequence[str], say: Callable[[str], None]) -> Path:
    """Copy what lies at addresses that the user named to disk, as an upload: its file, or the folder of several.

    say: hears what is being fetched. Errors: PathError, ResourceError; then nothing of it stays.
    """
    folder = home() / "uploads" / os.urandom(6).hex()
    try:
        folder.mkdir(parents=True)
        for number, address in enumerate(addresses):
            part = folder / f".{number}"
            for file in remote.fetch(address, part, say):
                file.rename(folder / uploads.free_name(folder, uploads.file_name(file.name)))
            part.rmdir()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return uploads.spooled(folder.name)
