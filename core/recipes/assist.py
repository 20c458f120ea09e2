"""`assist`: does borrowing help? A tagger alone, with all of an assisting corpus, and with what each threshold keeps.

The threshold is chosen on dev; what the test split says of the others is for looking at (Murthy et al. 2018, Fig. 2).
Assisting sentences that dev or test holds are not learnt from. As there, the primary sentences are repeated to the
number of assisting ones, so an arm that borrows more takes more steps an epoch, and a preset that limits steps gives
it fewer epochs; `steps` and `passes` (over the primary sentences) of each row say how much each was trained.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from statistics import mean, stdev
from typing import Literal

from pydantic import field_validator

from core.artifacts import evaluations, taggers
from core.artifacts import result as results
from core.artifacts.assist import AssistResult, AssistRow, AssistTable, AssistVerdict
from core.artifacts.drift import Assisted, Lent
from core.artifacts.evaluations import FinetuneResult
from core.config import option
from core.errors import ConfigError
from core.measures.skl import parse_map
from core.recipes.base import Job
from core.recipes.parts.learnable import learnable
from core.recipes.skl import SWEEP, SklConfig, check_trainable
from core.runs.parts import Parts
from core.runs.store import RunStore
from core.stats.bootstrap import compare
from core.stats.verdict import Word
from core.stats.welch import welch

Share = Literal["all", "sub-word"]


class AssistConfig(SklConfig):
    """Which corpora, thresholds and networks; the rest of a fine-tuning's options as `finetune` has them."""

    dev: str = option(..., "Labelled dev split of the primary corpus: the threshold is chosen on it.", corpus=True)
    test: str = option(..., "Its labelled test split.", corpus=True)
    thresholds: tuple[float, ...] = option(tuple(map(float, SWEEP)), "What is tried.")
    shares: tuple[Share, ...] = option(
        ("all",), "What both corpora learn together: all, sub-word (the char-CNN alone), or both in turn."
    )
    network: Literal["encoder", "bilstm", "charcnn"] = option(
        "charcnn", "charcnn is that of Murthy et al. 2018; encoder starts from init."
    )
    init: str = option("minilm", "The encoder, where the network is one.")
    preset: Literal["quick", "paper", "custom"] = option("quick", "Settings of every training.")
    seeds: tuple[int, ...] = option((1, 2, 3), "Seeds of every training.")
    hidden: int | None = option(
        None, "LSTM units a direction, the same for every arm; None: 200 alone and 400 with help.", ge=1
    )
    vectors: str = option("", "A corpus whose skip-gram vectors words begin with.", corpus=True)
    assisting_weight: float = option(0.1, "What the loss of an assisting sentence counts for.", gt=0, le=1)
    epochs: int | None = option(None, "At most so many; None here and below: as the preset says.", ge=1, le=1000)
    batch_size: int | None = option(None, "An optimizer step.", unit="sentences", ge=1, le=4096)
    learning_rate: float | None = option(None, "The first one.", gt=0, le=1)

    @field_validator("thresholds")
    @classmethod
    def _thresholds(cls, thresholds: tuple[float, ...]) -> tuple[float, ...]:
        """Rising, each once. Errors: ConfigError."""
        if not thresholds or not all(0 < threshold < math.inf for threshold in thresholds):
            raise ConfigError(
                f"thresholds: {thresholds} must be numbers above 0, at least one; give for example 1 2 3."
                " All of the assisting corpus is an arm of its own."
            )
        return tuple(sorted(set(thresholds)))

    @field_validator("shares")
    @classmethod
    def _shares(cls, shares: tuple[Share, ...]) -> tuple[Share, ...]:
        """Each once. Errors: ConfigError."""
        if not shares:
            raise ConfigError("shares: give at least one, all or sub-word.")
        return tuple(dict.fromkeys(shares))


