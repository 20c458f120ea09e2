"""Sentences to vectors: any BERT-like encoder, pooled over its pieces, in length-sorted batches."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from core.errors import ConfigError, ModelError
from core.models import hub
from core.models.devices import Precision, pick_device, pick_dtype, side_by_side
from core.models.fingerprint import fingerprint
from core.models.memory import Halved
from core.models.windows import LONGEST, Window, windows
from core.reporter import Reporter, Silent
from core.results import FloatArray, IntArray

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Pooling = Literal["mean", "cls", "last4"]

BLOCK = 8192  # sentences tokenised and sorted together
BUDGET = {"cpu": 2048, "cuda": 16384}  # pieces a batch: what stays in a core's cache, what fills a card
STRETCH = 1.1  # the longest sentence of a batch over the shortest: at most this share is padding


class Cut(NamedTuple):
    """Texts as pieces, a row each; where one needs several windows, its further ones are rows behind all texts.

    special: 1 for each piece that is no part of the text, or that a window before it counts. further: rows by text.
    """

    ids: list[list[int]]
    special: list[list[int]]
    further: dict[int, range]


class Encoder:
    """A frozen encoder. Make one with `Encoder.load`.

    name: as asked for. key: hash of all that a vector depends on but the sentence. dimension: width d.
    max_length: pieces that are read at once, special ones included; a longer sentence is read in windows.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        *,
        name: str,
        key: str,
        pooling: Pooling,
        layer: int,
        max_length: int,
    ) -> None:
        self.name, self.key, self.pooling, self.layer, self.max_length = name, key, pooling, layer, max_length
        self.model = model
        self.tokenizer = tokenizer
        self.dimension = int(self.model.config.hidden_size)
        self._halved = Halved(f"embed by {key}", model.device)

    @classmethod
    def load(
        cls,
        name: str,
        *,
        pooling: Pooling = "mean",
        layer: int = -1,
        max_length: int = 128,
        precision: Precision = "auto",
        device: str = "auto",
        allow_download: bool = False,
    ) -> Self:
        """Load `minilm` (bundled), `tiny` (random, for tests), a local folder or a Hugging Face id.

        pooling: `mean` over the pieces that are not special (SOURCES.md, Sentence vectors), `cls` the first piece,
        `last4` the mean over the pieces and the last four layers. layer: -1 the last; 0 the embeddings, 1 the first
        layer, ...
        Errors: ModelError, ResourceError, ConfigError.
        """
        on_device = pick_device(device)
        dtype = pick_dtype(precision, on_device, frozen=True)
        tokenizer = hub.load_tokenizer(name, allow_download=allow_download)
        model = hub.load_model(name, allow_download=allow_download, dtype=dtype).eval().requires_grad_(False)
        if model.config.is_encoder_decoder:
            raise ModelError(f"{name}: has a decoder too; choose an encoder such as BERT or RoBERTa, or {hub.BUNDLED}.")
        n_layers = int(model.config.num_hidden_layers)
        if not -n_layers - 1 <= layer <= n_layers or (pooling == "last4" and layer != -1):
            raise ConfigError(f"layer: {layer} does not fit {name} ({n_layers} layers, pooling {pooling}); give -1.")
        max_length = min(max_length, longest(model, tokenizer))
        parts = (fingerprint(name, allow_download=allow_download), pooling, layer, max_length, dtype)
        key = sha256(" ".join(str(part) for part in parts).encode()).hexdigest()[:24]
        model.to(on_device)
        if on_device.type == "cpu":
            _prepack(model)
        return cls(model, tokenizer, name=name, key=key, pooling=pooling, layer=layer, max_length=max_length)

    def encode(self, texts: Sequence[str], report: Reporter | None = None) -> tuple[FloatArray, FloatArray]:
        """Unit vectors `(n, d)` float16 and the norms `(n,)` float32 they had: `unit * norm` is the raw vector.

        A sentence without pieces gets zeros and norm 0. The same texts give the same bytes; other neighbours
        in a batch change the last digits only. Errors: Cancelled; ModelError where a vector is not finite.
        """
        report = report or Silent()
        # Sorting by length within a block bounds the memory of pieces.
        starts = range(0, len(texts), BLOCK) or [0]
        parts = [self.encode_cut(self.cut(list(texts[start : start + BLOCK])), report) for start in starts]
        return np.concatenate([unit for unit, _ in parts]), np.concatenate([norms for _, norms in parts])

    def cut(self, texts: list[str]) -> Cut:
        """The texts as pieces; may be done in a thread while other texts are encoded."""
        if not texts:  # which a tokenizer does not bear
            return Cut(ids=[], special=[], further={})
        pieces = self.tokenizer(
            texts,
            truncation=True,
            max_length=max(LONGEST, self.max_length),
            return_special_tokens_mask=True,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return _in_windows(pieces["input_ids"], pieces["special_tokens_mask"], self.max_length)

    def encode_cut(self, cut: Cut, report: Reporter) -> tuple[FloatArray, FloatArray]:
        """`encode`, of at most BLOCK texts that are cut."""
        raw = self._raw(cut, report)
        norms = np.linalg.norm(raw, axis=1)
        if not np.isfinite(norms).all():
            raise ModelError(f"{self.name}: some vectors are not finite; its weights are damaged or need fp32.")
        return (raw / np.maximum(norms[:, None], np.finfo(np.float32).tiny)).astype(np.float16), norms

    def _raw(self, cut: Cut, report: Reporter) -> FloatArray:
        lengths = np.array([len(row) for row in cut.ids], dtype=np.int64)
        raw = np.zeros((len(lengths), self.dimension), dtype=np.float32)

        def vectors(group: IntArray) -> "tuple[IntArray, torch.Tensor]":
            return group, self._joined(group.tolist(), cut)

        done, n = 0, len(lengths) - sum(map(len, cut.further.values()))
        budget = BUDGET.get(self.model.device.type, BUDGET["cpu"])
        # Further windows by themselves: a sentence that needs none is batched as if there were none.
        groups = chain(length_groups(lengths[:n], budget), (n + group for group in length_groups(lengths[n:], budget)))
        with closing(side_by_side(vectors, groups, self.model.device)) as results:
            for group, result in results:
                report.check()
                raw[group] = result.numpy()
                done += len(group)
                report.progress(n * done // len(lengths), n, "sentences")
        for row, places in cut.further.items():
            rows = [row, *places]
            raw[row] = np.average(raw[rows], axis=0, weights=[cut.special[each].count(0) for each in rows])
        return raw[:n]

    def _joined(self, rows: list[int], cut: Cut) -> "torch.Tensor":
        """Raw vectors `(b, d)` of sentences, the shortest first; in parts where memory runs out."""
        import torch

        def vectors(part: Sequence[int]) -> "torch.Tensor":
            return self._vectors([cut.ids[i] for i in part], [cut.special[i] for i in part])

        parts = self._halved.each(rows, vectors)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _vectors(self, ids: list[list[int]], special: list[list[int]]) -> "torch.Tensor":
        """Raw vectors `(b, d)` of `b` sentences' pieces, the shortest first, on the encoder's device."""
        import torch

        from core.models.transfer import to_device

        shape = (len(ids), len(ids[-1]))
        tokens = np.full(shape, self.tokenizer.pad_token_id or 0, dtype=np.int64)
        attend, keep = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.float32)
        for line, (pieces, marks) in enumerate(zip(ids, special, strict=True)):
            n = len(pieces)
            tokens[line, :n], attend[line, :n], keep[line, :n] = pieces, 1, 1 - np.array(marks)
        mask = None if attend.all() else torch.from_numpy(attend)  # without padding: a faster kernel
        with torch.inference_mode():
            return self._pool(*to_device([torch.from_numpy(tokens), mask, torch.from_numpy(keep)], self.model.device))

    def _pool(self, tokens: "torch.Tensor", attend: "torch.Tensor | None", keep: "torch.Tensor") -> "torch.Tensor":
        """Raw vectors `(b, d)` of pieces `(b, l)`, summed in float32; `keep` is 1 at the pieces that count."""
        deeper = self.pooling == "last4" or self.layer != -1
        out = self.model(input_ids=tokens, attention_mask=attend, output_hidden_states=deeper)
        if self.pooling == "last4":
            hidden = sum(state.float() for state in out.hidden_states[1:][-4:]) / min(4, len(out.hidden_states) - 1)
        else:
            hidden = (out.hidden_states[self.layer] if deeper else out.last_hidden_state).float()
        n = keep.sum(1, keepdim=True)
        pooled = hidden[:, 0] if self.pooling == "cls" else (hidden * keep[..., None]).sum(1) / n.clamp(min=1)
        return pooled * (n > 0)  # type: ignore[no-any-return]


def _in_windows(ids: list[list[int]], special: list[list[int]], most: int) -> Cut:
    """The first window of a row of more than `most` pieces in its place; the others appended."""
    further = {}
    for row in [row for row, pieces in enumerate(ids) if len(pieces) > most]:
        first, *others = windows(special[row], most)
        pieces, start = ids[row], len(ids)
        ids[row], special[row] = _read_by(first, pieces)
        for window in others:
            of_ids, of_special = _read_by(window, pieces)
            ids.append(of_ids)
            special.append(of_special)
        further[row] = range(start, len(ids))
    return Cut(ids=ids, special=special, further=further)


def _read_by(window: Window, pieces: Sequence[int]) -> tuple[list[int], list[int]]:
    """Its pieces, and 1 for each that does not count."""
    n = len(window.places)
    return [pieces[place] for place in window.places], [int(i not in window.new) for i in range(n)]


def length_groups(lengths: IntArray, budget: int) -> Iterator[IntArray]:
    """Row numbers of each batch: of nearly one length, at most `budget` pieces (or one sentence). Skips length 0."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    start = int(np.searchsorted(ordered, 1))
    while start < len(order):
        stop = int(np.searchsorted(ordered, int(ordered[start] * STRETCH), side="right"))
        fits = budget // np.maximum(ordered[start:stop], 1) >= np.arange(1, stop - start + 1)
        stop = start + max(int(fits.sum()), 1)
        yield order[start:stop]
        start = stop


def longest(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> int:
    """Pieces the position table holds; RoBERTa's starts after the padding piece's index."""
    # Relative positions have no table and no end: 512 then, as of BERT.
    most = min(int(getattr(model.config, "max_position_embeddings", 0) or 512), int(tokenizer.model_max_length))
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            most = min(most, module.num_embeddings - module.padding_idx - 1)
    return most


def _prepack(model: "PreTrainedModel") -> None:
    """Lay the linear weights out once as oneDNN wants them, not at every call: 1.1 to 1.3 times as fast.

    Done by the operations that torch.compile ends in. The packed encoder is compared with the plain one and
    given up where it cannot be made or differs.
    """
    import torch

    linear = [module for module in model.modules() if type(module) is torch.nn.Linear]
    probe = torch.arange(32).reshape(2, 16) % model.config.vocab_size
    with torch.inference_mode():
        try:
            plain = model(input_ids=probe).last_hidden_state.float()
            for module in linear:
                packed = torch.ops.mkldnn._reorder_linear_weight(module.weight.detach(), None)
                module.forward = partial(_packed_linear, packed, module.bias)  # type: ignore[method-assign]
            same = torch.allclose(model(input_ids=probe).last_hidden_state.float(), plain, atol=0.05, rtol=0.05)
        except (RuntimeError, AttributeError):
            same = False
    if not same:
        for module in linear:
            module.__dict__.pop("forward", None)


def _packed_linear(weight: "torch.Tensor", bias: "torch.Tensor | None", x: "torch.Tensor") -> "torch.Tensor":
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # type: ignore[no-any-return]
