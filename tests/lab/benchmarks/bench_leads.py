"""How often `similarity` reports a lead as more than chance if there is none, and if there is one: simulated texts.

    python -m tests.lab.benchmarks.bench_leads [--n 300] [--measure ppl,tvc] [--every 1] [--first 0]
    python -m tests.lab.benchmarks.bench_leads --report

Each repetition generates T_C and both sources. Either both sources have the same distribution (no lead is true), or the
second has fewer words of T_C's topics (the lead is true). Lines are stored in leads.jsonl; --report writes them into
RESULTS.md.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np

from core.errors import CorpusError
from core.reporter import Silent
from core.similarity.base import Sample, stretch
from core.similarity.grid import Grid, Lead, leads
from core.similarity.measures import MEASURES, make_measure
from tests.lab.benchmarks.simulated_text import written

HERE = Path(__file__).parent
LINES = HERE / "leads.jsonl"
BEGIN, END = "<!-- bench_leads begins -->", "<!-- bench_leads ends -->"
PARTS = 8  # the default of `similarity`
QUICK = {"tagger": "built-in"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """tokens: per source. sentences: of T_C. document: sentences per document. far: T_C has topics that sources lack.

    gap: by how much the share of topic words is smaller in the second source; 0: the sources are equal.
    """

    tokens: int
    sentences: int
    document: int
    far: bool
    gap: float


SETTINGS = [
    Setting(tokens=tokens, sentences=sentences, document=document, far=far, gap=gap)
    for gap, tokens, sentences, document, far in product(
        (0.0, 0.2), (10_000, 30_000), (100, 500), (1, 10), (False, True)
    )
]


def judged(setting: Setting, measures: Sequence[str], seed: int, parts: int = PARTS) -> list[Lead]:
    """Generate T_C and both sources, and return the leads."""
    rng = np.random.default_rng([seed, SETTINGS.index(setting)] if setting in SETTINGS else seed)
    near, further = (
        written(rng, tokens=setting.tokens, document=setting.document, share=share)
        for share in (0.3, 0.3 - setting.gap)
    )
    topics = range(4, 10) if setting.far else range(6)
    target = written(rng, sentences=setting.sentences, document=setting.document, topics=topics)
    whole = values(near, further, target, measures, seed)
    cuts = zip(cut(near, parts), cut(further, parts), cut(target, parts), strict=True)
    by_part = np.array([values(a, b, t, measures, seed) for a, b, t in cuts])
    grid = Grid(
        targets=("t",),
        sources=("near", "further"),
        measures=tuple(measures),
        prefer=tuple(MEASURES[name].prefer for name in measures),
        values=whole[None],
    )
    return leads(grid, 0, by_part)


def cut(sentences: Sequence[Sequence[str]], parts: int) -> list[list[Sequence[str]]]:
    """Split into parts as `similarity` does."""
    rows, lengths = np.arange(len(sentences)), np.array([len(sentence) for sentence in sentences])
    return [[sentences[row] for row in stretch(rows, lengths, part, parts)] for part in range(parts)]


def values(
    near: Sequence[Sequence[str]],
    further: Sequence[Sequence[str]],
    target: Sequence[Sequence[str]],
    measures: Sequence[str],
    seed: int,
) -> np.ndarray:
    """Return the values of both sources by each measure, shape `(2, m)`."""
    texts = {"near": near, "further": further, "target": target}
    samples = {
        name: Sample(name=name, sentences=text, n_tokens=sum(map(len, text)), seed=seed, whole=True)
        for name, text in texts.items()
    }
    size = len({word for text in texts.values() for sentence in text for word in sentence})
    measured = np.full((2, len(measures)), np.nan)
    for m, name in enumerate(measures):
        measure = make_measure(name, QUICK, seed=seed, vocabulary_size=size)
        for i, source in enumerate(("near", "further")):
            try:
                learnt = measure.fit(samples[source], Silent())
                measured[i, m] = measure.compare(learnt, samples["target"], Silent()).value
            except CorpusError:
                continue
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--planted", type=int, default=60, help="Repetitions of settings in which a lead is true.")
    parser.add_argument("--measure", default="ppl,tvc")
    parser.add_argument("--every", type=int, default=1, help="Take every n-th setting, ...")
    parser.add_argument("--first", type=int, default=0, help="... from this one on.")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        report()
        return
    measures = options.measure.split(",")
    kept = [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []
    for setting in SETTINGS[options.first :: options.every]:
        n = options.planted if setting.gap else options.n
        if any(line["setting"] == asdict(setting) and line["measures"] == measures for line in kept):
            continue
        begin = time.perf_counter()
        line = simulated(setting, measures, n) | {"seconds": round(time.perf_counter() - begin)}
        with LINES.open("a") as out:
            out.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def simulated(setting: Setting, measures: Sequence[str], n: int) -> dict[str, object]:
    """Return shares of n repetitions: those with any reported lead, and those with any wrong one.

    For each measure by itself: repetitions with a lead (p at most .05), with a right lead, and the share of intervals
    that contain 0.
    """
    drawn = [judged(setting, measures, seed) for seed in range(n)]
    line: dict[str, object] = {"setting": asdict(setting), "measures": list(measures), "n": n}
    line["any_lead"] = float(np.mean([any(lead.holds for lead in of) for of in drawn]))
    line["any_wrong"] = float(np.mean([any(lead.holds and lead.first == "further" for lead in of) for of in drawn]))
    for name in measures:
        own = [lead for of in drawn for lead in of if lead.measure == name]
        alone = [lead for lead in own if lead.p is not None and lead.p <= 0.05]
        covers = [lead.low <= 0 <= lead.high for lead in own if lead.low is not None and lead.high is not None]
        line[name] = {
            "judged": len(covers) / n,
            "alone": len(alone) / n,
            "right": sum(lead.first == "near" for lead in alone) / n,
            "covers_0": float(np.mean(covers)) if covers else None,
        }
    return line


def report() -> None:
    """Write the lines as a table into RESULTS.md."""
    path = HERE / "RESULTS.md"
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def tables() -> str:
    """Return one row per group of settings: the mean share and its range over the settings."""
    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    out = [
        "| sources | measures | settings, repetitions each | any reported lead | a measure alone |",
        "|---|---|---|---|---|",
    ]
    for gap, names in dict.fromkeys((line["setting"]["gap"], tuple(line["measures"])) for line in lines):
        own = [line for line in lines if (line["setting"]["gap"], tuple(line["measures"])) == (gap, names)]
        alone = "; ".join(
            f"{MEASURES[name].term.symbol} {_ends([line[name]['alone'] for line in own])}" for name in names
        )
        titles = ", ".join(MEASURES[name].term.symbol for name in names)
        counts = sorted({line["n"] for line in own})
        what = f"{0.3 - gap:.0%} of the second's words are of its topics, 30% of the first's" if gap else "equal"
        out.append(
            f"| {what} | {titles} | {len(own)}, {' to '.join(map(str, counts))} | "
            f"{_ends([line['any_lead'] for line in own])} | {alone} |"
        )
    return "\n".join(out)


def _ends(shares: Sequence[float]) -> str:
    return f"{100 * np.mean(shares):.1f}% ({100 * min(shares):.1f} to {100 * max(shares):.1f})"


if __name__ == "__main__":
    main()
