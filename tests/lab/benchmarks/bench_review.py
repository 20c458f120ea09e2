"""Count how many planted label errors `label review` lists first.

    python -m tests.lab.benchmarks.bench_review [--corpora conll2003 bc5cdr] [--seeds 1 2] [--out DIR]

From a corpus, 300 training sentences are drawn; a tenth of the sentences with an entity get one error: another type, no
label, or a border that is one token off, a third each. The review checks them with five taggers (bundled MiniLM, preset
`quick`, 100 dev sentences). Of the first k listed sentences, where k is the number of planted errors, it counts those
with a planted error, by kind of error. The corpora have errors of their own, which count as false alarms. Chance is the
share of planted sentences. The same command resumes.
"""

import argparse
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from core.labelling import view as labelling
from core.projects import runs
from core.projects.home import library
from core.text.sentence import Entity, Sentence
from tests.lab.benchmarks import bench_ner
from tests.lab.benchmarks.data import DATA

SENTENCES, DEV, SHARE = 300, 100, 0.1
ERRORS = ("type", "missing", "border")


def spoilt(sentence: Sentence, error: str, types: Sequence[str], rng: random.Random) -> Sentence | None:
    """Return the sentence with one error; None if it allows none of this kind."""
    entities = sorted(sentence.entities or ())
    at = rng.randrange(len(entities))
    one = entities[at]
    if error == "type":
        wrong: list[Entity] = [replace(one, type=rng.choice([name for name in types if name != one.type]))]
    elif error == "missing":
        wrong = []
    else:
        after = entities[at + 1].start if at + 1 < len(entities) else len(sentence.tokens)
        if one.end < after:
            wrong = [replace(one, end=one.end + 1)]
        elif one.end - one.start > 1:
            wrong = [replace(one, end=one.end - 1)]
        else:
            return None
    return replace(sentence, entities=(*entities[:at], *wrong, *entities[at + 1 :]))


def planted(rows: Sequence[Sentence], rng: random.Random) -> tuple[list[Sentence], dict[str, str]]:
    """Return the sentences with errors, and {id of the sentence: kind of its error}."""
    types = sorted({entity.type for row in rows for entity in row.entities or ()})
    kinds = [kind for kind in ERRORS if kind != "type" or len(types) > 1]
    able = [place for place, row in enumerate(rows) if row.entities]
    made, errors = list(rows), dict[str, str]()
    for number, place in enumerate(rng.sample(able, round(SHARE * len(able)))):
        kind = kinds[number % len(kinds)]
        if wrong := spoilt(rows[place], kind, types, rng):
            made[place] = wrong
            errors[wrong.id] = kind
    return made, errors


def measured(name: str, seed: int, folder: Path) -> dict[str, object]:
    """Plant errors, review the labels, and count."""
    rng = random.Random(seed)
    parts = bench_ner.splits(DATA, name, folder / name)
    train, dev = (list(chain.from_iterable(library().find(parts[part]).batches())) for part in ("train", "dev"))
    unlike = list({row.id: row for row in train}.values())
    rows, errors = planted(rng.sample(unlike, min(SENTENCES, len(unlike))), rng)
    corpus = library().seal(rows, name=f"{name} {seed}", origin={}, labelled=True).fingerprint
    judge = library().seal(dev[:DEV], name=f"{name} dev", origin={}, labelled=True).fingerprint
    run = runs.execute("review", {"corpus": corpus, "dev": judge, "seed": seed, "n": 1000})
    listed = [task.queued.id for task in labelling.to_label(run.id)]
    first = Counter(errors[mark] for mark in listed[: len(errors)] if mark in errors)
    every = Counter(errors[mark] for mark in listed if mark in errors)
    return {
        "corpus": name,
        "seed": seed,
        "sentences": len(rows),
        "planted": dict(Counter(errors.values())),
        "listed": len(listed),
        "among_first": dict(first),
        "anywhere": dict(every),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=["conll2003", "bc5cdr"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "winnow-review")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["WINNOW_HOME"] = str(given.out / "home")
    file = given.out / "review.jsonl"
    known = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    for name in given.corpora:
        for seed in given.seeds:
            if any((line["corpus"], line["seed"]) == (name, seed) for line in known):
                continue
            line = measured(name, seed, given.out)
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
