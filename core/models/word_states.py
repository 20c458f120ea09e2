"""The states of words under a frozen encoder, layer by layer: what a linear probe and the ranking of encoders read."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import numpy.typing as npt
import torch

from core.errors import ModelError
from core.models import hub
from core.models.devices import pick_device, pick_dtype, side_by_side
from core.models.encoder import BUDGET, length_groups, longest
from core.models.pieces import Pieces, Window
from core.models.transfer import to_device
from core.reporter import Reporter
from core.results import IntArray
from core.text.sentence import Sentence

States = npt.NDArray[np.float16]


def word_states(name: str, sentences: Sequence[Sentence], report: Reporter, *, max_length: int = 256) -> States:
    """`(layers, words, size)`: of each word its first piece, after each layer, the embeddings left out.

    Words stand in their sentences' order; a long sentence is read in windows, as a tagger reads it. Errors: ModelError.
    """
    device = pick_device()
    model = hub.load_model(name, dtype=pick_dtype("auto", device, frozen=True)).eval().requires_grad_(False).to(device)
    if model.config.is_encoder_decoder:
        raise ModelError(f"{name}: has a decoder too; choose an encoder such as BERT or RoBERTa, or {hub.BUNDLED}.")
    tokenizer = hub.load_tokenizer(name)
    pieces = Pieces(tokenizer, min(max_length, longest(model, tokenizer)))
    starts = np.cumsum([0, *(len(sentence.tokens) for sentence in sentences)])
    windows = [
        (int(start) + window.start, window)
        for start, sentence in zip(starts, sentences, strict=False)
        for window in pieces.windows(sentence.tokens)
    ]
    layers, size = int(model.config.num_hidden_layers), int(model.config.hidden_size)
    states = np.zeros((layers, int(starts[-1]), size), dtype=np.float16)

    def read(group: IntArray) -> tuple[list[tuple[int, Window]], torch.Tensor]:
        batch = [windows[row] for row in group.tolist()]
        inputs = _rectangle([window.ids for _, window in batch], tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            tensors = to_device({key: torch.from_numpy(array) for key, array in inputs.items()}, device)
            hidden = torch.stack(model(**tensors, output_hidden_states=True).hidden_states[1:])
        return batch, hidden.to(torch.float16)

    done, groups = 0, length_groups(np.array([len(w.ids) for _, w in windows]), BUDGET.get(device.type, BUDGET["cpu"]))
    with closing(side_by_side(read, groups, device)) as results:
        for batch, hidden in results:
            report.check()
            for line, (start, window) in enumerate(batch):
                states[:, start : start + len(window.first)] = hidden[:, line, list(window.first)].numpy()
            done += len(batch)
            report.progress(done, len(windows), "sentences")
    if not np.isfinite(states).all():
        raise ModelError(f"{name}: some states are not finite; its weights are damaged or need more than 16 bits.")
    return states


def _rectangle(rows: Sequence[Sequence[int]], padding: int) -> dict[str, IntArray]:
    ids = np.full((len(rows), max(map(len, rows))), padding)
    attention = np.zeros_like(ids)
    for line, row in enumerate(rows):
        ids[line, : len(row)], attention[line, : len(row)] = row, 1
    return {"input_ids": ids, "attention_mask": attention}
