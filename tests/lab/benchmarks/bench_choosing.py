"""Does selection beat random text? One claim per ground: the default strategy against as many random tokens.

    python -m tests.lab.benchmarks.bench_choosing [--ground crossner|bio|news|bio-300] [--home DIR]
        [--only crossner-music ...] [--pair 1|3|5] [--table] [--origins]

Ground crossner: CrossNER's AI, literature and music. Every replicate has its own selection, pre-training and tagger in
both arms; in `none` it has its own tagger. Halves of each L_C are swapped: the text of one half is T_C, 100 of its
sentences are the training set and 50 the dev set; the other half is the test set. D_C (109,482 sentences) and S_C
(5,000 of them) are those of bench_worth.

Grounds bio and news, in which D_C has many in-domain sentences: T_C and the training set are the first 100 sentences of
bc5cdr (bio) or conll2003 (news). The dev set is 50 sentences of dev, the test set is the test split. D_C is 20,000
sentences of PubMed among 425,754 others (bio), or 10,000 of newswire among 616,212 (news). S_C is 20,000 sentences.

Ground bio-300, planned on 2026-11-28 before any of its replicates was run: bc5cdr (the first 1,000 training sentences, dev
and test) with halves swapped, D_C and S_C of bio. 300 sentences of a half are the training set and 150 the dev set; the
half's text is T_C. Four taggers per pre-training, which keep the last epoch (`bench_epochs`, `bench_variance`). By the
variances measured there, the plan detects a true gain of one point in 95 of 100 cases, and bio's plan in 10.

Ground crossner with `--encoder mpnet`, planned on 2026-11-29 before any of its replicates was run: the larger encoder in
selection, pre-training and tagger, and everything else as with MiniLM. If the replicates vary as MiniLM's do (`headline`),
the plan detects a true gain of one point in 97 of 100 cases. Like bio-300, all six replicates may run at once on a GPU
(`WINNOW_ON=processes:N`); the test still uses the first ones that decide it.

Each ground has one test with interim analyses after 2 and 4 replicates and the last after 6. It ends as soon as it has
an answer. The two replicates that swap one pair of halves append two lines with counts per sentence to choosing.jsonl.
The summary is computed from these lines alone. The command continues after them, also on another machine (with `--only`
or `--pair`), and with the same --home inside a training. A corpus and pair of crossner takes about 35 minutes on two
cores, so never run this in a test. bio took 14 minutes to embed D_C on a fast machine with bf16, and 50 minutes per
pair, two processes on one core each. `--table` trains nothing.
"""

import argparse
import gzip
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.experiment import result as halves
from core.experiment import result as leaderboard
from core.experiment import study as questions
from core.experiment import tables
from core.experiment.result import ArmRow, StudyResult, TaskRow
from core.experiment.study import StudyConfig, planned_test
from core.projects import runs
from core.projects.home import store
from core.results import Evaluation
from core.runs import durations, result
from core.runs.events import Event
from core.runs.store import Run
from core.selection import view as selections
from core.stats.bootstrap import Difference, compare
from core.stats.pooled import Estimate, pooled
from core.training.saved_models import PretrainResult
from tests.lab.benchmarks.bench_ner import splits
from tests.lab.benchmarks.bench_worth import write_corpora
from tests.lab.benchmarks.data import DATA, sentences

