"""The networks that a tagger can be, by name; what is known of them without torch."""

from collections.abc import Sequence
from typing import Literal

from core.text.sentence import Sentence

Network = Literal["encoder", "span", "bilstm", "charcnn"]
ON_ENCODER = ("encoder", "span")  # fine-tuned; the others are small and begin from nothing
MOST = 4  # words of a span


def beyond(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Entities that are longer than any span, and all."""
    entities = [entity for sentence in sentences for entity in sentence.entities or ()]
    return sum(entity.end - entity.start > MOST for entity in entities), len(entities)
