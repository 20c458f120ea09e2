"""Whether borrowing helped, as `assist` runs have found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.runs import result
from core.runs.run import Run
from core.shown import count, listed
from core.stats.verdict import Word
from core.stats.welch import Welch


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistRow:
    """One arm (`monolingual`, `skl:<threshold>`, `random`, `all`) and what both corpora share. F1 in percent.

    share: `none` of `monolingual`. kept: assisting sentences. threshold: 0 of `monolingual`, None of `all`, `random`.
    dev, test: one a seed. dev_mean, mean, sd: of dev, of test; sd None for one seed. run: the fine-tuning, of `random`
    the first; runs: all, one a draw, where there are several. steps: of the optimizer. passes: over the primary
    sentences.
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
    runs: Sequence[str] = ()  # results of older versions have none

    @property
    def finetunes(self) -> Sequence[str]:
        """All its fine-tunings."""
        return self.runs or (self.run,)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistVerdict:
    """Verdict on the chosen threshold against another arm, over seeds and test sentences. delta, interval: points of
    F1, at 95%; the verdict by Holm over all shares."""

    verdict: Word
    delta: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistTable:
    """Threshold chosen on dev where `share` is learnt together, its mean test F1, percent, beside the two other ways.

    threshold, kept: what was chosen, and the assisting sentences it keeps. random: as many of them at random; None
    where it keeps all. against_all, against_monolingual: Welch's test over seeds. runs: the fine-tunings, by `skl`,
    `all`, `monolingual`. verdicts: by the other arm, `random` among them where there is one.
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
    random: float | None = None  # results of older versions have none


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistResult:
    """Result of an `assist` run. tables: one a share. skl_run: whose scores. of: assisting sentences in all."""

    rows: Sequence[AssistRow]
    tables: Sequence[AssistTable]
    skl_run: str
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """F1 of every seed, percent, at a threshold: 0 is the primary corpus alone, 10 all of the assisting one."""

    threshold: float
    split: Literal["dev", "test"]
    f1: Sequence[float]


def read(run: Run) -> AssistResult:
    """Result of a finished run. Errors: RunError."""
    return result.read(run, AssistResult)


def points(rows: Sequence[AssistRow], share: str) -> list[SweepPoint]:
    """The points of one share, and of the primary corpus alone."""
    shown = [row for row in rows if row.share in (share, "none") and row.arm != "random"]
    return [
        SweepPoint(threshold=10.0 if row.threshold is None else row.threshold, split=split, f1=f1s)
        for row in shown
        for split, f1s in _by_split(row).items()
    ]


def _by_split(row: AssistRow) -> dict[Literal["dev", "test"], Sequence[float]]:
    return {"dev": row.dev, "test": row.test}


_SHARED = {"all": "With all of the network shared", "sub-word": "With only the spelling of words shared"}
_VERDICTS: dict[Word, str] = {
    "improves": "it helps",
    "no evidence": "no evidence of a difference",
    "hurts": "it hurts",
    "nothing learnt": "no tagger learnt anything, so that says nothing",
}


def in_words(table: AssistTable) -> str:
    """One of an `assist` run's `tables` as a sentence."""
    comparisons = []
    for arm, name, welch in (
        ("random", "as many at random", None),
        ("all", "borrowing all", table.against_all),
        ("monolingual", "borrowing none", table.against_monolingual),
    ):
        if verdict := table.verdicts.get(arm):
            chance = f"; Welch's test: p = {welch.p:.2g}" if welch else ""
            comparisons.append(f"{verdict.delta:+z.2f} beside {name} ({_VERDICTS[verdict.verdict]}{chance})")
    return (
        f"{_SHARED[table.share]}, the dev set chose the threshold {table.threshold:g}, which borrows "
        f"{count(table.kept, 'sentence')}. The test score is {table.skl:.2f}: {listed(comparisons)}."
    )
