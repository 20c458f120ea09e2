"""Test how well similarity measures predict F1, with a pasted table or with the user's own experiments.

A pasted table contains measures and F1, from a paper or measured elsewhere:

    target,source,ppl,wvv,tvc,lm_f1,lm_f1_sd        separated by commas, semicolons or tabs
    CADEC,None,,,,66.14,0.53                        the source `None`: F1 without a source
    CADEC,1BWB,307.4,1.137,81.73,70.08,0.43         or one cell: 70.08 (± 0.43)

A column with the name of a known measure contains this measure. The name of any other measure ends in its direction
(`bleu:high`). All other columns contain F1 in percent: `NAME` is the mean of a kind of model, `NAME_sd` its standard
deviation, and `NAME_1`, `NAME_2` are single runs. The column `runs` is the number of runs.
"""

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import ConfigError, ReadError
from core.results import FloatArray, Prefer
from core.similarity.agreement import Agreement, agreement
from core.similarity.grid import Grid
from core.similarity.measures import MEASURES, title
from core.similarity.predictive import (
    CONVENTIONS,
    Chance,
    Coefficient,
    Outcomes,
    Regret,
    Rule,
    chance,
    correlations,
    outcomes_of,
    regrets,
    rule,
)

ARM = re.compile(r"(vectors|lm):(.+)")  # name of an experiment's variant that starts from a single source
KINDS = {"vectors": "word vectors", "lm": "language model"}
LEVEL = 0.05

# Possessive quantifiers (`*+`) prevent backtracking, which would take exponentially long for a thousand digits.
# A comma separates thousands. Decimal commas are refused, because 70,08 would be read as 7,008, and 0,708 as 708.
_NUMBER = re.compile(
    r"([+-]?(?:[1-9]\d{0,2}(?:,\d{3})++|\d++)(?:\.\d*+)?(?:e[+-]?\d++)?|[+-]?\.\d++)\s*+%?", re.IGNORECASE
)
_CELL = re.compile(rf"{_NUMBER.pattern}(?:\s*+\(?\s*+(?:±|\+/-|\+-)\s*+{_NUMBER.pattern}\s*+\)?)?", re.IGNORECASE)
_NOTHING = {"", "-", "–", "—", "na", "n/a", "nan", "none"}
_NONE = {"none", "no source", "baseline"}

