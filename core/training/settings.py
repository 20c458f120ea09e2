"""Settings of a tagger's training: those of Mahapatra et al. 2022, and few epochs for a first look."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

QUICK_DEV = 500  # sentences; thousands of them an epoch would take longer than the training between
QUICK_STEPS = 1500  # optimizer steps after which `quick` ends its epoch, whatever the corpus's size


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a tagger's training.

    batch_size: sentences an optimizer step, of all processes together. accumulation: into how many parts a step's
    batch is cut; the effective batch stays. patience: epochs without a better dev F1 after which training ends,
    not before min_epochs. max_steps: the epochs are as many as fit into it, at least three; 0: no limit.
    dev_sentences: an epoch is judged by a sample of dev of this size; 0: by all of it.
    decay: below 1, plain SGD in place of AdamW, at a rate that stays but for being multiplied by this after every
    epoch whose dev F1 fell; training ends when it is below least_rate (Murthy et al. 2018, 3.2).
    """

    epochs: int
    batch_size: int
    learning_rate: float
    head_learning_rate: float
    weight_decay: float
    patience: int
    min_epochs: int
    max_steps: int = 0
    dev_sentences: int = 0
    accumulation: int = 1
    clip: float = 1.0
    decay: float = 1.0
    least_rate: float = 0.0

    def rate(self, dev_f1: Sequence[float]) -> float:
        """The learning rate after epochs with these dev F1s, where `decay` rules it."""
        falls = sum(now < before for before, now in pairwise(dev_f1))
        return self.learning_rate * self.decay**falls

    def planned(self, n: int) -> "Settings":
        """These settings for `n` training sentences.

        The epochs are those that fit; a batch has as many parts as were asked for or more, all of one size.
        """
        steps = -(-n // self.batch_size)
        fitting = max(3, -(-self.max_steps // steps)) if self.max_steps else self.epochs
        parts = range(min(self.accumulation, self.batch_size), self.batch_size + 1)
        equal = next(k for k in parts if self.batch_size % k == 0)
        return replace(self, epochs=min(self.epochs, fitting), accumulation=equal)


def preset(name: Literal["quick", "paper", "custom"], n: int) -> Settings:
    """Settings for `n` training sentences.

    `paper`: Mahapatra et al. 2022 (SOURCES.md, Taggers). `quick`: few epochs; `custom` begins there.
    """
    batch_size = 16 if n <= 200 else 32
    if name == "paper":
        return Settings(
            epochs=200,
            batch_size=batch_size,
            learning_rate=2e-5,
            head_learning_rate=2e-5,
            weight_decay=1e-8,
            patience=20,
            min_epochs=10,
        )
    return Settings(
        epochs=30,
        batch_size=batch_size,
        learning_rate=1e-4,
        head_learning_rate=2e-3,
        weight_decay=1e-8,
        patience=10,
        min_epochs=10,
        max_steps=QUICK_STEPS if name == "quick" else 0,
        dev_sentences=QUICK_DEV,
    )
