"""The epochs of a tagger's training: what dev said of each, which is the best, whether to go on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from core.models.tagger import Features, Tagger
from core.text.sentence import Sentence
from core.training.settings import Settings

BATCH = 64  # sentences whose loss is taken at once


@dataclass(slots=True, kw_only=True)
class Epochs:
    """The record of the epochs so far. dev_f1: percent, an epoch each; dev_loss: likewise where it decides. best:
    1-based, 0 before the first."""

    dev_f1: list[float] = field(default_factory=list)
    dev_loss: list[float] = field(default_factory=list)
    best: int = 0
    seconds: float = 0.0

    def ended(self, settings: Settings) -> bool:
        """Whether no better one is waited for."""
        waited = len(self.dev_f1) - self.best
        return (
            len(self.dev_f1) >= settings.epochs
            or (waited >= settings.patience and len(self.dev_f1) >= settings.min_epochs)
            or settings.rate(self.dev_f1, self.dev_loss) < settings.least_rate
        )

    def keeps(self, settings: Settings) -> bool:
        """Whether the weights are now to be kept: after every epoch where the last one counts, else after a better one
        than all before it: of equal ones the first fits the training set less."""
        if settings.last:
            return True
        scores = [-loss for loss in self.dev_loss] or self.dev_f1
        return len(scores) == 1 or scores[-1] > max(scores[:-1])


def loss_of(tagger: Tagger, dev: Sequence[Sentence], moved: Callable[[Features], Features]) -> float:
    """The mean loss of a dev word, in sentences whose types the tagger knows. moved: to where the tagger is."""
    # A type that the tagger lacks has no tag that could be right.
    known = [s for s in dev if s.tokens and {entity.type for entity in s.entities or ()} <= set(tagger.types)]
    total = words = 0.0
    tagger.eval()
    with torch.no_grad():
        for start in range(0, len(known), BATCH):
            part = known[start : start + BATCH]
            n = sum(len(sentence.tokens) for sentence in part)
            total += float(tagger(**moved(tagger.batch(part)))["loss"]) * n
            words += n
    return total / max(words, 1.0)
