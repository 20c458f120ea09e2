"""The C library's heap, where that is glibc's: how many parts it has, and what it gives back."""

import ctypes
from contextlib import suppress
from functools import cache

ARENAS = 2
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def few_arenas() -> None:
    """Have threads share `ARENAS` parts of the heap, and those that there are already.

    Else up to eight a core come to be, one for each thread at work beside others. A page is drawn by a thread of its
    own, in whichever part is free, and every part keeps what the largest page has taken there: holes that no other part
    uses. In a crowded app these grew by half a megabyte a minute; how much of what it takes of the machine that is, in
    the end, was not measured.
    """
    if library := _glibc():
        library.mallopt(_ARENA_MAX, ARENAS)


def trim() -> None:
    """Give the machine what was freed, from the middle of the heap too."""
    if library := _glibc():
        library.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    """None where the C library is another."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        if library.mallopt and library.malloc_trim and library.gnu_get_libc_version:
            return library
    return None
