"""Find the variant of an experiment that gains most points of F1 per minute, and describe it in a sentence.

Each variant has a confidence interval of its gain over `none`, corrected for the number of variants (Bonferroni). It
also has two costs beyond those of `none`: machine time and a person's time. The two costs are never added up, because
only the user knows what a minute of work is worth.

A variant is the cheapest in machine time, or in a person's time, if two conditions hold. Its interval is above 0. Its
highest cost per point, at the lower end of its interval, is below the lowest cost per point of every other variant. A
variant is the cheapest overall if it is the cheapest in machine time and costs a person no more per point than any
other variant. If different variants are the cheapest in machine time and in a person's time, the sentence names both.

If all variants have equal gains and costs, none of them is the cheapest. One is then named only if an interval misses
the true gain, which happens in at most 5% of experiments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from core.experiment.arms import DICTIONARY, ENCODER, NAMES, NONE, RANDOM, find
from core.experiment.more_labels import gain
from core.experiment.reference import KINDS
from core.experiment.result import ArmRow, Cheapest, ExperimentResult, MoreLabels, nothing_learnt, tables
from core.experiment.words import line_name
from core.runs.store import RunStore
from core.shown import duration
from core.stats.bootstrap import Difference, compare, compare_line
from core.stats.pooled import Estimate

LEVEL = 0.95
# Lower limit of a variant's machine time in seconds: shorter times differ by chance.
LEAST = 60.0
# Forecasts multiply the number of replicates by at most this factor.
MOST_TIMES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A variant with its gain over `none` and its cost.

    lo, hi: confidence interval of the gain in points of F1, corrected for the number of variants.
    seconds: machine time to use the variant once, minus that of `none`; at least LEAST.
    person_seconds: time in seconds that a person must work for the variant.
    estimate: the gain, and the components of its variance.
    """

    name: str
    lo: float
    hi: float
    seconds: float
    person_seconds: float = 0.0
    estimate: Estimate

    @property
    def gain(self) -> float:
        """Gain over `none` in points of F1."""
        return self.estimate.delta

    def best(self, cost: "Cost") -> float:
        """Return the cost in seconds per point at the upper end of the interval; inf if that end is not above 0."""
        return cost(self) / self.hi if self.hi > 0 else inf

    def worst(self, cost: "Cost") -> float:
        """Return the cost in seconds per point at the lower end of the interval; inf if that end is not above 0."""
        return cost(self) / self.lo if self.lo > 0 else inf

    def words(self, ways: Sequence["Way"]) -> str:
        """Return name, gain and machine time in words; a person's time too, if one of the variants `ways` takes any."""
        machine = "less than a minute" if self.seconds <= LEAST else duration(self.seconds)
        person = f" and {duration(self.person_seconds) if self.person_seconds else 'none'} of your time"
        interval = f"{self.gain:+z.1f} points [{self.lo:+z.1f}, {self.hi:+z.1f}]"
        return f"{self.name} ({interval} in {machine} of machine time{person * _asks(ways)})"

    def repeated(self, times: int) -> "Way":
        """Return a copy with the interval that is expected if there are `times` times as many replicates.

        The gain is assumed to stay the same.
        """
        one = self.estimate
        shrunk = sqrt((one.falling / times + one.fixed) / max(one.falling + one.fixed, 1e-12))
        lo, hi = self.gain - (self.gain - self.lo) * shrunk, self.gain + (self.hi - self.gain) * shrunk
        return replace(self, lo=lo, hi=hi)


Cost = Callable[[Way], float]


def by_machine(way: Way) -> float:
    """Return the variant's machine time in seconds."""
    return way.seconds


def by_person(way: Way) -> float:
    """Return the time that a person must work for the variant, in seconds."""
    return way.person_seconds


def winner(ways: Sequence[Way], cost: Cost = by_machine) -> Way | None:
    """Return the variant whose highest cost per point is below the lowest cost per point of all others, or None.

    cost: function that returns the cost of a variant in seconds.
    """
    for way in ways:
        if way.worst(cost) < _least(ways, way, cost):
            return way
    return None


