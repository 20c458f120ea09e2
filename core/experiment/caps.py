"""How much is read of an experiment's sources: one number of tokens, or several, each with lines of its own."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from core.config import Budget
from core.errors import ConfigError

ALL = (None, "", 0, "0", (0,), [0], ("0",), ["0"])  # as much as the smallest source has


def _listed(given: object) -> object:
    """A single number stands for itself, as in experiments of older versions."""
    if given in ALL:
        return ()
    return (given,) if isinstance(given, int | str) else given


def _checked(caps: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(caps)) < len(caps) or any(cap < 1 for cap in caps):
        raise ConfigError(
            f"cap_tokens: {', '.join(map(str, caps))} must be different numbers of tokens, none below 1; 0 alone "
            "stands for as many as the smallest source has."
        )
    return caps


def _kept(caps: Sequence[int]) -> int | list[int]:
    # One number stays a number: so the keys of experiments with one size are those of before there were several.
    return (caps[0] if caps else 0) if len(caps) < 2 else list(caps)


def tokens_read(budget: str, caps: Sequence[int], smallest: int) -> int:
    """Tokens that a line reads of its source. budget: the line's, "" where there is one size. smallest: source."""
    return int(Budget.parse(budget).value) if budget else next(iter(caps), smallest)


Caps = Annotated[tuple[int, ...], BeforeValidator(_listed), AfterValidator(_checked), PlainSerializer(_kept)]
