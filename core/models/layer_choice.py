"""The option `layers` of a tagger, read: which of its encoder's layers it learns from (SOURCES.md, Layers)."""

import re
from dataclasses import dataclass
from typing import Literal, Self

from core.errors import ConfigError

_SHAPE = re.compile(r"last|mix|(reinit:)?([1-9]\d{0,3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChoice:
    """kind: the last layer as it is; a learnt mix of all; the `k`th, those above it cut off; the top `k` drawn anew."""

    kind: Literal["last", "mix", "named", "reinit"]
    k: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """`last`, `mix`, `5` or `reinit:2`. Errors: ConfigError."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"layers: {text[:40]!r} is not understood; give last, mix, a layer's number such as 5, or reinit:1."
            )
        if match[2] is None:
            return cls(kind="mix" if text == "mix" else "last")
        return cls(kind="reinit" if match[1] else "named", k=int(match[2]))
