"""One slip of the fingers in a word: a letter replaced, inserted, deleted, or swapped with the next."""

import string
import unicodedata
from random import Random

_SLIPS = ("replace", "swap", "insert", "delete")
_TRIES = 20  # a swap of equal letters or the letter drawn again changes nothing; "aa" has few that do


def slip(letters: str, rng: Random, known: str = "") -> str | None:
    """`letters` with one edit that leaves the first character; None where there is none that changes them.

    known: characters of which other scripts than Latin take their letters; else of the word itself.
    """
    for _ in range(_TRIES if len(letters) > 1 else 0):
        edited = _slipped(letters, rng.choice(_SLIPS), rng, letters + known)
        if edited != letters:
            return edited
    return None


def _slipped(letters: str, way: str, rng: Random, known: str) -> str:
    # The first character stays: people rarely slip there, and it carries the capital.
    at = rng.randrange(1, len(letters))
    match way:
        case "replace":
            return letters[:at] + _letter(letters[at], rng, known) + letters[at + 1 :]
        case "insert":
            return letters[:at] + _letter(letters[at], rng, known) + letters[at:]
        case "swap":
            return letters[:at] + letters[at : at + 2][::-1] + letters[at + 2 :]
        case _:
            return letters[:at] + letters[at + 1 :]


def _letter(like: str, rng: Random, known: str) -> str:
    """A digit for a digit, a capital for a capital, else a small letter; of the script that `like` is of."""
    if not like.isascii():
        like = next(filter(str.isalnum, like + known), like)  # a mark stands on a letter, and goes by that one
    if (script := _script(like)) != "LATIN":
        capital = like.isupper()
        # Case is laid on again: of a script's capitals few may be known.
        pool = {(c.upper() if capital else c.lower()) for c in known if _script(c) == script}
        # Sorted, for a set of letters has another order in every process.
        return rng.choice(sorted(c for c in pool if len(c) == 1))
    return rng.choice(
        string.digits if like.isdigit() else string.ascii_uppercase if like.isupper() else string.ascii_lowercase
    )


def _script(letter: str) -> str:
    """The first word of the character's name, with its sort: CYRILLIC of a letter; LATIN of all ASCII."""
    if letter.isascii():
        return "LATIN"
    name = unicodedata.name(letter, "LATIN").split()[0]
    return name if letter.isalpha() else f"{name} {unicodedata.category(letter)}"
