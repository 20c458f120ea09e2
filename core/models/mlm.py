"""A masked language model: encoder and vocabulary head, the head computed at the masked positions alone.

The head over every position is most of the work of a small encoder, and 15% of the positions need it.
"""

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from core.errors import ModelError, WinnowError
from core.models import hub
from core.models.converted import in_safetensors
from core.models.devices import pick_device
from core.models.model_files import weights
from core.reporter import Reporter
from core.results import IntArray

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.modeling_outputs import BaseModelOutput

FORGOTTEN = "pooler"  # a part of checkpoints that a masked language model has no use for


class MaskedLM:
    """A Hugging Face `...ForMaskedLM` with its tokenizer. Make one with `MaskedLM.load`.

    has_head: the checkpoint held a vocabulary head; without one it is random until it is fitted.
    """

    def __init__(self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", *, has_head: bool) -> None:
        self.model, self.tokenizer, self.has_head = model, tokenizer, has_head
        self._positions = threading.local()  # where this thread's forward pass is to guess
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
            raise ModelError(f"{name}: has no vocabulary head of its own to train; choose BERT, or {hub.BUNDLED}.")
        return cls(model.float().to(pick_device(device)), tokenizer, has_head=head is None)

    def freeze(self, dtype: "torch.dtype") -> None:
        """Make it for reading alone: the encoder computes in `dtype`, the head in float32 whatever that is, since 8
        bits of a logit of 20 are too few to tell two sentences apart."""
        from torch.nn import Parameter

        encoder = {id(weight) for weight in self.model.base_model.parameters()}
        for part in self.model.modules():
            for name, weight in list(part.named_parameters(recurse=False)):
                if id(weight) in encoder and not self._within_encoder(part):
                    setattr(part, name, Parameter(weight.detach().clone()))  # the decoder's, which are the embeddings
        self.model.base_model.to(dtype)
        self.model.eval().requires_grad_(False)
        self._head_in_full = True

    def _within_encoder(self, part: "torch.nn.Module") -> bool:
        return any(part is own for own in self.model.base_model.modules())

    def logits(
        self,
        ids: "torch.Tensor",
        attend: "torch.Tensor | None",
        at: "torch.Tensor",
        run: "torch.nn.Module | None" = None,
    ) -> "torch.Tensor":
        """`(m, v)` scores of the vocabulary at `m` flat positions `at` of pieces `(b, l)`.

        attend: `(b, l)` 1 where there is a piece, None where there is no padding. run: what calls the model, where
        it has been wrapped (several processes).
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
        """Sum over the masked positions of -log p(piece), nats: `()`. wanted: `(m,)` the pieces that stood there."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(self.logits(ids, attend, at, run).float(), targets, reduction="sum")

    def _keep_masked(
        self, module: "torch.nn.Module", inputs: tuple[object, ...], out: "BaseModelOutput"
    ) -> "BaseModelOutput":
        """Keep the masked positions of the encoder's output: the head is the same at every one and sees no other."""
        at = getattr(self._positions, "at", None)
        if at is not None:
            hidden = out[0].reshape(1, -1, out[0].shape[-1])[:, at]
            out[0 if isinstance(out, tuple) else "last_hidden_state"] = hidden.float() if self._head_in_full else hidden
        return out

    def save(self, folder: Path, card: str) -> None:
        """A Hugging Face folder: safetensors, tokenizer, README.md."""
        folder.mkdir(parents=True, exist_ok=True)
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        (folder / "README.md").write_text(card, encoding="utf-8")


def head_parameters(model: "PreTrainedModel") -> dict[str, "torch.nn.Parameter"]:
    """Parameters of the vocabulary head that are not the encoder's too (the decoder is tied to its embeddings)."""
    encoder = {id(parameter) for parameter in model.base_model.parameters()}
    return {name: p for name, p in model.named_parameters() if id(p) not in encoder}


def begin_head(lm: MaskedLM, counts: IntArray) -> None:
    """Set a new head's first weights: transform the identity, decoder the embeddings, bias log p of each piece.

    counts: `(v,)` how often each piece is in the training text.
    """
    import torch

    # A piece that never occurs counts as once: log 0 would forbid it for ever.
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
    """Prefixes of the names of the missing head's parameters; None where the checkpoint has a head."""
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
            f"{name}: is no masked language model ({hub.first_line(error)}); choose BERT, or {hub.BUNDLED}."
        ) from error
    encoder = f"{skeleton.base_model_prefix}."
    head = {".".join(key.split(".")[:2]) for key in skeleton.state_dict() if not key.startswith(encoder)}
    if any(key.startswith(tuple(head)) for key in keys):
        return None
    return tuple(sorted(head))


def pseudo_perplexity(
    lm: MaskedLM, rows: Sequence[IntArray], *, pieces: int, report: Reporter, seconds: float = math.inf
) -> tuple[float, int]:
    """exp of the mean -log p(piece | all others) over the pieces of `rows`, one masked at a time (Salazar et al. 2020).

    And of how many rows it is: after `seconds` no further one is begun. rows: pieces with special ones, which are not
    guessed. pieces: of a batch. NaN where there is nothing to guess. Errors: Cancelled.
    """
    import torch

    from core.models.transfer import to_device

    special, mask = set(lm.tokenizer.all_special_ids), int(lm.tokenizer.mask_token_id)
    device, end, count, done = lm.model.device, time.monotonic() + seconds, 0, 0
    was_training = lm.model.training
    lm.model.eval()
    with torch.inference_mode():
        # Summed where it is computed: to read each loss the host would wait for a card that could be at the next.
        total = torch.zeros((), dtype=torch.float64, device=device)
        for row in rows:
            report.check()
            # One row at least, however slow the machine is.
            if time.monotonic() > end and count:
                break
            places = np.array([i for i, piece in enumerate(row.tolist()) if piece not in special], dtype=np.int64)
            ids = to_device(torch.from_numpy(row.astype(np.int64)), device)
            # A row is repeated once a place, each copy with another place masked, in batches of about `pieces`.
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
    # exp(710) is beyond a float64: who knows nothing gets a large number, not an error.
    return (math.exp(min(float(total) / count, 700.0)) if count else math.nan), done
