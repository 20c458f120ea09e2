"""Find entities in a few texts. `core.isolated` calls this in a separate process, because pages load no torch.

The imports here take seconds, so a spare process does them before the user has pasted a text.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import torch
import transformers.models.bert.modeling_bert  # noqa: F401  the usual encoder, otherwise imported on first use
from transformers import AutoModelForTokenClassification, AutoTokenizer  # noqa: F401  likewise

from core.models.taggers import load_tagger
from core.reporter import Silent
from core.tagging.predict import predicted
from core.text.sentence import Sentence
from core.text.words import tokenize

THREADS = 2  # few, because `core.isolated` limits the sum of the CPU times of all threads
Span = tuple[int, int, str, float]  # first token, end, type, confidence


class Told(TypedDict):
    """Answer of one tagger. types: all types that it knows. spans: entities of each text."""

    types: list[str]
    spans: list[list[Span]]


def answer(models: Sequence[str], texts: Sequence[str]) -> list[Told]:
    """Return the entities of each text under each model. texts: cleaned sentences of one document, in order.

    Tokens are those of `tokenize`. A GPU is not used, because runs may need its memory. Errors: ModelError.
    """
    torch.set_num_threads(THREADS)
    sentences = [Sentence(id="", tokens=tokenize(text), text=text, doc="") for text in texts]
    return [_told(model, sentences) for model in models]


def _told(model: str, sentences: Sequence[Sentence]) -> Told:
    tagger = load_tagger(Path(model), device="cpu")
    tagger.crf.constrained = True
    found = predicted(tagger, sentences, slice(None), Silent(), raw=True)
    spans = [
        [(e.start, e.end, e.type, round(sure, 4)) for e, sure in zip(each.entities, each.confidence, strict=True)]
        for each in found
    ]
    return Told(types=list(tagger.types), spans=spans)
