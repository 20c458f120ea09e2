"""Which line of an experiment gains most per minute, in a sentence: the cheapest way to the next point.

Each line has an interval of its gain over `none`, corrected for the number of lines (Bonferroni), and a cost: the
minutes that it takes more than `none`. A line is named as the cheapest only if its interval is above 0, and if its cost
per point at the lower end is below the cost per point of every other line at its upper end. If all gains are equal, a
line is therefore named in at most 5% of cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

from core.experiment.arms import DICTIONARY, ENCODER, NAMES, NONE, RANDOM, find
from core.experiment.reference import KINDS
from core.experiment.result import ArmRow, Cheapest, ExperimentResult, nothing_learnt, tables
from core.experiment.words import line_name
from core.runs import durations
from core.runs.store import RunStore
from core.shown import duration
from core.stats.bootstrap import Difference, compare, compare_line
from core.stats.pooled import Estimate

LEVEL = 0.95
LEAST = 60.0  # seconds that a line costs at least: shorter times differ by chance
MOST_TIMES = 16  # times as many replicates that a forecast looks at


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A line: its gain over `none`, points, with an interval that is corrected for the number of lines.

    seconds: of computing, for one training more than `none` takes, at least LEAST. estimate: the gain with the parts of
    its variance.
    """

    name: str
    lo: float
    hi: float
    seconds: float
    estimate: Estimate

    @property
    def gain(self) -> float:
        """The gain, points."""
        return self.estimate.delta

    @property
    def best(self) -> float:
        """Least seconds per point that the interval allows; inf if it allows no gain."""
        return self.seconds / self.hi if self.hi > 0 else inf

    @property
    def worst(self) -> float:
        """Most seconds per point that the interval allows; inf if it allows no gain."""
        return self.seconds / self.lo if self.lo > 0 else inf

    @property
    def words(self) -> str:
        """Name, gain and cost."""
        cost = "less than a minute" if self.seconds <= LEAST else duration(self.seconds)
        return f"{self.name} ({self.gain:+z.1f} points [{self.lo:+z.1f}, {self.hi:+z.1f}] in {cost})"

    def repeated(self, times: int) -> "Way":
        """Return the way as expected with this many times as many replicates and the same gain."""
        one = self.estimate
        shrunk = sqrt((one.falling / times + one.fixed) / max(one.falling + one.fixed, 1e-12))
        return Way(
            name=self.name,
            lo=self.gain - (self.gain - self.lo) * shrunk,
            hi=self.gain + (self.hi - self.gain) * shrunk,
            seconds=self.seconds,
            estimate=one,
        )


def winner(ways: Sequence[Way]) -> Way | None:
    """Return the line that gains more per second than every other; None if the intervals do not show one."""
    for way in ways:
        if way.worst < min((other.best for other in ways if other is not way), default=inf):
            return way
    return None


def found(ways: Sequence[Way], missing: Sequence[str] = ()) -> Cheapest:
    """Return the sentence on the cheapest way to the next point. missing: what was not compared, in words."""
    known = f" Not compared: {_listed(missing)}." if missing else ""
    if first := winner(ways):
        because = (
            "every other line here costs more per point, even at the best end of its interval"
            if len(ways) > 1
            else "it is the only line beside none"
        )
        words = f"The cheapest way to the next point is {first.words} of computing more than none, because {because}."
        return Cheapest(line=first.name, words=words + known)
    gaining = sorted((way for way in ways if way.lo > 0), key=lambda way: way.worst)
    if not gaining:
        among = f"After a correction for {len(ways):,} lines, no line" if len(ways) > 1 else "The line beside none"
        is_not = "is" if len(ways) > 1 else "is not"
        words = f"{among} {is_not} shown to gain over none, so no cheapest way to the next point is named."
        return Cheapest(line="", words=words + known)
    shown = _listed([way.words for way in gaining])
    times = next((n for n in range(2, MOST_TIMES + 1) if winner([way.repeated(n) for way in ways])), None)
    needed = (
        f"about {times} times as many replicates would decide"
        if times
        else f"{MOST_TIMES} times as many replicates would not decide either"
    )
    words = (
        f"Which way to the next point is the cheapest is not known. Shown to gain: {shown}. At these gains, {needed}."
    )
    return Cheapest(line="", words=words + known)


def cheapest(board: ExperimentResult, store: RunStore) -> Cheapest | None:
    """Return the cheapest way among the lines of a finished experiment; None if nothing was learnt or compared.

    Lines that only serve as controls are left out, except for random text, which is a way of its own. Errors:
    CorpusError, RunError if an evaluation is gone.
    """
    rows = {(row.arm, row.budget): row for row in board.leaderboard}
    none = rows.get((NONE, ""))
    others = [row for row in board.leaderboard if row is not none and _is_way(row)]
    if none is None or nothing_learnt(board.leaderboard) or not others:
        return None
    level = 1 - (1 - LEVEL) / len(others)
    baseline, usual, ways = tables(none, store), _seconds(none, store), list[Way]()
    for row in others:
        own = tables(row, store)
        gap = compare_line(own, baseline) if row.reference else compare(own, baseline, same_seeds=True)
        # A reference line needs no tagger, and still its cost is at least LEAST.
        ways.append(_way(line_name(row), gap, _seconds(row, store) - usual, level))
    return found(ways, _missing(others))


def _is_way(row: ArmRow) -> bool:
    plain, _, encoder = row.arm.partition(f" {ENCODER}")
    return bool(row.reference) or find(plain).judged or plain == RANDOM or bool(encoder and plain == NONE)


def _way(name: str, gap: Difference, seconds: float, level: float) -> Way:
    from scipy.special import stdtrit  # a second to load

    estimate, half = Estimate.of(gap), 100.0
    if gap.dof > 0:
        half = sqrt(estimate.falling + estimate.fixed) * float(stdtrit(estimate.dof, (1 + level) / 2))
    return Way(
        name=name,
        lo=max(gap.delta - half, -100.0),
        hi=min(gap.delta + half, 100.0),
        seconds=max(seconds, LEAST),
        estimate=estimate,
    )


def _seconds(row: ArmRow, store: RunStore) -> float:
    """Return the seconds of computing behind the first replicate's first tagger."""
    added = [store.get(run) for run in (row.select_run, row.pretrain_run, *row.label_runs) if run]
    tuning = store.get(row.finetune_run)
    seeds = 1 if row.reference else len(tuning.manifest.config["seeds"])
    own = sum(durations.by_kind([tuning], store).values()) / seeds
    return own + sum(durations.by_kind(added, store).values())


def _missing(others: Sequence[ArmRow]) -> list[str]:
    """Return what the experiment did not compare, in words. No line measures further labels."""
    names = [row.arm for row in others]
    borrowed = any(arm.first or arm.assisting for arm in (find(name.partition(f" {ENCODER}")[0]) for name in names))
    missing = ["more labels"] if borrowed else ["more labels", "labels of another corpus"]
    missing += [] if any(row.pretrain_run for row in others) else ["pre-training"]
    found = {row.reference for row in others} | ({DICTIONARY} if NAMES in names else set())
    missing += [line.noun for kind, line in KINDS.items() if kind not in found]
    missing += [] if any(f" {ENCODER}" in name for name in names) else ["another encoder"]
    return missing


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
