"""NER without pre-training: F1 of a tagger on the bundled encoder on real corpora, and seconds per seed.

    python -m tests.lab.benchmarks.bench_ner [--corpora crossner-ai ...] [--seeds 1 2 3] [--preset quick] [--epochs N] [--home DIR]

`bc5cdr` and `conll2003` are limited to their first 1,000 training sentences. The borders of the news items, which the
stored copy of `conll2003` lacks, are restored. After a kill, the same command with the same --home resumes.
"""

import argparse
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.projects import runs
from tests.lab.benchmarks.data import DATA

CORPORA = ("crossner-ai", "crossner-music", "crossner-literature", "inlegalner", "bc5cdr")
FIRST = {"bc5cdr": 1000, "conll2003": 1000}
DATE = re.compile(r"\d{4}-\d\d-\d\d")
NAME = re.compile(r"[A-Z][\w'.-]*[a-z][\w'.-]*")


def splits(data: Path, name: str, folder: Path) -> dict[str, str]:
    """Import a labelled corpus, with its training split limited by `FIRST`; return `{split: fingerprint}`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for split in ("train", "dev", "test"):
        blocks = (data / name / f"{split}.conll").read_text(encoding="utf-8").strip().split("\n\n")
        if split == "train" and name in FIRST:
            blocks = blocks[: FIRST[name]]
        if name == "conll2003":
            blocks = list(bordered(blocks))
        path = folder / f"{name}-{split}.conll"
        path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
        found[split] = runs.execute("add", {"path": str(path)}).result()["corpus"]
    return found


def bordered(blocks: Sequence[str]) -> Iterator[str]:
    """Yield sentences of news in CoNLL's columns, with a line before each item, which the stored copy lacks.

    An item is recognised by its dateline ("BRUSSELS 1996-08-22"). It starts one sentence before, at the headline, or
    two before if the sentence between is a reporter's name. This finds 919 of the 946 items of train, 214 of 216 of
    dev, and 225 of 231 of test.
    """
    tokens = [[line.split("\t")[0] for line in block.splitlines()] for block in blocks]
    starts = set()
    for i, words in enumerate(tokens):
        if len(words) <= 8 and DATE.fullmatch(words[-1]):
            above = tokens[i - 1]
            starts.add(i - 1 - (len(above) <= 4 and all(map(NAME.fullmatch, above))))
    for i, block in enumerate(blocks):
        if i in starts:
            yield "-DOCSTART-\tO"
        yield block


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--epochs", type=int, help="Maximum number; default: the preset's.")
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        print("| corpus | dev F1 | test F1 per seed | mean ± sd | seconds per seed |\n|---|---:|---|---:|---:|")
        for name in given.corpora:
            parts = splits(given.data, name, Path(folder) / "files")
            options = {
                **parts,
                "test": (parts["test"],),
                "seeds": given.seeds,
                "preset": given.preset,
                "epochs": given.epochs,
            }
            result = runs.execute("finetune", options).result()
            test, dev = result["test"], result["dev"]
            spread = "" if test["sd"] is None else f" ± {test['sd']:.2f}"
            print(
                f"| {name} | {dev['mean']:.1f} | {' '.join(f'{f1:.1f}' for f1 in test['micro_f1'])} "
                f"| {test['mean']:.2f}{spread} | {' '.join(f'{s:.0f}' for s in result['seconds'])} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
