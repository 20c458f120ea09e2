"""Words of corpora to compare, tokenised by one rule on all sides (SOURCES.md, Words)."""

from collections.abc import Callable, Sequence

from core.corpora.corpus import Corpus
from core.text.sentence import Sentence
from core.text.words import tokenize, unspaced

WordsOf = Callable[[Sentence], Sequence[str]]


def words_of(corpora: Sequence[Corpus]) -> list[WordsOf]:
    """Return a function per corpus that cuts a sentence to words.

    These are `own` if all corpora came tokenised, else `retokenized`.
    """
    by_rule = [not corpus.labelled and corpus.tokens == "words" for corpus in corpora]
    # Text that our rule tokenised needs no second pass.
    return [own if rule or not any(by_rule) else retokenized for rule in by_rule]


def own(sentence: Sentence) -> Sequence[str]:
    """Return a sentence's tokens, in scripts without blanks its letters, because there annotators cut differently."""
    return retokenized(sentence) if unspaced(sentence.text) else sentence.tokens


def retokenized(sentence: Sentence) -> Sequence[str]:
    """Return the sentence's text tokenised by our rule."""
    return tokenize(sentence.text)
