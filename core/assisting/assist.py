"""`assist`: does borrowing help? A tagger alone, with all of an assisting corpus, with what each threshold keeps of it,
and with as many of its sentences at random as the chosen threshold keeps.

The threshold is chosen on dev; what the test split says of the others is for looking at (Murthy et al. 2018, Fig. 2).
Assisting sentences that dev or test holds are not learnt from. All arms make the same steps on the same primary
batches, with a network of one size, and end together: they differ by what each step adds of the assisting corpus. The
preset `paper` is the protocol of Murthy et al. instead, a sentence a step, of the two corpora in turn; `steps` and
`passes` (over the primary sentences) of each row say how much each was trained.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, cycle
from statistics import mean, stdev
from typing import Literal

from pydantic import field_validator

from core.assisting.assist_result import AssistResult, AssistRow, AssistTable, AssistVerdict, in_words
from core.assisting.drift import Assisted, SharedLabels, random_part
from core.assisting.score import SWEEP, SklConfig, check_trainable
from core.assisting.skl import parse_map
from core.config import option
from core.errors import ConfigError
from core.importing.learnable import learnable
from core.kind import Job, Kind
from core.runs import result as results
from core.runs.parts import Parts
from core.runs.store import RunStore
from core.stats.bootstrap import DRAWS as DRAWN
from core.stats.bootstrap import resample
from core.stats.verdict import Tested, Word, by_holm
from core.stats.welch import welch
from core.tagging import evaluations
from core.tagging import result as taggers
from core.tagging.config import WordVectorOptions
from core.tagging.evaluations import FinetuneResult
from core.tagging.network import MULTILINGUAL

Share = Literal["all", "sub-word"]
DRAWS = 3  # of as many sentences as the threshold keeps, at least; each has a seed's tagger
TO_THE_END = 1000  # epochs, as many as can be asked for


class AssistConfig(WordVectorOptions, SklConfig):
    """Options: corpora, thresholds and networks; the rest of a fine-tuning's options as `finetune` has them."""

    dev: str = option(..., "Dev set of the primary corpus: the threshold is chosen on it.", corpus=True)
    test: str = option(..., "Its labelled test split.", corpus=True)
    thresholds: tuple[float, ...] = option(tuple(map(float, SWEEP)), "What is tried.")
    shares: tuple[Share, ...] = option(
        ("all",), "What both corpora learn together: all, sub-word (the char-CNN alone), or both in turn."
    )
    network: Literal["encoder", "bilstm", "charcnn"] = option(
        "charcnn", "charcnn is that of Murthy et al. 2018; encoder starts from init."
    )
    init: str = option("minilm", "The encoder, where the network is one.")
    preset: Literal["quick", "paper", "custom"] = option(
        "quick", "Settings of every training; paper: the protocol of Murthy et al. 2018, which is no fair comparison."
    )
    seeds: tuple[int, ...] = option((1, 2, 3), "Seeds of every training.")
    hidden: int | None = option(
        None, "LSTM units a direction; None: charcnn 400 in every variant (arm), bilstm 200; paper: 200 alone.", ge=1
    )
    assisting_weight: float = option(
        0.1, "What the mean loss of an assisting batch counts for beside that of a primary one.", gt=0, le=1
    )
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
                " All of the assisting corpus is a variant of its own."
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
    """Train every arm under every share, then compare what dev chose with the other ways."""
    _check(config, job)
    other = learnable(config.assisting, (config.test, config.dev), job)
    options = {**config.model_dump(include=set(SklConfig.model_fields)), "assisting": other.fingerprint}
    child = job.child("skl", **options)
    assisted = Assisted.read(child, job.library)
    limits = {"monolingual": 0.0, **{f"skl:{limit:g}": limit for limit in config.thresholds}, "all": math.inf}
    # Every arm's sentences before the first training: what cannot work fails at once, not after hours.
    shared = {arm: assisted.shared_labels(limit, config.network, job.library) for arm, limit in limits.items() if limit}
    parts = Parts(job.context, [1.0] * (1 + len(config.shares) * (len(shared) + 1)))
    numbers = count()
    parts.next(next(numbers), "monolingual")
    rows = [_row(config, job, "monolingual", 0.0)]
    tables = []
    for share in config.shares:
        for arm, extra in shared.items():
            parts.next(next(numbers), arm)
            rows.append(_row(config, job, arm, limits[arm], (extra,), share=share))
        table = _table(rows, share)
        whole, n = job.corpus(shared["all"].assisting), next(numbers)
        if table.kept < len(whole):
            parts.next(n, "random")
            # At least a draw a seed, for each is trained under one of them in turn.
            draws = range(1, max(DRAWS, len(config.seeds)) + 1)
            extras = [random_part(whole, table.kept, draw, config.network, job.library) for draw in draws]
            rows.append(_row(config, job, "random", math.inf, extras, share=share))
            table = replace(table, random=rows[-1].mean)
        tables.append(table)
    job.context.stage("comparing the variants")
    return AssistResult(rows=rows, tables=_judged(job, tables, rows), skl_run=child.id, of=len(assisted.scores))


