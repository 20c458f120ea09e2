"""Words of corpora to compare, all tokenised by the same rule (SOURCES.md, Words)."""

from collections.abc import Callable, Sequence

from core.corpora.corpus import Corpus
from core.text.sentence import Sentence
from core.text.words import tokenize, unspaced

WordsOf = Callable[[Sentence], Sequence[str]]


def words_of(corpora: Sequence[Corpus]) -> list[WordsOf]:
    """Return one function per corpus that splits a sentence into words.

    A corpus that our rule (`tokenize`) already tokenised gets `own`. If our rule tokenised none of the corpora, all of
    them get `own`. Otherwise the function is `retokenized`.
    """
    by_rule = [not corpus.labelled and corpus.tokens == "words" for corpus in corpora]
    # Text that our rule tokenised needs no second pass.
    return [own if rule or not any(by_rule) else retokenized for rule in by_rule]


def own(sentence: Sentence) -> Sequence[str]:
    """Return a sentence's tokens. Our rule tokenises scripts without spaces, because annotators differ in this."""
    return retokenized(sentence) if unspaced(sentence.text) else sentence.tokens


def retokenized(sentence: Sentence) -> Sequence[str]:
    """Return the sentence's text tokenised by our rule."""
    return tokenize(sentence.text)
