"""Labelled entities that a tagger of spans cannot find, being longer than any span that it looks at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.models.networks import MOST, beyond
from core.text.sentence import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """Entities of more words than a span has, by split. of: all entities."""

    longer: Mapping[str, int]
    of: Mapping[str, int]

    @classmethod
    def count(cls, splits: Mapping[str, Sequence[Sentence]]) -> "TooLong":
        counts = {name: beyond(sentences) for name, sentences in splits.items()}
        return cls(
            longer={name: longer for name, (longer, _) in counts.items()},
            of={name: n for name, (_, n) in counts.items()},
        )

    @property
    def words(self) -> str:
        """Sentence with their share of each split; nothing where there are none."""
        shares = [f"{n / self.of[name]:.1%} of the spans in {name}" for name, n in self.longer.items() if n]
        if not shares:
            return ""
        joined = f"{', '.join(shares[:-1])} and {shares[-1]}" if len(shares) > 1 else shares[0]
        return f"{joined} are longer than {MOST} words and cannot be found."
