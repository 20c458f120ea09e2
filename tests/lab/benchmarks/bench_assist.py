"""Does an assisting corpus help? A tagger alone, with all sentences of another language, with those that SKL keeps.

    python -m tests.lab.benchmarks.bench_assist [--pairs PRIMARY:ASSISTING ...] [--seeds 1 2 3] [--home DIR]

Runs the recipe `assist` with the network of Murthy et al. 2018, sized for a CPU: fewer units and epochs, and the first
1,000 training sentences of every corpus (a low-resource case). A pair takes half an hour on one core; to use two cores,
start two processes with different pairs and homes. The threshold is chosen on dev. After a kill, the same command with
the same --home resumes.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from core.importing import view as corpora
from core.projects import runs
from tests.lab.benchmarks.data import DATA

PAIRS = ("german-ep:conll2002-nl", "conll2002-es:conll2003", "conll2002-es:conll2002-nl")
SCHEMES = {"german-ep": "io"}
DEV = 300  # sentences


def added(data: Path, name: str, split: str, first: int, folder: Path) -> str:
    """Import the first sentences of a labelled corpus (0: all); return its fingerprint."""
    label = f"{name} {split}{f' first {first}' if first else ''}"
    here = {corpus.name: corpus.fingerprint for corpus in corpora.listed()}
    if label in here:
        return here[label]
    sentences = (data / name / f"{split}.conll").read_text(encoding="utf-8").strip().split("\n\n")
    path = folder / f"{name}-{split.replace('/', '-')}-{first}.conll"
    path.write_text("\n\n".join(sentences[: first or None]) + "\n", encoding="utf-8")
    options = {"path": str(path), "name": label, "scheme": SCHEMES.get(name, "iob2")}
    return str(runs.execute("add", options).result()["corpus"])


def show(pair: str, result: Mapping[str, Any], seconds: float) -> None:
    """Print one line per arm, then the threshold chosen on dev against `all` and `monolingual`."""
    alone = mean(result["rows"][0]["test"])
    for row in result["rows"]:
        seeds = " ".join(f"{f1:.2f}" for f1 in row["test"])
        spread = f"{row['mean']:.2f}" + ("" if row["sd"] is None else f" ± {row['sd']:.2f}")
        told = (
            pair,
            row["arm"],
            f"{row['kept']:,}",
            f"{row['dev_mean']:.2f}",
            seeds,
            spread,
            f"{row['mean'] - alone:+.2f}",
        )
        print(f"| {' | '.join(told)} |", flush=True)
    for table in result["tables"]:
        for other in ("all", "monolingual"):
            told, test = table["verdicts"][other], table[f"against_{other}"]
            chance = "no test" if test is None else f"Welch's t {test['t']:.2f}, p {test['p']:.3f}"
            print(
                f"\n{pair}, chosen on dev (skl:{table['threshold']:g}) against {other}: {told['delta']:+.2f} "
                f"[{told['interval'][0]:+.2f}, {told['interval'][1]:+.2f}], {told['verdict']}; {chance}"
            )
    print(f"\n{pair}: {seconds / 60:.1f} minutes\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--pairs", nargs="+", default=PAIRS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--thresholds", nargs="+", type=float, default=[1, 4])
    parser.add_argument(
        "--alone", action="store_true", help="Train on the primary alone for twice the epochs (as many steps)."
    )
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument(
        "--batch-size", type=int, default=10, help="Small, because this SGD needs many steps and the corpora are small."
    )
    parser.add_argument("--primary", type=int, default=1000, help="Training sentences of the primary corpus; 0: all.")
    parser.add_argument("--assisting", type=int, default=1000, help="Sentences of the assisting corpus; 0: all.")
    parser.add_argument("--test", type=int, default=0, help="Test sentences; 0: all.")
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        print(
            "| pair | arm | borrowed | dev F1 | test F1 per seed | mean ± sd | against alone |\n|---|---|---:|---:|---|---:|---:|"
        )
        for pair in given.pairs:
            primary, assisting = pair.split(":")
            begin = time.perf_counter()
            options: dict[str, Any] = {
                "dev": added(given.data, primary, "dev", min(DEV, given.test or DEV), Path(folder)),
                "seeds": given.seeds,
                "hidden": given.hidden,
                "batch_size": given.batch_size,
            }
            train = added(given.data, primary, "train", given.primary, Path(folder))
            test = added(given.data, primary, "test", given.test, Path(folder))
            if given.alone:
                options |= {"train": train, "test": (test,), "network": "charcnn", "epochs": 2 * given.epochs}
                told = runs.execute("finetune", options).result()["test"]
                print(
                    f"| {primary} alone, twice the epochs | {told['micro_f1']}, mean {told['mean']}, sd {told['sd']} |"
                )
                continue
            options |= {
                "primary": train,
                "test": test,
                "thresholds": given.thresholds,
                "epochs": given.epochs,
                "assisting": added(given.data, assisting, "train", given.assisting, Path(folder)),
            }
            result = runs.execute("assist", options).result()
            show(pair, result, time.perf_counter() - begin)


if __name__ == "__main__":
    main()
