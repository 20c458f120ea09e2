"""Compare ways of choosing sentences to label, by test F1: a simulated annotator reveals gold labels.

    python -m tests.lab.benchmarks.bench_label [--grounds bc5cdr ...] [--starts 1 ... 5] [--arms queue ...] [--out DIR]
        [--table]

Each ground hides the labelled sentences of a corpus among text of other kinds (D_C), which counts as sentences without
entities. T_C is the text of 500 further sentences. A start has 50 labelled sentences and a tagger on them (bundled
MiniLM, preset `quick`). Each arm then asks for 25, 50 and 75 more labels:

- random: sentences of D_C, drawn at random
- selection: sentences drawn at random from the best 2,000 by the default strategy
- similarity: the best sentences by the default strategy
- uncertainty: of 2,000 random sentences, those that the tagger is least sure of
- queue: `label next` with the tagger of the last round

Taggers are trained after 75 and 150 further labels, `uncertainty` and `queue` after 25 too, and tested on the test
split. Every tagger appends a JSON line with its counts to DIR/label.jsonl. The same command resumes, and does not
repeat what `label.jsonl` beside this file has. At the end, a table shows the mean test F1 and the differences to
`random`, `selection` and `similarity`, paired by start, with 95% intervals. The intervals hold for other starts on the
same test set. `--table` trains nothing.
"""

import argparse
import gzip
import json
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, product
from math import sqrt
from pathlib import Path
from statistics import mean, variance
from typing import Any

from scipy.stats import t as student
from transformers import set_seed

from core.corpora.corpus import Corpus
from core.labelling import view as labelling
from core.models.taggers import new_tagger
from core.projects import runs
from core.projects.home import library
from core.reporter import Silent
from core.selection.result import Scored, withheld_flags
from core.text.sentence import Sentence
from core.training.finetune import finetune, score
from core.training.settings import TaggerSettings
from tests.lab.benchmarks import bench_ner
from tests.lab.benchmarks.data import DATA

GROUNDS = {  # labelled corpus: unlabelled text that it is hidden among, of another kind
    "bc5cdr": ("news", "reviews", "legal", "wikipedia"),
    "conll2003": ("reviews", "legal", "pubmed", "wikipedia"),
    "crossner-music": ("news", "reviews", "legal", "pubmed"),
}
LINES = Path(__file__).with_name("label.jsonl")
ARMS = ("random", "selection", "similarity", "uncertainty", "queue")
ASKING = ("uncertainty", "queue")  # arms that ask the tagger of the last round
START, DEV, TASK, OTHERS, TEST = 50, 100, 500, 20_000, 1000  # sentences
BEST, LOOKED_AT = 2000, 2000  # sentences that `selection` and `uncertainty` choose from
ROUNDS = (25, 75, 150)  # further labels
TRAINED = (75, 150)  # of these rounds, those after which every arm trains a tagger


F1 = dict[tuple[str, str, int, int], float]  # {(ground, arm, further labels, start): test F1}


