"""Compute the table of five sources, with equal caps, against five targets; print it, its minutes and memory (issue 4).

    python -m tests.lab.benchmarks.bench_similarity [--data DIR] [--home DIR] [--cap equal] [--draws 3] [--sizes 2]

Reading and sealing the corpora is timed separately, because it happens once.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("pubmed", "legal", "news", "reviews", "wikipedia")
TARGETS = ("bc5cdr", "inlegalner", "conll2003", "crossner-ai", "crossner-music")
EXPECTED = {
    ("bc5cdr", "ppl"): "pubmed",
    ("bc5cdr", "tvc"): "pubmed",
    ("conll2003", "ppl"): "news",
    ("conll2003", "tvc"): "news",
    ("crossner-ai", "ppl"): "wikipedia",
    ("crossner-music", "ppl"): "wikipedia",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument(
        "--home", type=Path, help="Keep the corpora and the run here; default: a folder that is deleted."
    )
    parser.add_argument("--cap", default="equal")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sizes", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(options.home or folder)
        measure(options)


def measure(options: argparse.Namespace) -> None:
    from core.projects import runs
    from core.similarity.cli import in_words
    from core.similarity.measures import title

    begin = time.perf_counter()
    sources = tuple(added(options.data / "unlabeled" / f"{name}.txt.gz", name) for name in SOURCES)
    targets = tuple(added(options.data / name / "train.conll", name) for name in TARGETS)
    reading = time.perf_counter() - begin
    config = {"target": targets, "source": sources, "cap_tokens": options.cap, "draws": options.draws}
    begin = time.perf_counter()
    run = runs.execute("similarity", {**config, "sizes": options.sizes})
    result = run.result()
    minutes = (time.perf_counter() - begin) / 60
    print("\n".join(in_words(run.id)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"\n{minutes:.1f} minutes ({options.draws} draws, {result['cap_tokens']:,} tokens per source), "
        f"peak {peak:.1f} GB; reading the corpora before: {reading:.0f} s"
    )
    for (target, name), source in EXPECTED.items():
        found = result["closest"][target].get(name, "a tie")
        print(f"{target} by {title(name)}: {found}" + ("" if found == source else f", {source} was expected"))


def added(path: Path, name: str) -> str:
    """Return a corpus's fingerprint; import the corpus if it is missing."""
    from core.importing import view as corpora
    from core.projects import runs

    here = {corpus.name: corpus.fingerprint for corpus in corpora.listed()}
    return here.get(name) or str(runs.execute("add", {"path": str(path), "name": name}).result()["corpus"])


if __name__ == "__main__":
    main()
