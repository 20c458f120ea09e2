"""Read the names of a pickle of plain containers. `core.isolated` runs this in a separate process for `lists.py`.

A pickle can run code, and even a small pickle can take hours or fill the memory. Therefore only instructions that make
plain values are accepted, and the process has limits of time and memory.
"""

import io
import pickle
import pickletools
from collections.abc import Collection
from pathlib import Path

from core.dictionary.unpacked import unpacked
from core.errors import ReadError

_PLAIN = """
    PROTO FRAME STOP MARK POP POP_MARK DUP MEMOIZE GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE EMPTY_DICT EMPTY_LIST
    EMPTY_TUPLE EMPTY_SET DICT LIST TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS SETITEM SETITEMS ADDITEMS
"""
# Pickle instructions that make only dictionaries, lists, tuples, sets, text and numbers. All other instructions are
# refused, in particular imports and calls.
PLAIN = frozenset(_PLAIN.split())


class _Unpickler(pickle.Unpickler):
    """Refuses every class and function, in addition to the check of the instructions."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"{module}.{name}")


def answer(path: str) -> list[str]:
    """Return the printable names of a pickle: keys of its largest dictionary, or its items. Errors: ReadError."""
    file = Path(path)
    refused = ReadError(file.name, None, "is not a pickle of plain lists and dictionaries; export the names as text.")
    data = unpacked(file)
    try:
        if any(code.name not in PLAIN for code, *_ in pickletools.genops(data)):
            raise refused
        value = _Unpickler(io.BytesIO(data)).load()
    except (ValueError, pickle.UnpicklingError, EOFError, LookupError, TypeError, RecursionError) as error:
        raise refused from error
    names = _largest(value)
    if names is None:
        raise ReadError(file.name, None, "contains neither a dictionary nor a list of names; export the names as text.")
    return [name for name in names if isinstance(name, str) and name.isprintable()]


def _largest(value: object) -> Collection[object] | None:
    """Return the largest dictionary among `value` and its values; `value` itself if it is a list or set; else None."""
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if not isinstance(value, dict):
        return None
    return max((value, *(each for each in value.values() if isinstance(each, dict))), key=len)
