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

# Use few threads, because `core.isolated` limits the total CPU time of all threads.
THREADS = 2
# First token, end token (exclusive), type and confidence of an entity.
Span = tuple[int, int, str, float]


class Told(TypedDict):
    """Result of one tagger. types: all entity types that the tagger knows. spans: entities found in each text."""

    types: list[str]
    spans: list[list[Span]]


def answer(models: Sequence[str], texts: Sequence[str]) -> list[Told]:
    """Return the entities that each model finds in each text.

    texts: cleaned sentences of one document, in order. Spans refer to the tokens of `tokenize`. The GPU is not used,
    because runs may need its memory. Errors: ModelError.
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
