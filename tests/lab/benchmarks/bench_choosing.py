"""Does choosing beat reading? One claim a ground: the default strategy against random text of as many tokens.

    python -m tests.lab.benchmarks.bench_choosing [--ground crossner|bio|news] [--home DIR] [--only crossner-music ...]
        [--pair 1|3|5] [--table] [--origins]

Grounds. crossner: CrossNER's AI, literature and music; every replicate has a choice, a pre-training and a tagger of its
own in both arms, and `none` a tagger; halves of each L_C are swapped (a half's text is T_C, 100 sentences of it are
labelled for training and 50 for dev, the other half is the test). D_C and S_C as in bench_worth: 109,482 sentences,
5,000 of them. bio and news, where choosing has much to find: the first 100 sentences of bc5cdr, of conll2003, are T_C
and the training set, 50 of dev those to decide by, the test split the test; D_C is 20,000 sentences of PubMed
among 425,754 others, 10,000 of newswire among 616,212; S_C 20,000.

One test over all of a ground, looked at after 2, 4 and 6 replicates: it ends where it knows. Two replicates, which swap
one pair of halves, are two lines of choosing.jsonl as soon as they are known, with their counts sentence by sentence,
so that all that is said at the end is said by the lines. Begun again it goes on behind them, on another machine too
(`--only` or `--pair` there), and with the same --home inside a training. A corpus and pair of crossner takes about 35
minutes on two cores: never in a test. Two processes with a host name of their own (`unshare -u`), WINNOW_SHARE=0/2 and
1/2 and one --home share a pair's trainings, a core each; each writes its --lines. So bio took 14 minutes to embed D_C
on a fast machine with bf16, and 50 a pair. `--table` trains nothing.
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
    """Where it is asked. corpora: of labels, a task each. domain: D_C's texts and how many sentences of each are drawn,
    0 for all; empty for bench_worth's. swapped: whether halves of the labels are."""

    corpora: tuple[str, ...]
    budget: str
    domain: Mapping[str, int] = field(default_factory=dict)
    swapped: bool = False


_OTHERS = {"legal": 0, "reviews": 0}
GROUNDS = {
    "crossner": Ground(corpora=CORPORA, budget="5000", swapped=True),
    "bio": Ground(corpora=("bc5cdr",), budget="20000", domain={"pubmed": 20_000, "news": 0, "wikipedia": 0, **_OTHERS}),
    "news": Ground(corpora=("conll2003",), budget="20000", domain={"news": 10_000, "pubmed": 0, **_OTHERS}),
}
CLAIM, CONTROL, NONE = "classifier", "random", "none"
LOOKS = (2, 4, 6)
LINES = Path(__file__).with_name("choosing.jsonl")
ZERO = ord("0")  # a sentence's count in one letter from there on; - where it was not tested

Line = dict[str, Any]


