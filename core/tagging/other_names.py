"""Copies of training sentences under other names of their types, which MINER compares them with (SOURCES.md, MINER)."""

from collections.abc import Iterable
from random import Random

from core.bias.names import Known, folded
from core.bias.training_sentences import Name, name_of, ordered, renamed
from core.models.networks import MOST
from core.text.paired import Paired
from core.text.sentence import Sentence


class OtherNames:
    """Names of training sentences by type, those that a span can hold."""

    def __init__(self, train: Iterable[Sentence]) -> None:
        self._names: dict[str, list[Name]] = {}
        for kind, names in Known.of(train).names.items():
            once = {folded(name): name for name in names if len(name) <= MOST}
            self._names[kind] = list(once.values())

    def copy(self, sentence: Sentence, draw: int) -> Sentence:
        """`sentence` with a copy in which every entity that can has another name, `Paired`; without, where none can."""
        rng, names = Random(draw), dict[int, Name]()
        for place, entity in enumerate(ordered(sentence)):
            own, others = folded(name_of(sentence, entity)), self._names.get(entity.type, [])
            if entity.end - entity.start > MOST or len(others) < 2:
                continue
            # Ends: of two names or more, no two alike, one is another.
            while folded(name := rng.choice(others)) == own:
                pass
            names[place] = name
        if not names:
            return sentence
        other = renamed(sentence, names)
        before, after = ordered(sentence), ordered(other)
        pairs = [((before[i].start, before[i].end), (after[i].start, after[i].end)) for i in names]
        return Paired.of(sentence, other, tuple(pairs))
