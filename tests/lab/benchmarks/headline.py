"""Compute what README's tables show of committed counts.

They are in choosing.jsonl, label.jsonl, layers.jsonl, lines.jsonl, multipliers.jsonl, dictionary.jsonl and rebuild.jsonl.

    python -m tests.lab.benchmarks.headline

Each row: mean test F1 of both variants, difference with its 95% interval, p, and the power of its plan to detect a true
gain of 1 point at the observed spread. For the three domains together also: the interval that allows for the interim
analyses, and the interval in which the difference of one new domain is expected (prediction interval). Differences are
computed as planned at the time: on the grounds bio and news, variants are not compared as pairs of seeds.

Sizes: sentences of T_C, labelled entities and minutes of a replicate.

Rows about labels: the same for two ways of choosing 150 sentences to label, over three corpora with equal weights and
five starts, paired by start. Their intervals hold for other starts on the same test sets.

Reference lines (`bench_lines`): test F1 of each replicate, from the counts of its predictions.

A larger encoder (`bench_layers`), lists of names (`bench_dictionary --taggers`) and exchanged names (`bench_rebuild`): difference to another variant with
its 95% interval, as the leaderboard computes it.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from scipy.special import stdtrit
from scipy.stats import nct
from scipy.stats import t as student

from core.experiment.arms import DICTIONARY, NAMES, NONE
from core.results import Evaluation
from core.stats import sequential
from core.stats.bootstrap import Difference, compare, compare_line
from core.stats.pooled import Estimate, pooled
from core.stats.power import power
from core.stats.spread import of_estimate
from tests.lab.benchmarks import bench_label, bench_layers, bench_multipliers
from tests.lab.benchmarks.bench_choosing import CLAIM, CONTROL, GROUNDS, LINES, LOOKS, ZERO, Line, unpacked
from tests.lab.benchmarks.bench_layers import MINILM
from tests.lab.benchmarks.bench_multipliers import Multiples

EFFECT = 1.0  # points
NEWS = "C100 cpu"  # ground of `bench_lines` whose counts are stored per sentence
FEW = ("crossner", "bio", "news")  # grounds with a hundred labels and four replicates
COUNTS = Path(__file__).with_name("lines.jsonl")
LAYERS = Path(__file__).with_name("layers.jsonl")
LISTS = Path(__file__).with_name("dictionary.jsonl")
REBUILT = Path(__file__).with_name("rebuild.jsonl")
AUGMENT, COPIED = "dataaug", "copies:dataaug"
TESTS = ("test", "ood/oov", "ood/cross_category")
LABEL_PAIRS = (("queue", "random"), ("queue", "selection"), ("queue", "similarity"))
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: F1 in percent, differences in points. replicates: of each corpus.

    adjusted: interval that allows for the interim analyses. new: prediction interval of one new corpus; None for a
    single corpus.
    """

    f1: float
    other: float
    delta: float
    interval: Interval
    p: float
    replicates: int
    power: float
    adjusted: Interval | None
    new: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Size of a replicate. task: sentences of T_C. entities: in the training set. minutes: of training, all variants."""

    task: int
    entities: int
    minutes: int


def rows() -> dict[tuple[str, str, str], Row]:
    """Return {(ground, variant, compared with): row}. A ground of another encoder than MiniLM ends with its name.

    The ground `all` is the five corpora with a hundred labels, with equal weights. Its power is computed for replicates
    that share nothing.
    """
    lines = _stored()
    found = {}
    for pair in ((CLAIM, CONTROL), (CLAIM, NONE), (CONTROL, NONE)):
        gaps = {name: [_gap(each, *pair) for each in of.values()] for name, of in lines.items()}
        for name, own in gaps.items():
            n, swapped = len(next(iter(lines[name].values()))), GROUNDS[name.partition(" ")[0]].swapped
            found[name, *pair] = _row(own, LOOKS, n, swapped=swapped)
        found["all", *pair] = _row([gap for name in FEW for gap in gaps[name]], LOOKS, LOOKS[1], swapped=False)
    return found


def _stored() -> dict[str, dict[str, list[Line]]]:
    """Return {ground: {corpus: lines of choosing.jsonl}}. A ground of another encoder than MiniLM ends with its name."""
    lines: dict[str, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in map(json.loads, LINES.read_text(encoding="utf-8").splitlines()):
        ground, encoder = line["settings"].get("ground", "crossner"), line["settings"]["encoder"]
        lines[ground if encoder == MINILM else f"{ground} {encoder}"][line["corpus"]].append(line)
    return lines


def sizes() -> dict[tuple[str, str], Size]:
    """Return {(ground, corpus): size of a replicate} for the grounds whose halves are swapped, mean over replicates.

    T_C is the half that is not the test set. The number of labelled entities is that of the tested half per sentence,
    times the training sentences: both halves are drawn from the same sentences.
    """
    found = {}
    for name, corpora in _stored().items():
        ground = GROUNDS[name.partition(" ")[0]]
        for corpus, lines in corpora.items() if ground.swapped else ():
            golds = [line["gold"].replace("-", "") for line in lines]  # a sentence that was not tested is "-"
            entities = sum(map(_total, golds)) / ground.taggers / sum(map(len, golds))
            seconds = [sum(sum(arm["seconds"].values()) for arm in line["arms"].values()) for line in lines]
            found[name, corpus] = Size(
                task=round(mean(line["gold"].count("-") for line in lines)),
                entities=round(ground.train * entities),
                minutes=round(mean(seconds) / 60),
            )
    return found


def _gap(lines: Sequence[Line], system: str, other: str) -> Difference:
    """Return the comparison of two variants on one corpus. lines: one per replicate."""
    ordered = sorted(lines, key=lambda line: int(str(line["replicate"])))
    return compare(*([unpacked(line, arm) for line in ordered] for arm in (system, other)))


def line_row(ground: str, line: str, other: str) -> Row:
    """Return the row of two lines of a ground whose counts are stored per sentence, compared as pairs of seeds."""
    system, base = (_evaluations(COUNTS, arm, ground=ground) for arm in (line, other))
    return _row([compare(system, base, same_seeds=True)], (len(system),), len(system), swapped=False)


def _row(gaps: Sequence[Difference], looks: tuple[int, ...], n: int, *, swapped: bool) -> Row:
    """Return the row of some corpora with equal weights. looks: replicates of each at each analysis; n: at this one."""
    estimates = [Estimate.of(gap) for gap in gaps]
    f1s = [(mean(gap.system), mean(gap.other)) for gap in gaps]
    together = pooled(estimates)
    delta, half = float(together.delta), float(together.half())
    spreads = tuple(of_estimate(estimate, n, swapped=swapped) for estimate in estimates)
    deltas = [estimate.delta for estimate in estimates]
    new = None
    if len(deltas) > 1:
        wide = float(stdtrit(len(deltas) - 1, 0.975)) * stdev(deltas) * sqrt(1 + 1 / len(deltas))
        new = (delta - wide, delta + wide)
    return Row(
        f1=float(np.mean([pair[0] for pair in f1s])),
        other=float(np.mean([pair[1] for pair in f1s])),
        delta=delta,
        interval=(delta - half, delta + half),
        p=float(together.p),
        replicates=n,
        power=power(spreads, looks, EFFECT).chance,
        adjusted=sequential.adjusted_interval(together.look, looks, looks.index(n), float(together.dof)),
        new=new,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """A row about labels: mean test F1 of both ways, percent; their difference and its interval, points; power."""

    f1: float
    other: float
    delta: float
    interval: Interval
    power: float


def label_rows() -> dict[tuple[str, str], LabelRow]:
    """Return {(way of choosing, compared with): row}."""
    f1, n = bench_label.stored(), bench_label.ROUNDS[-1]

    def level(arm: str) -> float:
        return mean(mean(v for (g, a, k, _), v in f1.items() if (g, a, k) == (ground, arm, n))
                    for ground in bench_label.GROUNDS)  # fmt: skip

    rows = {}
    for arm, other in LABEL_PAIRS:
        found = bench_label.estimate([bench_label.gaps(f1, ground, arm, other, n) for ground in bench_label.GROUNDS])
        assert found is not None
        delta, error, dof = found
        half = error * (critical := float(student.ppf(0.975, dof)))
        rows[arm, other] = LabelRow(
            f1=level(arm),
            other=level(other),
            delta=delta,
            interval=(delta - half, delta + half),
            power=float(nct.sf(critical, dof, EFFECT / error) + nct.cdf(-critical, dof, EFFECT / error)),
        )
    return rows


def line_f1() -> dict[tuple[str, str], list[float]]:
    """Return {(ground, line): test F1 of each replicate, percent}, as `bench_lines` printed the counts."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in map(json.loads, COUNTS.read_text(encoding="utf-8").splitlines()):
        tp, predicted, gold = (_total(row[name]) for name in ("tp", "predicted", "gold"))
        found[row["ground"], row["arm"]].append(200 * tp / (predicted + gold))
    return found