class Ground:
    """The corpora of one ground, sealed in the home. hidden: {text: gold sentence} of the labelled ones in D_C."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        parts = bench_ner.splits(DATA, name, folder / name)
        rows = {split: list(chain.from_iterable(library().find(mark).batches())) for split, mark in parts.items()}
        rng = random.Random(0)
        train = rows["train"] if name in bench_ner.FIRST else [*rows["train"], *rows["dev"][DEV:]]
        rng.shuffle(train)
        self.dev, self.test = rows["dev"][:DEV], rows["test"][:TEST]
        fifth = len(train) // 5
        self.first, hidden = train[: max(fifth, START)], train[max(fifth, START) :]
        self.hidden = {sentence.text: sentence for sentence in hidden}
        each = OTHERS // len(GROUNDS[name])
        texts = [*self.hidden]
        for other in GROUNDS[name]:
            with gzip.open(DATA / "unlabeled" / f"{other}.txt.gz", "rt", encoding="utf-8") as file:
                texts += rng.sample(file.read().splitlines(), each)
        rng.shuffle(texts)
        (folder / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        task = [sentence.text for sentence in islice(chain(self.first, rows["dev"][DEV:]), TASK)]
        (folder / f"{name}-task.txt").write_text("\n".join(task) + "\n", encoding="utf-8")
        self.domain, self.task = (
            library().find(runs.execute("add", {"path": str(path), "name": path.stem}).result()["corpus"])
            for path in (folder / f"{name}.txt", folder / f"{name}-task.txt")
        )
        self.marks = {split: library().seal(rows_, name=f"{name} {split}", origin={}, labelled=True).fingerprint
                      for split, rows_ in (("dev", self.dev), ("test", self.test))}  # fmt: skip

    @cached_property
    def ranked(self) -> list[Sentence]:
        """Sentences of D_C that may be chosen, best first."""
        held_out = tuple(self.marks.values())
        options = {"task": self.task.fingerprint, "domain": self.domain.fingerprint, "holdout": held_out}
        scored = runs.execute("score", options)
        audit = runs.execute("audit", {"corpus": self.domain.fingerprint, "held_out": held_out})
        return list(self.domain.take(Scored.read(scored, audit, library()).eligible(withheld_flags(()))))

    def gold(self, sentence: Sentence) -> Sentence:
        """Return a sentence of D_C with its gold labels, in the tokens of the labelled corpus."""
        known = self.hidden.get(sentence.text)
        return known if known else Sentence(id=sentence.id, tokens=sentence.tokens, text=sentence.text, entities=())

    @property
    def types(self) -> list[str]:
        return sorted({entity.type for s in chain(self.first, self.dev, self.test) for entity in s.entities or ()})


def trained(ground: Ground, train: Sequence[Sentence], seed: int, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Train a tagger; return it with its counts on the test split. Its model is written to `folder`."""
    set_seed(seed)
    own = sorted({entity.type for s in train for entity in s.entities or ()})
    tagger = new_tagger("minilm", own, constrained=True)
    tagger.level_chains()
    settings = TaggerSettings().training(len(train))
    with tempfile.TemporaryDirectory() as checkpoints:
        types = ground.types
        finetune(tagger, train, ground.dev, settings, seed=seed, folder=Path(checkpoints), report=Silent(), types=types)
    tagger.write(folder)
    table = score(tagger, ground.test, ground.types, Silent())
    return tagger, {**{n: int(getattr(table, n).sum()) for n in ("tp", "predicted", "gold")}, "f1": table.f1()}


def chosen(
    arm: str, ground: Ground, labelled: Sequence[Sentence], n: int, seed: int, tagger: Any, model: Path
) -> list[Sentence]:
    """Return the next `n` sentences that an arm asks labels for."""
    known = {sentence.text for sentence in labelled}
    left = [sentence for sentence in ground.ranked if sentence.text not in known]
    rng = random.Random(seed)
    if arm == "random":
        return rng.sample(left, n)
    if arm == "selection":
        return rng.sample(left[:BEST], n)
    if arm == "similarity":
        return left[:n]
    if arm == "uncertainty":
        some = rng.sample(left, min(LOOKED_AT, len(left)))
        doubts = tagger.doubts(some, Silent())
        return [some[i] for i in sorted(range(len(some)), key=lambda i: -doubts[i])[:n]]
    train: Corpus = library().seal(labelled, name=f"{ground.name} {seed}", origin={}, labelled=True)
    options: dict[str, Any] = {"task": ground.task.fingerprint, "domain": ground.domain.fingerprint}
    options |= {"train": train.fingerprint}
    options |= {"dev": ground.marks["dev"], "holdout": (ground.marks["test"],), "model": str(model), "n": n}
    return [task.sentence for task in labelling.to_label(runs.execute("queue", options).id)]