def _least(ways: Sequence[Way], way: Way, cost: Cost) -> float:
    """Return the lowest cost per point, in seconds, of all variants except `way`; inf if there are no others."""
    return min((other.best(cost) for other in ways if other is not way), default=inf)


def found(ways: Sequence[Way], missing: Sequence[str] = ()) -> Cheapest:
    """Find the cheapest of the variants and describe it in sentences.

    missing: kinds of variants that were not compared, in words.
    """
    machine, person = winner(ways), winner(ways, by_person)
    gains = any(way.lo > 0 for way in ways)
    unknown = "" if _asks(ways) or not gains else " No variant here takes any of your time."
    unknown += f" Not compared here: {_listed(missing)}." if missing else ""
    if machine and machine.worst(by_person) <= _least(ways, machine, by_person):
        words = f"The cheapest way to gain the next point of F1 is {machine.words(ways)}, because {_because(ways)}."
        return Cheapest(line=machine.name, words=words + unknown)
    times = 0 if machine else _times(ways)
    decide = _decide(times) if times or gains else ""
    if machine and person:
        counts = "Only you can decide how much machine time a minute of your work is worth."
        parts = [_cheapest_in("machine time", machine, ways), _cheapest_in("your own time", person, ways), counts]
    elif machine:
        parts = [
            _cheapest_in("machine time", machine, ways),
            "It is not known which variant takes the least of your own time.",
            _free(ways),
        ]
    elif person:
        parts = [
            _cheapest_in("your own time", person, ways),
            "It is not known which variant takes the least machine time.",
            decide,
        ]
    else:
        parts = [_open(ways), decide]
    return Cheapest(
        line="",
        words=" ".join(filter(None, parts)) + unknown,
        by_machine=machine.name if machine else "",
        by_person=person.name if person else "",
        times=times,
    )


def _because(ways: Sequence[Way]) -> str:
    if len(ways) == 1:
        return "it is the only variant besides none"
    if not _asks(ways):
        return "every other variant here costs more per point, even at the upper end of its interval"
    return (
        "every other variant here costs more machine time per point, even at the upper end of its interval, and none "
        "costs less of your time"
    )


def _asks(ways: Sequence[Way]) -> bool:
    return any(way.person_seconds for way in ways)


def _cheapest_in(whose: str, way: Way, ways: Sequence[Way]) -> str:
    return f"In {whose}, the cheapest way to gain the next point of F1 is {way.words(ways)}."


def _free(ways: Sequence[Way]) -> str:
    """Return a sentence that lists the variants that cost no person's time and whose interval extends above 0.

    Return "" if there are none.
    """
    names = [way.name for way in ways if way.hi > 0 and not way.person_seconds]
    return f"These variants take none of your time and may gain: {_listed(names)}." if names else ""


def _open(ways: Sequence[Way]) -> str:
    gaining = sorted((way for way in ways if way.lo > 0), key=lambda way: way.worst(by_machine))
    if gaining:
        shown = _listed([way.words(ways) for way in gaining])
        return f"It is not known which variant gains the next point of F1 at the lowest cost. Shown to gain: {shown}."
    unknown = "The cheapest way to gain the next point of F1 is unknown"
    if len(ways) == 1:
        return f"{unknown}, because the only variant besides none is not shown to gain."
    # The verdict on a single variant needs less evidence, so "no variant is shown to gain" could contradict it.
    return (
        f"{unknown}. Comparing {len(ways):,} variants at once needs more evidence than comparing a single one, and no "
        "variant has enough."
    )


def _times(ways: Sequence[Way]) -> int:
    """Return the factor by which replicates must be increased to find the cheapest variant in machine time.

    The gains are assumed to stay the same. Return 0 if even MOST_TIMES is too small.
    """
    return next((n for n in range(2, MOST_TIMES + 1) if winner([way.repeated(n) for way in ways])), 0)


def _decide(times: int) -> str:
    if times:
        return f"At these gains, about {times} times as many replicates would be enough to find the cheapest variant."
    return (
        f"At these gains, even {MOST_TIMES} times as many replicates would not be enough to find the cheapest variant."
    )


