"""How long a `difficulty` run takes, from a `calibrate` run on this machine: t = a + b pieces a step."""

import math
from collections.abc import Mapping
from typing import Any

from core.corpora.corpus import Corpus
from core.recipes.difficulty import DifficultyConfig
from core.training.classify_settings import preset

START = 3.0  # seconds: what a run reads, checks and saves beside weights
FORWARD = 1 / 3  # of a training step, without the backward pass
NAME = 8  # pieces of a mention between its marks


def difficulty_seconds(
    config: DifficultyConfig, train: Corpus, measured: Mapping[str, Any], *, pieces: float, share: float = 1.0
) -> float:
    """measured: the result of `calibrate`. pieces: that a sentence has. share: of the sentences of `train`."""
    mentions = min(share * sum(train.types.values()), config.mentions or math.inf)
    a, b = map(float, measured["tagger"])
    seconds = float(measured["load"])
    read = {"context": pieces, "entity": NAME}
    for view, own in (("context", config.context_epochs), ("entity", config.entity_epochs)):
        usual = preset(config.preset, view, round(mentions), int(measured["dimension"]))  # type: ignore[arg-type]
        steps = (own or usual.epochs) * mentions * (1 - 1 / config.folds)
        seconds += steps / (config.batch_size or usual.batch_size) * a + steps * read[view] * b
        seconds += mentions / config.folds * read[view] * b * FORWARD
    return START + seconds * config.folds * (config.repeats or (3 if config.preset == "paper" else 1))
