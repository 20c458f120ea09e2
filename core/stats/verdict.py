"""Verdict on each variant, its reason, and what is missing for a clear answer (SOURCES.md, Verdict)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt
from typing import Literal

import numpy as np

from core.results import Evaluation
from core.shown import gain_in_words
from core.stats.bootstrap import DRAWS, Difference, Resampled, resample
from core.stats.sequential import ALPHA

# helped: above `none`, without evidence that the variant is above its control. below control: the variant is below its
# control. nothing learnt: no tagger of any variant is better than chance.
Word = Literal["improves", "helped", "below control", "hurts", "no evidence", "nothing learnt"]
Answer = Literal["yes", "no evidence", "worse"]
Described = Literal["better than none", "worse than none", "no evidence of a difference"]  # reference variants
ANSWERS: Mapping[int, Answer] = {1: "yes", 0: "no evidence", -1: "worse"}  # by the sign of an interval
DESCRIBED: Mapping[int, Described] = {  # by the sign of an interval
    1: "better than none",
    0: "no evidence of a difference",
    -1: "worse than none",
}
POWER = 0.8
WEAK = 0.3  # a plan with less power than this is not proposed without a stronger one
SCALE = 100.0  # points, the range of F1; an interval as wide as this cannot exclude 0
EFFECT = 1.0  # points of F1; usual gain to detect
SEEDS = 5  # seeds per variant for a reliable improvement (SOURCES.md, Seeds)


def is_known(interval: tuple[float, float]) -> bool:
    """Return False if an interval is too wide to display, because of a single seed or two very different seeds."""
    return interval[1] - interval[0] < SCALE


def points(delta: float, interval: tuple[float, float]) -> str:
    """Format a difference with its interval; leave out an interval that is too wide."""
    low, high = interval
    return f"{delta:+z.2f} " + (f"[{low:+z.2f}, {high:+z.2f}]" if is_known(interval) else "(no interval)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on a variant, its reason, and the comparisons that it is based on.

    helped: answer against `none`. chose: answer against its control; None without a control, or with a single
    pre-training, which cannot show the effect of the selection.
    """

    verdict: Word
    why: str
    none: Difference
    random: Difference | None
    helped: Answer
    chose: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A difference, the result of its test (1, -1, 0), and the significance level of the test."""

    gap: Difference
    sign: int
    asked: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlearnt:
    """Number of compared taggers that are no better than chance."""

    taggers: int
    of: int

    def __bool__(self) -> bool:
        return self.taggers > 0

    @property
    def words(self) -> str:
        """Return a clause such as "half of the taggers learnt nothing"."""
        if 2 * self.taggers == self.of:
            return "half of the taggers learnt nothing"
        return f"{self.taggers} of the {self.of} taggers learnt nothing"


LEARNT = Unlearnt(taggers=0, of=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A variant to judge: the evaluations of its seeds, and those of its control, a random selection of equal size.

    without, control: names of `none` and of the control, for sentences. single_pretraining: True if all evaluations use
    one selection and one pre-training, whose variation is then unknown. none: evaluations of this variant's own `none`;
    None: use the `none` of all variants. unit: seeds or replicates. unlearnt: number of taggers that learnt nothing.
    """

    system: Sequence[Evaluation]
    random: Sequence[Evaluation] | None
    without: str = "no pre-training"
    control: str = "a random selection of as many tokens"
    single_pretraining: bool = False
    none: Sequence[Evaluation] | None = None
    unit: str = "seeds"
    unlearnt: Unlearnt = LEARNT


