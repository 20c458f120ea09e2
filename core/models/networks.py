"""Names of a tagger's networks, and its option `layers` (SOURCES.md, Layers). This module does not import torch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from core.errors import ConfigError
from core.text.sentence import Sentence

Network = Literal["encoder", "span", "bilstm", "charcnn"]
# Networks that fine-tune an encoder. The others are small and start from random weights.
ON_ENCODER = ("encoder", "span")
# Maximum number of words in a span.
MOST = 4


def beyond(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Return the number of entities that are too long for a span tagger, and the number of all entities."""
    entities = [entity for sentence in sentences for entity in sentence.entities or ()]
    return sum(entity.end - entity.start > MOST for entity in entities), len(entities)


_SHAPE = re.compile(r"last|mix|(reinit:)?([1-9]\d{0,3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChoice:
    """The encoder layers that a tagger reads.

    kind: `last`: the last layer. `mix`: a learnt mix of all layers. `named`: layer `k`; the layers above it are
    removed. `reinit`: the last layer, after the top `k` layers were reinitialised.
    """

    kind: Literal["last", "mix", "named", "reinit"]
    k: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `last`, `mix`, `5` or `reinit:2`. Errors: ConfigError."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"layers: {text[:40]!r} is not understood; give last, mix, a layer's number such as 5, or reinit:1."
            )
        if match[2] is None:
            return cls(kind="mix" if text == "mix" else "last")
        return cls(kind="reinit" if match[1] else "named", k=int(match[2]))
