"""Equal sentences with different labels inside one labelled set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from core.text.sentence import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradictions:
    """texts: texts that occur with different labels. sentences: sentences that have one of these texts."""

    texts: int = 0
    sentences: int = 0

    @property
    def in_words(self) -> str:
        """One sentence for a summary, "" if there are none."""
        if not self.texts:
            return ""
        several = self.texts > 1
        return (
            f"{self.texts:,} text{'s occur' if several else ' occurs'} more than once with different labels "
            f"({self.sentences:,} sentences). Decide on one labelling, or remove these sentences. If several people"
            " labelled them, name each one (in a column `annotator`, or in CoNLL in a line `# annotator = NAME`) and"
            " import with --annotator NAME."
        )


class ContradictionCounter:
    """Counts contradictory labels while sentences pass; keeps two small numbers per different text."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._contradicted = set[str]()

    def add(self, sentence: Sentence) -> None:
        """Count a sentence. Sentences without labels are ignored."""
        if sentence.entities is None:
            return
        self._times[sentence.id] = self._times.get(sentence.id, 0) + 1
        labels = hash(labels_of(sentence))
        if self._first.setdefault(sentence.id, labels) != labels:
            self._contradicted.add(sentence.id)

    def watched(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield the same sentences, each counted."""
        for sentence in sentences:
            self.add(sentence)
            yield sentence

    @property
    def found(self) -> Contradictions:
        """Return the counts so far."""
        n = sum(self._times[text] for text in self._contradicted)
        return Contradictions(texts=len(self._contradicted), sentences=n)


def contradictions(sentences: Iterable[Sentence]) -> Contradictions:
    """Count the texts that occur with different labels, for example in `corpus.batches()` of one or several sets."""
    counter = ContradictionCounter()
    for sentence in sentences:
        counter.add(sentence)
    return counter.found


def labels_of(sentence: Sentence) -> tuple[tuple[int, int, str], ...]:
    """(start, end, type) of the entities in characters without white space, so that two tokenisations compare."""
    at = list(accumulate(map(len, sentence.tokens), initial=0))
    return tuple(sorted((at[e.start], at[e.end], e.type) for e in sentence.entities or ()))
