"""A module that is asked in a process of its own."""

from core.paths import home


def answer() -> str:
    return str(home())
