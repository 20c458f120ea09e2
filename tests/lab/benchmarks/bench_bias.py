"""Do labels teach names or contexts? Measure the V-information of both, CEIM's bins and the time, on real corpora.

    python -m tests.lab.benchmarks.bench_bias [--corpora crossner-literature ...] [--preset quick] [--mentions N] [--home DIR]

`crossner-literature` is its train and dev splits joined. `conll2003` is a seeded sample of whole training sentences
with about 4,000 mentions. --mentions N limits every corpus to about N mentions. After a kill, the same command with
the same --home resumes.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from core.projects import runs
from tests.lab.benchmarks.data import DATA

SPLITS = {"crossner-literature": ("train", "dev")}  # other corpora: only the training split
SAMPLE = {"conll2003": 4000}


def joined(data: Path, name: str, folder: Path) -> str:
    """Join the splits of a labelled corpus and import it; return its fingerprint."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [(data / name / f"{split}.conll").read_text(encoding="utf-8") for split in SPLITS.get(name, ("train",))]
    path = folder / f"{name}.conll"
    path.write_text("\n\n".join(text.strip() for text in texts) + "\n", encoding="utf-8")
    fingerprint: str = runs.execute("add", {"path": str(path)}).result()["corpus"]
    return fingerprint


def row(name: str, told: dict[str, Any]) -> str:
    """Return one line of the table."""
    n = told["mentions"]
    views = [
        f"{told['v_information'][view]:.3f} [{told['intervals'][view][0]:.3f}, {told['intervals'][view][1]:.3f}]"
        for view in ("entity", "context")
    ]
    bins = [
        f"{100 * count / n:.1f}% ({'none' if (mean := told['mean_pvi'][bin]['entity']) is None else f'{mean:.2f}'})"
        for bin, count in told["ceim"].items()
    ]
    return (
        f"| {name} | {n:,} | {told['entropy']:.3f} | {' | '.join(views)} | {' | '.join(bins)} | {told['seconds']:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--corpora", nargs="+", default=("crossner-literature", "conll2003"))
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--mentions", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        print("Values in bits, with 95% intervals over sentences. Bins: share of mentions (mean PVI of their names).\n")
        print("| corpus | mentions | H(Y) | V entity | V context | CEIM low | near zero | high | seconds |")
        print("|---|---:|---:|---|---|---:|---:|---:|---:|", flush=True)
        for name in given.corpora:
            train = joined(given.data, name, Path(folder) / "files")
            mentions = SAMPLE.get(name, 0) if given.mentions is None else given.mentions
            options = {"train": train, "preset": given.preset, "mentions": mentions, "seed": given.seed}
            print(row(name, runs.execute("difficulty", options).result()), flush=True)


if __name__ == "__main__":
    main()
