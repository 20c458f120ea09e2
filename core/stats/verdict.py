"""Judge each variant, give the reason, and say which data are missing for a clear verdict (SOURCES.md, Verdict)."""

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

# Verdicts. helped: above `none`, the baseline without pre-training, but without evidence that the variant is above its
# control. below control: below its control. nothing learnt: no tagger of any variant is better than chance.
Word = Literal["improves", "helped", "below control", "hurts", "no evidence", "nothing learnt"]
Answer = Literal["yes", "no evidence", "worse"]
# Descriptions of reference variants, which get no verdict.
Described = Literal["better than none", "worse than none", "no evidence of a difference"]
# The keys of both mappings are the sign of an interval: 1 if it is above 0, -1 if below, 0 if it includes 0.
ANSWERS: Mapping[int, Answer] = {1: "yes", 0: "no evidence", -1: "worse"}
DESCRIBED: Mapping[int, Described] = {
    1: "better than none",
    0: "no evidence of a difference",
    -1: "worse than none",
}
POWER = 0.8
# A plan with less power than this is proposed only together with a stronger plan.
WEAK = 0.3
# Range of F1 in points. An interval as wide as this cannot exclude 0.
SCALE = 100.0
# Gain to detect unless the user gives another one, in F1 points.
EFFECT = 1.0
# Number of seeds per variant that a reliable improvement needs (SOURCES.md, Seeds).
SEEDS = 5


def is_known(interval: tuple[float, float]) -> bool:
    """Return False if an interval is too wide to display, because of a single seed or two very different seeds."""
    return interval[1] - interval[0] < SCALE