CORPORA = ("crossner-ai", "crossner-literature", "crossner-music")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The data of one claim. corpora: labelled corpora, one task each. swapped: True if halves of L_C are swapped.

    domain: texts of D_C, and the number of sentences drawn from each (0: all); empty for the D_C of bench_worth.
    train: training sentences; the dev set has half as many. taggers: number per replicate; with several, they keep the
    last epoch and have all epochs of `quick`.
    """

    corpora: tuple[str, ...]
    budget: str
    domain: Mapping[str, int] = field(default_factory=dict)
    swapped: bool = False
    train: int = 100
    taggers: int = 1


_OTHERS = {"legal": 0, "reviews": 0}
_BIO = {"pubmed": 20_000, "news": 0, "wikipedia": 0, **_OTHERS}
GROUNDS = {
    "crossner": Ground(corpora=CORPORA, budget="5000", swapped=True),
    "bio": Ground(corpora=("bc5cdr",), budget="20000", domain=_BIO),
    "bio-300": Ground(corpora=("bc5cdr",), budget="20000", domain=_BIO, swapped=True, train=300, taggers=4),
    "news": Ground(corpora=("conll2003",), budget="20000", domain={"news": 10_000, "pubmed": 0, **_OTHERS}),
}
CLAIM, CONTROL, NONE = "classifier", "random", "none"
LOOKS = (2, 4, 6)
LINES = Path(__file__).with_name("choosing.jsonl")
ZERO = ord("0")  # one character per sentence encodes its count, starting at "0"; "-" if it was not tested

Line = dict[str, Any]


def settings(given: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that all replicates share. Lines with other settings are ignored."""
    ground = GROUNDS[given.ground]
    train = given.train or ground.train
    labels: Line = {"cross": True, "cross_train": train, "cross_dev": train // 2}
    if not ground.swapped:
        labels = {"ground": given.ground, "train": train, "dev": train // 2}
    if ground.taggers > 1:
        labels |= {"ground": given.ground, "taggers": ground.taggers}
    return {
        "arms": [NONE, CONTROL, CLAIM],
        "budgets": [given.budget or ground.budget],
        "claim": CLAIM,
        "encoder": given.encoder,
        **labels,
        "finetune": {"epochs": given.epochs} if ground.taggers == 1 else {},
        "effect": 1.0,
        "first": given.first,
    }


def options(alike: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are options of an experiment and of a study.

    Like in the first committed lines, taggers keep their best epoch, unless there are several per replicate.
    """
    own = {name: value for name, value in alike.items() if name not in ("first", "ground", "train", "dev")}
    return own if "taggers" in own else {**own, "finetune": {**own["finetune"], "keep": "best"}}


def packed(counts: Any, tested: Any) -> str:
    """Encode counts as one character per sentence. tested: which sentences were tested; None: all."""
    there = [True] * len(counts) if tested is None else tested
    return "".join(chr(ZERO + n) if at else "-" for n, at in zip(counts.sum(axis=1), there, strict=True))


def counts_of(table: Evaluation) -> dict[str, str]:
    """Return the counts of an evaluation of all sentences, each encoded by `packed`."""
    return {part: packed(getattr(table, part), None) for part in ("tp", "predicted", "gold")}


def unpacked(line: Line, arm: str) -> Evaluation:
    """Decode the counts of an arm's tagger in one replicate, per sentence."""
    told = {"gold": line["gold"], **{part: line["arms"][arm][part] for part in ("tp", "predicted")}}
    columns = {
        name: np.array([[max(ord(letter) - ZERO, 0)] for letter in text], dtype=np.int32) for name, text in told.items()
    }
    tested = np.array([letter != "-" for letter in line["gold"]])
    return Evaluation(types=("all",), **columns, tested=None if tested.all() else tested)


def lines_of(run: Run, name: str, seeds: Sequence[int], alike: Mapping[str, Any]) -> Iterator[Line]:
    """Yield a line for each replicate of a finished experiment."""
    rows = {row.arm: row for row in leaderboard.read(run).leaderboard}
    by_test = {half.test: each for each in runs.listed("halves", state="succeeded") for half in _halves(each)}
    for number, seed in enumerate(seeds):
        arms, gold = {}, ""
        for arm, row in rows.items():
            several = len(row.finetunes) > 1  # without halves, `none` has one fine-tuning for all replicates
            finetune = runs.get(row.finetunes[number if several else 0])
            half = by_test.get(finetune.manifest.config["test"][0])
            table = halves.evaluations_of_replicate(finetune, half, row.taggers)[0 if several else number]
            gold = packed(table.gold, table.tested)
            counts = {"tp": packed(table.tp, table.tested), "predicted": packed(table.predicted, table.tested)}
            arms[arm] = _figures(row, number, finetune) | counts
        yield {
            **{"corpus": name, "replicate": seed, "settings": dict(alike), "versions": dict(run.manifest.versions)},
            **{"run": run.id, "arms": arms, "gold": gold},
        }


def _halves(run: Run) -> Sequence[halves.Half]:
    return result.read(run, halves.HalvesResult).halves


def _figures(row: ArmRow, number: int, finetune: Run) -> dict[str, Any]:
    """Return the figures of one arm of a replicate: F1, sentences and tokens pre-trained on, seconds by kind of run."""
    here = store()
    seconds = {kind: round(each, 1) for kind, each in durations.by_kind([finetune], here).items()}
    read = {"sentences": 0, "tokens": 0}
    if row.pretrain_run:
        pretrain = here.get(finetune.manifest.config["init"])
        told = result.read(pretrain, PretrainResult)
        read = {"sentences": told.sentences, "tokens": told.tokens}
        seconds |= {kind: round(each, 1) for kind, each in durations.by_kind([pretrain], here).items()}
    return {"f1": row.micro_f1[number], "dev_f1": row.dev_f1[number], **read, "seconds": seconds}


def read(path: Path, alike: Mapping[str, Any]) -> dict[tuple[str, int], Line]:
    """Return the lines with these settings by corpus and replicate. Skip lines that a crash cut off."""
    known = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if line["settings"] == alike:
            known[line["corpus"], line["replicate"]] = line
    return known


def task(name: str, known: Mapping[tuple[str, int], Line], n: int) -> TaskRow:
    """Return the result of one corpus, computed from its first n replicates."""
    lines = [known[name, seed] for seed in range(1, n + 1)]
    evaluations = {arm: [unpacked(line, arm) for line in lines] for arm in (CLAIM, CONTROL, NONE)}
    f1s = {arm: float(np.mean([line["arms"][arm]["f1"] for line in lines])) for arm in evaluations}
    over: dict[str, Difference] = {arm: compare(evaluations[CLAIM], evaluations[arm]) for arm in (CONTROL, NONE)}
    return TaskRow(
        name=name,
        run=lines[0]["run"],
        sentences=len(lines[0]["gold"]),
        tokens=round(float(np.mean([line["arms"][CLAIM]["tokens"] for line in lines]))),
        f1=f1s[CLAIM],
        none_f1=f1s[NONE],
        control_f1=f1s[CONTROL],
        reading=Estimate.of(over[NONE]),
        reading_interval=(over[NONE].lo, over[NONE].hi),
        choosing=Estimate.of(over[CONTROL]),
        choosing_interval=(over[CONTROL].lo, over[CONTROL].hi),
    )


def judged(alike: Mapping[str, Any], known: Mapping[tuple[str, int], Line], number: int) -> StudyResult | None:
    """Return the study at an analysis, or None if lines are missing. number: index of the analysis in `LOOKS`."""
    n, corpora = LOOKS[number], GROUNDS[alike.get("ground", "crossner")].corpora
    if any((name, seed) not in known for name in corpora for seed in range(1, n + 1)):
        return None
    named = dict.fromkeys(("train", "dev", "test", "names"), corpora)
    named |= {} if alike.get("cross") else {"task": corpora}
    plan = {**options(alike), **named, "domain": ("D_C",), "seeds": range(1, LOOKS[-1] + 1), "looks": LOOKS}
    config, tasks = StudyConfig.parse(plan), [task(name, known, n) for name in corpora]
    planned = planned_test(config, tasks, number)
    return StudyResult(
        arm=CLAIM,
        budget=config.claimed.budget,
        tasks=tasks,
        reading=questions.reading(config, tasks, n, planned.bound if planned else None),
        choosing=questions.choosing(config, tasks, n, planned.bound if planned else None),
        planned=planned,
        replicates=n,
        hours={},
    )


def show(known: Mapping[tuple[str, int], Line], study: StudyResult | None) -> None:
    """Print the figures of every replicate, then the result of the study."""
    print(f"| corpus | replicate | {NONE} | {CONTROL} | {CLAIM} | difference | tokens | minutes |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for (name, seed), line in sorted(known.items()):
        f1 = {arm: line["arms"][arm]["f1"] for arm in (NONE, CONTROL, CLAIM)}
        tokens = " ".join(f"{line['arms'][arm]['tokens']:,}" for arm in (CONTROL, CLAIM))
        minutes = sum(sum(each["seconds"].values()) for each in line["arms"].values()) / 60
        cells = [*(f"{each:.2f}" for each in f1.values()), f"{f1[CLAIM] - f1[CONTROL]:+z.2f}", tokens, f"{minutes:.0f}"]
        print(f"| {name} | {seed} | {' | '.join(cells)} |")
    if study:
        print(f"\n{tables.as_markdown(study)}{_by_chance(known, study)}", flush=True)
    else:
        print("\nNo result yet: the first interim analysis lacks lines.", flush=True)


def _by_chance(known: Mapping[tuple[str, int], Line], study: StudyResult) -> str:
    """Return mean scores over the tasks, and the difference of random text to none, which was not a planned claim."""
    estimates = []
    for row in study.tasks:
        lines = [known[row.name, seed] for seed in range(1, study.replicates + 1)]
        control, none = ([unpacked(line, arm) for line in lines] for arm in (CONTROL, NONE))
        estimates.append(Estimate.of(compare(control, none)))
    mean = pooled(estimates)
    delta, half = float(mean.delta), float(mean.half())
    means = {NONE: "none_f1", CONTROL: "control_f1", CLAIM: "f1"}
    scores = ", ".join(
        f"`{arm}` {np.mean([getattr(row, name) for row in study.tasks]):.1f}" for arm, name in means.items()
    )
    return (
        f"- On average over the tasks: {scores}.\n"
        f"- `{CONTROL}` over `{NONE}`: {delta:+z.2f} [{delta - half:+z.2f}, {delta + half:+z.2f}], not planned.\n"
    )


def make(given: argparse.Namespace, name: str, seeds: Sequence[int], alike: Mapping[str, Any]) -> None:
    """Run two replicates of a corpus and append their lines."""
    ground, data = GROUNDS[given.ground], given.data
    files = given.home / (f"files-{given.ground}" if ground.domain else "files")
    if not (files / "domain.txt").exists():
        if ground.domain:
            write_domain(data, ground.domain, files)
        else:
            write_corpora(data, CORPORA[0], files)
        if given.first:
            _shorten(files / "domain.txt", files / "domain.txt", "\n", 20 * given.first)
    if given.first:
        data = given.home / "short"
        (data / name).mkdir(parents=True, exist_ok=True)
        for split in ("train", "dev", "test"):
            place = Path(name) / f"{split}.conll"
            _shorten(given.data / place, data / place, "\n\n", given.first)
    if not ground.swapped:
        data = _few(data, name, given)
    parts = splits(data, name, files)
    if not ground.swapped:
        (files / "task.txt").write_text(
            "".join(f"{each}\n" for each in sentences(data / name / "train.conll")), "utf-8"
        )
        parts["task"] = runs.execute("add", {"path": str(files / "task.txt"), "name": f"task of {name}"}).result()[
            "corpus"
        ]
    domain = runs.execute("add", {"path": str(files / "domain.txt"), "name": "wiki, news, reviews, pubmed, legal"})
    given_corpora = {**parts, "domain": domain.result()["corpus"]}
    run = runs.execute("experiment", {**options(alike), **given_corpora, "seeds": tuple(seeds)}, _progress)
    text = "".join(json.dumps(line) + "\n" for line in lines_of(run, name, seeds, alike))
    with given.lines.open("a", encoding="utf-8") as file:
        file.write(text)


def write_domain(data: Path, shares: Mapping[str, int], folder: Path) -> None:
    """Write domain.txt, shuffled. shares: number of sentences to draw from each text with seed 0; 0: all."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, n in shares.items():
        with gzip.open(data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            lines = file.read().splitlines()
        rows += random.Random(0).sample(lines, n) if n else lines
    random.Random(1).shuffle(rows)
    (folder / "domain.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")


def origins(given: argparse.Namespace) -> None:
    """Print one line per selection in a home: how many of its sentences come from each text."""
    text_of = dict[str, str]()
    for name in GROUNDS[given.ground].domain:
        with gzip.open(given.data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            text_of |= dict.fromkeys(file.read().splitlines(), name)
    lines = (given.home / f"files-{given.ground}" / "domain.txt").read_text(encoding="utf-8").splitlines()
    for run in runs.listed("select", state="succeeded"):
        counts = Counter(text_of[lines[row]] for row in selections.chosen(run.id).rows)
        print(f"{run.manifest.config['strategy']}, seed {run.manifest.config['seed']}: {dict(counts.most_common())}")


def _few(data: Path, name: str, given: argparse.Namespace) -> Path:
    """Write the first sentences of train and dev, and the whole test split, to a folder; return it."""
    folder: Path = given.home / "few"
    (folder / name).mkdir(parents=True, exist_ok=True)
    train = given.train or GROUNDS[given.ground].train
    for split, n in (("train", train), ("dev", train // 2), ("test", None)):
        place = Path(name) / f"{split}.conll"
        _shorten(data / place, folder / place, "\n\n", n)
    return folder


def _shorten(source: Path, target: Path, between: str, n: int | None) -> None:
    """Copy the first n sentences of a file (None: all). between: separator of sentences."""
    rows = source.read_text(encoding="utf-8").strip().split(between)[:n]
    target.write_text(between.join(rows) + "\n", encoding="utf-8")


def _progress(event: Event) -> None:
    if event.kind == "part":
        print(f"[{event.data['number']} of {event.data['of']}] {event.data['name']}", flush=True)


def work(given: argparse.Namespace) -> None:
    """Run the missing replicates, one analysis after the other, and print the result."""
    alike, study = settings(given), None
    for number, n in enumerate(LOOKS):
        for first in given.pair or range(1, n, 2) if not given.table else ():
            for name in given.only or GROUNDS[given.ground].corpora:
                if any((name, seed) not in read(given.lines, alike) for seed in (first, first + 1)):
                    make(given, name, (first, first + 1), alike)
        study = judged(alike, read(given.lines, alike), number) or study
        if study and study.planned:
            break
    show(read(given.lines, alike), study)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--home", type=Path, help="Home of the runs; default: a temporary folder.")
    parser.add_argument("--lines", type=Path, default=LINES)
    parser.add_argument("--ground", default="crossner", choices=GROUNDS)
    parser.add_argument("--only", nargs="+", choices=CORPORA, help="On crossner: only these corpora.")
    parser.add_argument(
        "--pair", type=int, nargs=1, choices=range(1, LOOKS[-1], 2), help="Run only this replicate and the next."
    )
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--budget", help="Size of S_C; default: that of the ground.")
    parser.add_argument("--epochs", type=int, default=20, help="Epochs of fine-tuning; `quick` has 40.")
    parser.add_argument("--train", type=int, help="Training sentences (default: the ground's); dev has half as many.")
    parser.add_argument("--first", type=int, default=0, help="Rehearsal: use only the first sentences of every split.")
    parser.add_argument("--table", action="store_true", help="Train nothing; print the result of the stored lines.")
    parser.add_argument(
        "--origins", action="store_true", help="On bio or news, with --home: print the texts that selections come from."
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given.home = given.home or Path(folder)
        os.environ["WINNOW_HOME"] = str(given.home)
        (origins if given.origins else work)(given)


if __name__ == "__main__":
    main()
