"""Runs without their training: kinds that train return results drawn at random, seeded by the options of the run."""

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.bias.difficulty import DifficultyConfig, Trained, summary
from core.bias.result import DifficultyResult, write_mentions
from core.bias.training_sentences import ordered
from core.kind import Job
from core.kinds import KINDS
from core.pretraining.pretrain import PretrainConfig
from core.results import Evaluation
from core.runs.store import RunStore, is_run_id
from core.stats.scoring import evaluate
from core.tagging import evaluations
from core.tagging.config import FinetuneConfig
from core.tagging.evaluations import FinetuneResult, SplitScores, all_seeds
from core.text.sentence import Prediction, Sentence
from core.training.saved_models import PretrainResult
from tests.finished import TIMED, pretrained, seed_outcome, split_scores
from tests.finished_bias import mention

Work = Callable[[Any, Job], object]


@contextmanager
def without_training(**others: Work) -> Iterator[None]:
    """Replace the work of all kinds that train. others: work of a kind in place of the one here."""
    work: dict[str, Work] = {
        "calibrate": lambda config, job: TIMED,
        "pretrain": pretrain,
        "finetune": finetune,
        "difficulty": difficulty,
        **others,
    }
    with pytest.MonkeyPatch.context() as patch:
        for kind, run in work.items():
            patch.setitem(KINDS, kind, replace(KINDS[kind], run=run, here=False, red_items=None))
        patch.setattr("core.runs.context.CHECK_SECONDS", 0.0)  # otherwise a run ends before it checks for cancellation
        yield


def sentences(job: Job, reference: str) -> list[Sentence]:
    return [sentence for batch in job.corpus(reference).batches() for sentence in batch]


def pretrain(config: PretrainConfig, job: Job) -> PretrainResult:
    job.context.check()
    ids = {sentence.id for reference in config.corpora for sentence in sentences(job, reference)}
    held = {
        sentence.id
        for reference in (config.general, config.heldout_task)
        if reference
        for sentence in sentences(job, reference)
    }
    return pretrained(len(ids - held))


def finetune(config: FinetuneConfig, job: Job) -> FinetuneResult:
    """Find each entity with a probability of 0.5 to 0.8, which depends on the options."""
    job.context.check()
    run, splits = job.context.run, {"dev": config.dev}
    splits |= {f"test{i or ''}": reference for i, reference in enumerate(config.test)}
    rows = {split: sentences(job, reference) for split, reference in splits.items()}
    types = sorted(set().union(*(job.corpus(reference).types for reference in (config.train, *splits.values()))))
    options = config.model_dump(mode="json", exclude={"seeds", "test", "dev"})
    if is_run_id(config.init):  # ids contain the time, but equal options must give equal results in every home
        before = RunStore(job.home).get(config.init).manifest.config
        options["init"] = {name: before[name] for name in ("corpora", "seed") if name in before}
    number = zlib.crc32(json.dumps(options, sort_keys=True).encode())
    n = len(job.corpus(config.train))
    training = config.training(n).planned(n)
    skill, outcomes = 0.5 + number % 1000 / 3333, []
    tables: list[list[Evaluation]] = [[] for _ in config.test]
    for seed in config.seeds:
        scores: dict[str, SplitScores] = {}
        for at, (split, gold) in enumerate(rows.items()):
            rng = np.random.default_rng([seed, number, at])
            found = [tuple(e for e in sentence.entities or () if rng.random() < skill) for sentence in gold]
            read = [Prediction(entities=entities, confidence=(1.0,) * len(entities)) for entities in found]
            table = evaluate(gold, read, types)
            evaluations.write(run, evaluations.file_suffix(split, seed), table, read)
            scores[split] = split_scores(table)
            if split != "dev":
                tables[at - 1].append(table)
        made = seed_outcome(seed, 3, *scores.values())
        outcomes.append(replace(made, epochs=training.epochs, settings={"batch_size": training.batch_size}))
    model = run.artifacts / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(options))
    return all_seeds(str(model), outcomes, tables)


def difficulty(config: DifficultyConfig, job: Job) -> DifficultyResult:
    """Draw bits of names and contexts from a normal distribution."""
    rng = np.random.default_rng(config.seed)
    found = [
        mention(row, sentence, e, (float(rng.normal(1, 1)), float(rng.normal(1, 1))))
        for row, sentence in enumerate(sentences(job, config.train))
        for e in ordered(sentence)
    ]
    write_mentions(found, job.context.run.artifacts / "mentions.parquet")
    return summary(found, 100, 1, Trained(corpus=config.train, seconds=1.0))
