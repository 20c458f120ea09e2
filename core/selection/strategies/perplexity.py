"""`ngram-perplexity`: perplexity of a sentence under a Kneser-Ney 5-gram model of T_C."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from core.config import Config, option
from core.models.kneser_ney import NgramTable
from core.models.ngram import KneserNey
from core.reporter import Reporter
from core.results import FloatArray, Prefer, Role
from core.selection.alike import WordsOf, own, retokenized, words_of
from core.selection.base import Batch, Source, Strategy
from core.selection.evidence import Arrays, Evidence, Part, Parts


class NgramOptions(Config):
    """Options of `ngram-perplexity`."""

    order: int = option(5, "Longest n-gram the model counts.", unit="tokens", ge=1, le=7)


class NgramPerplexity(Strategy):
    """Per-sentence perplexity, `P(x)^(-1/(N+1))` with `</s>` counted, under a model of T_C.

    The uniform term covers the words of T_C and D_C together, so an unseen word costs the same for every size of T_C.
    Both corpora are tokenised by one rule (SOURCES.md, Words). Comparisons of corpora use the other direction
    (SOURCES.md, Direction of perplexity).
    """

    name: ClassVar[str] = "ngram-perplexity"
    in_short: ClassVar[str] = "worded like yours"
    unit: ClassVar[str] = "perplexity"
    prefer: ClassVar[Prefer] = "low"
    summary: ClassVar[str] = (
        "Prefers sentences whose word sequences a 5-gram model of the task corpus finds least surprising."
    )
    trust: ClassVar[str] = (
        "Trust it if the task corpus is formulaic (contracts, notes); it favours stock phrases and rejects rare names."
    )
    Options: ClassVar[type[Config]] = NgramOptions

    options: NgramOptions
    _model: KneserNey
    _words: WordsOf

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        report.stage("counting words of the task corpus and the domain corpus")
        of_task, self._words = words_of([sources[Role.TASK].corpus, sources[Role.DOMAIN].corpus])
        words = {word for sentence in sources[Role.TASK].sentences() for word in of_task(sentence)}
        for batch in sources[Role.DOMAIN].corpus.batches():
            words.update(word for sentence in batch for word in self._words(sentence))
            report.check()
        report.stage("training the n-gram model on the task corpus")
        task = [of_task(sentence) for sentence in sources[Role.TASK].sentences()]
        size = len(words - {"<s>", "</s>", "<unk>"}) + 2  # <unk> and </s> are words too
        self._model = KneserNey.fit(task, order=self.options.order, vocabulary_size=size, report=report)

    def score(self, batch: Batch) -> FloatArray:
        return self._model.perplexities([self._words(sentence) for sentence in batch.sentences])

    def learned(self) -> Arrays:
        """Return the n-gram model: words as bytes, and per order the keys, log10 probabilities and back-offs."""
        spelled = "\n".join(self._model.vocabulary).encode("utf-8", "surrogatepass")
        arrays: Arrays = {"words": np.frombuffer(spelled, dtype=np.uint8)}
        for n, table in enumerate(self._model.tables):
            of_order = {f"keys{n}": table.keys, f"log_probs{n}": table.log_probs, f"backoffs{n}": table.backoffs}
            arrays = {**arrays, **of_order}
        # Keep the key "anew": `explain` looks for it in scores of older versions too.
        return {**arrays, "anew": np.ones(1, np.bool_)} if self._words is retokenized else arrays

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return -log10 P of every token given the tokens before it, over N + 1. The sum is log10 of the perplexity."""
        model, fields = evidence.model, ("keys", "log_probs", "backoffs")
        orders = sum(name.startswith("keys") for name in model)
        tables = [NgramTable(**{field: model[f"{field}{n}"] for field in fields}) for n in range(orders)]
        words = bytes(model["words"]).decode("utf-8", "surrogatepass").split("\n")
        scorer = KneserNey(vocabulary={word: i for i, word in enumerate(words)}, tables=tuple(tables))
        marks = ("<s>", "</s>", "<unk>")  # if they occur in a text, they are unknown words
        own_words = (retokenized if "anew" in model else own)(evidence.sentence)
        tokens = [token if token not in marks else "<unk>" for token in own_words]
        n = len(tokens) + 1
        parts = [
            Part(name=f"{i}. {token}", value=float(-np.log10(scorer.prob(token, ["<s>", *tokens[: i - 1]]))) / n)
            for i, token in enumerate([*tokens, "</s>"], 1)
        ]
        return Parts(
            parts=parts,
            formula=f"each part is -log10 of a token's probability, divided by {n}; the score is 10 to their sum",
        )
