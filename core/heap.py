"""Limit the arenas of glibc's heap, and return freed memory to the system. Does nothing with another C library."""

import ctypes
from contextlib import suppress
from functools import cache

ARENAS = 2  # number of arenas that all threads share

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def few_arenas() -> None:
    """Let all threads share `ARENAS` arenas of the heap. Existing arenas are kept.

    By default, glibc makes up to 8 arenas per core. Each page is drawn in a separate thread, which uses any free arena.
    An arena keeps the memory of the largest page that was drawn in it, and other arenas cannot use this memory. In an
    app with many users, this unused memory grew by 0.5 MB per minute. Its share of the app's whole memory is unknown.
    """
    if library := _glibc():
        library.mallopt(_ARENA_MAX, ARENAS)


def trim() -> None:
    """Return freed memory to the system, including memory in the middle of the heap."""
    if library := _glibc():
        library.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    """Return glibc, or None if another C library is used."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        if library.mallopt and library.malloc_trim and library.gnu_get_libc_version:
            return library
    return None