Cell = tuple[float, float | None] | None  # a number and its standard deviation, if given; None: an empty cell


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pasted:
    """A pasted table: its measures, and the F1 outcomes of each kind of model."""

    grid: Grid
    outcomes: tuple[Outcomes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A variant of an experiment, and its scores.

    arm: name of the variant. source: fingerprint of the corpus that the variant started from; None if unknown. f1:
    micro F1 of each tagger, percent. taggers: a text per F1, which is equal for taggers with the same options and seed;
    () if they are unknown.
    """

    arm: str
    source: str | None
    f1: Sequence[float]
    taggers: Sequence[str] = ()

    def but(self, seen: set[str]) -> list[float]:
        """Return the F1 of the taggers that are not in `seen`, and add these taggers to `seen`."""
        if not self.taggers:
            return list(self.f1)
        new = [f1 for tagger, f1 in zip(self.taggers, self.f1, strict=True) if tagger not in seen]
        seen.update(self.taggers)
        return new


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How well the measures predict the F1 of one kind of model.

    name: kind of model. correlations: {measure: {convention: r}}. chance: permutation test; None if no r can be
    computed. regrets: regret of each measure. sentence: the result in words.
    """

    name: str
    correlations: Mapping[str, Mapping[str, Coefficient]]
    chance: Chance | None
    regrets: Sequence[Regret]
    sentence: str

    @property
    def shown(self) -> bool:
        """True if the best measure predicts better than chance at LEVEL."""
        return self.chance is not None and self.chance.best <= LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How well the measures of a table predict F1, and how far they agree.

    conventions: {convention of r: its definition}. effects: result for each kind of model. rule: test of the rule; None
    unless there are both word vectors and language models.
    """

    targets: Sequence[str]
    sources: Sequence[str]
    measures: Sequence[str]
    conventions: Mapping[str, str]
    agreement: Agreement
    effects: Sequence[Effect]
    rule: Rule | None


def judge_table(text: str, name: str = "the table", measures: Sequence[str] = ()) -> Judgement:
    """Test the measures in a pasted table of measures and F1.

    name: name of the table, for errors. measures: the measures to test; all if empty. Errors: ReadError, which names
    the line; ConfigError for a measure that the table does not have.
    """
    pasted = read_table(text, name)
    return judge(narrowed(pasted.grid, name, measures), pasted.outcomes)


def narrowed(grid: Grid, name: str, measures: Sequence[str]) -> Grid:
    """Return `grid` with these measures only; with all measures if `measures` is empty.

    name: name of the table, for errors. Errors: ConfigError for a measure that `grid` does not have.
    """
    known = {measure.lower(): measure for measure in grid.measures}
    if lacking := [measure for measure in measures if measure.lower() not in known]:
        raise ConfigError(f"measure: {lacking[0]!r} is not in {name}; choose among {', '.join(known.values())}.")
    chosen = tuple(dict.fromkeys(known[measure.lower()] for measure in measures))
    return grid.only(chosen) if chosen else grid


def judge(grid: Grid, outcomes: Sequence[Outcomes]) -> Judgement:
    """Return how far the measures agree, and how well they predict the F1 of each kind of model."""
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
    table = correlations(grid, outcome)
    by_measure, by_chance = regrets(grid, outcome), chance(grid, outcome)
    sentence = _sentence(table, by_measure, dict(zip(grid.measures, grid.prefer, strict=True)), by_chance)
    return Effect(name=outcome.name, correlations=table, chance=by_chance, regrets=by_measure, sentence=sentence)


def _sentence(
    table: Mapping[str, Mapping[str, Coefficient]],
    regrets: Sequence[Regret],
    prefer: Mapping[str, Prefer],
    by_chance: Chance | None,
) -> str:
    """Return a sentence on the measure that correlates best with F1, on its uncertainty, and on its regret."""
    # Use the convention of the paper (SOURCES.md, Prediction of F1). Flip the signs of some measures, so that r is
    # positive if closer sources have a higher F1.
    values = {m: row["runs"].value for m, row in table.items()}
    by_direction = {m: r if prefer[m] == "high" else -r for m, r in values.items() if r is not None}
    if not by_direction:
        return "Too few sources have a score to judge the measures; give at least two per target."
    best = max(by_direction, key=by_direction.__getitem__)
    if by_direction[best] <= 0:
        return "No measure predicts the score: by all of them, closer sources scored no higher than distant ones."
    r = table[best]["runs"]
    over = f"{r.targets} target{'s' if r.targets > 1 else ''}"
    sure = (
        f"95% interval {r.interval[0]:.2f} to {r.interval[1]:.2f}"
        if r.interval
        else "no interval with fewer than four targets"
    )
    regret = next(row for row in regrets if row.measure == best)
    sure += _chance_words(by_chance, len(by_direction))
    return (
        f"{title(best).capitalize()} correlates best with the score, r = {r.value:.3f} over {over} ({sure}); taking "
        f"the source it puts first lost {regret.mean:.2f} points on average, a random source {regret.random:.2f}."
    )


def _chance_words(by_chance: Chance | None, measures: int) -> str:
    """Return a clause with the p-value of the best measure, corrected for taking the best of all measures."""
    if by_chance is None:
        return ""
    of = f"the best of {measures} measures" if measures > 1 else "one measure"
    orders = f"all {by_chance.orders:,} orders" if by_chance.exact else f"{by_chance.orders:,} random orders"
    doubt = "" if by_chance.best <= LEVEL else ", so this may well be chance"
    p = f"p = {by_chance.best:.2g}" if by_chance.best >= 1e-4 else "p below 0.0001"
    return f"; {p} for {of}, by shuffling the sources of each target in {orders}{doubt}"


def own_outcomes(
    grid: Grid, boards: Iterable[tuple[str, Sequence[Trained]]], names: Mapping[str, str]
) -> list[Outcomes]:
    """Return the F1 of finished experiments for the sources and targets of `grid`, for each kind of model.

    boards: target and variants of each experiment. Only the variants `vectors:SOURCE` and `lm:SOURCE` are used, with
    `none` as their baseline. names: {fingerprint of a source, or its name in a variant: its name in `grid`}. The
    taggers of a variant are pooled over experiments. A tagger that several experiments share counts once.
    """
    seen = defaultdict[tuple[object, ...], set[str]](set)
    runs: dict[str, dict[tuple[int, int], list[float]]] = {}
    none: dict[str, dict[int, list[float]]] = {}
    for target, board in boards:
        at = grid.targets.index(target)
        kinds = set()
        for row in board:
            arm = ARM.fullmatch(row.arm)
            # Prefer the fingerprint, because another corpus may have had the same name in an earlier experiment.
            source = names.get(row.source or arm[2]) if arm else None
            if arm and source in grid.sources:
                kinds.add(kind := KINDS[arm[1]])
                pair = at, grid.sources.index(source)
                runs.setdefault(kind, {}).setdefault(pair, []).extend(row.but(seen[kind, pair]))
        for kind in kinds:
            f1s = none.setdefault(kind, {}).setdefault(at, [])
            f1s += [f1 for row in board if row.arm == "none" for f1 in row.but(seen[kind, at])]
    return [outcomes_of(kind, by_pair, _means(none[kind], grid), len(grid.sources)) for kind, by_pair in runs.items()]


def _means(runs: Mapping[int, Sequence[float]], grid: Grid) -> FloatArray:
    """Return the mean F1 of each target, `(t,)`; NaN for a target without runs. runs: {target: F1 of each run}."""
    return np.array([np.mean(runs[at]) if runs.get(at) else np.nan for at in range(len(grid.targets))])


def read_table(text: str, name: str = "the table") -> Pasted:
    """Read a pasted table. name: its name, for errors. Errors: ReadError, which names the line and says what to do."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    # If two signs are equally frequent, prefer the tab and then the semicolon, because a number may contain a comma.
    reader = csv.reader(lines, delimiter=max("\t;,", key=first.count), skipinitialspace=True)
    rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if "".join(row).strip()]
    if len(rows) < 2:
        raise ReadError(name, None, "has no rows; paste a header line and one line per target and source.")
    header = [cell.strip("\ufeff ") for cell in rows[0][1]]
    columns = _columns(header, name)
    keys = [header[at] for at in columns.values()]
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise ReadError(
                name, line, f"has {len(row)} columns, but the header has {len(header)}; add or remove columns."
            )
        key = (row[columns["target"]], "None" if row[columns["source"]].lower() in _NONE else row[columns["source"]])
        if not all(key) or key in cells:
            raise ReadError(name, line, "lacks a target or a source, or repeats a pair; give every pair one line.")
        named = [*zip(header, row, strict=True)]
        cells[key] = {column: _cell(text, name, line, column) for column, text in named if column not in keys}
    return _assemble(header, cells, name)


