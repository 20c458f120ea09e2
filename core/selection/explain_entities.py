"""Scores made of predicted entities, by the entities that they come from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.errors import CorpusError
from core.selection.parts import Arrays, Evidence, Part, Parts
from core.selection.predictions import HAIR, fold, tie_break
from core.selection.spans import Spans


def keep_entities(strategy: Any) -> Arrays:
    """What an entity of each type is worth to a prepared `NerSelected`."""
    if strategy.options.rank != "rarity":
        return {}
    return {"types": np.array(strategy._types), "worth": strategy._worth}


def entities(evidence: Evidence) -> Parts:
    """One for each entity, and the tie-break (SOURCES.md, Predicted entities)."""
    if not evidence.spans:
        raise CorpusError("The predicted entities are gone.")
    asked = _asked(evidence)
    tokens = evidence.sentence.tokens
    found = [(entity, " ".join(tokens[entity.start : entity.end])) for spans in asked for entity in spans.entities(0)]
    sure = sum(float(spans.confidence()[0]) for spans in asked) / max(len(found), 1)
    density = len(found) / len(asked) / (len(tokens) + 1)
    fraction = float(tie_break(np.array([sure]), np.array([density]))[0]) / len(evidence.spans)
    rank = evidence.options["rank"]
    tie = Part(name="how sure the tagger is, then entities a token: a tie-break", value=fraction)
    if rank == "type-balanced":
        taken = round(fraction - evidence.score)
        return Parts(parts=[Part(name=f"taken in round {taken:,}, a minus for each", value=-float(taken)), tie])
    worth = {"count": 1.0, "density": 1 / max(len(tokens), 1)}
    of_type = (
        dict(zip(*(evidence.model[key].tolist() for key in ("types", "worth")), strict=True))
        if rank == "rarity"
        else {}
    )
    parts = [
        Part(name=f"{words} ({entity.type})", value=of_type.get(entity.type, worth.get(rank, 0.0)) / len(asked))
        for entity, words in found
    ]
    scale = 1.0 if rank == "count" else HAIR
    return Parts(parts=[*parts, Part(name=tie.name, value=tie.value * scale)])


def _asked(evidence: Evidence) -> Sequence[Spans]:
    """The taggers that may count: where the sentence is in L_C, the one that never saw it."""
    k = len(evidence.spans)
    if k == 1:
        return evidence.spans
    if evidence.labelled is None:
        raise CorpusError("L_C is gone.")
    id = np.array([int(evidence.sentence.id, 16)], dtype=np.uint64)
    if not np.isin(id, evidence.labelled.ids())[0]:
        return evidence.spans
    return [evidence.spans[int(fold(id, k)[0])]]
