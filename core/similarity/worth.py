"""The measures' predictions against F1 after training: for a pasted table, and for the user's own experiments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import ConfigError
from core.results import FloatArray, Prefer
from core.similarity.agreement import Agreement, agreement
from core.similarity.grid import Grid
from core.similarity.measures import title
from core.similarity.pasted import read_table
from core.similarity.predictive import CONVENTIONS, Outcomes, Regret, correlations, outcomes_of, regrets
from core.similarity.rule import Rule, rule
from core.similarity.shuffled import Chance, chance

ARM = re.compile(r"(vectors|lm):(.+)")  # arms of an experiment that begin from one source
KINDS = {"vectors": "word vectors", "lm": "language model"}
LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """An arm of an experiment. source: the fingerprint of what it began from, None where it is not known. f1: micro F1
    of every run, percent."""

    arm: str
    source: str | None
    f1: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A correlation with the change of F1; see `predictive.Correlation`."""

    value: float | None
    interval: tuple[float, float] | None
    targets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Worth of the measures for one kind of model. correlations: {measure: {convention: r}}. chance: of as high an r
    by shuffled sources, None without any r. sentence: for people."""

    name: str
    correlations: Mapping[str, Mapping[str, Coefficient]]
    chance: Chance | None
    regrets: Sequence[Regret]
    sentence: str

    @property
    def shown(self) -> bool:
        """Whether the best of the measures does better than shuffled sources let expect."""
        return self.chance is not None and self.chance.best <= LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Worth of the measures of a table. conventions: {name: what it is}, of correlations. rule: None where there
    are not both word vectors and language models."""

    targets: Sequence[str]
    sources: Sequence[str]
    measures: Sequence[str]
    conventions: Mapping[str, str]
    agreement: Agreement
    effects: Sequence[Effect]
    rule: Rule | None


def judge_table(text: str, name: str = "the table", measures: Sequence[str] = ()) -> Judgement:
    """A pasted table of measures and F1 (see `measures.pasted`). measures: those to judge; all where none is named.

    Errors: ReadError with the line; ConfigError for a measure that the table lacks.
    """
    pasted = read_table(text, name)
    return judge(narrowed(pasted.grid, name, measures), pasted.outcomes)


def narrowed(grid: Grid, name: str, measures: Sequence[str]) -> Grid:
    """The same with these measures; with all where none is named. Errors: ConfigError for one that `grid` lacks."""
    known = {measure.lower(): measure for measure in grid.measures}
    if lacking := [measure for measure in measures if measure.lower() not in known]:
        raise ConfigError(f"measure: {lacking[0]!r} is not in {name}; choose among {', '.join(known.values())}.")
    chosen = tuple(dict.fromkeys(known[measure.lower()] for measure in measures))
    return grid.only(chosen) if chosen else grid


def judge(grid: Grid, outcomes: Sequence[Outcomes]) -> Judgement:
    """Agreement of the measures, and an effect for each kind of model: what they predict of it."""
    return Judgement(
        targets=grid.targets,
        sources=grid.sources,
        measures=grid.measures,
        conventions=dict(CONVENTIONS),
        agreement=agreement(grid),
        effects=[_effect(grid, outcome) for outcome in outcomes],
        rule=rule(grid, outcomes),
    )


def _effect(grid: Grid, outcome: Outcomes) -> Effect:
    table: dict[str, dict[str, Coefficient]] = {measure: {} for measure in grid.measures}
    for r in correlations(grid, outcome):
        table[r.measure][r.convention] = Coefficient(value=r.value, interval=r.interval, targets=r.targets)
    by_measure, by_chance = regrets(grid, outcome), chance(grid, outcome)
    sentence = _sentence(table, by_measure, dict(zip(grid.measures, grid.prefer, strict=True)), by_chance)
    return Effect(name=outcome.name, correlations=table, chance=by_chance, regrets=by_measure, sentence=sentence)