def points(delta: float, interval: tuple[float, float]) -> str:
    """Format a difference in points with its interval; an interval that is too wide is left out."""
    low, high = interval
    return f"{delta:+z.2f} " + (f"[{low:+z.2f}, {high:+z.2f}]" if is_known(interval) else "(no interval)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on a variant, the reason, and the comparisons that it is based on.

    none, random: difference from the baseline `none`, and from the control. helped: result of the comparison with
    `none`. chose: result of the comparison with the control; None without a control, or with a single pre-training,
    which cannot show the effect of the selection.
    """

    verdict: Word
    why: str
    none: Difference
    random: Difference | None
    helped: Answer
    chose: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A tested difference.

    sign: 1 for a significant gain, -1 for a significant loss, else 0. asked: significance level of the test.
    """

    gap: Difference
    sign: int
    asked: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlearnt:
    """Number of taggers that are no better than chance. of: number of all compared taggers."""

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

    system, random: evaluations of the variant and of its control. without, control: how sentences name `none`, the
    baseline, and the control. single_pretraining: True if all evaluations use one selection and one pre-training, so
    that the variation of these is unknown. none: evaluations of this variant's own baseline; None if it has the
    baseline of all variants. unit: "seeds" or "replicates". unlearnt: number of taggers that learnt nothing.
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
    """Return the verdict on a single variant.

    The verdict is "improves" only if the variant is above both the baseline, `none`, and the control, `random`.
    """
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
    """Return {variant: verdict}.

    claim: variant of the planned test, which is not corrected for the other tests; "" if no test was planned. bound:
    significance level of the planned test, which compares the variant with its control, or with `none` if it has no
    control. effect: gain to detect, in points, for sentences on missing data. level: confidence level of all intervals.
    same_seeds: as for `compare`.

    The other variants are corrected by Holm's method: once over all comparisons with `none`, and separately over all
    comparisons with controls. "improves" needs both tests. If no variant has an effect, the chance of any "improves" is
    therefore at most 1 - level.
    """
    compared = partial(resample, draws=draws, seed=seed, same_seeds=same_seeds)
    baselines = {name: compared(arm.system, arm.none or none) for name, arm in arms.items()}
    controlled = {name: arm.random for name, arm in arms.items() if arm.random is not None}
    against_none = _tested(baselines, level, {claim: ALPHA if claim in controlled else bound})
    # Correct these tests separately: "improves" needs both tests, so neither is corrected for the other.
    pairs = {name: compared(arms[name].system, random) for name, random in controlled.items()}
    against_random = _tested(pairs, level, {claim: bound})
    return {name: _judge(arm, against_none[name], against_random.get(name), effect) for name, arm in arms.items()}


def by_holm(pairs: Mapping[str, Resampled], level: float = 0.95) -> dict[str, Tested]:
    """Test comparisons by Holm's method, and return {name: result} with intervals at `level`."""
    return _tested(pairs, level, {})


def _tested(pairs: Mapping[str, Resampled], level: float, planned: Mapping[str, float]) -> dict[str, Tested]:
    """Test comparisons and return {name: result}.

    planned: {name: significance level} of planned tests. The other K tests use Holm's method: the k-th smallest p-value
    is tested at (1 - level) / (K - k + 1).
    """
    tests = {}
    left, stopped = len(pairs.keys() - planned.keys()), False
    for name, pair in sorted(pairs.items(), key=lambda item: item[1].p):
        gap = pair.difference(level)
        asked = planned.get(name) or (1 - level) / left
        # Check the interval, too, so that the result of the test never contradicts the interval.
        sign = gap.sign if gap.p <= asked and (name in planned or not stopped) else 0
        tests[name] = Tested(gap=gap, sign=sign, asked=asked)
        if name not in planned:
            stopped = stopped or not sign
            left -= not stopped
    return tests


def _open(test: Tested, gain: str, arm: Arm, effect: float) -> str:
    """Return a sentence that says why a test detected nothing.

    gain: the tested difference in words, with which the sentence begins. effect: gain to detect, points.
    """
    if not test.gap.sign:
        lacks = needed(test.gap, arm.unit, effect, single_pretraining=arm.single_pretraining, unlearnt=arm.unlearnt)
        return f"{gain}{': the interval includes 0' * is_known((test.gap.lo, test.gap.hi))}. {lacks}"
    side = "above" if test.gap.sign > 0 else "below"
    return f"{gain}: {side} 0, but p = {test.gap.p:.3f}; this test's level is {test.asked:.2g}."


def _judge(arm: Arm, against_none: Tested, against_random: Tested | None, effect: float) -> Verdict:
    none, random = against_none.gap, against_random.gap if against_random else None
    helped = against_none.sign
    # Begin with a word, because a spreadsheet would run a cell that begins with + or - as a formula.
    gain = f"Against {arm.without} {_points(none)}"
    word: Word = "no evidence"
    # A gain needs a control, because any additional text may cause a gain. A loss needs no control.
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
    """Return how a reference variant compares with `none`, as one of `DESCRIBED`, and the reason as a sentence.

    gap: difference from `none`. without: how the sentence names `none`. unit: "seeds" or "replicates" of `none`.
    """
    against, word = f"Against {without} {_points(gap)}", DESCRIBED[gap.sign]
    if not is_known((gap.lo, gap.hi)):
        return word, f"{against}. This variant trains nothing, and the planned test does not include it."
    where = {1: "the whole interval is above 0", 0: "the interval includes 0", -1: "the whole interval is below 0"}
    return word, (
        f"{against}: {where[gap.sign]}. This variant trains nothing, so its interval only "
        f"includes the variation of the {unit} of none and of the test sentences. The planned test does not include "
        "this variant, and the interval is not corrected for the other comparisons."
    )


def few_seeds(gap: Difference) -> str:
    """Return a sentence that warns of an improvement from few seeds; "" with enough seeds (SOURCES.md, Seeds)."""
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
    """Return the number of seeds per variant that detects a difference of `delta` points, at least 2.

    This is n = 2 (z_.975 + z_power)^2 sd^2 / delta^2, which is 15.7 sd^2 / delta^2 at a power of 0.8. sd: standard
    deviation of F1 between seeds. The formula ignores the variance of test sentences; `needed` includes it. Errors:
    ZeroDivisionError for a delta of 0.
    """
    from scipy.special import ndtri

    return max(ceil(2 * float(ndtri(0.975) + ndtri(power)) ** 2 * sd**2 / delta**2), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """How much data would detect a difference of a given size.

    repetitions: total number of seeds or replicates per variant. sentences: factor by which the number of test
    sentences must grow; 1 if they are enough. corpora: factor by which the number of corpora must grow instead, without
    more repetitions or sentences.
    """

    repetitions: int
    sentences: float
    corpora: float


def lacking(delta: float, falling: float, fixed: float, n: int, power: float = POWER) -> Lacking:
    """Return how much data would detect a difference of `delta` points.

    falling: part of the difference's variance that more repetitions reduce. fixed: the other part. n: present number of
    repetitions. Errors: ZeroDivisionError for a delta of 0.
    """
    from scipy.special import ndtri

    # Largest variance of the difference at which `delta` is detected.
    allowed = delta**2 / float(ndtri(0.975) + ndtri(power)) ** 2
    repetitions, sentences = n, 1.0
    if fixed < allowed:
        # Ask for at least one more repetition, because n were not enough.
        repetitions = max(ceil(n * falling / (allowed - fixed)), n + 1)
    else:  # Both parts must shrink. At most half of `allowed` is for the part that repetitions reduce.
        repetitions = n if falling <= allowed / 2 else ceil(2 * n * falling / allowed)
        sentences = fixed / (allowed - min(falling, allowed / 2))
    return Lacking(repetitions=repetitions, sentences=sentences, corpora=(falling + fixed) / allowed)


def detected(half: float, dof: float, bound: float = 0.05) -> float:
    """Return the smallest gain, in points, that a finished comparison would detect in 80 of 100 repetitions.

    Return 100 at most. Unlike `detectable`, this uses the comparison's own confidence interval. half: half the width of
    the 95% interval. dof: its degrees of freedom. bound: significance level of the test.
    """
    from scipy.special import stdtrit

    if dof <= 0:
        return 100.0
    se = half / stdtrit(dof, 0.975)
    return min(float(se * (stdtrit(dof, 1 - bound / 2) + stdtrit(dof, POWER))), 100.0)


def needed(
    gap: Difference,
    unit: str = "seeds",
    effect: float = EFFECT,
    *,
    single_pretraining: bool = False,
    unlearnt: Unlearnt = LEARNT,
) -> str:
    """Return a sentence on the data that would detect a gain of `effect` points.

    `effect` is a target. The observed difference would not do, because it is mostly chance if nothing was detected.
    unit: "seeds" of taggers, or "replicates", each with its own pre-training. single_pretraining: True if all
    evaluations use one pre-training, so that its variation is unknown and no number can be given. unlearnt: number of
    taggers that learnt nothing; if there are any, the sentence asks for longer training.
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
    if gap.hi < effect or detected((gap.hi - gap.lo) / 2, gap.dof) <= effect:
        why = "the whole interval is below it" if gap.hi < effect else "this much data would have detected it"
        return f"A true gain of {gain_in_words(effect)} is unlikely: {why}."
    lacks = lacking(effect, falling, fixed, n)
    if lacks.sentences == 1:
        sd = sqrt((np.var(gap.system, ddof=1) + np.var(gap.other, ddof=1)) / 2)
        if gap.paired:  # Effects that the two variants of a pair share, such as those of a seed, cancel out.
            sd = sqrt(np.var(np.subtract(gap.system, gap.other), ddof=1) / 2)
        # Give no number of seeds. The finding in `experiment/words.py` gives one, from all taggers on these labels.
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
