"""One slip of the fingers in a word: a letter replaced, inserted, deleted, or swapped with the next."""

import string
from random import Random

_SLIPS = ("replace", "swap", "insert", "delete")
_TRIES = 20  # a swap of equal letters or the letter drawn again changes nothing; "aa" has few that do


def slip(letters: str, rng: Random) -> str | None:
    """`letters` with one edit that leaves the first character; None where there is none that changes them."""
    for _ in range(_TRIES if len(letters) > 1 else 0):
        edited = _slipped(letters, rng.choice(_SLIPS), rng)
        if edited != letters:
            return edited
    return None


def _slipped(letters: str, way: str, rng: Random) -> str:
    # The first character stays: people rarely slip there, and it carries the capital.
    at = rng.randrange(1, len(letters))
    match way:
        case "replace":
            return letters[:at] + _letter(letters[at], rng) + letters[at + 1 :]
        case "insert":
            return letters[:at] + _letter(letters[at], rng) + letters[at:]
        case "swap":
            return letters[:at] + letters[at : at + 2][::-1] + letters[at + 2 :]
        case _:
            return letters[:at] + letters[at + 1 :]


def _letter(like: str, rng: Random) -> str:
    """A digit for a digit, a capital for a capital, else a small letter."""
    return rng.choice(
        string.digits if like.isdigit() else string.ascii_uppercase if like.isupper() else string.ascii_lowercase
    )
