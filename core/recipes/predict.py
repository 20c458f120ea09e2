"""`predict` and `evaluate`: a saved tagger on other sentences."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Self

from core.config import Config, option
from core.corpora.writers import write_conll
from core.files import replacing
from core.models.hub import fingerprint
from core.recipes.base import Job, Result
from core.recipes.finetune import model_folder
from core.recipes.tested import labelled, over_seeds, tested, types_of
from core.runs.store import is_run_id
from core.text.sentence import Prediction, Sentence


class ModelConfig(Config):
    """Which tagger."""

    model: str = option(..., "Folder of a tagger, or the id of a finished finetune run.")
    weights: str = option("", "Hash of the tagger.", hidden=True)

    def settled(self) -> Self:
        """With the tagger's hash; a run's id says as much. Errors: ModelError if it is not here."""
        return self if is_run_id(self.model) else self.model_copy(update={"weights": fingerprint(self.model)})


class PredictConfig(ModelConfig):
    """What to tag, and with what."""

    corpus: str = option(..., "The sentences to tag.", corpus=True)


class EvaluateConfig(ModelConfig):
    """What to test, and on what."""

    test: str = option(..., "Labelled sentences.", corpus=True)


def predict(config: PredictConfig, job: Job) -> Result:
    """Artifacts: `predictions.jsonl` (id, tokens, entities with their confidence), `predictions.conll` (IOB2)."""
    from core.models.taggers import load_tagger

    job.context.stage("loading the tagger")
    tagger = load_tagger(Path(model_folder(config.model, job)))
    corpus = job.corpus(config.corpus)
    job.context.stage(f"tagging {corpus.name}")
    counted, folder = Counter[str](), job.context.run.artifacts

    def tagged(out: BinaryIO) -> Iterator[Sentence]:
        """Batch by batch, so that a large corpus is never in memory."""
        for batch in corpus.batches():
            found = tagger.predict(batch, job.context)
            out.writelines(_lines(batch, found))
            for sentence, prediction in zip(batch, found, strict=True):
                counted.update(entity.type for entity in prediction.entities)
                yield replace(sentence, entities=prediction.entities)

    with replacing(folder / "predictions.jsonl") as file:
        write_conll(tagged(file), folder / "predictions.conll")
    return {"sentences": len(corpus), "entities": counted.total(), "types": dict(counted.most_common())}


def _lines(sentences: Sequence[Sentence], found: Sequence[Prediction]) -> Iterator[bytes]:
    for sentence, prediction in zip(sentences, found, strict=True):
        entities = [
            {"start": e.start, "end": e.end, "type": e.type, "confidence": round(sure, 4)}
            for e, sure in zip(prediction.entities, prediction.confidence, strict=True)
        ]
        told = {"id": sentence.id, "tokens": sentence.tokens, "entities": entities}
        yield json.dumps(told, ensure_ascii=False).encode() + b"\n"


def evaluate(config: EvaluateConfig, job: Job) -> Result:
    """Artifacts: `evaluation-test.npz`, `predictions-test.jsonl`."""
    from core.models.taggers import load_tagger

    gold = labelled(job.corpus(config.test))
    job.context.stage("loading the tagger")
    tagger = load_tagger(Path(model_folder(config.model, job)))
    every = sorted({*tagger.types, *types_of(gold)})
    told = tested(job, tagger, gold, every, "test")
    return {"model": config.model, "test": over_seeds([told])}
