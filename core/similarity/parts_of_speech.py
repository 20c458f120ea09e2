"""Nouns, verbs and adjectives of a text: by spaCy where a model is installed, else NLTK where its data is, else a
closed list (SOURCES.md, Content words). Nothing is ever downloaded.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import Literal

from core.errors import ConfigError
from core.reporter import Reporter
from core.text.content import content_words

Choice = Literal["auto", "spacy", "nltk", "built-in"]
Sentences = Sequence[Sequence[str]]

_BLOCK = 500  # sentences between two reports
_NLTK_DATA = ("averaged_perceptron_tagger_eng", "averaged_perceptron_tagger")
_OPEN = frozenset({"NOUN", "PROPN", "VERB", "ADJ"})
_PENN = ("NN", "VB", "JJ")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTagger:
    """name: as it is printed beside every value. content: the words tagged as content at least once."""

    name: str
    content: Callable[[Sentences, Reporter], frozenset[str]]


def settle(choice: Choice) -> Choice:
    """The tagger that `choice` comes to: for auto the first of the chain that is installed, else itself.

    Errors: ConfigError if it is not installed.
    """
    installed: dict[Choice, bool] = {"spacy": bool(_spacy_model()), "nltk": _nltk_is_here(), "built-in": True}
    if choice == "auto":
        return next(name for name, is_here in installed.items() if is_here)
    if not installed[choice]:
        raise ConfigError(f"tagger: {choice} or its English data is not installed here; install it or choose built-in.")
    return choice


def load_word_tagger(choice: Choice = "auto") -> WordTagger:
    """The tagger of `choice`. Errors: ConfigError if it is not installed."""
    return {"spacy": _spacy, "nltk": _nltk, "built-in": _built_in}[settle(choice)]()


def _built_in() -> WordTagger:
    def content(sentences: Sentences, report: Reporter) -> frozenset[str]:
        report.check()
        return content_words(set(chain.from_iterable(sentences)))

    return WordTagger(name="built-in list of function words", content=content)


def _spacy_model() -> str | None:
    """The installed model to take, an English one first."""
    try:
        names = import_module("spacy").util.get_installed_models()
    except ImportError:
        return None
    # English first, then by name: the same model on every call, whatever order the packages are listed in.
    return min(names, key=lambda name: (not name.startswith("en_core_web"), name), default=None)


def _spacy() -> WordTagger:
    model = _spacy_model()
    # Parser, entities and lemmas are most of the time, and only tags are read.
    pipeline = import_module("spacy").load(model, disable=["parser", "ner", "lemmatizer"])
    document = import_module("spacy.tokens").Doc

    def content(sentences: Sentences, report: Reporter) -> frozenset[str]:
        tagged_words: set[str] = set()
        for block in _blocks(sentences, report):
            # The sample's own tokens: spaCy's tokenizer would make words that the other corpus cannot have.
            texts = (document(pipeline.vocab, words=list(words)) for words in block)
            tagged_words.update(token.text for each in pipeline.pipe(texts) for token in each if token.pos_ in _OPEN)
        return frozenset(tagged_words)

    return WordTagger(name=f"spaCy {model}", content=content)


def _nltk_is_here() -> bool:
    try:
        data = import_module("nltk").data
    except ImportError:
        return False
    return any(_has(data, name) for name in _NLTK_DATA)


def _nltk() -> WordTagger:
    nltk = import_module("nltk")

    def content(sentences: Sentences, report: Reporter) -> frozenset[str]:
        tagged_words: set[str] = set()
        for block in _blocks(sentences, report):
            tagged = nltk.pos_tag_sents([list(words) for words in block])
            tagged_words.update(word for words in tagged for word, tag in words if tag.startswith(_PENN))
        return frozenset(tagged_words)

    return WordTagger(name="NLTK perceptron tagger", content=content)


def _has(data: ModuleType, name: str) -> bool:
    try:
        data.find(f"taggers/{name}")
    except LookupError:
        return False
    return True


def _blocks(sentences: Sentences, report: Reporter) -> Iterator[Sentences]:
    for start in range(0, len(sentences), _BLOCK):
        report.check()
        report.progress(start, len(sentences), "sentences")
        yield sentences[start : start + _BLOCK]