def _check(config: AssistConfig, job: Job) -> None:
    """Errors: ConfigError for what no training can do."""
    if config.network == "encoder" and config.shares != ("all",):
        raise ConfigError("shares: an encoder has no char-CNN to share alone; leave it at all, or choose charcnn.")
    if config.preset == "paper" and config.network != "charcnn":
        raise ConfigError(
            f"preset: paper is how Murthy et al. 2018 trained their charcnn, and the network is {config.network}; "
            "choose charcnn, or another preset."
        )
    check_trainable(job.corpus(config.primary), parse_map(config.type_map))


def _row(
    config: AssistConfig,
    job: Job,
    arm: str,
    threshold: float,
    shared: Sequence[SharedLabels] = (),
    *,
    share: str = "none",
) -> AssistRow:
    """One arm's trainings; two thresholds that keep the same sentences are one run.

    shared: nothing for what is primary alone; several are draws, each with a seed of its own.
    """
    given = [_options(config, extra, share) for extra in shared or (None,)]
    if len(given) > 1:
        given = [{**one, "seeds": (seed,)} for one, seed in zip(given, cycle(config.seeds), strict=False)]
    runs = [job.child("finetune", **{**one, "train": config.primary, "test": (config.test,)}) for one in given]
    finished = [results.read(run, FinetuneResult) for run in runs]
    n_primary, kept = len(job.corpus(config.primary)), len(job.corpus(shared[0].assisting)) if shared else 0
    epochs, batch = mean(n for one in finished for n in one.epochs), finished[0].settings["batch_size"]
    # In turn, both corpora are repeated to the larger one's size.
    size = max(n_primary, kept) if config.preset == "paper" else n_primary
    dev = [f1 for one in finished for f1 in one.dev.micro_f1]
    test = [f1 for one in finished if one.test for f1 in one.test.micro_f1]
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
        run=runs[0].id,
        runs=[run.id for run in runs],
        steps=round(epochs * math.ceil(size / batch)) * (2 if shared and config.preset == "paper" else 1),
        passes=round(epochs * size / n_primary, 1),
    )


def _options(config: AssistConfig, shared: SharedLabels | None, share: str) -> dict[str, object]:
    """Options of a fine-tuning, alike for all arms but for what it learns from."""
    names = {"dev", "network", "init", "preset", "seeds", "hidden", "epochs", "batch_size", "learning_rate"}
    options: dict[str, object] = config.model_dump(include=names)
    options |= {name: getattr(config, name) for name in ("vectors", "imported_vectors", "skipgram")}
    if config.preset == "paper":
        options |= {"in_turn": True, "head": "memm"}
    else:
        usual = MULTILINGUAL if config.network == "charcnn" else None
        # No arm ends before another: as many steps for all.
        options |= {"hidden": config.hidden or usual, "patience": TO_THE_END}
    if shared:
        options |= {**shared.options, "share": share, "assisting_weight": config.assisting_weight}
        options |= {name: getattr(config, name) for name in ("assisting_vectors", "imported_assisting_vectors")}
    return options


def _table(rows: Sequence[AssistRow], share: str) -> AssistTable:
    """The threshold that is best on dev (the lowest of several), and its test F1; no verdicts yet."""
    alone = rows[0]
    of_share = [row for row in rows if row.share == share]
    whole = next(row for row in of_share if row.arm == "all")
    # Thresholds rise, and max keeps the first of equals.
    best = max((row for row in of_share if row.arm.startswith("skl:")), key=lambda row: row.dev_mean)
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


def _judged(job: Job, tables: Sequence[AssistTable], rows: Sequence[AssistRow]) -> list[AssistTable]:
    """The tables with what was chosen compared with every other arm; each comparison is one family over the shares."""
    store = RunStore(job.home)
    verdicts: dict[str, dict[str, AssistVerdict]] = {table.share: {} for table in tables}
    for other in ("all", "monolingual", "random"):
        arms = {row.share: [store.get(run) for run in row.finetunes] for row in rows if row.arm == other}
        pairs = {
            table.share: resample(
                evaluations.read(store.get(table.runs["skl"])),
                [one for run in arms.get(table.share, arms.get("none", [])) for one in evaluations.read(run)],
                DRAWN,
                0,
            )
            for table in tables
            if table.share in arms or "none" in arms
        }
        for share, test in by_holm(pairs).items():
            verdicts[share][other] = _verdict(test)
    learnt = {table.share: _learnt(table, store) for table in tables}
    return [
        replace(
            table,
            verdicts={
                other: verdict if learnt[table.share] else replace(verdict, verdict="nothing learnt")
                for other, verdict in verdicts[table.share].items()
            },
        )
        for table in tables
    ]


def _verdict(test: Tested) -> AssistVerdict:
    words: dict[int, Word] = {1: "improves", 0: "no evidence", -1: "hurts"}
    return AssistVerdict(verdict=words[test.sign], delta=test.gap.delta, interval=(test.gap.lo, test.gap.hi))


def _learnt(table: AssistTable, store: RunStore) -> bool:
    """Whether any tagger of any arm learnt anything."""
    runs = [store.get(name) for name in table.runs.values()]
    return any(len(taggers.collapsed_seeds(run)) < len(run.manifest.config["seeds"]) for run in runs)


KIND = Kind(
    "assist",
    AssistConfig,
    run,
    AssistResult,
    title=lambda run: f"{run.corpus(run.config['primary'])} with the help of {run.corpus(run.config['assisting'])}",
    outcome=lambda result, _: in_words(result.tables[0]),
    page="Assisting",
)