def verdict(
    system: Sequence[Evaluation],
    none: Sequence[Evaluation],
    random: Sequence[Evaluation] | None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Verdict:
    """Judge a single variant. It improves only if it is above `none` and above `random`, a selection of equal size."""
    arms = {"it": Arm(system=system, random=random)}
    return verdicts(arms, none, draws=draws, seed=seed, level=level)["it"]


def verdicts(
    arms: Mapping[str, Arm],
    none: Sequence[Evaluation],
    *,
    claim: str = "",
    bound: float = ALPHA,
    effect: float = EFFECT,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
    same_seeds: bool = False,
) -> dict[str, Verdict]:
    """Return {variant: verdict}; all intervals are at `level`. same_seeds: as for `compare`.

    claim: variant of the planned test, which is not adjusted for the others. bound: significance level of this test,
    against the control if there is one. effect: gain to detect, points, in sentences on what an open verdict lacks.
    The other variants are adjusted by Holm's method over their comparisons with `none`, and separately over those with
    `random`. "Improves" needs both tests. If no variant has an effect, the chance of any "improves" is therefore at
    most 1 - level.
    """
    compared = partial(resample, draws=draws, seed=seed, same_seeds=same_seeds)
    baselines = {name: compared(arm.system, arm.none or none) for name, arm in arms.items()}
    controlled = {name: arm.random for name, arm in arms.items() if arm.random is not None}
    against_none = _tested(baselines, level, {claim: ALPHA if claim in controlled else bound})
    # A separate family: an improvement needs both tests, so neither is adjusted for the other's comparisons.
    pairs = {name: compared(arms[name].system, random) for name, random in controlled.items()}
    against_random = _tested(pairs, level, {claim: bound})
    return {name: _judge(arm, against_none[name], against_random.get(name), effect) for name, arm in arms.items()}


def by_holm(pairs: Mapping[str, Resampled], level: float = 0.95) -> dict[str, Tested]:
    """Test one family of comparisons and return {name: result}; all intervals are at `level`."""
    return _tested(pairs, level, {})


def _tested(pairs: Mapping[str, Resampled], level: float, planned: Mapping[str, float]) -> dict[str, Tested]:
    """Test planned comparisons at their level, and the k-th smallest p of K others at alpha / (K - k + 1) (Holm)."""
    tests = {}
    left, stopped = len(pairs.keys() - planned.keys()), False
    for name, pair in sorted(pairs.items(), key=lambda item: item[1].p):
        gap = pair.difference(level)
        asked = planned.get(name) or (1 - level) / left
        # Check the interval, too, so that the answer never contradicts the interval.
        sign = gap.sign if gap.p <= asked and (name in planned or not stopped) else 0
        tests[name] = Tested(gap=gap, sign=sign, asked=asked)
        if name not in planned:
            stopped = stopped or not sign
            left -= not stopped
    return tests


def _open(test: Tested, gain: str, arm: Arm, effect: float) -> str:
    """Return a sentence on a test that detected nothing."""
    if not test.gap.sign:
        lacks = needed(test.gap, arm.unit, effect, single_pretraining=arm.single_pretraining, unlearnt=arm.unlearnt)
        return f"{gain}: the interval includes 0. {lacks}"
    side = "above" if test.gap.sign > 0 else "below"
    return f"{gain}: {side} 0, but p = {test.gap.p:.3f}; this test's level is {test.asked:.2g}."


def _judge(arm: Arm, against_none: Tested, against_random: Tested | None, effect: float) -> Verdict:
    none, random = against_none.gap, against_random.gap if against_random else None
    helped = against_none.sign
    gain = f"Against {arm.without} {_points(none)}"  # a cell of a spreadsheet must not begin with a sign
    word: Word = "no evidence"
    # A loss needs no control; a gain does, because any text may cause it.
    if helped < 0:
        word, why = "hurts", f"{gain}: the whole interval is below 0."
    elif helped == 0:
        why = _open(against_none, gain, arm, effect)
    elif random is None or against_random is None:
        word = "helped"
        why = (
            f"{gain}: above 0, but without a random baseline the effect of the selection cannot be separated from the "
            "effect of more text; add the variant random."
        )
    elif arm.single_pretraining:
        word = "helped"
        why = (
            f"{gain}: above 0. Against {arm.control} {_points(random)}, but each has one selection and one "
            "pre-training. One of each cannot show that the selection helps; let every seed repeat the whole pipeline."
        )
    elif against_random.sign < 0:
        against = f"against {arm.control} {_points(random)}"
        why = f"{gain}, but {against}: there is no evidence that the selection helps; the control scores higher."
    elif against_random.sign == 0:
        word = "helped"
        against = _open(against_random, f"Against {arm.control} {_points(random)}", arm, effect)
        why = f"{gain}: above 0, but there is no evidence that the selection helps. {against}"
    else:
        word, why = "improves", f"{gain}, and against {arm.control} {_points(random)}: both above 0."
        why += few_seeds(none)
    chose = None if against_random is None or arm.single_pretraining else ANSWERS[against_random.sign]
    if random and chose == "worse" and word != "hurts":
        word = "below control"
        why = why if helped else f"{why} The control scores higher: against {arm.control} {_points(random)}."
    return Verdict(verdict=word, why=why, none=none, random=random, helped=ANSWERS[helped], chose=chose)


def described(gap: Difference, without: str, unit: str) -> tuple[Described, str]:
    """Return the word for the difference of a reference variant to `none`, and the reason.

    without: `none` in words. unit: seeds or replicates of `none`.
    """
    where = {1: "the whole interval is above 0", 0: "the interval includes 0", -1: "the whole interval is below 0"}
    return DESCRIBED[gap.sign], (
        f"Against {without} {_points(gap)}: {where[gap.sign]}. This variant trains nothing, so the interval is over "
        f"the {unit} of none and the test sentences. The planned test does not include this variant, and the "
        "interval is not corrected for the other comparisons."
    )


def few_seeds(gap: Difference) -> str:
    """Return a caution for an improvement from few seeds (SOURCES.md, Seeds), else ""."""
    n = min(len(gap.system), len(gap.other))
    return "" if n >= SEEDS else f" {n} seeds are few: run {SEEDS} or more before you rely on this result."


def _points(gap: Difference) -> str:
    interval = f"[{gap.lo:+z.2f}, {gap.hi:+z.2f}]"
    if min(len(gap.system), len(gap.other)) < 2:
        interval = "(one seed, so no interval)"
    elif not is_known((gap.lo, gap.hi)):
        interval = "(no interval: the seeds differ too much)"
    return f"{gap.delta:+z.2f} points {interval}"


def seeds_needed(sd: float, delta: float, power: float = POWER) -> int:
    """Return seeds per variant to detect `delta` points: n = 2 (z_.975 + z_power)^2 sd^2 / delta^2, at least 2.

    sd: standard deviation of F1 between seeds. At a power of 0.8 this is 15.7 sd^2 / delta^2. It only includes the
    variance of seeds; `needed` also includes the variance of test sentences. Errors: ZeroDivisionError for a delta of
    0.
    """
    from scipy.special import ndtri

    return max(ceil(2 * float(ndtri(0.975) + ndtri(power)) ** 2 * sd**2 / delta**2), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Data that would detect a difference of a given size.

    repetitions: total number of seeds or replicates per variant. sentences: factor for the number of test sentences; 1:
    the present ones are enough. corpora: factor for the number of corpora, as an alternative to more of both.
    """

    repetitions: int
    sentences: float
    corpora: float


def lacking(delta: float, falling: float, fixed: float, n: int, power: float = POWER) -> Lacking:
    """Return the data that would detect `delta`.

    falling: part of the difference's variance that more repetitions than the present n reduce. fixed: the other part.
    Errors: ZeroDivisionError for a delta of 0.
    """
    from scipy.special import ndtri

    allowed = delta**2 / float(ndtri(0.975) + ndtri(power)) ** 2  # largest variance at which `delta` is detected
    repetitions, sentences = n, 1.0
    if fixed < allowed:
        # Ask for at least one more, because the present ones were not enough.
        repetitions = max(ceil(n * falling / (allowed - fixed)), n + 1)
    else:  # divide the allowed variance: repetitions get at most half
        repetitions = n if falling <= allowed / 2 else ceil(2 * n * falling / allowed)
        sentences = fixed / (allowed - min(falling, allowed / 2))
    return Lacking(repetitions=repetitions, sentences=sentences, corpora=(falling + fixed) / allowed)


def has_power(effect: float, falling: float, fixed: float, power: float = POWER) -> bool:
    """Return True if a comparison with these parts of the variance detects a true difference of `effect` points."""
    from scipy.special import ndtri

    return falling + fixed <= effect**2 / float(ndtri(0.975) + ndtri(power)) ** 2


def needed(
    gap: Difference,
    unit: str = "seeds",
    effect: float = EFFECT,
    *,
    single_pretraining: bool = False,
    unlearnt: Unlearnt = LEARNT,
) -> str:
    """Return a sentence on the data that would detect a gain of `effect` points.

    `effect` is the target, not the observed difference: if nothing was detected, that difference is mostly chance.
    If some of the taggers learnt nothing, the sentence asks for longer training and gives no number of repetitions.
    unit: seeds (of taggers), or replicates, each with its own pre-training. single_pretraining: all evaluations use one
    pre-training, so that its variation is unknown and no number can be given.
    """
    n = min(len(gap.system), len(gap.other))
    if unlearnt:
        return f"Train longer first: {unlearnt.words}."
    if n < 2:
        return "One seed does not show the spread between seeds; run at least 3, better 5."
    if single_pretraining:
        return (
            "More pre-trainings are needed. With one, the variation between pre-trainings stays unknown, however many "
            "taggers or test sentences there are. Let every seed repeat the whole pipeline."
        )
    falling, fixed = gap.se_seeds**2 + gap.se_both**2, gap.se_sentences**2 - gap.se_both**2
    if gap.hi < effect or has_power(effect, falling, fixed):
        why = "the interval ends below it" if gap.hi < effect else "this much data would have detected it"
        return f"A true gain of {gain_in_words(effect)} is unlikely: {why}."
    lacks = lacking(effect, falling, fixed, n)
    if lacks.sentences == 1:
        sd = sqrt((np.var(gap.system, ddof=1) + np.var(gap.other, ddof=1)) / 2)
        if gap.paired:  # effects that both share, such as a seed or a half and its labels, cancel out
            sd = sqrt(np.var(np.subtract(gap.system, gap.other), ddof=1) / 2)
        # Give no number here: the finding (`experiment/words.py`) gives one, from all taggers on these labels.
        return (
            f"More {unit} are needed: {n} {unit} per variant, which differ by {sd:.2f} points (sd), cannot detect a "
            f"true gain of {gain_in_words(effect)}."
        )
    more = lacks.repetitions
    sentences = ceil(gap.n_sentences * lacks.sentences / 100) * 100
    more_runs = "" if more == n else f", with about {more:,} {unit} per variant"
    return (
        f"More test sentences are needed: {gap.n_sentences:,} test sentences are too few to detect a true gain of "
        f"{gain_in_words(effect)}. About {sentences:,} would be enough{more_runs}; so would {gap.n_sentences:,} on "
        f"each of {ceil(lacks.corpora):,} corpora."
    )
