"""Strategies that score by the perplexity of a sentence under a language model of T_C.

`ngram-perplexity` uses a Kneser-Ney 5-gram model, `pseudo-perplexity` a masked language model (Mahapatra et al. 2022,
3.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from core.config import Config, option
from core.errors import ModelError
from core.models.devices import Halved
from core.models.encoder import BUDGET, length_groups, longest
from core.models.kneser_ney import NgramTable
from core.models.ngram import KneserNey
from core.models.pieces import LONGEST, windows
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Prefer, Role
from core.selection.alike import WordsOf, own, retokenized, words_of
from core.selection.base import AdaptedOptions, Batch, Model, Source, Strategy
from core.selection.evidence import Arrays, Evidence, Part, Parts

if TYPE_CHECKING:
    import torch

    from core.models.mlm import MaskedLM


class NgramOptions(Config):
    """Options of `ngram-perplexity`."""

    order: int = option(5, "Longest n-gram the model counts.", unit="tokens", ge=1, le=7)


class NgramPerplexity(Strategy):
    """Per-sentence perplexity, `P(x)^(-1/(N+1))` with `</s>` counted, under a model of T_C.

    The model's uniform term covers the words of T_C and D_C together. An unseen word thus costs the same for every T_C.
    Both corpora are tokenised by one rule (SOURCES.md, Words). When corpora are compared, a model of the source scores
    the target instead (SOURCES.md, Direction of perplexity).
    """

    name: ClassVar[str] = "ngram-perplexity"
    in_short: ClassVar[str] = "worded like yours"
    unit: ClassVar[str] = "perplexity"
    prefer: ClassVar[Prefer] = "low"
    summary: ClassVar[str] = "Prefers sentences that a 5-gram model of the task corpus predicts well (low perplexity)."
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
        size = len(words - {"<s>", "</s>", "<unk>"}) + 2  # + 2 for the words <unk> and </s> of the model
        self._model = KneserNey.fit(task, order=self.options.order, vocabulary_size=size, report=report)

    def score(self, batch: Batch) -> FloatArray:
        return self._model.perplexities([self._words(sentence) for sentence in batch.sentences])

    def learned(self) -> Arrays:
        """Return the arrays of the n-gram model, see `arrays_of`."""
        arrays = arrays_of(self._model)
        # Keep the key "anew": `explain` looks for it in scores of older versions too.
        return {**arrays, "anew": np.ones(1, np.bool_)} if self._words is retokenized else arrays

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return -log10 P / (N + 1) of each token, given the tokens before it. The sum is log10 of the perplexity."""
        words = (retokenized if "anew" in evidence.model else own)(evidence.sentence)
        tokens = log10_by_token(model_of(evidence.model), words)
        n = len(tokens)
        return Parts(
            parts=[Part(name=f"{i}. {token}", value=-log10 / n) for i, (token, log10) in enumerate(tokens, 1)],
            formula=f"each part is -log10 of a token's probability, divided by {n}; the score is 10 to the power of "
            "their sum",
        )


def arrays_of(model: KneserNey) -> dict[str, npt.NDArray[Any]]:
    """Return an n-gram model as arrays: words as bytes, and per order the keys, log10 probabilities and back-offs."""
    spelled = "\n".join(model.vocabulary).encode("utf-8", "surrogatepass")
    arrays: dict[str, npt.NDArray[Any]] = {"words": np.frombuffer(spelled, dtype=np.uint8)}
    for n, table in enumerate(model.tables):
        arrays |= {f"keys{n}": table.keys, f"log_probs{n}": table.log_probs, f"backoffs{n}": table.backoffs}
    return arrays


def model_of(arrays: Arrays) -> KneserNey:
    """Return an n-gram model from the arrays that `arrays_of` returned."""
    fields = ("keys", "log_probs", "backoffs")
    orders = sum(name.startswith("keys") for name in arrays)
    tables = [NgramTable(**{field: arrays[f"{field}{n}"] for field in fields}) for n in range(orders)]
    words = bytes(arrays["words"]).decode("utf-8", "surrogatepass").split("\n")
    return KneserNey(vocabulary={word: i for i, word in enumerate(words)}, tables=tuple(tables))


def log10_by_token(model: KneserNey, words: Sequence[str]) -> list[tuple[str, float]]:
    """Return each token and `</s>`, with log10 of its probability given the tokens before it."""
    marks = ("<s>", "</s>", "<unk>")  # in a text, these count as unknown words
    tokens = [token if token not in marks else "<unk>" for token in words]
    return [
        (token, float(np.log10(model.prob(token, ["<s>", *tokens[:i]])))) for i, token in enumerate([*tokens, "</s>"])
    ]


