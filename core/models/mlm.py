"""A masked language model and its masks.

Every draw of a mask is a hash of (seed, epoch, row, place) and depends on no earlier draw. A resumed training, two
processes or another batch size therefore give the same masks. The vocabulary head is computed only at masked positions
(15%), because computing it at all positions would be most of the work of a small encoder.
"""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from core.errors import ModelError, WinnowError
from core.models import hub
from core.models.devices import pick_device
from core.models.model_files import in_safetensors, weights
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.modeling_outputs import BaseModelOutput

Unit = Literal["piece", "word", "span"]

# Shares of chosen pieces that become the mask or a random piece; the rest stays (Devlin et al. 2019).
MASKED, RANDOM = 0.8, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Rule for choosing and replacing pieces.

    probability: share of the pieces that are chosen. unit: `piece` chooses each piece independently; `word` chooses all
    pieces of a word or none; `span` moves the first of two isolated chosen pieces next to the second, as in CrossNER
    (where the probability is 0.2). mask: id of the mask piece. special: `(vocabulary,)` pieces that are never chosen or
    inserted. ordinary: ids of all other pieces.
    """

    probability: float
    unit: Unit
    seed: int
    mask: int
    special: BoolArray
    ordinary: IntArray

    @classmethod
    def of(
        cls, tokenizer: "PreTrainedTokenizerBase", *, probability: float = 0.15, unit: Unit = "piece", seed: int = 0
    ) -> Self:
        """Make a masking for a tokenizer. Errors: ModelError if it has no mask piece."""
        if tokenizer.mask_token_id is None:
            raise ModelError(
                "the tokenizer has no mask piece, so pieces cannot be masked; choose an encoder like BERT."
            )
        special = np.zeros(len(tokenizer), dtype=np.bool_)
        special[list(tokenizer.all_special_ids)] = True
        return cls(
            probability=probability,
            unit=unit,
            seed=seed,
            mask=int(tokenizer.mask_token_id),
            special=special,
            ordinary=np.flatnonzero(~special).astype(np.int32),
        )

    def draw(
        self, ids: IntArray, rows: IntArray, places: IntArray, begins: BoolArray, epoch: int
    ) -> tuple[IntArray, BoolArray]:
        """Return the pieces that the model reads, `(n,)`, and `(n,)` True at the pieces that it has to predict.

        ids: `(n,)` pieces, row after row. rows: `(n,)` number of each piece's row, unique in this epoch. places: `(n,)`
        positions in the row. begins: `(n,)` True if the piece begins a word.
        """
        free = ~self.special[ids]
        units = places
        if self.unit == "word":  # all pieces of a word share the draw of its first piece
            units = places[np.maximum.accumulate(np.where(begins, np.arange(len(ids)), 0))]
        chosen = free & (self._uniform(epoch, rows, units, 0) < self.probability)
        if self.unit == "span":
            chosen = _joined(chosen, rows, free)
        fate = self._uniform(epoch, rows, places, 1)
        random_pieces = self.ordinary[(self._uniform(epoch, rows, places, 2) * len(self.ordinary)).astype(np.int64)]
        seen = np.where(chosen & (fate < MASKED), self.mask, ids)
        return np.where(chosen & (fate >= 1 - RANDOM), random_pieces, seen), chosen

    def _uniform(self, epoch: int, rows: IntArray, places: IntArray, draw: int) -> FloatArray:
        """Return one number in [0, 1) per piece, `(n,)`. draw: index of the draw for this piece, from 0."""
        # Each piece has three draws (0, 1, 2), so seeds are spaced by 4 to give different numbers.
        start = _mix(np.array([self.seed * 4 + draw], dtype=np.uint64)) + np.uint64(epoch)
        hashed = _mix(_mix(_mix(start) + rows.astype(np.uint64)) + places.astype(np.uint64))
        return (hashed >> np.uint64(11)).astype(np.float64) * 2.0**-53  # keep 53 bits, the precision of a float64


def _mix(x: IntArray) -> IntArray:
    """Return splitmix64 of every element; neighbouring inputs give unrelated outputs (Steele et al. 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: IntArray = x ^ (x >> np.uint64(31))
    return result


def _joined(chosen: BoolArray, rows: IntArray, free: BoolArray) -> BoolArray:
    """Return `chosen` with isolated pieces moved next to each other, as in CrossNER's spans.

    The number of chosen pieces stays the same.
    """
    joined = chosen.copy()
    waiting = -1  # index of an isolated chosen piece that may move next to a later one in its row; -1 for none
    for piece in np.flatnonzero(chosen).tolist():
        if waiting < 0 or rows[waiting] != rows[piece]:
            alone = piece == 0 or not joined[piece - 1] or rows[piece - 1] != rows[piece]
            waiting = piece if alone else -1
            continue
        if waiting < piece - 1 and free[piece - 1]:
            joined[waiting], joined[piece - 1] = False, True
        waiting = -1
    return joined


FORGOTTEN = "pooler"  # part of checkpoints that a masked language model does not use


class MaskedLM:
    """A Hugging Face `...ForMaskedLM` with its tokenizer. Make one with `MaskedLM.load`.

    has_head: True if the checkpoint had a vocabulary head; otherwise the head is random until it is fitted.
    """

    def __init__(self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", *, has_head: bool) -> None:
        self.model, self.tokenizer, self.has_head = model, tokenizer, has_head
        self._positions = threading.local()  # masked positions of this thread's forward pass
        self._head_in_full = False
        self.model.base_model.register_forward_hook(self._keep_masked)

    @classmethod
    def load(cls, name: str, *, device: str = "auto", allow_download: bool = False) -> Self:
        """Load `minilm` (bundled, without a head), `tiny` (random), a folder or a Hugging Face id, in float32.

        Errors: ModelError, ResourceError.
        """
        from transformers import AutoModelForMaskedLM

        tokenizer = hub.load_tokenizer(name, allow_download=allow_download)
        head = _head_in_file(name, allow_download)
        new = (FORGOTTEN,) if head is None else (FORGOTTEN, *head)
        model = hub.load_model(name, AutoModelForMaskedLM, allow_download=allow_download, new_layers=new)
        if not head_parameters(model):
            raise ModelError(f"{name}: has no trainable vocabulary head; choose BERT, or {hub.BUNDLED}.")
        return cls(model.float().to(pick_device(device)), tokenizer, has_head=head is None)

    def freeze(self, dtype: "torch.dtype") -> None:
        """Freeze the model and let its encoder compute in `dtype`.

        The head stays in float32. bf16 has 8 significant bits, which at a logit of 20 are too few to distinguish two
        sentences.
        """
        from torch.nn import Parameter

        base = self.model.base_model
        encoder, parts = {id(weight) for weight in base.parameters()}, {id(part) for part in base.modules()}
        for part in self.model.modules():
            for name, weight in list(part.named_parameters(recurse=False)):
                if id(weight) in encoder and id(part) not in parts:
                    setattr(part, name, Parameter(weight.detach().clone()))  # untie the decoder from the embeddings
        base.to(dtype)
        self.model.eval().requires_grad_(False)
        self._head_in_full = True

    def logits(
        self,
        ids: "torch.Tensor",
        attend: "torch.Tensor | None",
        at: "torch.Tensor",
        run: "torch.nn.Module | None" = None,
    ) -> "torch.Tensor":
        """Return the vocabulary's scores `(m, v)` at `m` positions of pieces `(b, l)`.

        at: `(m,)` positions in the flattened pieces. attend: `(b, l)` 1 at pieces and 0 at padding; None without
        padding. run: a wrapper to call instead of the model, if several processes train.
        """
        self._positions.at = at
        try:
            out = (run or self.model)(input_ids=ids, attention_mask=attend)
        finally:
            self._positions.at = None
        logits: torch.Tensor = out.logits[0]
        return logits

    def loss(
        self,
        ids: "torch.Tensor",
        attend: "torch.Tensor | None",
        at: "torch.Tensor",
        targets: "torch.Tensor",
        run: "torch.nn.Module | None" = None,
    ) -> "torch.Tensor":
        """Return the sum of -log p(piece) over the masked positions, a scalar in nats. targets: `(m,)` true pieces."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(self.logits(ids, attend, at, run).float(), targets, reduction="sum")

    def _keep_masked(
        self, module: "torch.nn.Module", inputs: tuple[object, ...], out: "BaseModelOutput"
    ) -> "BaseModelOutput":
        """Reduce the encoder's output to the masked positions; the head treats each position separately."""
        at = getattr(self._positions, "at", None)
        if at is not None:
            hidden = out[0].reshape(1, -1, out[0].shape[-1])[:, at]
            out[0 if isinstance(out, tuple) else "last_hidden_state"] = hidden.float() if self._head_in_full else hidden
        return out

    def save(self, folder: Path, card: str) -> None:
        """Write a Hugging Face folder: safetensors, tokenizer, and `card` (the model card) as README.md."""
        folder.mkdir(parents=True, exist_ok=True)
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        (folder / "README.md").write_text(card, encoding="utf-8")


def head_parameters(model: "PreTrainedModel") -> dict[str, "torch.nn.Parameter"]:
    """Return the vocabulary head's parameters without those it shares with the encoder (the tied decoder)."""
    encoder = {id(parameter) for parameter in model.base_model.parameters()}
    return {name: p for name, p in model.named_parameters() if id(p) not in encoder}


def begin_head(lm: MaskedLM, counts: IntArray) -> None:
    """Initialise a new head. Its transform is the identity, its decoder the embeddings, its bias log p of each piece.

    counts: `(v,)` occurrences of each piece in the training text.
    """
    import torch

    # Add one, because a bias of log 0 could never be unlearnt.
    share = (counts + 1) / (counts.sum() + len(counts))
    embeddings = lm.model.get_input_embeddings().weight
    with torch.no_grad():
        for name, parameter in head_parameters(lm.model).items():
            if parameter.shape == embeddings.shape:
                parameter.copy_(embeddings)
            elif parameter.ndim == 2 and parameter.shape[0] == parameter.shape[1]:
                parameter.copy_(torch.eye(len(parameter)))
            elif parameter.shape == embeddings.shape[:1]:
                parameter.copy_(torch.from_numpy(np.log(share)))
            else:
                parameter.fill_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0)


def _head_in_file(name: str, allow_download: bool) -> tuple[str, ...] | None:
    """Return the name prefixes of a missing head's parameters; None if the checkpoint has a head."""
    if name == hub.TINY:
        return ()
    import torch
    from safetensors import safe_open
    from transformers import AutoConfig, AutoModelForMaskedLM

    try:
        with hub.located(name, allow_download=allow_download) as folder:
            with torch.device("meta"):
                skeleton = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder, local_files_only=True))
            keys = set[str]()
            for file in weights(in_safetensors(name, folder)):
                with safe_open(file, "pt") as opened:
                    keys.update(opened.keys())
    except WinnowError:
        raise
    except Exception as error:
        raise ModelError(
            f"{name}: is not a masked language model ({hub.first_line(error)}); choose BERT, or {hub.BUNDLED}."
        ) from error
    encoder = f"{skeleton.base_model_prefix}."
    head = {".".join(key.split(".")[:2]) for key in skeleton.state_dict() if not key.startswith(encoder)}
    if any(key.startswith(tuple(head)) for key in keys):
        return None
    return tuple(sorted(head))


