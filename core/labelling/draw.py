"""`draw`: random sentences of T_C to label as dev and test sets.

Sentences of a `queue` run are for training only: they are not a random sample, and their suggestions bias the labels.
Scores are valid for the task corpus only if dev and test sentences are drawn at random and labelled without
suggestions.
"""

from collections.abc import Mapping

import numpy as np
from pydantic import model_validator

from core.config import Config, option
from core.errors import ConfigError, CorpusError
from core.importing.audit import Flagging
from core.importing.result import read_audit
from core.kind import About, Job, Kind
from core.labelling.queue import Queued, QueueResult, write
from core.selection.result import withheld_flags
from core.shown import count
from core.stats.draws import uniform

# Options of `queue` runs that make suggestions.
SUGGESTING = {"model", "names", "suggest"}
# Every fourth drawn sentence belongs to the dev set, the others to the test set.
DEV_EACH = 4


class DrawConfig(Config):
    """Options of a `draw` run: the corpora, and the number of sentences to draw."""

    task: str = option(..., "Task corpus (T_C): unlabelled sentences like those to tag.", corpus=True)
    known: tuple[str, ...] = option((), "Labelled corpora, whose sentences are left out.", corpus=True)
    n: int = option(120, "Sentences to label: a quarter for the dev set, the others for the test set.", ge=4, le=2000)
    seed: int = option(0, "Seed of the random sample.", ge=0)

    @model_validator(mode="before")
    @classmethod
    def _without_suggestions(cls, values: object) -> object:
        if isinstance(values, Mapping) and (asked := sorted(SUGGESTING & values.keys())):
            raise ConfigError(
                f"{asked[0]}: dev and test sentences are labelled without suggestions, because accepted suggestions "
                "would make the scores too high; leave the option out, or queue sentences for training (`label next`)."
            )
        return values


def run(config: DrawConfig, job: Job) -> QueueResult:
    """Draw random sentences, except duplicates and sentences that are labelled already.

    Errors: CorpusError if fewer than four sentences are left.
    """
    corpus = job.corpus(config.task)
    found = read_audit(job.child("audit", corpus=config.task, held_out=config.known, **Flagging().model_dump()))
    held_back = np.zeros(len(corpus), dtype=np.bool_)
    for flag in withheld_flags(()):
        held_back |= found.has(flag)
    rows = np.flatnonzero(~held_back)
    if len(rows) < 4:
        raise CorpusError(
            f"{corpus.name}: has {count(len(rows), 'sentence')} left to draw; the others are duplicates, labelled "
            "already, too short or too long. Import a larger task corpus."
        )
    drawn = rows[np.argsort(uniform(rows.astype(np.uint64), seed=config.seed), kind="stable")][: config.n]
    ids = [sentence.id for sentence in corpus.take(drawn)]
    write(
        job.context.run,
        [
            Queued(row=int(row), id=mark, similarity=0.0, uncertainty=0.0, entities=())
            for row, mark in zip(drawn, ids, strict=True)
        ],
    )
    return QueueResult(sentences=len(drawn), of=len(rows), unit="", types=())


def is_dev(place: int) -> bool:
    """Return True if the drawn sentence at position `place` belongs to the dev set.

    It depends only on the position, so a sentence never changes its set.
    """
    return place % DEV_EACH == 0


def _title(run: About) -> str:
    return f"Draw {count(run.config['n'], 'sentence')} of {run.corpus(run.config['task'])} to label"


KIND = Kind(
    "draw",
    DrawConfig,
    run,
    QueueResult,
    title=_title,
    outcome=lambda result, _: f"{count(result.sentences, 'sentence')} to label, drawn at random",
    page="Label",
    opens=True,
    command=("label", "draw"),
)