def lines(ground: Ground, start: int, arm: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a line for each tagger of an arm from one start."""
    labelled = random.Random(start).sample(ground.first, START)
    model = folder / "tagger"
    tagger, counts = trained(ground, labelled, start, model) if arm in ASKING else (None, None)
    if counts:
        yield {"labels": 0, "in_domain": 0, **counts}
    done = in_domain = 0
    for total in ROUNDS:
        asked = chosen(arm, ground, labelled, total - done, 1000 * start + done, tagger, model)
        in_domain += sum(sentence.text in ground.hidden for sentence in asked)
        labelled, done = [*labelled, *map(ground.gold, asked)], total
        if total in TRAINED or arm in ASKING:
            tagger, counts = trained(ground, labelled, start, model)
            yield {"labels": total, "in_domain": in_domain, **counts}


def summary(known: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table: mean test F1 by ground, arm and further labels, and the paired differences."""
    f1 = {(line["ground"], line["arm"], line["labels"], line["start"]): line["f1"] for line in known}
    share = {(line["ground"], line["arm"], line["labels"], line["start"]): line["in_domain"] for line in known}
    rows = ["| ground | arm | labels | starts | in-domain | test F1 | over random | over selection | over similarity |"]
    rows.append("|---|---|---:|---:|---:|---:|---|---|---|")
    for ground, labels in sorted({(line["ground"], line["labels"]) for line in known if line["labels"] in TRAINED}):
        for arm in ARMS:
            starts = [start for g, a, n, start in f1 if (g, a, n) == (ground, arm, labels)]
            if not starts:
                continue
            cells = [_interval([gaps(f1, ground, arm, other, labels)]) if arm != other else "" for other in ARMS[:3]]
            inside = mean(share[ground, arm, labels, start] for start in starts)
            score_ = mean(f1[ground, arm, labels, start] for start in starts)
            rows.append(
                f"| {ground} | {arm} | {labels} | {len(starts)} | {inside:.0f} | {score_:.1f} | {' | '.join(cells)} |"
            )
    for labels, arm in product(TRAINED, ARMS[2:]):
        over = {
            other: [gaps(f1, ground, arm, other, labels) for ground in GROUNDS] for other in ARMS[:3] if other != arm
        }
        if all(len(pairs) > 1 for each in over.values() for pairs in each):
            starts = sorted({len(pairs) for pairs in over["random"]})
            cells = [_interval(over[other]) if other in over else "" for other in ARMS[:3]]
            rows.append(f"| all, equal weights | {arm} | {labels} | {starts[0]} | | | {' | '.join(cells)} |")
    return rows


def gaps(f1: F1, ground: str, arm: str, other: str, labels: int) -> list[float]:
    """Return the differences of two arms, one for each start that both have."""
    return [
        f1[ground, arm, labels, start] - f1[ground, other, labels, start]
        for g, a, n, start in f1
        if (g, a, n) == (ground, arm, labels) and (ground, other, labels, start) in f1
    ]


def estimate(grounds: Sequence[Sequence[float]]) -> tuple[float, float, float] | None:
    """Return the mean of the grounds' mean differences, its standard error, and degrees of freedom (Satterthwaite).

    None if a ground has fewer than two starts.
    """
    if any(len(pairs) < 2 for pairs in grounds):
        return None
    k, centre = len(grounds), mean(mean(pairs) for pairs in grounds)
    errors = [variance(pairs) / len(pairs) / k**2 for pairs in grounds]
    dof = sum(errors) ** 2 / sum(error**2 / (len(pairs) - 1) for error, pairs in zip(errors, grounds, strict=True))
    return centre, sqrt(sum(errors)), dof


def _interval(grounds: Sequence[Sequence[float]]) -> str:
    if (found := estimate(grounds)) is None:
        return "not measured"
    centre, error, dof = found
    half = error * float(student.ppf(0.975, dof))
    return f"{centre:+z.1f} [{centre - half:+z.1f}, {centre + half:+z.1f}]"


def stored() -> F1:
    """Return the test F1 of the lines beside this file."""
    lines = map(json.loads, LINES.read_text("utf-8").splitlines())
    return {(line["ground"], line["arm"], line["labels"], line["start"]): line["f1"] for line in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grounds", nargs="+", choices=GROUNDS, default=list(GROUNDS))
    parser.add_argument("--starts", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "winnow-label")
    parser.add_argument("--table", action="store_true", help="Train nothing; print the table of the stored lines.")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["WINNOW_HOME"] = str(given.out / "home")
    file = given.out / "label.jsonl"
    known = [
        json.loads(line) for path in (LINES, file) if path.exists() for line in path.read_text("utf-8").splitlines()
    ]
    there = {(line["ground"], line["start"], line["arm"]) for line in known if line["labels"] == ROUNDS[-1]}
    for name in () if given.table else given.grounds:
        ground: Ground | None = None
        for start in given.starts:
            for arm in given.arms:
                if (name, start, arm) in there:
                    continue
                ground = ground or Ground(name, given.out)
                made = [{"ground": name, "start": start, "arm": arm, **line}
                        for line in lines(ground, start, arm, given.out)]  # fmt: skip
                with file.open("a", encoding="utf-8") as stream:
                    stream.write("".join(json.dumps(line) + "\n" for line in made))
                known += made
                print(*map(json.dumps, made), sep="\n", flush=True)
    print("\n".join(summary(known)))


if __name__ == "__main__":
    main()