def pseudo_perplexity(
    lm: MaskedLM, rows: Sequence[IntArray], *, pieces: int, report: Reporter, seconds: float = math.inf
) -> tuple[float, int]:
    """Return exp of the mean -log p(piece | all others), one piece masked at a time (Salazar et al. 2020).

    Also return the number of rows that were read: after `seconds`, no further row is read. rows: piece ids of each
    text. Special pieces are read but not predicted. pieces: approximate number of pieces per batch. The perplexity is
    NaN if there is no piece to predict. Errors: Cancelled.
    """
    import torch

    from core.models.devices import to_device

    special, mask = set(lm.tokenizer.all_special_ids), int(lm.tokenizer.mask_token_id)
    device, end, count, done = lm.model.device, time.monotonic() + seconds, 0, 0
    was_training = lm.model.training
    lm.model.eval()
    with torch.inference_mode():
        # Sum on the device. If the host read each loss, it would have to wait for the GPU each time.
        total = torch.zeros((), dtype=torch.float64, device=device)
        for row in rows:
            report.check()
            # Read at least one row, even if that takes longer than `seconds`.
            if time.monotonic() > end and count:
                break
            places = np.array([i for i, piece in enumerate(row.tolist()) if piece not in special], dtype=np.int64)
            ids = to_device(torch.from_numpy(row.astype(np.int64)), device)
            # Make one copy of the row per piece to predict, with this piece masked, in batches of about `pieces`
            # pieces.
            n_parts = min(-(-len(places) * len(row) // pieces), len(places))
            for part in np.array_split(places, n_parts) if n_parts else ():
                lines = torch.arange(len(part), device=device)
                at = to_device(torch.from_numpy(part), device)
                batch = ids.repeat(len(part), 1)
                batch[lines, at] = mask
                total += lm.loss(batch, None, lines * len(row) + at, ids[at]).double()
            count += len(places)
            done += 1
    lm.model.train(was_training)
    # Clip, because exp(710) overflows a float64: the result is a large number, not an error.
    return (math.exp(min(float(total) / count, 700.0)) if count else math.nan), done
