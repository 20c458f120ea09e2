"""Settings of the classifiers behind PVI: those of Ma et al. 2023, and few epochs for a small encoder."""

from dataclasses import dataclass
from typing import Literal

WIDE = 1024  # an encoder of this width is trained as RoBERTa-large
# Mentions: Table 7's WNUT and Twitter are below the first, CoNLL, ACE and Bio above the second.
LARGE, FULL = 8_000, 20_000

SEEN, MOST, LEAST = 5_000, 12, 2  # quick: contexts that a training reads in all; epochs at most, and at least


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifySettings:
    """One training. AdamW, the rates fall linearly to 0 after `warmup` (a share of all steps), gradients clipped at 1.

    batch_size: mentions an optimizer step. head_learning_rate: of the last layer.
    pooling: what of the encoder the last layer sees (see `models.classifier`). keep_embeddings: they stay as they came.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    head_learning_rate: float
    pooling: Literal["pooler", "cls"]
    keep_embeddings: bool = False
    warmup: float = 0.0
    weight_decay: float = 0.0


def preset(
    name: Literal["quick", "paper", "custom"], view: Literal["entity", "context"], n: int, width: int
) -> ClassifySettings:
    """Settings for `n` mentions and an encoder of this width. `custom` begins as `quick`.

    `paper`: Table 7, by size, but for one cell: of BioNER's contexts they made 3 epochs, of OntoNotes', which is no
    smaller, 2; size cannot tell them apart, so both get 2. For a corpus like BioNER say `context_epochs` 3.
    """
    if name == "paper":
        small = n < LARGE
        rate = 1e-5 if width >= WIDE else 1e-4 if small else 5e-5
        epochs = (5 if small else 2) if view == "context" else 3 if small else 2 if n < FULL else 1
        size = 16 if width >= WIDE and view == "entity" else 32
        return ClassifySettings(
            epochs=epochs, batch_size=size, learning_rate=rate, head_learning_rate=rate, pooling="pooler"
        )
    # The rates are bold and the epochs few: a small encoder learns names within one and contexts within two, and with
    # its lower layers frozen it learnt contexts worse. The embeddings alone are: most of its weights, seldom met.
    epochs = min(MOST, max(LEAST, -(-SEEN // n)))
    return ClassifySettings(
        epochs=epochs if view == "context" else epochs + 1,
        batch_size=16 if view == "context" else 32,
        learning_rate=2e-4,
        head_learning_rate=1e-3,
        pooling="cls",
        keep_embeddings=True,
        warmup=0.1,
        weight_decay=0.01,
    )
