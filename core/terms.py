"""Define the terms that users read on pages, on the command line and in reports, with symbol and meaning."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A term.

    word: the term as written in the middle of a sentence. symbol: symbol in papers; "" for none. meaning: explanation
    for the glossary.
    """

    word: str
    symbol: str
    meaning: str

    @property
    def title(self) -> str:
        """The word with a capital letter, for a label or a heading."""
        return self.word[:1].upper() + self.word[1:]

    @property
    def named(self) -> str:
        """The title followed by the symbol in brackets."""
        return f"{self.title} ({self.symbol})" if self.symbol else self.title


# Recommended minimum number of sentences in T_C. With fewer, scores depend too much on the choice of sentences.
LEAST_TASK = 100

TASK = Term(
    "task corpus",
    "T_C",
    f"At least {LEAST_TASK} unlabelled sentences, like the text that your tagger will be used on. The selection "
    "searches the domain corpus for similar sentences.",
)
DOMAIN = Term("domain corpus", "D_C", "The large corpus of plain text from which sentences are selected.")
CHOICE = Term(
    "selection",
    "S_C",
    "The sentences that are selected from the domain corpus. An encoder is pre-trained on them and on the task corpus "
    "before the tagger is trained.",
)
FILTERED = Term(
    "not selected",
    "filtered",
    "A sentence of the domain corpus that is not in the selection: its score is not good enough, it has a flag such as "
    "duplicate, or you removed it. Papers call such a sentence filtered, which means left out, not kept.",
)
LABELS = Term(
    "labelled data",
    "L_C",
    "Sentences in which people marked the entities and their types. It consists of a training set, a dev set and a "
    "test set.",
)
TRAIN = Term("training set", "L_C train", "Labelled sentences that a tagger is trained on.")
DEV = Term(
    "dev set",
    "L_C dev",
    "Labelled sentences used to decide when training stops and which settings are best; never used for the final "
    "score.",
)
TEST = Term(
    "test set",
    "L_C test",
    "Labelled sentences that no tagger was trained on. The final score is computed on them, once, at the end.",
)
LEAK = Term(
    "test leak",
    "",
    "A sentence of the dev or test set that also occurs in the text for pre-training. It is left out of that text, "
    "because the test would be too easy otherwise. The word does not mean that data has left this machine.",
)
TAGGER = Term("tagger", "", "A model that finds the entities in a sentence and names the type of each.")
ENCODER = Term(
    "encoder",
    "",
    "The language model that a tagger is built on. It was trained on a large amount of general text, but not on yours.",
)
PRETRAINING = Term(
    "continued pre-training",
    "MLM",
    "Further training of an encoder on plain text. The encoder predicts hidden words, and learns how such text is "
    "written.",
)
STRATEGY = Term(
    "strategy", "", "A method that gives every sentence of the domain corpus a score; the best ones are selected."
)
BUDGET = Term(
    "budget",
    "",
    "The size of the selection: a share, a number of sentences or tokens, or all sentences above a score.",
)
SCORE = Term(
    "score",
    "F1",
    "For a tagger: how well it finds the labelled entities and their types, from 0 to 100; missed and spurious "
    "entities both lower it. For a sentence: the number that a strategy gives it.",
)
DECIDING = Term(
    "dev F1",
    "",
    "A tagger's F1 on the dev set. It is used to choose the best epoch and the best settings, so it is slightly too "
    "high to be reported.",
)
EXPERIMENT = Term("experiment", "", "A comparison of variants: the tagger is trained several times with each of them.")
VARIANT = Term(
    "variant",
    "arm",
    "One of the alternatives that an experiment compares. They differ in the text that the encoder is pre-trained on, "
    "or in the labelled data that the tagger is trained on.",
)
SEED = Term(
    "seed",
    "",
    "The number that initialises the random generator. Another seed repeats the same work with other random choices. "
    "If an experiment repeats only the tagger, each seed gives a tagger on the same pre-trained encoder.",
)
REPLICATE = Term(
    "replicate",
    "",
    "All the work for a variant under one seed: its selection, its pre-training and its taggers. The scores of several "
    "replicates show how much of a difference is chance.",
)
INTERVAL = Term(
    "confidence interval",
    "",
    "A range for the true difference. The ranges of 95 of 100 experiments include the true difference. If a range "
    "includes 0, there is no evidence of a difference.",
)
CLAIM = Term("claim", "", "The one question that an experiment is planned to answer, written down before it starts.")
TOKEN = Term("token", "", "A unit into which text is split: a word, a number or a punctuation mark.")
MENTION = Term("mention", "", "One occurrence of an entity in a sentence, marked with its type.")
INFORMATION = Term(
    "pointwise V-information",
    "PVI",
    "The number of bits that a name, or the words around it, reveals about the type of the name. At 1 bit, the type is "
    "twice as probable as without this information; below 0, it is less probable.",
)
NAME_OR_CONTEXT = Term(
    "name minus context",
    "CEIM",
    "Information in the name minus information in the words around it. Above 0, the name reveals more about the type; "
    "below 0, its context does.",
)
DISAGREEMENT = Term(
    "symmetric KL divergence",
    "SKL",
    "How differently two labelled corpora label the entities that are in both: 0 if they always agree, about 9 if they "
    "never do.",
)
SURPRISE = Term(
    "perplexity",
    "PPL",
    "How unexpected the task corpus is for a language model that was trained on another corpus. A lower value "
    "means that the two corpora are closer.",
)
SHIFT = Term(
    "word vector variance",
    "WVV",
    "How far word vectors of another corpus move when their training continues on the task corpus. A lower value means "
    "that both corpora use words in more similar ways.",
)
SHARED = Term(
    "target vocabulary covered",
    "TVC",
    "The share of the task corpus's distinct words that also occur in another corpus.",
)
SHARED_CONTENT = Term(
    "content words covered",
    "TVcC",
    "Target vocabulary covered, computed from nouns, verbs and adjectives only, because these show the text's subject.",
)

TERMS = (
    *(TASK, DOMAIN, CHOICE, FILTERED, LABELS, TRAIN, DEV, TEST, LEAK),
    *(TAGGER, ENCODER, PRETRAINING, STRATEGY, BUDGET, SCORE, DECIDING, EXPERIMENT, VARIANT, SEED, REPLICATE),
    *(INTERVAL, CLAIM),
    *(TOKEN, MENTION, INFORMATION, NAME_OR_CONTEXT, DISAGREEMENT),
    *(SURPRISE, SHIFT, SHARED, SHARED_CONTENT),
)
_PARTS = {"train": TRAIN, "dev": DEV, "test": TEST}
_WORDS = {term.symbol: term.word for term in (TASK, DOMAIN, CHOICE, FILTERED, LABELS)}


def plainly(name: str) -> str:
    """Return the term for a symbol such as `T_C`. Any other name is returned unchanged."""
    return _WORDS.get(name, name)


def in_words(parts: Sequence[str]) -> str:
    """Join words for a sentence: `task corpus, test set and selection`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def role_in_words(role: str) -> str:
    """Return the term for a corpus's role: `training set` for `train`."""
    return {"task": TASK, "domain": DOMAIN, **_PARTS}[role].word


def labels_in_words(parts: Sequence[str]) -> str:
    """Return the terms for roles of labelled data: `a training set and a test set` for `train` and `test`."""
    return in_words([f"a {_PARTS[part].word}" for part in parts])