# share of a sentence's pieces that the method `sampled` masks in one pass
_SHARE = 0.15
# Number of pieces predicted at a time. Their logits take 125 MB for a vocabulary of 30,000 pieces.
_WIDTH = 1024


class PseudoOptions(AdaptedOptions):
    """Options of `pseudo-perplexity`."""

    method: Literal["exact", "sampled", "one-pass"] = option(
        "exact",
        "exact masks one piece at a time, which takes one forward pass per piece. sampled masks a random 15% a few "
        "times. one-pass masks nothing, so its scores are not probabilities: the model sees what it predicts.",
    )
    passes: int = option(6, "Number of random masks per sentence if method is sampled.", ge=1, le=100)
    max_length: int = option(128, "Longer sentences are split into windows.", unit="pieces", ge=8, le=8192)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Input of one forward pass: a sentence, or a window of a long one.

    sentence, window: indices. words: index of each piece's word. places: positions of the pieces to predict.
    """

    sentence: int
    window: int
    ids: Sequence[int]
    words: Sequence[int | None]
    places: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """One forward pass. masked: positions hidden from the model. targets: positions whose piece it predicts."""

    read: _Read
    masked: Sequence[int]
    targets: Sequence[int]


class PseudoPerplexity(Strategy):
    """exp(-(1/N) sum log p(piece | other pieces)) under B1 for a sentence of N pieces (Salazar et al. 2020).

    B1 is the encoder after continued pre-training on T_C (SOURCES.md, B1 and B2).

    exact: masks the piece and all later pieces of its word. The end of a long word would reveal its beginning
    (within-word left to right, Kauf and Ivanova 2023). sampled: mean loss at the masked pieces of `passes` draws, which
    depend only on id and seed. The mean is per piece, because a sum would favour short sentences. Scores of very short
    sentences stay noisy (SOURCES.md, Length bias). As for all strategies, `select` withholds sentences of fewer than
    `min_tokens` tokens.
    """

    name: ClassVar[str] = "pseudo-perplexity"
    in_short: ClassVar[str] = "easy for a language model of your text; slow"
    unit: ClassVar[str] = "pseudo-perplexity"
    prefer: ClassVar[Prefer] = "low"
    models: ClassVar[frozenset[Model]] = frozenset({"mlm"})
    summary: ClassVar[str] = (
        "Trains a masked language model on the task corpus and prefers sentences that it predicts well."
    )
    trust: ClassVar[str] = (
        "The slowest: one forward pass of the model for every piece of the domain corpus. It favours stock phrases, as "
        "ngram-perplexity does."
    )
    Options: ClassVar[type[Config]] = PseudoOptions

    options: PseudoOptions
    _lm: "MaskedLM"
    _longest: int  # largest number of pieces per forward pass
    _halved: Halved

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        from core.models.devices import pick_dtype
        from core.models.mlm import MaskedLM

        folder = sources[Role.TASK].model
        assert folder is not None
        report.stage("loading the language model of the task corpus")
        self._lm = lm = MaskedLM.load(str(folder))
        if not lm.has_head:
            raise ModelError(f"{folder}: has no vocabulary head, so it cannot fill in masks; train it with `pretrain`.")
        device = lm.model.device
        lm.freeze(pick_dtype("auto", device, frozen=True))
        self._longest = min(self.options.max_length, longest(lm.model, lm.tokenizer))
        self._halved = Halved(f"pseudo-perplexity, {self.options.method}, {lm.model.num_parameters()} weights", device)
        if self.options.method == "one-pass":
            report.note("one-pass: these scores are not probabilities, because the model sees what it predicts.")

    def score(self, batch: Batch) -> FloatArray:
        import torch

        from core.models.devices import fetched

        n, reads = len(batch.sentences), self._reads([sentence.text for sentence in batch.sentences])
        loss, guesses = np.zeros(n), np.zeros(n)
        groups = self._groups(reads, batch)
        for passes, losses in fetched((group, torch.cat(self._halved.each(group, self._losses))) for group in groups):
            owners = np.repeat([pass_.read.sentence for pass_ in passes], [len(pass_.targets) for pass_ in passes])
            loss += np.bincount(owners, weights=losses.numpy(), minlength=n)
            guesses += np.bincount(owners, minlength=n)
        with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: a sentence without pieces has no score
            return np.exp(loss / guesses)

    def _reads(self, texts: Sequence[str]) -> list[_Read]:
        """Return the inputs of the forward passes; a text without pieces has none."""
        if not texts:
            return []
        options = {"truncation": True, "max_length": max(LONGEST, self._longest), "return_special_tokens_mask": True}
        pieces = self._lm.tokenizer(list(texts), **options)
        reads = []
        for row, (ids, special) in enumerate(zip(pieces["input_ids"], pieces["special_tokens_mask"], strict=True)):
            words = pieces.word_ids(row)
            if len(ids) <= self._longest:
                places = [place for place, mark in enumerate(special) if not mark]
                reads += [_Read(sentence=row, window=0, ids=ids, words=words, places=places)] if places else []
                continue
            for number, window in enumerate(windows(special, self._longest)):
                of_ids, of_words = ([each[place] for place in window.places] for each in (ids, words))
                reads.append(_Read(sentence=row, window=number, ids=of_ids, words=of_words, places=window.new))
        return reads

    def _groups(self, reads: Sequence[_Read], batch: Batch) -> Iterator[list[_Pass]]:
        """Yield all passes over `reads` in batches.

        Second and later windows of long sentences get separate batches at the end, so that they do not change the
        other batches.
        """
        done, n = 0, len(batch.sentences)
        parts = [
            [pass_ for read in reads if bool(read.window) is further for pass_ in self._passes(read, batch)]
            for further in (False, True)
        ]
        for passes in parts:
            lengths = np.array([len(pass_.read.ids) for pass_ in passes], dtype=np.int64)
            for group in length_groups(lengths, self._budget(lengths)):
                batch.report.check()
                yield [passes[i] for i in group.tolist()]
                done += len(group)
                batch.report.progress(n * done // sum(map(len, parts)), n, "sentences")

    def _passes(self, read: _Read, batch: Batch) -> Iterator[_Pass]:
        """Yield the forward passes over one input."""
        if self.options.method == "exact":
            words = read.words
            for place in read.places:
                end = place + 1
                while end < len(words) and words[end] is not None and words[end] == words[place]:
                    end += 1
                yield _Pass(read=read, masked=range(place, end), targets=(place,))
        elif self.options.method == "sampled":
            # Seeded by seed and id, so that draws are the same in every chunk and after every resume.
            seed = (self.seed, int(batch.ids[read.sentence]), *((read.window,) if read.window else ()))
            places = np.array(read.places)
            random = np.random.default_rng(seed).random((self.options.passes, len(places)))
            for order in random.argsort(axis=1)[:, : max(round(_SHARE * len(places)), 1)]:
                hidden = np.sort(places[order]).tolist()
                yield _Pass(read=read, masked=hidden, targets=hidden)
        else:
            yield _Pass(read=read, masked=(), targets=list(read.places))

    def _budget(self, lengths: IntArray) -> int:
        """Return the batch size in pieces: the usual size, or less if over `_WIDTH` of them would be predicted."""
        usual = BUDGET.get(self._lm.model.device.type, BUDGET["cpu"])
        share = {"exact": 0.0, "sampled": _SHARE, "one-pass": 1.0}[self.options.method]
        return min(usual, int(_WIDTH / share)) if share else usual

    def _losses(self, passes: Sequence[_Pass]) -> "torch.Tensor":
        """Return -log p of every target piece, float64 on the model's device, pass by pass, shortest sentence first."""
        import torch

        from core.models.devices import to_device

        width = len(passes[-1].read.ids)
        # If the tokenizer has no padding piece, pad with piece 0: padding gets no attention, so any piece will do.
        tokens = np.full((len(passes), width), self._lm.tokenizer.pad_token_id or 0, dtype=np.int64)
        attend = np.zeros((len(passes), width), dtype=np.int64)
        for line, pass_ in enumerate(passes):
            row = pass_.read.ids
            tokens[line, : len(row)], attend[line, : len(row)] = row, 1
            tokens[line, list(pass_.masked)] = self._lm.tokenizer.mask_token_id
        at = np.concatenate([line * width + np.asarray(pass_.targets) for line, pass_ in enumerate(passes)])
        pieces = np.concatenate([np.asarray(pass_.read.ids)[list(pass_.targets)] for pass_ in passes])
        parts = [tokens, at, pieces, *([] if attend.all() else [attend])]  # without a mask, a faster kernel runs
        inputs, places, gold, *mask = to_device([torch.from_numpy(part) for part in parts], self._lm.model.device)
        with torch.inference_mode():
            logits = self._lm.logits(inputs, mask[0] if mask else None, places)
            return torch.nn.functional.cross_entropy(logits, gold, reduction="none").double()