def _sentence(
    table: Mapping[str, Mapping[str, Coefficient]],
    regrets: Sequence[Regret],
    prefer: Mapping[str, Prefer],
    by_chance: Chance | None,
) -> str:
    """The sentence on the measure that went with F1 most, how sure that is, and the cost of following it."""
    # By the printed convention (SOURCES.md, Prediction of F1); the others stand in the table beside it. Turned so that
    # closer counts as higher: a measure by which the farthest source is the best predicts the wrong way round.
    values = {m: row["runs"].value for m, row in table.items()}
    by_sense = {m: r if prefer[m] == "high" else -r for m, r in values.items() if r is not None}
    if not by_sense:
        return "There are too few sources with a score to say what predicts it: give at least two for a target."
    best = max(by_sense, key=by_sense.__getitem__)
    if by_sense[best] <= 0:
        return "By no measure did a closer source give the higher score; by all it was the other way round, or level."
    r = table[best]["runs"]
    over = f"{r.targets} target{'s' if r.targets > 1 else ''}"
    sure = (
        f"95% interval {r.interval[0]:.2f} to {r.interval[1]:.2f}" if r.interval else "no interval below four targets"
    )
    regret = next(row for row in regrets if row.measure == best)
    sure += _chance_words(by_chance, len(by_sense))
    return (
        f"{title(best).capitalize()} goes with the score most closely, r = {r.value:.3f} over {over} ({sure}); taking "
        f"the source it puts first lost {regret.mean:.2f} points on average, a source drawn by lot {regret.random:.2f}."
    )


def _chance_words(by_chance: Chance | None, measures: int) -> str:
    """Probability that chance does as well: asked of the best of several, for that one was picked by looking."""
    if by_chance is None:
        return ""
    of = f"the best of {measures} measures" if measures > 1 else "one measure"
    orders = f"all {by_chance.orders:,} orders" if by_chance.exact else f"{by_chance.orders:,} orders drawn by lot"
    doubt = "" if by_chance.best <= LEVEL else ", so this may well be chance"
    p = f"p = {by_chance.best:.2g}" if by_chance.best >= 1e-4 else "p below 0.0001"
    return f"; {p} for {of}, by shuffling the sources of each target in {orders}{doubt}"


def own_outcomes(
    grid: Grid, boards: Iterable[tuple[str, Sequence[Trained]]], names: Mapping[str, str]
) -> list[Outcomes]:
    """Finished experiments as outcomes on `grid`.

    boards: (target, leaderboard) an experiment; its arms `vectors:SOURCE` and `lm:SOURCE` count, and the `none` beside
    them is their baseline. names: {a source's fingerprint, or what an arm may call it: its name in the grid}. Several
    runs of one arm are joined.
    """
    runs: dict[str, dict[tuple[int, int], list[float]]] = {}
    none: dict[str, dict[int, list[float]]] = {}
    for target, board in boards:
        at = grid.targets.index(target)
        kinds = set()
        for row in board:
            arm = ARM.fullmatch(row.arm)
            # The fingerprint first: an arm's own name for its source may have been reused.
            source = names.get(row.source or arm[2]) if arm else None
            if arm and source in grid.sources:
                kinds.add(kind := KINDS[arm[1]])
                f1s = runs.setdefault(kind, {}).setdefault((at, grid.sources.index(source)), [])
                f1s += row.f1
        baseline = [f1 for row in board if row.arm == "none" for f1 in row.f1]
        for kind in kinds:
            none.setdefault(kind, {}).setdefault(at, []).extend(baseline)
    return [outcomes_of(kind, by_pair, _means(none[kind], grid), len(grid.sources)) for kind, by_pair in runs.items()]


def _means(runs: Mapping[int, Sequence[float]], grid: Grid) -> FloatArray:
    """`(t,)`, NaN where there is no run."""
    return np.array([np.mean(runs[at]) if runs.get(at) else np.nan for at in range(len(grid.targets))])
