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
from core.models.pieces import Pieces
from core.reporter import Reporter
from core.results import IntArray
from core.text.sentence import Sentence

States = npt.NDArray[np.float16]


def word_states(name: str, sentences: Sequence[Sentence], report: Reporter, *, max_length: int = 256) -> States:
    """`(layers, words, size)`: of each word its first piece, after each layer, the embeddings left out.

    Words stand in their sentences' order; a long sentence is read in windows, as a tagger reads it. Errors: ModelError.
    """
    device = pick_device()
    model = hub.load_model(name, dtype=pick_dtype("auto", device)).eval().requires_grad_(False).to(device)
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

    def fill(group: IntArray) -> int:
        batch = [windows[row] for row in group.tolist()]
        inputs = _rectangle([window.ids for _, window in batch], tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            tensors = {key: torch.from_numpy(array).to(device) for key, array in inputs.items()}
            hidden = torch.stack(model(**tensors, output_hidden_states=True).hidden_states[1:])
        for line, (start, window) in enumerate(batch):
            taken = hidden[:, line, list(window.first)].to(torch.float16)
            states[:, start : start + len(window.first)] = taken.cpu().numpy()
        return len(batch)

    done, groups = 0, length_groups(np.array([len(w.ids) for _, w in windows]), BUDGET.get(device.type, BUDGET["cpu"]))
    with closing(side_by_side(fill, groups, device)) as sizes:
        for n in sizes:
            report.check()
            done += n
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