def _total(counts: int | str) -> int:
    """Return a sum of counts. counts: the sum, or one character per sentence (`bench_choosing.packed`)."""
    return counts if isinstance(counts, int) else sum(map(ord, counts)) - ZERO * len(counts)


def listed(arm: str) -> Difference:
    """Compare a variant of `bench_dictionary --taggers` with `none`, over its seeds."""
    none = _evaluations(LISTS, NONE)
    if arm == DICTIONARY:
        return compare_line(_evaluations(LISTS, arm), none)
    return compare(_evaluations(LISTS, arm), none, same_seeds=True)


def encoder(corpus: str, name: str) -> Difference:
    """Compare an encoder with MiniLM on a corpus, both with the last layer, over their seeds (`bench_layers`)."""
    lines = bench_layers.read(LAYERS)
    return compare(*(bench_layers.of_encoder(lines, corpus, each) for each in (name, MINILM)))


def multiplied() -> tuple[Row, Multiples]:
    """Return the row of `bench_multipliers`, and how much text and how many labels its selection replaced."""
    lines = list(map(json.loads, bench_multipliers.LINES.read_text(encoding="utf-8").splitlines()))
    found = bench_multipliers.multiples(lines)
    return _row([found[0]], (len(lines),), len(lines), swapped=True), found


