"""Split sentences of several corpora into words by one rule, to make the words comparable (SOURCES.md, Words)."""

from collections.abc import Callable, Sequence

from core.corpora.corpus import Corpus
from core.text.sentence import Sentence
from core.text.words import tokenize, unspaced

WordsOf = Callable[[Sentence], Sequence[str]]


def words_of(corpora: Sequence[Corpus]) -> list[WordsOf]:
    """Return one function per corpus that splits a sentence into words.

    For a corpus whose tokens already come from `tokenize`, the function returns these tokens (`own`). For any other
    corpus, it tokenises the text again (`retokenized`). If no corpus has tokens from `tokenize`, all corpora get `own`.
    """
    by_rule = [not corpus.labelled and corpus.tokens == "words" for corpus in corpora]
    return [own if rule or not any(by_rule) else retokenized for rule in by_rule]


def own(sentence: Sentence) -> Sequence[str]:
    """Return a sentence's own tokens.

    Text in a script without spaces is split by `tokenize` instead, because annotators do not agree on its words.
    """
    return retokenized(sentence) if unspaced(sentence.text) else sentence.tokens


def retokenized(sentence: Sentence) -> Sequence[str]:
    """Return the words into which `tokenize` splits a sentence."""
    return tokenize(sentence.text)
