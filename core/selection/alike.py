"""Words of corpora that are compared: cut by one rule on all sides (SOURCES.md, Words)."""

from collections.abc import Callable, Sequence

from core.corpora.corpus import Corpus
from core.text.sentence import Sentence
from core.text.words import tokenize, unspaced

WordsOf = Callable[[Sentence], Sequence[str]]


def words_of(corpora: Sequence[Corpus]) -> list[WordsOf]:
    """Functions that cut each corpus's sentences to words: `own` where all of them came cut, else `retokenized`."""
    by_rule = [not corpus.labelled and corpus.tokens == "words" for corpus in corpora]
    # What our rule has cut need not be cut again.
    return [own if rule or not any(by_rule) else retokenized for rule in by_rule]


def own(sentence: Sentence) -> Sequence[str]:
    """A sentence's own tokens, but letters where no blanks part words: there annotators cut as they like."""
    return retokenized(sentence) if unspaced(sentence.text) else sentence.tokens


def retokenized(sentence: Sentence) -> Sequence[str]:
    """Its text cut by our rule, whoever cut it before."""
    return tokenize(sentence.text)
