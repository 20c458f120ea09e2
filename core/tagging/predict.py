"""`predict` and `evaluate`: a saved tagger on other sentences."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np

from core.config import Config, option
from core.kind import Job, Kind
from core.models.fingerprint import fingerprint
from core.runs.store import is_run_id
from core.tagging import evaluations, predictions, spans
from core.tagging.evaluations import EvaluateResult, name_of_test_set
from core.tagging.finetune import model_folder
from core.tagging.predictions import PredictResult
from core.tagging.scores import labelled, over_seeds, score_split, types_of
from core.tagging.tag import found_in_words
from core.text.neighbours import in_context
from core.training.on_device import on_device


class ModelConfig(Config):
    """Options: the tagger."""

    model: str = option(..., "Folder of a tagger, or the id of a finished finetune run.")
    constrained: bool = option(True, "Find only tag sequences that BIOES allows, however the tagger was trained.")
    weights: str = option("", "Hash of the tagger.", hidden=True)

    def settled(self) -> Self:
        """These options with the tagger's hash; a run's id says as much. Errors: ModelError if it is not here."""
        return self if is_run_id(self.model) else self.model_copy(update={"weights": fingerprint(self.model)})


class PredictConfig(ModelConfig):
    """Options: what to tag, and with what."""

    min_confidence: float = option(
        0.0, "Leave out entities that the tagger is less sure of; what that costs, `evaluate` says.", ge=0, lt=1
    )
    corpus: str = option(..., "The sentences to tag.", corpus=True)


class EvaluateConfig(ModelConfig):
    """Options: what to test, and on what."""

    test: str = option(..., "Labelled sentences.", corpus=True)


def predict(config: PredictConfig, job: Job) -> PredictResult:
    """A `tag` run, written out; see `artifacts.predictions`."""
    corpus = job.corpus(config.corpus)
    folder = model_folder(config.model, job)
    tagged = spans.read(job.child("tag", corpus=corpus.fingerprint, model=folder, constrained=config.constrained))
    job.context.stage(f"writing what was found in {corpus.name}")
    tagged = tagged.surer_than(config.min_confidence)
    sentences = chain.from_iterable(corpus.batches())
    predictions.write(
        job.context.run,
        (
            (replace(sentence, entities=tagged.entities(row)), tagged.part(row, row + 1).records["confidence"].tolist())
            for row, sentence in enumerate(sentences)
        ),
    )
    totals = zip(tagged.types, np.bincount(tagged.records["type"], minlength=len(tagged.types)).tolist(), strict=True)
    types = dict(sorted(((name, n) for name, n in totals if n), key=lambda pair: -pair[1]))
    return PredictResult(sentences=len(corpus), entities=sum(types.values()), types=types)


def evaluate(config: EvaluateConfig, job: Job) -> EvaluateResult:
    """Artifacts: see `artifacts.evaluations`."""
    from core.models.taggers import load_tagger

    gold = labelled(job.corpus(config.test))
    with on_device(job, alone=False):
        job.context.stage("loading the tagger")
        tagger = load_tagger(Path(model_folder(config.model, job)))
        tagger.crf.constrained = config.constrained
        gold = in_context(gold, tagger.context)
        types = sorted({*tagger.types, *types_of(gold)})
        result = score_split(job, tagger, gold, types, name_of_test_set(0), seen=None)
    return EvaluateResult(
        model=config.model,
        test=over_seeds([result], [evaluations.read_table(job.context.run, name_of_test_set(0))]),
        abstaining=evaluations.read_abstaining(job.context.run, name_of_test_set(0)),
    )


EVALUATE = Kind(
    "evaluate",
    EvaluateConfig,
    evaluate,
    EvaluateResult,
    title=lambda run: f"Test {run.tagger(run.config['model'])} on {run.corpus(run.config['test'])}",
    outcome=lambda result, _: f"Score (F1) {result.test.f1:.1f}",
    page="Results",
    here=True,
)
PREDICT = Kind(
    "predict",
    PredictConfig,
    predict,
    PredictResult,
    title=lambda run: f"Find entities with {run.tagger(run.config['model'])}",
    outcome=found_in_words,
    page="Results",
    command=("predict", "--output", "tagged.jsonl"),
    positional=("corpus",),
)
