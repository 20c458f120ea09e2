"""Format user text, names, counts and times for terminals and lists."""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence

REPLACED = "\ufffd"
_BRIEF = 800  # maximum number of characters of a text in `brief`

LONGEST = 60  # maximum number of characters of a name in a list

# Control characters of terminals, characters that break or reverse lines, and unpaired surrogates.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """Return text on one line; each control character is replaced by `REPLACED`."""
    return _OBEYED.sub(REPLACED, text)


def brief(text: str) -> str:
    """Shorten a long text, such as a whole column, by leaving out its middle."""
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF // 2]} ... {text[-_BRIEF // 2 :]}"


def in_utf8(text: str) -> bool:
    """Return True if text can be encoded as UTF-8. Invalid file names cannot: they contain unpaired surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def shown_json(text: str) -> str:
    """Return JSON on one line with its control characters escaped. Parsing the JSON restores them."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_points(value: float) -> str:
    """Format a number of F1 points, with one decimal below 10 points and none from 10 on."""
    return f"{value:.0f} points" if value >= 9.95 else f"{value:.1f} points"


def gain_in_words(value: float) -> str:
    """Format a gain in F1 points with all its decimals: "1 point", "2.5 points"."""
    return f"{value:g} point{'s' * (value != 1)}"


def short(name: str) -> str:
    """Shorten a name for a list. Keep start and end, because names that Winnow generates differ at the end."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 28].rstrip()}…{name[-27:].lstrip()}"


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 sentence`, `1,200 sentences`. plural: plural of an irregular noun."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def when(moment: float) -> str:
    """Format a time as local date and time without the year: `3 March, 14:05`. moment: seconds since 1970."""
    return time.strftime("%-d %B, %H:%M", time.localtime(moment))


def distinct(names: Mapping[str, str], moments: Mapping[str, float]) -> dict[str, str]:
    """Return `names` with the date appended to equal names, and a number too if the dates are equal.

    names: {key: name}. moments: {key: start time in seconds since 1970}. The oldest gets the lowest number.
    """
    often = Counter(names.values())
    dated = {key: name if often[name] == 1 else f"{name} ({when(moments[key])})" for key, name in names.items()}
    oldest_first, often = sorted(dated, key=lambda key: (moments[key], key)), Counter(dated.values())
    for name in [name for name, n in often.items() if n > 1]:
        equal = [key for key in oldest_first if dated[key] == name]
        dated |= {key: f"{name.removesuffix(')')}, no. {number})" for number, key in enumerate(equal, 1)}
    return dated


def duration(seconds: float) -> str:
    """Format seconds for people: `45 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
