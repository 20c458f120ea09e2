"""`gazetteer`: counts names from a list in each sentence, like CrossNER's "entity-level" corpus, but offline."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from core.config import Config, option
from core.errors import CorpusError
from core.reporter import Reporter, Silent
from core.results import FloatArray, Role
from core.selection.alike import WordsOf, own, retokenized, words_of
from core.selection.base import Batch, Source, Strategy
from core.selection.evidence import Arrays, Evidence, Part, Parts

# key of a node at which a name ends; no token is empty
_END = ""
# node of a tree of names: {next word: node}
Trie = dict[str, "Trie"]


class GazetteerOptions(Config):
    """Options of `gazetteer`."""

    case_sensitive: bool = option(False, "Match case: 'apple' in a sentence then does not match 'Apple' in the list.")


class Gazetteer(Strategy):
    """Counts names of a list in a sentence: longest matches from left to right (SOURCES.md, Gazetteer).

    The list is L_C: the entities of a labelled corpus, or the lines of an unlabelled one. The score is the count plus
    a tie-break below 1, the names per token. Names are tokenised like D_C's text, not as in L_C.
    """

    name: ClassVar[str] = "gazetteer"
    in_short: ClassVar[str] = "with many names from your list"
    unit: ClassVar[str] = "names (+ density)"
    needs: ClassVar[frozenset[Role]] = frozenset({Role.LABELLED})
    summary: ClassVar[str] = "Counts the names of a list (your labelled entities, or a file of names) in each sentence."
    trust: ClassVar[str] = "Trust it when the list is long and unambiguous; it finds known names, not new contexts."
    Options: ClassVar[type[Config]] = GazetteerOptions

    def __init__(self, options: GazetteerOptions, seed: int) -> None:
        super().__init__(options, seed)
        self._fold = (lambda word: word) if options.case_sensitive else str.casefold
        self._trie: Trie = {}
        self._words: WordsOf = own
        self._all_own = False

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        source = sources[Role.LABELLED]
        of_list, self._words = words_of([source.corpus, sources[Role.DOMAIN].corpus])
        self._all_own = of_list is own and self._words is own
        self._read(source, of_list, report)

    def _read(self, source: Source, of_list: WordsOf, report: Reporter) -> None:
        report.stage("reading the list of names")
        for sentence in source.sentences():
            if sentence.entities is None:
                self._add(of_list(sentence))
            for entity in sentence.entities or ():
                name = sentence.tokens[entity.start : entity.end]
                self._add(of_list(replace(sentence, tokens=name, text=" ".join(name))))
        if not self._trie:
            raise CorpusError(f"{source.corpus.name}: contains no name; give a list with one name per line.")

    def score(self, batch: Batch) -> FloatArray:
        return np.array([self._score(self._words(sentence)) for sentence in batch.sentences], dtype=np.float64)

    def learned(self) -> Arrays:
        """Return the flag `own` if L_C and D_C both keep their own tokens; else {}, and `explain` tokenises again."""
        return {"own": np.ones(1, np.bool_)} if self._all_own else {}

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return one part per name, and one for the tie-break, which is below 1: names per token."""
        if evidence.labelled is None:
            raise CorpusError("The list of names was removed.")
        strategy = Gazetteer(GazetteerOptions.parse(dict(evidence.options)), evidence.seed)
        rule = own if "own" in evidence.model else retokenized
        strategy._read(Source(corpus=evidence.labelled), rule, Silent())
        tokens = rule(evidence.sentence)
        names = [Part(name=" ".join(tokens[start:end]), value=1.0) for start, end in strategy.matches(tokens)]
        # Divide by the number of tokens plus one, so that the density is below 1 even if every token is a name.
        density = len(names) / (len(tokens) + 1)
        return Parts(parts=[*names, Part(name="tie-break: names per token", value=density)])

    def _add(self, name: Sequence[str]) -> None:
        node = self._trie
        for word in name:
            node = node.setdefault(self._fold(word), {})
        node[_END] = {}

    def matches(self, tokens: Sequence[str]) -> list[tuple[int, int]]:
        """Return spans of names, `(start, end)` in tokens, without overlaps."""
        words = [self._fold(word) for word in tokens]
        spans, start = [], 0
        while start < len(words):
            length = _longest(self._trie, words, start)
            if length:
                spans.append((start, start + length))
            start += max(length, 1)
        return spans

    def _score(self, tokens: Sequence[str]) -> float:
        count = len(self.matches(tokens))
        return count + count / (len(tokens) + 1)


def _longest(trie: Trie, words: Sequence[str], start: int) -> int:
    """Return the number of tokens of the longest name that begins at `start`; 0 if none does."""
    node, longest = trie, 0
    for length, word in enumerate(words[start:], 1):
        if word not in node:
            break
        node = node[word]
        if _END in node:
            longest = length
    return longest
