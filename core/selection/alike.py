"""Words of corpora to compare, all tokenised by the same rule (SOURCES.md, Words)."""

from collections.abc import Callable, Sequence

from core.corpora.corpus import Corpus
from core.text.sentence import Sentence
from core.text.words import tokenize, unspaced

WordsOf = Callable[[Sentence], Sequence[str]]


def words_of(corpora: Sequence[Corpus]) -> list[WordsOf]:
    """Return one function per corpus that splits a sentence into words.

    The function is `own` if our rule tokenised this corpus, or if it tokenised none of them; else `retokenized`.
    """
    by_rule = [not corpus.labelled and corpus.tokens == "words" for corpus in corpora]
    # Text that our rule tokenised needs no second pass.
    return [own if rule or not any(by_rule) else retokenized for rule in by_rule]


def own(sentence: Sentence) -> Sequence[str]:
    """Return a sentence's tokens; its letters in scripts without spaces, because annotators split words differently."""
    return retokenized(sentence) if unspaced(sentence.text) else sentence.tokens


def retokenized(sentence: Sentence) -> Sequence[str]:
    """Return the sentence's text tokenised by our rule."""
    return tokenize(sentence.text)