def _columns(header: Sequence[str], name: str) -> dict[str, int]:
    lowered = [column.lower() for column in header]
    for wanted in ("target", "source"):
        if lowered.count(wanted) != 1:
            raise ReadError(name, 1, f"needs one column called {wanted}; name it in the header line.")
    if len(set(lowered)) < len(lowered):
        raise ReadError(name, 1, "has two columns with the same name; rename one.")
    return {wanted: lowered.index(wanted) for wanted in ("target", "source")}


def _cell(text: str, name: str, line: int, column: str) -> Cell:
    if text.lower() in _NOTHING:
        return None
    match = _CELL.fullmatch(text.replace("−", "-"))
    if match is None:
        raise ReadError(
            name,
            line,
            f"{column} is {text[:30]!r}, which is not a number; write for example 70.08 or 70.08 ± 0.43, with a point.",
        )
    first, second = (None if part is None else float(part.replace(",", "")) for part in match.groups())
    assert first is not None
    if not math.isfinite(first) or not math.isfinite(second or 0):
        raise ReadError(name, line, f"{column} is {text[:30]!r}, which is too large; give a smaller number.")
    return first, second


def _assemble(header: Sequence[str], cells: Mapping[tuple[str, str], Mapping[str, Cell]], name: str) -> Pasted:
    targets = tuple(dict.fromkeys(target for target, _ in cells))
    sources = tuple(dict.fromkeys(source for _, source in cells if source != "None"))
    measures = {column: measure for column in header if (measure := _direction(column))}
    if not measures:
        known = ", ".join(MEASURES)
        raise ReadError(name, 1, f"has no column with a measure; add one called {known}, or NAME:low or NAME:high.")
    if len(sources) < 2:
        raise ReadError(name, None, "has fewer than two sources, so there is nothing to choose; add lines.")

    def value(target: str, source: str, column: str) -> tuple[float, float | None]:
        return cells.get((target, source), {}).get(column) or (math.nan, None)

    values = [[[value(t, s, column)[0] for column in measures] for s in sources] for t in targets]
    grid = Grid(
        targets=targets,
        sources=sources,
        measures=tuple(name for name, _ in measures.values()),
        prefer=tuple(prefer for _, prefer in measures.values()),
        values=np.array(values, dtype=np.float64),
    )
    rest = [
        column for column in header if column not in measures and column.lower() not in ("target", "source", "runs")
    ]
    outcomes = [_outcomes(kind, columns, grid, cells) for kind, columns in _kinds(rest).items()]
    return Pasted(grid=grid, outcomes=tuple(outcomes))


