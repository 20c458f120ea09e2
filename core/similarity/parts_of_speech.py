"""Find the content words of a text: nouns, verbs and adjectives.

spaCy tags the text if one of its models is installed, else NLTK if its data is installed. Otherwise all words that are
not in a list of function words count (SOURCES.md, Content words). Nothing is downloaded.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import Literal

from core.errors import ConfigError
from core.reporter import Reporter
from core.text.content import content_words

Choice = Literal["auto", "spacy", "nltk", "built-in"]
Sentences = Sequence[Sequence[str]]

_BLOCK = 500  # number of sentences after which progress is reported
_NLTK_DATA = ("averaged_perceptron_tagger_eng", "averaged_perceptron_tagger")
_OPEN = frozenset({"NOUN", "PROPN", "VERB", "ADJ"})
_PENN = ("NN", "VB", "JJ")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTagger:
    """A part-of-speech tagger.

    name: name that is shown with every value. content: function that returns all words that are tagged as content words
    at least once.
    """

    name: str
    content: Callable[[Sentences, Reporter], frozenset[str]]


def settle(choice: Choice) -> Choice:
    """Return the tagger to use; for `auto`, the first tagger that is installed.

    Errors: ConfigError if the chosen tagger is not installed.
    """
    installed: dict[Choice, bool] = {"spacy": bool(_spacy_model()), "nltk": _nltk_is_here(), "built-in": True}
    if choice == "auto":
        return next(name for name, is_here in installed.items() if is_here)
    if not installed[choice]:
        raise ConfigError(f"tagger: {choice} or its English data is not installed here; install it or choose built-in.")
    return choice


def load_word_tagger(choice: Choice = "auto") -> WordTagger:
    """Load the chosen tagger. Errors: ConfigError if it is not installed."""
    return {"spacy": _spacy, "nltk": _nltk, "built-in": _built_in}[settle(choice)]()


def _built_in() -> WordTagger:
    def content(sentences: Sentences, report: Reporter) -> frozenset[str]:
        report.check()
        return content_words(set(chain.from_iterable(sentences)))

    return WordTagger(name="built-in list of function words", content=content)


def _spacy_model() -> str | None:
    """Return the name of an installed spaCy model, preferably an English one; None without spaCy or a model."""
    try:
        names = import_module("spacy").util.get_installed_models()
    except ImportError:
        return None
    # Choose by name, so that the choice does not depend on the order in which spaCy lists the models.
    return min(names, key=lambda name: (not name.startswith("en_core_web"), name), default=None)


def _spacy() -> WordTagger:
    model = _spacy_model()
    # Only tags are needed; the other components take most of the time.
    pipeline = import_module("spacy").load(model, disable=["parser", "ner", "lemmatizer"])
    document = import_module("spacy.tokens").Doc

    def content(sentences: Sentences, report: Reporter) -> frozenset[str]:
        tagged_words: set[str] = set()
        for block in _blocks(sentences, report):
            # Keep the sample's tokens, because spaCy's tokenizer would make words that the other corpus cannot have.
            texts = (document(pipeline.vocab, words=list(words)) for words in block)
            tagged_words.update(token.text for each in pipeline.pipe(texts) for token in each if token.pos_ in _OPEN)
        return frozenset(tagged_words)

    return WordTagger(name=f"spaCy {model}", content=content)


def _nltk_is_here() -> bool:
    try:
        data = import_module("nltk").data
    except ImportError:
        return False
    for name in _NLTK_DATA:
        with suppress(LookupError):
            data.find(f"taggers/{name}")
            return True
    return False


def _nltk() -> WordTagger:
    nltk = import_module("nltk")

    def content(sentences: Sentences, report: Reporter) -> frozenset[str]:
        tagged_words: set[str] = set()
        for block in _blocks(sentences, report):
            tagged = nltk.pos_tag_sents([list(words) for words in block])
            tagged_words.update(word for words in tagged for word, tag in words if tag.startswith(_PENN))
        return frozenset(tagged_words)

    return WordTagger(name="NLTK perceptron tagger", content=content)


def _blocks(sentences: Sentences, report: Reporter) -> Iterator[Sentences]:
    for start in range(0, len(sentences), _BLOCK):
        report.check()
        report.progress(start, len(sentences), "sentences")
        yield sentences[start : start + _BLOCK]