def rebuilt(test: str, arm: str, other: str) -> Difference:
    """Compare two variants of `bench_rebuild` on a test set, over their replicates."""
    return compare(*(_evaluations(REBUILT, name, test) for name in (arm, other)), same_seeds=True)


def _evaluations(path: Path, arm: str, test: str | None = None, ground: str | None = None) -> list[Evaluation]:
    """Decode the counts of a variant's taggers. test, ground: of the lines to use; None if the lines name none."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    found = [line for line in lines if (line["arm"], line.get("test"), line.get("ground")) == (arm, test, ground)]
    found.sort(key=lambda line: int(line["seed"]))
    return [unpacked({"gold": line["gold"], "arms": {arm: line}}, arm) for line in found]


def _said(told: Difference) -> str:
    f1s = f"{mean(told.system):.1f} against {mean(told.other):.1f}"
    return f"{f1s}, {told.delta:+.1f} [{told.lo:+.1f}, {told.hi:+.1f}]"


def main() -> None:
    for arm in (NAMES, DICTIONARY):
        print(f"lists     {arm} against {NONE}: {_said(listed(arm))}")
    for corpus in bench_layers.CORPORA:
        print(f"encoders  mpnet against {MINILM} on {corpus}: {_said(encoder(corpus, 'mpnet'))}")
    for test in TESTS:
        for arm, other in ((COPIED, NONE), (AUGMENT, NONE), (AUGMENT, COPIED)):
            print(f"exchanged {test}, {arm} against {other}: {_said(rebuilt(test, arm, other))}")
    for (arm, other), told in label_rows().items():
        low, high = told.interval
        print(
            f"labels    {arm} against {other}: {told.f1:.1f} against {told.other:.1f}, {told.delta:+.1f} "
            f"[{low:+.1f}, {high:+.1f}], power to detect +{EFFECT:g}: {100 * told.power:.0f} in 100"
        )
    for (ground, corpus), size in sizes().items():
        print(
            f"sizes     {ground} {corpus}: T_C {size.task:,} sentences, about {size.entities} labelled entities, "
            f"{size.minutes} minutes per replicate"
        )
    for (ground, line), f1s in line_f1().items():
        print(f"{ground:<12} {line}: {' '.join(f'{f1:.1f}' for f1 in f1s)}, mean {mean(f1s):.1f}")
    row, (_, *worths) = multiplied()
    texts = zip(("text", "labels with random text", "labels without pre-training"), worths, strict=True)
    print(f"replaced  {', '.join(f'{what}: {bench_multipliers.in_words(one)} times' for what, one in texts)}")
    print(f"          {row}")
    news = {(NEWS, *pair): line_row(NEWS, *pair) for pair in ((CLAIM, CONTROL), (CLAIM, NONE), (CONTROL, NONE))}
    for (ground, system, other), row in (rows() | news).items():
        low, high = row.interval
        words = f"{row.f1:.1f} against {row.other:.1f}, {row.delta:+.1f} [{low:+.1f}, {high:+.1f}], p = {row.p:.2g}"
        print(
            f"{ground:<9} {system} against {other}: {words}, power to detect +{EFFECT:g}: {100 * row.power:.0f} in 100"
        )
        for name, interval in (("allowing for the interim analyses", row.adjusted), ("one new domain", row.new)):
            if interval:
                print(f"{'':<9} {name}: [{interval[0]:+.1f}, {interval[1]:+.1f}]")


if __name__ == "__main__":
    main()
