"""Scores made of words, by the words that they come from."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from core.errors import CorpusError
from core.models.kneser_ney import NgramTable
from core.models.ngram import KneserNey
from core.reporter import Silent
from core.results import Role
from core.selection.base import Source
from core.selection.baselines import EDGES
from core.selection.classifier import WORD
from core.selection.gazetteer import Gazetteer, GazetteerOptions
from core.selection.parts import Arrays, Evidence, Part, Parts, top
from core.stats.draws import uniform


def keep_classifier(strategy: Any) -> Arrays:
    """Weights of meaning and wording, and the words' idf, of a prepared `DomainClassifier`."""
    meaning, wording = strategy.weights
    return {"meaning": meaning, "wording": wording.astype(np.float32), "idf": strategy.idf.astype(np.float32)}


def classifier(evidence: Evidence) -> Parts:
    """w x + b of two linear models: the embedding's product, one term a word or word pair, both intercepts."""
    model = evidence.model
    fold = int(evidence.sentence.id, 16) % len(model["meaning"])
    if evidence.vector is None:
        raise CorpusError("D_C's vectors are gone.")
    meaning, wording = model["meaning"][fold], model["wording"][fold]
    grams = _buckets(evidence.sentence.text, len(wording) - 1)
    length = sum(float(model["idf"][bucket]) ** 2 for bucket in grams) ** 0.5 or 1.0
    words = [
        Part(name=f"“{gram}”", value=float(model["idf"][bucket]) * float(wording[bucket]) / length)
        for bucket, gram in grams.items()
    ]
    return Parts(
        parts=[
            Part(name="meaning (embedding)", value=float(np.asarray(evidence.vector, np.float64) @ meaning[:-1])),
            *top(words, "other words and word pairs"),
            Part(name="where an average sentence of D_C stands", value=float(meaning[-1]) + float(wording[-1])),
        ]
    )


def _buckets(text: str, n: int) -> dict[int, str]:
    """{bucket: the words or word pairs that fall into it} as the classifier hashes them."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.feature_extraction.text import HashingVectorizer

    grams = list(dict.fromkeys(HashingVectorizer(ngram_range=(1, 2), token_pattern=WORD).build_analyzer()(text)))
    hasher = FeatureHasher(n_features=n, input_type="string", alternate_sign=False)
    found: dict[int, str] = {}
    for gram, bucket in zip(grams, hasher.transform([[gram] for gram in grams]).indices.tolist(), strict=True):
        found[bucket] = f"{found[bucket]} / {gram}" if bucket in found else gram
    return found


def keep_ngram(strategy: Any) -> Arrays:
    """The n-gram model of a prepared `NgramPerplexity`."""
    model: KneserNey = strategy._model
    spelled = "\n".join(model.vocabulary).encode("utf-8", "surrogatepass")
    kept: dict[str, Any] = {"words": np.frombuffer(spelled, dtype=np.uint8)}
    for n, table in enumerate(model.tables):
        kept |= {f"keys{n}": table.keys, f"log_probs{n}": table.log_probs, f"backoffs{n}": table.backoffs}
    return kept


def ngram(evidence: Evidence) -> Parts:
    """-log10 P of every token after those before it, over N + 1: they add up to the perplexity's logarithm."""
    model = evidence.model
    names = ("keys", "log_probs", "backoffs")
    tables = [NgramTable(**{name: model[f"{name}{n}"] for name in names}) for n in range(_orders(model))]
    words = bytes(model["words"]).decode("utf-8", "surrogatepass").split("\n")
    scorer = KneserNey(vocabulary={word: i for i, word in enumerate(words)}, tables=tuple(tables))
    marks = ("<s>", "</s>", "<unk>")  # in a text they are unknown words
    tokens = [token if token not in marks else "<unk>" for token in evidence.sentence.tokens]
    n = len(tokens) + 1
    parts = [
        Part(name=f"{i}. {token}", value=float(-np.log10(scorer.prob(token, ["<s>", *tokens[: i - 1]]))) / n)
        for i, token in enumerate([*tokens, "</s>"], 1)
    ]
    return Parts(parts=parts, formula=f"-log10 of each token's probability over {n}; the score is 10 to their sum")


def _orders(model: Arrays) -> int:
    return sum(name.startswith("keys") for name in model)


def gazetteer(evidence: Evidence) -> Parts:
    """One for each name of the list, and the density below 1 that breaks ties."""
    if evidence.labelled is None:
        raise CorpusError("The list of names is gone.")
    strategy = Gazetteer(GazetteerOptions.parse(dict(evidence.options)), evidence.seed)
    strategy.prepare({Role.LABELLED: Source(corpus=evidence.labelled)}, Silent())
    tokens = evidence.sentence.tokens
    names = list(_names(strategy, tokens))
    density = len(names) / (len(tokens) + 1)
    return Parts(
        parts=[
            *(Part(name=name, value=1.0) for name in names),
            Part(name="names per token, a tie-break", value=density),
        ]
    )


def _names(strategy: Gazetteer, tokens: tuple[str, ...]) -> Iterator[str]:
    for start, end in strategy.matches(tokens):
        yield " ".join(tokens[start:end])


def keep_lengths(strategy: Any) -> Arrays:
    """The log weights of a prepared `LengthMatchedRandom`."""
    return {"log_weight": strategy._log_weight}


def length_matched(evidence: Evidence) -> Parts:
    """The log weight of its length, and noise (Gumbel top-k)."""
    lot = uniform(np.array([int(evidence.sentence.id, 16)], dtype=np.uint64), evidence.seed)
    n = len(evidence.sentence.tokens)
    weight = evidence.model["log_weight"][np.digitize(n, EDGES)]
    return Parts(
        parts=[
            Part(name=f"how much likelier {n} tokens are in T_C than in D_C (natural logarithm)", value=float(weight)),
            Part(name=f"its lot under seed {evidence.seed}", value=float(-np.log(-np.log(lot[0])))),
        ]
    )


def random(evidence: Evidence) -> Parts:
    """By lot, and nothing else."""
    return Parts(parts=[Part(name=f"its lot under seed {evidence.seed}", value=evidence.score)])
