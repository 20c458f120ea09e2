"""Compare heads of taggers on MiniLM without pre-training: CRF as it was, constrained, softmax, CRF with its own rate.

    python -m tests.lab.benchmarks.bench_taggers [--corpora crossner-ai ...] [--arms chain ...] [--seeds 1 2 3] [--out DIR]

The preset is `quick`; the arms differ only in the head. `conll2003` is limited to its first 1,000 training sentences.
Every training appends a line to DIR/lines.jsonl and writes its test table beside it. After a kill, the same command
with the same DIR resumes. At the end, every arm is compared with `as it was`, with an interval over seeds and test
sentences.
"""

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from core.projects import home
from core.reporter import Silent
from core.results import Evaluation
from core.stats.bootstrap import compare
from core.stats.calibration import calibration, confidences
from core.stats.scoring import cited_spans, evaluate
from core.text.sentence import Sentence
from core.training.settings import CHAIN, TaggerSettings
from tests.lab.benchmarks import bench_ner
from tests.lab.benchmarks.data import DATA

CORPORA = ("crossner-music", "crossner-ai", "crossner-literature", "conll2003")
BEFORE = "as it was"


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A tagger's head. chain_rate: learning rate of the CRF; None: the head's. level: start transitions at 0."""

    head: str = "crf"
    constrained: bool = True
    chain_rate: float | None = None
    level: bool = False


ARMS = {
    BEFORE: Arm(constrained=False),
    "constrained": Arm(),
    "softmax": Arm(head="softmax"),
    "chain": Arm(chain_rate=CHAIN, level=True),
}


def trained(splits: dict[str, list[Sentence]], arm: Arm, seed: int, encoder: str) -> tuple[dict[str, Any], Evaluation]:
    """Train one tagger; return its line and its table on the test sentences."""
    from transformers import set_seed

    from core.models.tagger import prediction_of
    from core.models.taggers import new_tagger
    from core.training.finetune import finetune, fit_temperature, score

    types = sorted({entity.type for split in splits.values() for s in split for entity in s.entities or ()})
    own = sorted({entity.type for s in splits["train"] for entity in s.entities or ()})
    set_seed(seed)
    tagger = new_tagger(encoder, own, head=arm.head, constrained=arm.constrained)  # type: ignore[arg-type]
    if arm.level:
        tagger.level_chains()
    start = tagger.crf.transitions.detach().clone()
    settings = replace(TaggerSettings().training(len(splits["train"])), chain_learning_rate=arm.chain_rate)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        epochs = finetune(
            tagger,
            splits["train"],
            splits["dev"],
            settings,
            seed=seed,
            folder=Path(folder),
            report=Silent(),
            types=types,
        )
    seconds, gold = time.perf_counter() - began, splits["test"]
    heat = fit_temperature(tagger, splits["dev"], Silent())
    tags, (plain, best) = tagger.read((1.0, heat), gold)
    sure = calibration(*confidences(gold, (plain, best)), heat)
    decoded = {
        "viterbi": [prediction_of(each.viterbi) for each in tags],
        "constrained": [prediction_of(each.constrained) for each in tags],
        "argmax": [prediction_of(each.argmax) for each in tags],
        "cited_scorer": [cited_spans(each.viterbi) for each in tags],
    }
    table = evaluate(gold, best, types)
    end, legal = tagger.crf.transitions.detach().cpu(), ~tagger.crf._illegal_follow.cpu()
    line = {
        "test_f1": table.f1(),
        "dev_f1": score(tagger, splits["dev"], types, Silent()).f1(),
        "decodings": {name: evaluate(gold, spans, types).f1() for name, spans in decoded.items()},
        "macro_f1": table.macro_f1(),
        "calibration": asdict(sure),
        "best_epoch": epochs.best,
        "epochs": len(epochs.dev_f1),
        "seconds": round(seconds, 1),
        "start": float(start.abs().mean()),
        "moved": float((end - start.cpu())[legal].abs().mean()),
        "spread": float(end[legal].std()),
    }
    return line, table


def summary(lines: list[dict[str, Any]], out: Path) -> list[str]:
    """Return one row per arm and corpus, with the difference to `as it was`."""
    groups = defaultdict(list)
    for line in sorted(lines, key=lambda line: line["seed"]):
        groups[line["corpus"], line["arm"]].append(line)
    tables = {key: [Evaluation.load(table_file(out, line)) for line in group] for key, group in groups.items()}
    rows = [
        "| corpus | arm | test F1 per seed | mean ± sd | over as it was | macro | ECE | chain moved | seconds per seed |"
    ]
    rows += ["|---|---|---|---:|---|---:|---:|---:|---:|"]
    for (corpus, arm), group in groups.items():
        f1s = [line["test_f1"] for line in group]
        gap, usual = "", tables.get((corpus, BEFORE))
        if usual and arm != BEFORE:
            found = compare(tables[corpus, arm], usual)
            gap = f"{found.delta:+z.2f} [{found.lo:+z.2f}, {found.hi:+z.2f}]"
        spread = f" ± {stdev(f1s):.2f}" if len(f1s) > 1 else ""
        moved, seconds = mean(line["moved"] for line in group), mean(line["seconds"] for line in group)
        each = " ".join(f"{f1:.1f}" for f1 in f1s)
        macro = mean(line["macro_f1"] for line in group)
        before, after = (mean(line["calibration"][name] for line in group) for name in ("before", "after"))
        rows.append(
            f"| {corpus} | {arm} | {each} | {mean(f1s):.2f}{spread} | {gap} | {macro:.1f} | {before:.3f} -> {after:.3f} "
            f"| {moved:.3f} | {seconds:.0f} |"
        )
    return rows


def table_file(out: Path, line: dict[str, Any]) -> Path:
    encoder = line.get("encoder", "minilm")
    of = "" if encoder == "minilm" else f"{Path(encoder).name}-"
    return out / f"{of}{line['corpus']}-{line['arm'].replace(' ', '-')}-{line['seed']}.npz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--out", type=Path, default=Path("/tmp/winnow-taggers"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["WINNOW_HOME"] = str(given.out / "home")
    path = given.out / "lines.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    lines = [line for line in lines if line.get("encoder", "minilm") == given.encoder]
    done = {(line["corpus"], line["arm"], line["seed"]) for line in lines}
    library = home.library()
    for name in given.corpora:
        wanted = [(arm, seed) for seed in given.seeds for arm in given.arms if (name, arm, seed) not in done]
        if not wanted:
            continue
        corpora = bench_ner.splits(given.data, name, given.out / "files")
        splits = {split: list(chain.from_iterable(library.find(ref).batches())) for split, ref in corpora.items()}
        for arm, seed in wanted:
            found, table = trained(splits, ARMS[arm], seed, given.encoder)
            line = {
                "corpus": name,
                "encoder": given.encoder,
                "arm": arm,
                "seed": seed,
                "sentences": len(splits["train"]),
                **found,
            }
            table.save(table_file(given.out, line))
            with path.open("a") as file:  # after the table, so that a line means that both exist
                file.write(json.dumps(line) + "\n")
            lines.append(line)
    print(*summary(lines, given.out), sep="\n")


if __name__ == "__main__":
    main()