def settings(given: argparse.Namespace) -> dict[str, Any]:
    """What all replicates have alike: lines of other settings are not counted with these."""
    labels = {"cross": True, "cross_train": given.train, "cross_dev": given.train // 2}
    if not GROUNDS[given.ground].swapped:
        labels = {"ground": given.ground, "train": given.train, "dev": given.train // 2}
    return {
        "arms": [NONE, CONTROL, CLAIM],
        "budgets": [given.budget or GROUNDS[given.ground].budget],
        "claim": CLAIM,
        "encoder": given.encoder,
        **labels,
        "finetune": {"epochs": given.epochs},
        "effect": 1.0,
        "first": given.first,
    }


def options(alike: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as an experiment and a study take them."""
    return {name: value for name, value in alike.items() if name not in ("first", "ground", "train", "dev")}


def packed(counts: Any, tested: Any) -> str:
    """Counts of the sentences, a letter each. tested: of which of them; None: of all."""
    there = [True] * len(counts) if tested is None else tested
    return "".join(chr(ZERO + n) if at else "-" for n, at in zip(counts.sum(axis=1), there, strict=True))


def unpacked(line: Line, arm: str) -> Evaluation:
    """What a replicate's tagger got right, sentence by sentence."""
    told = {"gold": line["gold"], **{part: line["arms"][arm][part] for part in ("tp", "predicted")}}
    columns = {
        name: np.array([[max(ord(letter) - ZERO, 0)] for letter in text], dtype=np.int32) for name, text in told.items()
    }
    tested = np.array([letter != "-" for letter in line["gold"]])
    return Evaluation(types=("all",), **columns, tested=None if tested.all() else tested)


def lines_of(run: Run, name: str, seeds: Sequence[int], alike: Mapping[str, Any]) -> Iterator[Line]:
    """A line for each replicate of a finished experiment."""
    rows = {row.arm: row for row in leaderboard.read(run).leaderboard}
    by_test = {half.test: each for each in runs.listed("halves", state="succeeded") for half in _halves(each)}
    for number, seed in enumerate(seeds):
        arms, gold = {}, ""
        for arm, row in rows.items():
            finetune = runs.get(
                row.finetunes[min(number, len(row.finetunes) - 1)]
            )  # without halves `none` has one for all
            evaluations = halves.evaluations_of_replicate(finetune, by_test.get(finetune.manifest.config["test"][0]))
            table = evaluations[list(finetune.manifest.config["seeds"]).index(seed)]
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
    """One arm of a replicate: F1, what it read, seconds by kind of run."""
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
    """The lines so far of these settings, by corpus and replicate; one that was cut off by a death is made again."""
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
    """A domain by its first n replicates."""
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
    """The study at a look, by its lines; None where some of them are lacking. number: of the look, from 0."""
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
    """Every replicate's figures, then what all together say."""
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
        print("\nNothing can be said yet: lines of a look are lacking.", flush=True)


def _by_chance(known: Mapping[tuple[str, int], Line], study: StudyResult) -> str:
    """Mean scores over the tasks; what as much random text came to over none, of which no claim was planned."""
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
    """Two replicates of a corpus, and their lines."""
    ground, data = GROUNDS[given.ground], given.data
    files = given.home / ("files" if ground.swapped else f"files-{given.ground}")
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
    """domain.txt: so many sentences of each text, drawn by seed 0, all of it where that is 0; then shuffled."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, n in shares.items():
        with gzip.open(data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            lines = file.read().splitlines()
        rows += random.Random(0).sample(lines, n) if n else lines
    random.Random(1).shuffle(rows)
    (folder / "domain.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")


def origins(given: argparse.Namespace) -> None:
    """Print of which texts the choices are that a home holds, a line a selection."""
    text_of = dict[str, str]()
    for name in GROUNDS[given.ground].domain:
        with gzip.open(given.data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            text_of |= dict.fromkeys(file.read().splitlines(), name)
    lines = (given.home / f"files-{given.ground}" / "domain.txt").read_text(encoding="utf-8").splitlines()
    for run in runs.listed("select", state="succeeded"):
        counts = Counter(text_of[lines[row]] for row in selections.chosen(run.id).rows)
        print(f"{run.manifest.config['strategy']}, seed {run.manifest.config['seed']}: {dict(counts.most_common())}")


def _few(data: Path, name: str, given: argparse.Namespace) -> Path:
    """A folder with the first labelled sentences to learn from and to decide by, and the whole test split."""
    folder: Path = given.home / "few"
    (folder / name).mkdir(parents=True, exist_ok=True)
    for split, n in (("train", given.train), ("dev", given.train // 2), ("test", None)):
        place = Path(name) / f"{split}.conll"
        _shorten(data / place, folder / place, "\n\n", n)
    return folder


def _shorten(source: Path, target: Path, between: str, n: int | None) -> None:
    """The first n sentences of a file, None for all. between: two of them."""
    rows = source.read_text(encoding="utf-8").strip().split(between)[:n]
    target.write_text(between.join(rows) + "\n", encoding="utf-8")


def _progress(event: Event) -> None:
    if event.kind == "part":
        print(f"[{event.data['number']} of {event.data['of']}] {event.data['name']}", flush=True)


def work(given: argparse.Namespace) -> None:
    """Make what is missing, look by look, and say what it comes to."""
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
    parser.add_argument("--home", type=Path, help="Of the runs; without: one that is kept nowhere.")
    parser.add_argument("--lines", type=Path, default=LINES)
    parser.add_argument("--ground", default="crossner", choices=GROUNDS)
    parser.add_argument("--only", nargs="+", choices=CORPORA, help="Of crossner: make replicates of these alone.")
    parser.add_argument(
        "--pair", type=int, nargs=1, choices=range(1, LOOKS[-1], 2), help="Make the two from this one on."
    )
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--budget", help="Of S_C, where it is not the ground's own.")
    parser.add_argument("--epochs", type=int, default=20, help="Of fine-tuning; quick alone would take 40.")
    parser.add_argument("--train", type=int, default=100, help="Labelled sentences; half as many to choose by.")
    parser.add_argument("--first", type=int, default=0, help="A rehearsal: so many sentences of every split.")
    parser.add_argument("--table", action="store_true", help="Train nothing, print what is known.")
    parser.add_argument(
        "--origins", action="store_true", help="Of bio or news, with its home: of which texts choices are."
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given.home = given.home or Path(folder)
        os.environ["WINNOW_HOME"] = str(given.home)
        (origins if given.origins else work)(given)


if __name__ == "__main__":
    main()
