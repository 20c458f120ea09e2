"""`pseudo-perplexity`: perplexity of a sentence under a masked language model of T_C (Mahapatra et al. 2022, 3.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from core.config import Config, option
from core.errors import ModelError
from core.models.devices import Halved
from core.models.encoder import BUDGET, length_groups, longest
from core.models.pieces import LONGEST, windows
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Prefer, Role
from core.selection.base import AdaptedOptions, Batch, Model, Source, Strategy

if TYPE_CHECKING:
    import torch

    from core.models.mlm import MaskedLM

_SHARE = 0.15  # share of a sentence's pieces that one pass of `sampled` masks
_WIDTH = 1024  # rows of vocabulary size held at a time: 125 MB at 30,000 pieces


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
    """exp(-(1/N) sum log p(piece | the others)) under B1 for a sentence of N pieces (Salazar et al. 2020).

    exact: masks the piece and those after it in the same word, so that a long word's end does not reveal it
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
        "Trains a masked language model on the task corpus and prefers sentences that it can fill in well."
    )
    trust: ClassVar[str] = (
        "The slowest: one forward pass of the model for every piece of the domain corpus. It favours stock phrases, as "
        "ngram-perplexity does."
    )
    Options: ClassVar[type[Config]] = PseudoOptions

    options: PseudoOptions
    _lm: "MaskedLM"
    _longest: int  # pieces
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
        with np.errstate(invalid="ignore"):  # a sentence without pieces: 0 / 0, "could not be scored"
            return np.exp(loss / guesses)

    def _reads(self, texts: Sequence[str]) -> list[_Read]:
        """Return the inputs of `texts`; none for a text without pieces."""
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

        Second and later windows get separate batches at the end, so that they do not change the other batches.
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
        """Yield all passes over one input."""
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
        """Return the most pieces per batch for which at most `_WIDTH` pieces are predicted."""
        usual = BUDGET.get(self._lm.model.device.type, BUDGET["cpu"])
        share = {"exact": 0.0, "sampled": _SHARE, "one-pass": 1.0}[self.options.method]
        return min(usual, int(_WIDTH / share)) if share else usual

    def _losses(self, passes: Sequence[_Pass]) -> "torch.Tensor":
        """Return -log p of every target piece, float64 on the model's device, pass by pass, shortest sentence first."""
        import torch

        from core.models.devices import to_device

        width = len(passes[-1].read.ids)
        # Padding gets no attention, so any piece serves if the tokenizer has no padding piece.
        tokens = np.full((len(passes), width), self._lm.tokenizer.pad_token_id or 0, dtype=np.int64)
        attend = np.zeros((len(passes), width), dtype=np.int64)
        for line, pass_ in enumerate(passes):
            row = pass_.read.ids
            tokens[line, : len(row)], attend[line, : len(row)] = row, 1
            tokens[line, list(pass_.masked)] = self._lm.tokenizer.mask_token_id
        at = np.concatenate([line * width + np.asarray(pass_.targets) for line, pass_ in enumerate(passes)])
        pieces = np.concatenate([np.asarray(pass_.read.ids)[list(pass_.targets)] for pass_ in passes])
        parts = [tokens, at, pieces, *([] if attend.all() else [attend])]  # without padding a faster kernel runs
        inputs, places, gold, *mask = to_device([torch.from_numpy(part) for part in parts], self._lm.model.device)
        with torch.inference_mode():
            logits = self._lm.logits(inputs, mask[0] if mask else None, places)
            return torch.nn.functional.cross_entropy(logits, gold, reduction="none").double()
