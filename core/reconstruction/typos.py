"""One slip of the fingers in a word: a letter replaced, inserted, deleted, or swapped with the next."""

import string
from random import Random

_SLIPS = ("replace", "swap", "insert", "delete")
_TRIES = 20


def slip(letters: str, lots: Random) -> str | None:
    """`letters` with one edit that leaves the first character; None where there is none that changes them."""
    for _ in range(_TRIES if len(letters) > 1 else 0):
        made = _slipped(letters, lots.choice(_SLIPS), lots)
        if made != letters:
            return made
    return None


def _slipped(letters: str, way: str, lots: Random) -> str:
    at = lots.randrange(1, len(letters))
    match way:
        case "replace":
            return letters[:at] + _letter(letters[at], lots) + letters[at + 1 :]
        case "insert":
            return letters[:at] + _letter(letters[at], lots) + letters[at:]
        case "swap":
            return letters[:at] + letters[at : at + 2][::-1] + letters[at + 2 :]
        case _:
            return letters[:at] + letters[at + 1 :]


def _letter(like: str, lots: Random) -> str:
    """A digit for a digit, a capital for a capital, else a small letter."""
    return lots.choice(
        string.digits if like.isdigit() else string.ascii_uppercase if like.isupper() else string.ascii_lowercase
    )