def _direction(column: str) -> tuple[str, Prefer] | None:
    """Return the name and direction of the measure that a column contains; None if it contains no measure."""
    plain, _, end = column.lower().partition(":")
    name = re.sub(r"[^a-z0-9_]+|↑|↓", " ", plain).split() or [""]
    if name[0] in MEASURES and len(name) == 1:
        return name[0], MEASURES[name[0]].prefer
    if end in ("low", "high"):
        return column.partition(":")[0].strip(), "low" if end == "low" else "high"
    return None


def _kinds(columns: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Group columns by kind of model. Return {kind: {"mean": columns, "sd": columns, "runs": columns}}."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for column in columns:
        # A column called only `sd`, without a name before it, is no standard deviation of any kind.
        if match := re.fullmatch(r"(.+?)[ _](sd|std|\d+)", column, re.IGNORECASE):
            name, part = match[1], "runs" if match[2].isdigit() else "sd"
        else:
            name, part = column, "mean"
        kinds.setdefault(name, {"mean": [], "sd": [], "runs": []})[part].append(column)
    return {name: parts for name, parts in kinds.items() if parts["mean"] or parts["runs"]}


def _outcomes(
    kind: str, columns: Mapping[str, Sequence[str]], grid: Grid, cells: Mapping[tuple[str, str], Mapping[str, Cell]]
) -> Outcomes:
    def summary(target: str, source: str) -> tuple[float, float, float]:
        """Return mean F1, standard deviation and number of runs of a target and a source."""
        row = cells.get((target, source), {})
        runs = [cell[0] for column in columns["runs"] if (cell := row.get(column))]
        # Prefer single runs to a printed mean, because they also give the spread and the number of runs.
        if runs:
            return float(np.mean(runs)), float(np.std(runs)), float(len(runs))
        mean = next((cell for column in columns["mean"] if (cell := row.get(column))), None)
        if mean is None:
            return math.nan, 0.0, 0.0
        sd = next((cell[0] for column in columns["sd"] if (cell := row.get(column))), mean[1] or 0.0)
        # A mean without a number of runs counts as one run, so that it does not outweigh other means.
        count = next((cell[0] for column, cell in row.items() if column.lower() == "runs" and cell), 1.0)
        return mean[0], sd, count

    table = np.array([[summary(t, s) for s in grid.sources] for t in grid.targets])
    none = np.array([summary(target, "None")[0] for target in grid.targets])
    return Outcomes(name=kind, mean=table[..., 0], sd=table[..., 1], runs=table[..., 2], none=none)