def cheapest(board: ExperimentResult, store: RunStore) -> Cheapest | None:
    """Return the cheapest variant of a finished experiment.

    Return None if no tagger learnt anything, or if there is no variant except `none`.

    Controls are left out, except random text, because a user may want to pre-train on random text. Variants that were
    not tested are left out, because nothing is concluded from their difference. Errors: CorpusError; RunError if an
    evaluation is missing.
    """
    rows = {(row.arm, row.budget): row for row in board.leaderboard}
    none = rows.get((NONE, ""))
    others = [row for row in board.leaderboard if row is not none and _is_way(row)]
    estimated = [line for line in board.more_labels if line.estimate]
    lines = len(others) + len(estimated)
    if none is None or nothing_learnt(board.leaderboard) or not lines:
        return None
    level = 1 - (1 - LEVEL) / lines
    baseline, usual, ways = tables(none, store), none.seconds or 0.0, list[Way]()
    for row in others:
        own = tables(row, store)
        gap = compare_line(own, baseline) if row.reference else compare(own, baseline, same_seeds=True)
        # A reference variant trains no tagger, so it may take less time than `none`; `_way` raises its cost to LEAST.
        ways.append(_way(line_name(row), gap, (row.seconds or 0.0) - usual, level, row.person_seconds))
    ways += [way for line in estimated if (way := _of_labels(line, none, store, level))]
    return found(ways, _missing(others, board.more_labels))


def _is_way(row: ArmRow) -> bool:
    if row.verdict == "not tested":
        return False
    plain, _, encoder = row.arm.partition(f" {ENCODER}")
    return bool(row.reference) or find(plain).judged or plain == RANDOM or bool(encoder and plain == NONE)


def _way(name: str, gap: Difference, seconds: float, level: float, person_seconds: float = 0.0) -> Way:
    from scipy.special import stdtrit  # imported here because it takes a second to load

    estimate, half = Estimate.of(gap), 100.0
    if gap.dof > 0:
        half = sqrt(estimate.falling + estimate.fixed) * float(stdtrit(estimate.dof, (1 + level) / 2))
    return Way(
        name=name,
        lo=max(gap.delta - half, -100.0),
        hi=min(gap.delta + half, 100.0),
        seconds=max(seconds, LEAST),
        person_seconds=person_seconds,
        estimate=estimate,
    )


def _of_labels(line: MoreLabels, none: ArmRow, store: RunStore, level: float) -> Way | None:
    """Return the estimate `labels:+N` as a variant; None if its confidence interval cannot be computed.

    The training time is assumed to grow in proportion to the number of labelled sentences.
    """
    drawn = gain(line, [store.get(run) for run in none.finetunes], none.taggers, store)
    if isinstance(drawn, str) or line.estimate is None:
        return None
    lo, hi = drawn.gain_interval(level)
    return Way(
        name=line.arm,
        lo=max(lo, -100.0),
        hi=min(hi, 100.0),
        seconds=max((none.seconds or 0.0) * line.more / line.sentences, LEAST),
        person_seconds=line.person_seconds,
        estimate=line.estimate,
    )


def _missing(others: Sequence[ArmRow], labels: Sequence[MoreLabels]) -> list[str]:
    """Return the kinds of variants that the experiment does not contain, in words.

    others: variants of the experiment. labels: its estimates `labels:+N`, including those that could not be computed.
    """
    names = [row.arm for row in others]
    borrowed = any(arm.first or arm.assisting for arm in (find(name.partition(f" {ENCODER}")[0]) for name in names))
    unknown = "more labels (which could not be estimated)" if labels else "more labels"
    missing = [] if any(line.estimate for line in labels) else [unknown]
    missing += [] if borrowed else ["labels of another corpus"]
    missing += [] if any(row.pretrain_run for row in others) else ["pre-training"]
    found = {row.reference for row in others} | ({DICTIONARY} if NAMES in names else set())
    missing += [line.noun for kind, line in KINDS.items() if kind not in found]
    missing += [] if any(f" {ENCODER}" in name for name in names) else ["another encoder"]
    return missing


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
