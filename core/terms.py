"""The words for what Winnow is about: the plain one first, everywhere the same, the papers' symbol behind it.

Pages, the command line and reports take them from here; tests/pages/test_words.py holds the pages to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """word: as it stands in a sentence. symbol: the papers' or the experts', "" for none. meaning: what it is."""

    word: str
    symbol: str
    meaning: str

    @property
    def title(self) -> str:
        """The word as a label or a heading opens with it."""
        return self.word[:1].upper() + self.word[1:]

    @property
    def named(self) -> str:
        """The same with its symbol behind it, for a place that knows no grey."""
        return f"{self.title} ({self.symbol})" if self.symbol else self.title


TASK = Term(
    "task text",
    "T_C",
    "Sentences like those that your tagger will read, without labels, a few hundred at least. What is chosen is "
    "to be like them.",
)
DOMAIN = Term("big corpus", "D_C", "The large pile of plain text that sentences are chosen from.")
CHOICE = Term(
    "choice",
    "S_C",
    "The sentences of the big corpus that are kept: what an encoder reads beside the task text before the tagger "
    "learns.",
)
LABELS = Term(
    "labels",
    "L_C",
    "Sentences in which people marked the names and their types, in three parts: to learn from, to decide by, to "
    "test on.",
)
TRAIN = Term("labels to learn from", "L_C train", "The labelled sentences that a tagger is trained on.")
DEV = Term(
    "labels to decide by",
    "L_C dev",
    "Labelled sentences to decide by, often called dev: by them training stops in time, and settings are compared.",
)
TEST = Term(
    "labels to test on",
    "L_C test",
    "Labelled sentences that no tagger has read: its score on them is what is reported. They are read once, at "
    "the end.",
)
LEAK = Term(
    "leak",
    "",
    "A sentence to decide by or to test on that also stands in text to be read; it is kept out, or the test would "
    "be of what the tagger has seen. Nothing has left this machine.",
)
TAGGER = Term("tagger", "", "A program that finds names in a sentence and says of which type each is.")
ENCODER = Term("encoder", "", "The language model that a tagger is built on. It has read much text, but not yours.")
PRETRAINING = Term(
    "pre-training",
    "MLM",
    "Further reading: the encoder guesses hidden words of plain text, and so learns how your kind of text is written.",
)
STRATEGY = Term("strategy", "", "A way to give every sentence of the big corpus a score, by which the best are chosen.")
BUDGET = Term("budget", "", "How much is chosen: a share, so many sentences or tokens, or all from a score on.")
SCORE = Term(
    "score",
    "F1",
    "Of a tagger: how well it finds and names what people marked, from 0 to 100; what it misses and what it "
    "invents both count against it. Of a sentence: how much the strategy wants it.",
)
DECIDING = Term(
    "score to decide by",
    "dev F1",
    "A tagger's score on the labels to decide by: the best epoch and the better setting are chosen by it, so it is "
    "a little too good to be reported.",
)
EXPERIMENT = Term("experiment", "", "The same tagger trained after each kind of reading, several times, and compared.")
VARIANT = Term(
    "variant",
    "arm",
    "One of the ways that an experiment compares: what is read, borrowed or rebuilt before the tagger learns.",
)
SEED = Term("seed", "", "A number that chance begins from. Another seed is the same work repeated with other luck.")
INTERVAL = Term(
    "interval", "", "Between these two the true difference lies in 95 cases of 100; one that holds 0 shows nothing."
)
CLAIM = Term("claim", "", "The one question that an experiment is planned to answer, written down before it starts.")
TOKEN = Term("token", "", "A word, a number or a mark of punctuation, as the text is cut.")
MENTION = Term("mention", "", "A name where it stands in a sentence, marked with its type.")
INFORMATION = Term(
    "information",
    "PVI",
    "How many bits a name, or the words around it, say about its type: 1 is twice as sure, below 0 is misled.",
)
NAME_OR_CONTEXT = Term(
    "name less context",
    "CEIM",
    "What a name tells of its type less what the words around it tell: above 0 the name gives it away, below 0 "
    "its context.",
)
DISAGREEMENT = Term(
    "disagreement",
    "SKL",
    "How differently two labelled corpora label the names they share: 0 alike, about 9 not once alike.",
)
SURPRISE = Term(
    "surprise",
    "PPL",
    "How unexpected the task text is to a model of word sequences that has read the source (its perplexity): the "
    "lower, the closer.",
)
SHIFT = Term(
    "word shift",
    "WVV",
    "How far words move (their vectors) when what was learnt of the source goes on to learn from the task text: the "
    "less, the more alike both use them.",
)
SHARED = Term("shared words", "TVC", "The share of the task text's different words that the source has too.")
SHARED_CONTENT = Term(
    "shared content words", "TVcC", "The same share of nouns, verbs and adjectives alone, which say what it is about."
)

TERMS = (
    *(TASK, DOMAIN, CHOICE, LABELS, TRAIN, DEV, TEST, LEAK),
    *(TAGGER, ENCODER, PRETRAINING, STRATEGY, BUDGET, SCORE, DECIDING, EXPERIMENT, VARIANT, SEED, INTERVAL, CLAIM),
    *(TOKEN, MENTION, INFORMATION, NAME_OR_CONTEXT, DISAGREEMENT),
    *(SURPRISE, SHIFT, SHARED, SHARED_CONTENT),
)
_PARTS = {"train": TRAIN, "dev": DEV, "test": TEST}
_WORDS = {term.symbol: term.word for term in (TASK, DOMAIN, CHOICE, LABELS)}


def plainly(name: str) -> str:
    """The word for a corpus that data call by its symbol, `T_C`; any other name stays as it is."""
    return _WORDS.get(name, name)


def in_words(parts: Sequence[str]) -> str:
    """A list in words: `task text, labels and choice`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def part_in_words(role: str) -> str:
    """Return the word for the part that a corpus plays."""
    return {"task": TASK, "domain": DOMAIN, **_PARTS}[role].word


def labels_in_words(parts: Sequence[str]) -> str:
    """Parts of the labels in words, for train and test `labels to learn from and to test on`."""
    return f"{LABELS.word} {in_words([_PARTS[part].word.removeprefix(f'{LABELS.word} ') for part in parts])}"