def run(config: AssistConfig, job: Job) -> AssistResult:
    """Train every arm under every share, then compare what dev chose with the two other ways."""
    if config.network == "encoder" and config.shares != ("all",):
        raise ConfigError("shares: an encoder has no char-CNN to share alone; leave it at all, or choose charcnn.")
    check_trainable(job.corpus(config.primary), parse_map(config.type_map))
    other = learnable(config.assisting, (config.test, config.dev), job)
    options = {**config.model_dump(include=set(SklConfig.model_fields)), "assisting": other.fingerprint}
    child = job.child("skl", **options)
    assisted = Assisted.read(child, job.library)
    limits = {"monolingual": 0.0, **{f"skl:{limit:g}": limit for limit in config.thresholds}, "all": math.inf}
    # Every arm's sentences before the first training: what cannot work fails at once, not after hours.
    lent = {arm: assisted.lent(limit, config.network, job.library) for arm, limit in limits.items() if limit}
    parts = Parts(job.context, [1.0] * (1 + len(config.shares) * len(lent)))
    parts.next(0, "monolingual")
    rows = [_row(config, job, "monolingual", 0.0)]
    for i, (share, (arm, extra)) in enumerate(product(config.shares, lent.items()), 1):
        parts.next(i, arm)
        rows.append(_row(config, job, arm, limits[arm], extra, share=share))
    job.context.stage("comparing the arms")
    tables = [
        replace(table, verdicts={name: _verdict(job, table, name) for name in ("all", "monolingual")})
        for table in (_table(rows, share) for share in config.shares)
    ]
    return AssistResult(rows=rows, tables=tables, skl_run=child.id, of=len(assisted.scores))


def _row(
    config: AssistConfig, job: Job, arm: str, threshold: float, lent: Lent | None = None, *, share: str = "none"
) -> AssistRow:
    """One training; two thresholds that keep the same sentences are one run. lent: None for what is primary alone."""
    names = {"dev", "network", "init", "preset", "seeds", "hidden", "vectors", "epochs", "batch_size", "learning_rate"}
    options = {**config.model_dump(include=names), "train": config.primary, "test": (config.test,)}
    if lent:
        options |= {**lent.options, "share": share, "assisting_weight": config.assisting_weight}
    run = job.child("finetune", **options)
    result = results.read(run, FinetuneResult)
    n_primary, kept = len(job.corpus(config.primary)), len(job.corpus(lent.assisting)) if lent else 0
    size, epochs = max(n_primary, kept), mean(result.epochs)
    assert result.test
    dev, test = result.dev.micro_f1, result.test.micro_f1
    return AssistRow(
        arm=arm,
        share=share,
        kept=kept,
        threshold=threshold if math.isfinite(threshold) else None,
        dev=dev,
        test=test,
        dev_mean=mean(dev),
        mean=mean(test),
        sd=stdev(test) if len(test) > 1 else None,
        run=run.id,
        steps=round(epochs * math.ceil((size + kept) / result.settings["batch_size"])),
        passes=round(epochs * size / n_primary, 1),
    )


def _table(rows: Sequence[AssistRow], share: str) -> AssistTable:
    """The threshold that is best on dev (the lowest of several), and its test F1; no verdicts yet."""
    alone = rows[0]
    of_share = [row for row in rows if row.share == share]
    whole = next(row for row in of_share if row.arm == "all")
    best = max((row for row in of_share if row.arm != "all"), key=lambda row: row.dev_mean)
    assert best.threshold is not None
    return AssistTable(
        share=share,
        threshold=best.threshold,
        kept=best.kept,
        monolingual=alone.mean,
        all=whole.mean,
        skl=best.mean,
        against_all=welch(best.test, whole.test),
        against_monolingual=welch(best.test, alone.test),
        runs={"skl": best.run, "all": whole.run, "monolingual": alone.run},
        verdicts={},
    )


def _verdict(job: Job, table: AssistTable, other: str) -> AssistVerdict:
    """Compare what was chosen with another arm; the word is that of a verdict."""
    store = RunStore(job.home)
    difference = compare(*(evaluations.read(store.get(table.runs[arm])) for arm in ("skl", other)))
    words: dict[int, Word] = {1: "improves", 0: "no evidence", -1: "hurts"}
    word = words[difference.sign] if _learnt(table, store) else "nothing learnt"
    return AssistVerdict(verdict=word, delta=difference.delta, interval=(difference.lo, difference.hi))


def _learnt(table: AssistTable, store: RunStore) -> bool:
    """Whether any tagger of any arm learnt anything."""
    runs = [store.get(name) for name in table.runs.values()]
    return any(len(taggers.collapsed_seeds(run)) < len(run.manifest.config["seeds"]) for run in runs)
