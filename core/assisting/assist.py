"""`assist`: test if sentences of an assisting corpus improve a tagger that is trained on the primary corpus.

One variant (arm) uses no assisting sentences and one uses all. Each threshold has a variant that uses the sentences
that the threshold keeps. The random variant draws as many sentences as the chosen threshold keeps. The threshold is
chosen on the dev set; test F1 of the other thresholds is only shown (Murthy et al. 2018, Fig. 2). Assisting sentences
that also occur in the dev or test set are left out.

All variants train for the same number of steps on the same primary batches, with networks of equal size and without
early stopping. They differ only in the assisting sentences that each step adds. The preset `paper` follows Murthy et
al.: each step trains on one sentence, from the two corpora in turn. The fields `steps` and `passes` of a result row
show how long the variant trained.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Literal

from pydantic import field_validator

from core.assisting.skl import SWEEP, Assisted, SharedLabels, SklConfig, check_trainable, parse_map, random_part
from core.config import option
from core.errors import ConfigError
from core.importing.audit import learnable
from core.kind import Job, Kind
from core.runs import result as results
from core.runs.context import Parts
from core.runs.store import RunStore
from core.shown import count, listed
from core.stats.bootstrap import DRAWS as DRAWN
from core.stats.bootstrap import resample
from core.stats.verdict import Tested, Word, by_holm
from core.stats.welch import Welch, welch
from core.tagging import evaluations
from core.tagging import result as taggers
from core.tagging.config import WordVectorOptions, check_seeds
from core.tagging.evaluations import FinetuneResult
from core.tagging.network import MULTILINGUAL

Share = Literal["all", "sub-word"]
# Minimum number of random draws. Each draw trains with one seed.
DRAWS = 3
# Patience in epochs. It equals the highest value of the option `epochs`, so that training never stops early.
TO_THE_END = 1000


class AssistConfig(WordVectorOptions, SklConfig):
    """Options of an `assist` run: corpora, thresholds and networks, and some options of `finetune`."""

    dev: str = option(..., "Dev set of the primary corpus; the threshold is chosen on it.", corpus=True)
    test: str = option(..., "Test set of the primary corpus.", corpus=True)
    thresholds: tuple[float, ...] = option(tuple(map(float, SWEEP)), "Thresholds to try.")
    shares: tuple[Share, ...] = option(
        ("all",), "Layers that both corpora share: all, or sub-word (the char-CNN only); give both to compare them."
    )
    network: Literal["encoder", "bilstm", "charcnn"] = option(
        "charcnn", "Network. charcnn: the network of Murthy et al. 2018. encoder: starts from `init`."
    )
    init: str = option("minilm", "Encoder to start from, if `network` is encoder.")
    preset: Literal["quick", "paper", "custom"] = option(
        "quick", "Training settings. paper: as Murthy et al. 2018; variants then train for different numbers of steps."
    )
    seeds: tuple[int, ...] = option((1, 2, 3), "Seeds; every variant trains one tagger per seed.")
    hidden: int | None = option(
        None,
        "LSTM units per direction. None: 400 for charcnn, 200 for bilstm; in preset paper, 200 for the primary "
        "corpus alone.",
        ge=1,
    )
    assisting_weight: float = option(
        0.1, "Weight of the mean loss of an assisting batch, relative to a primary batch.", gt=0, le=1
    )
    epochs: int | None = option(None, "Maximum number of epochs. None: the value of the preset.", ge=1, le=1000)
    batch_size: int | None = option(
        None, "Batch size of an optimizer step. None: the value of the preset.", unit="sentences", ge=1, le=4096
    )
    learning_rate: float | None = option(None, "Initial learning rate. None: the value of the preset.", gt=0, le=1)

    @field_validator("thresholds")
    @classmethod
    def _thresholds(cls, thresholds: tuple[float, ...]) -> tuple[float, ...]:
        """Return the thresholds sorted, without duplicates. Errors: ConfigError unless all are above 0."""
        if not thresholds or not all(0 < threshold < math.inf for threshold in thresholds):
            raise ConfigError(
                f"thresholds: {thresholds} must be one or more numbers above 0; give for example 1 2 3."
                " A tagger with the whole assisting corpus is always trained too."
            )
        return tuple(sorted(set(thresholds)))

    @field_validator("shares")
    @classmethod
    def _shares(cls, shares: tuple[Share, ...]) -> tuple[Share, ...]:
        """Return the shares without duplicates. Errors: ConfigError if none is given."""
        if not shares:
            raise ConfigError("shares: give at least one, all or sub-word.")
        return tuple(dict.fromkeys(shares))

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        return check_seeds(seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistRow:
    """One variant (`monolingual`, `skl:<threshold>`, `random` or `all`) with one share, and its F1 in percent.

    share: layers that both corpora share; `none` for `monolingual`. kept: number of assisting sentences. threshold: 0
    for `monolingual`, None for `all` and `random`. dev, test: F1 per seed. dev_mean: mean dev F1. mean, sd: mean and
    standard deviation of test F1; sd is None for one seed. runs: ids of all `finetune` runs. run: the first of `runs`.
    steps: number of optimizer steps. passes: number of passes over the primary sentences.
    """

    arm: str
    share: str
    kept: int
    threshold: float | None
    dev: Sequence[float]
    test: Sequence[float]
    dev_mean: float
    mean: float
    sd: float | None
    run: str
    steps: int
    passes: float
    runs: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistVerdict:
    """Comparison of the chosen threshold with another variant, over seeds and test sentences.

    delta: difference in F1 points. interval: 95% interval of `delta`. verdict: conclusion after Holm's correction over
    all shares.
    """

    verdict: Word
    delta: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistTable:
    """The threshold chosen on the dev set for one share, and mean test F1 of the variants, in percent.

    kept: number of assisting sentences that the threshold keeps. random: F1 with the same number of random assisting
    sentences; None if the threshold keeps all. against_all, against_monolingual: Welch's test over seeds, None if it is
    not possible. runs: {`skl`, `all` or `monolingual`: id of the first `finetune` run}. verdicts: {other variant:
    comparison}.
    """

    share: str
    threshold: float
    kept: int
    monolingual: float
    all: float
    skl: float
    against_all: Welch | None
    against_monolingual: Welch | None
    runs: Mapping[str, str]
    verdicts: Mapping[str, AssistVerdict]
    random: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistResult:
    """Result of an `assist` run. tables: one per share. skl_run: id of the run that scored the assisting sentences.

    of: number of sentences in the assisting corpus.
    """

    rows: Sequence[AssistRow]
    tables: Sequence[AssistTable]
    skl_run: str
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """F1 per seed at one threshold, in percent.

    threshold: 0 means the primary corpus alone, and the largest threshold, at least 10, the whole assisting corpus.
    split: set that F1 was measured on.
    """

    threshold: float
    split: Literal["dev", "test"]
    f1: Sequence[float]


def run(config: AssistConfig, job: Job) -> AssistResult:
    """Train every variant with every share, then compare the threshold chosen on dev with the other variants."""
    _check(config, job)
    other = learnable(config.assisting, (config.test, config.dev), job)
    options = {**config.model_dump(include=set(SklConfig.model_fields)), "assisting": other.fingerprint}
    child = job.child("skl", **options)
    assisted = Assisted.read(child, job.library)
    limits = {"monolingual": 0.0, **{f"skl:{limit:g}": limit for limit in config.thresholds}, "all": math.inf}
    # Prepare the data of all variants before the first training, so that errors appear at once and not after hours.
    shared = {arm: assisted.shared_labels(limit, config.network, job.library) for arm, limit in limits.items() if limit}
    parts = Parts(job.context, [1.0] * (1 + len(config.shares) * (len(shared) + 1)))
    numbers = itertools.count()
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
            # Each draw trains with one seed, and the seeds are used in turn. So make at least one draw per seed.
            draws = range(1, max(DRAWS, len(config.seeds)) + 1)
            extras = [random_part(whole, table.kept, draw, config.network, job.library) for draw in draws]
            rows.append(_row(config, job, "random", math.inf, extras, share=share))
            table = replace(table, random=rows[-1].mean)
        tables.append(table)
    job.context.stage("comparing the variants")
    return AssistResult(rows=rows, tables=_judged(job, tables, rows), skl_run=child.id, of=len(assisted.scores))


def _check(config: AssistConfig, job: Job) -> None:
    """Check the options before anything is trained. Errors: ConfigError."""
    if config.network == "encoder" and config.shares != ("all",):
        raise ConfigError("shares: an encoder has no char-CNN to share alone; use all, or the network charcnn.")
    if config.preset == "paper" and config.network != "charcnn":
        raise ConfigError(
            f"preset: paper trains the charcnn of Murthy et al. 2018, and the network is {config.network}; "
            "choose the network charcnn, or another preset."
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
    """Train one variant and return its F1. Thresholds that keep the same sentences use the same run.

    shared: sets of assisting sentences; () to train on the primary corpus alone. The variant `random` has one set per
    random draw, and trains on each set with one seed. Every other variant has one set.
    """
    given = [_options(config, extra, share) for extra in shared or (None,)]
    if len(given) > 1:
        given = [{**one, "seeds": (seed,)} for one, seed in zip(given, itertools.cycle(config.seeds), strict=False)]
    runs = [job.child("finetune", **{**one, "train": config.primary, "test": (config.test,)}) for one in given]
    finished = [results.read(run, FinetuneResult) for run in runs]
    n_primary, kept = len(job.corpus(config.primary)), len(job.corpus(shared[0].assisting)) if shared else 0
    epochs, batch = mean(n for one in finished for n in one.epochs), finished[0].settings["batch_size"]
    # With the preset `paper`, the smaller corpus is repeated until it is as large as the larger one.
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
    """Return the `finetune` options of a variant. Variants differ only in the training data."""
    names = {"dev", "network", "init", "preset", "seeds", "hidden", "epochs", "batch_size", "learning_rate"}
    options: dict[str, object] = config.model_dump(include=names)
    options |= {name: getattr(config, name) for name in ("vectors", "imported_vectors", "skipgram")}
    if config.preset == "paper":
        options |= {"in_turn": True, "head": "memm"}
    else:
        usual = MULTILINGUAL if config.network == "charcnn" else None
        # Turn early stopping off, so that all variants take the same number of steps.
        options |= {"hidden": config.hidden or usual, "patience": TO_THE_END}
    if shared:
        options |= {**shared.options, "share": share, "assisting_weight": config.assisting_weight}
        options |= {name: getattr(config, name) for name in ("assisting_vectors", "imported_assisting_vectors")}
    return options


def _table(rows: Sequence[AssistRow], share: str) -> AssistTable:
    """Return the threshold with the best dev F1 (the lowest in a tie) and its test F1. Verdicts are added later."""
    alone = rows[0]
    of_share = [row for row in rows if row.share == share]
    whole = next(row for row in of_share if row.arm == "all")
    # `max` returns the lowest threshold in a tie, because thresholds are sorted.
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
    """Return the tables with verdicts: the chosen threshold compared with each other variant.

    Each comparison is made once per share (layers that both corpora share). Holm's correction counts the shares.
    """
    store = RunStore(job.home)
    verdicts: dict[str, dict[str, AssistVerdict]] = {table.share: {} for table in tables}
    for other in ("all", "monolingual", "random"):
        arms = {row.share: [store.get(run) for run in row.runs] for row in rows if row.arm == other}
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
    """Return True if any tagger of the runs in `table.runs` did not collapse.

    A collapsed tagger is no better than chance on the dev set (`collapsed_seeds`).
    """
    runs = [store.get(name) for name in table.runs.values()]
    return any(len(taggers.collapsed_seeds(run)) < len(run.manifest.config["seeds"]) for run in runs)


def points(rows: Sequence[AssistRow], share: str) -> list[SweepPoint]:
    """Return F1 at each threshold with one share, and F1 of the primary corpus alone, as points of the figure."""
    points = []
    # In bits, an SKL and a threshold may be above 10.
    highest = max(row.threshold or 0.0 for row in rows)
    whole = 10.0 if highest < 10 else highest + 1
    for row in rows:
        if row.share in (share, "none") and row.arm != "random":
            threshold = whole if row.threshold is None else row.threshold
            points += [SweepPoint(threshold=threshold, split="dev", f1=row.dev)]
            points += [SweepPoint(threshold=threshold, split="test", f1=row.test)]
    return points


_SHARED = {"all": "With all layers shared", "sub-word": "With only the char-CNN shared"}
_VERDICTS: dict[Word, str] = {
    "improves": "it helps",
    "no evidence": "no evidence of a difference",
    "hurts": "it hurts",
    "nothing learnt": "no tagger learnt anything, so there is no result",
}


def in_words(table: AssistTable) -> str:
    """Return sentences on the result for one share (layers that both corpora share)."""
    comparisons = []
    for arm, name, over_seeds in (
        ("random", "as many random sentences", None),
        ("all", "all assisting sentences", table.against_all),
        ("monolingual", "no assisting sentences", table.against_monolingual),
    ):
        if verdict := table.verdicts.get(arm):
            chance = f"; Welch's test: p = {over_seeds.p:.2g}" if over_seeds else ""
            comparisons.append(f"{verdict.delta:+z.2f} against {name} ({_VERDICTS[verdict.verdict]}{chance})")
    return (
        f"{_SHARED[table.share]}, the threshold with the best dev F1 is {table.threshold:g}. It keeps "
        f"{count(table.kept, 'sentence')}. Test F1 is {table.skl:.2f}: {listed(comparisons)}."
    )


KIND = Kind(
    "assist",
    AssistConfig,
    run,
    AssistResult,
    title=lambda run: f"Test if {run.corpus(run.config['assisting'])} helps {run.corpus(run.config['primary'])}",
    outcome=lambda result, _: in_words(result.tables[0]),
    page="Assisting",
)
