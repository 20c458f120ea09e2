"""Sentence vectors: the states of any BERT-like encoder, pooled over the pieces of a sentence."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from core.config import Config, option
from core.errors import ConfigError, ModelError
from core.models import hub
from core.models.devices import Halved, Precision, pick_device, pick_dtype, side_by_side
from core.models.fingerprint import fingerprint
from core.models.pieces import LONGEST, TextWindow, windows
from core.reporter import Reporter, Silent
from core.results import FloatArray, IntArray

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class EncoderOptions(Config):
    """Options of all kinds of runs that compute sentence vectors."""

    encoder: str = option("minilm", "Encoder: a Hugging Face name, a local folder, or minilm (bundled).")
    pooling: Literal["mean", "cls", "last4"] = option(
        "mean",
        "mean: mean over the last layer's pieces; cls: the last layer's [CLS] piece; last4: mean over the pieces of "
        "the last four layers.",
    )
    max_length: int = option(
        128, "Window size; longer sentences are read in several windows.", unit="pieces", ge=8, le=8192
    )
    precision: Literal["auto", "bf16", "fp32"] = option(
        "auto", "Number format of the computation. auto: bf16 if the device supports it, else fp32."
    )
    allow_download: bool = option(False, "Download the encoder from the Hugging Face hub if it is not on this machine.")

    weights: str = option("", "Hash of the encoder, so that changed weights give new vectors.", hidden=True)

    def settled(self) -> Self:
        """Return the options with the encoder's hash.

        Errors: ModelError if the encoder is not on this machine and may not be downloaded.
        """
        try:
            return self.model_copy(update={"weights": fingerprint(self.encoder)})
        except ModelError:
            if not self.allow_download:
                raise
            return self  # not downloaded here, because a page must not wait; the worker does it later


def encoder_options(config: EncoderOptions) -> dict[str, object]:
    """Return the options of `config` that determine the sentence vectors."""
    return config.model_dump(include=set(EncoderOptions.model_fields))


Pooling = Literal["mean", "cls", "last4"]

# Number of sentences that are tokenised and sorted by length together.
BLOCK = 8192
# Pieces per batch: 2,048 fit into the cache of a core, 16,384 fill a GPU.
BUDGET = {"cpu": 2048, "cuda": 16384}
# The longest sentence of a batch is at most this many times as long as the shortest, which limits padding.
STRETCH = 1.1


class Cut(NamedTuple):
    """Texts as rows of pieces: the first window of each text, then the further windows of longer texts.

    special: 1 for each piece that is not pooled (special pieces, and pieces of an earlier window), else 0. further:
    {row of a text: rows of its further windows}.
    """

    ids: list[list[int]]
    special: list[list[int]]
    further: dict[int, range]


class Encoder:
    """A frozen encoder. Make one with `Encoder.load`.

    name: the name given to `load`. key: hash of the encoder and of all settings that determine a sentence's vector.
    dimension: width d. max_length: pieces per window, special ones included; a longer sentence is read in several
    windows.
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

        pooling: `mean` over all but special pieces (SOURCES.md, Sentence vectors), `cls` the first piece, `last4` the
        mean over pieces and the last four layers. layer: -1 is the last, 0 the embeddings, 1 the first layer.
        Errors: ModelError, ResourceError, ConfigError.
        """
        on_device = pick_device(device)
        dtype = pick_dtype(precision, on_device, frozen=True)
        tokenizer = hub.load_tokenizer(name, allow_download=allow_download)
        model = hub.load_model(name, allow_download=allow_download, dtype=dtype).eval().requires_grad_(False)
        if model.config.is_encoder_decoder:
            raise ModelError(
                f"{name}: is an encoder-decoder model; choose an encoder such as BERT or RoBERTa, or {hub.BUNDLED}."
            )
        n_layers = int(model.config.num_hidden_layers)
        if not -n_layers - 1 <= layer <= n_layers or (pooling == "last4" and layer != -1):
            raise ConfigError(
                f"layer: {layer} does not fit {name} ({n_layers} layers, pooling {pooling}); give -1, the last layer."
            )
        max_length = min(max_length, longest(model, tokenizer))
        parts = (fingerprint(name, allow_download=allow_download), pooling, layer, max_length, dtype)
        key = sha256(" ".join(str(part) for part in parts).encode()).hexdigest()[:24]
        model.to(on_device)
        if on_device.type == "cpu":
            _prepack(model)
        return cls(model, tokenizer, name=name, key=key, pooling=pooling, layer=layer, max_length=max_length)

    def encode(self, texts: Sequence[str], report: Reporter | None = None) -> tuple[FloatArray, FloatArray]:
        """Return unit vectors `(n, d)` float16 and their norms `(n,)` float32; `unit * norm` is the raw vector.

        A sentence without pieces gets zeros and norm 0. The same list of texts always gives the same bytes. The vector
        of a text differs only in its last digits between lists. Errors: Cancelled; ModelError if a vector is not
        finite.
        """
        report = report or Silent()
        # Texts are tokenised block by block to bound memory.
        starts = range(0, len(texts), BLOCK) or [0]
        parts = [self.encode_cut(self.cut(list(texts[start : start + BLOCK])), report) for start in starts]
        return np.concatenate([unit for unit, _ in parts]), np.concatenate([norms for _, norms in parts])

    def cut(self, texts: list[str]) -> Cut:
        """Return the texts as pieces. Another thread may call this method while texts are encoded."""
        if not texts:  # a tokenizer fails on an empty list
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
        """Return what `encode` returns, for at most BLOCK texts that `cut` has tokenised."""
        raw = self._raw(cut, report)
        norms = np.linalg.norm(raw, axis=1)
        if not np.isfinite(norms).all():
            raise ModelError(
                f"{self.name}: some vectors are not finite; set precision to fp32, or choose another encoder."
            )
        return (raw / np.maximum(norms[:, None], np.finfo(np.float32).tiny)).astype(np.float16), norms

    def _raw(self, cut: Cut, report: Reporter) -> FloatArray:
        lengths = np.array([len(row) for row in cut.ids], dtype=np.int64)
        raw = np.zeros((len(lengths), self.dimension), dtype=np.float32)

        def vectors(group: IntArray) -> "tuple[IntArray, torch.Tensor]":
            return group, self._joined(group.tolist(), cut)

        done, n = 0, len(lengths) - sum(map(len, cut.further.values()))
        budget = BUDGET.get(self.model.device.type, BUDGET["cpu"])
        # Put the further windows of long sentences into separate batches, so that the batches of all first windows do
        # not depend on them.
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
        """Return raw vectors `(b, d)` of rows that are sorted by length; compute them in parts if memory runs out."""
        import torch

        def vectors(part: Sequence[int]) -> "torch.Tensor":
            return self._vectors([cut.ids[i] for i in part], [cut.special[i] for i in part])

        parts = self._halved.each(rows, vectors)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _vectors(self, ids: list[list[int]], special: list[list[int]]) -> "torch.Tensor":
        """Return raw vectors `(b, d)` of `b` rows of pieces sorted by length, on the encoder's device."""
        import torch

        from core.models.devices import to_device

        shape = (len(ids), len(ids[-1]))
        tokens = np.full(shape, self.tokenizer.pad_token_id or 0, dtype=np.int64)
        attend, keep = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.float32)
        for line, (pieces, marks) in enumerate(zip(ids, special, strict=True)):
            n = len(pieces)
            tokens[line, :n], attend[line, :n], keep[line, :n] = pieces, 1, 1 - np.array(marks)
        mask = None if attend.all() else torch.from_numpy(attend)  # without a mask torch has a faster kernel
        with torch.inference_mode():
            return self._pool(*to_device([torch.from_numpy(tokens), mask, torch.from_numpy(keep)], self.model.device))

    def _pool(self, tokens: "torch.Tensor", attend: "torch.Tensor | None", keep: "torch.Tensor") -> "torch.Tensor":
        """Return raw vectors `(b, d)`, pooled in float32. tokens: `(b, l)` pieces. keep: 1 at pieces to pool."""
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
    """Return the rows as a `Cut` with at most `most` pieces per row.

    The first window of a longer row replaces the row. Its further windows are appended after all rows.
    """
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


def _read_by(window: TextWindow, pieces: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the window's pieces, and for each piece 0 if this window pools it, else 1."""
    n = len(window.places)
    return [pieces[place] for place in window.places], [int(i not in window.new) for i in range(n)]


def length_groups(lengths: IntArray, budget: int) -> Iterator[IntArray]:
    """Yield batches of rows of similar length, as indices into `lengths`.

    A batch has at most `budget` pieces, padding included. A row of more than `budget` pieces is a batch of one row.
    Rows of length 0 are left out.
    """
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
    """Return the largest number of pieces that the encoder reads at once."""
    # Encoders with relative positions have no table of positions and no limit; use BERT's limit, 512.
    most = min(int(getattr(model.config, "max_position_embeddings", 0) or 512), int(tokenizer.model_max_length))
    # RoBERTa's positions start after the padding index, so the first rows of its table stay unused.
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            most = min(most, module.num_embeddings - module.padding_idx - 1)
    return most


def _prepack(model: "PreTrainedModel") -> None:
    """Reorder linear weights for oneDNN once instead of at every call; the model is then 1.1 to 1.3 times as fast.

    This function uses the operations that torch.compile emits. The weights keep their order if packing fails or changes
    the output.
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
