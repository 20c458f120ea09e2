"""Answer with the current home, in a separate process."""

from core.paths import home


def answer() -> str:
    return str(home())
