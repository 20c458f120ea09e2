"""Text of a data set, a file's name or another account, as a terminal or a list may show it; and times."""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence

REPLACED = "\ufffd"
_BRIEF = 800  # characters
LONGEST = 60  # characters of a name in a list
# What a terminal obeys (ESC begins it), what turns or breaks a line, and halves of characters, which nothing can print.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """`text` on one line, a mark in place of each control character."""
    return _OBEYED.sub(REPLACED, text)


def brief(text: str) -> str:
    """`text`, its middle left out where somebody's cell or column would make a sentence as long as a file."""
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF // 2]} ... {text[-_BRIEF // 2 :]}"


def in_utf8(text: str) -> bool:
    """Whether it can be written down: a file's name may be bytes that are no text, kept as halves of characters."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def shown_json(text: str) -> str:
    """One JSON value on one line, control characters escaped: whoever parses it gets them back as they were."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_points(value: float) -> str:
    """A size in F1 points, with as many digits as a reader can use."""
    return f"{value:.0f} points" if value >= 9.95 else f"{value:.1f} points"


def short(name: str) -> str:
    """A name in a list. A long one keeps both ends, because names that Winnow gives differ at the end."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 28].rstrip()}…{name[-27:].lstrip()}"


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 sentence`, `1,200 sentences`. plural: of an irregular noun."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def when(moment: float) -> str:
    """Date and time by this machine's clock, without the year. moment: seconds since 1970."""
    return time.strftime("%-d %B, %H:%M", time.localtime(moment))


def distinct(names: Mapping[str, str], moments: Mapping[str, float]) -> dict[str, str]:
    """Add the date to equal names, and a number, oldest first, if the dates are equal too.

    moments: when each began, in seconds since 1970.
    """
    often = Counter(names.values())
    dated = {key: name if often[name] == 1 else f"{name} ({when(moments[key])})" for key, name in names.items()}
    oldest_first, often = sorted(dated, key=lambda key: (moments[key], key)), Counter(dated.values())
    for name in [name for name, n in often.items() if n > 1]:
        equal = [key for key in oldest_first if dated[key] == name]
        dated |= {key: f"{name.removesuffix(')')}, no. {number})" for number, key in enumerate(equal, 1)}
    return dated


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
