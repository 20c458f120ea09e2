"""Golden values: compute what the code answers today and compare it with what it answered before a restructuring.

    python -m tests.lab.golden [--only PART ...]      compare with golden.json; exit status 1 if a value differs
    python -m tests.lab.golden --write                write golden.json

The script calls the command line in this process (`python -m core`, with its imports paid once) in a temporary home, on
one thread of the CPU and in fp32. Apart from the verdict, which needs `core.stats`, it depends on no module name. It
takes about four minutes of CPU time. Trained models are specific to the kind of processor: golden.json names its own, and
values of `strategies` and `difficulty` can differ on another one.

Texts and ids are compared by SHA-256, numbers by value (relative tolerance 1e-6). Hashed scores are rounded to 6 digits.
Results and reports are compared by the numbers they contain, not by keys or wording. Help texts may change on purpose,
so a changed one is listed but does not count as a difference.
"""

import argparse
import csv
import hashlib
import io
import json
import os
import platform
import re
import runpy
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from math import isclose, isfinite
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden.json")
COUNTS = Path(__file__).parent / "benchmarks" / "choosing.jsonl"
FINISHED = ROOT / "assets" / "samples" / "legal-finished.zip"
PROJECT = "Golden"  # the finished sample; the sample corpora lie in the first project of the home
TRAIN, DEV, TEST = "legal-train", "legal-dev", "legal-test"
SPLITS = ("--train", TRAIN, "--dev", DEV, "--holdout", TEST)
SELECT = ("select", "--task", "legal-task", "--domain", "legal-domain", *SPLITS, "--precision", "fp32")
TRAINED = ("cos-mlm", "cos-mlm-ner", "ner-selected", "pseudo-perplexity", "loss-drop")  # these train a model first
UNTRAINED = (
    "classifier",
    "knn",
    "cos-pretrained",
    "ngram-perplexity",
    "moore-lewis",
    "dsir",
    "fuse",
    "gazetteer",
    "random",
    "length-matched-random",
)
HELP = "help"
NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d,]*(?:\.\d+)?(?![\w-])")  # no part of a name, a date or a run id

Values = dict[str, Any]


def core(*words: str) -> str:
    """Run a command as `python -m core WORDS` and return its stdout. Errors: SystemExit with the command's stderr."""
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    with patch.object(sys, "argv", ["core", *words]), redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_module("core", run_name="__main__")
        except SystemExit as ended:
            status = ended.code
    if status:
        sys.exit(f"`python -m core {' '.join(words)}` failed with status {status}:\n{err.getvalue()[-2000:]}")
    return out.getvalue()


def answer(*words: str) -> Any:
    """Return the JSON object that a command prints."""
    return json.loads(core(*words, "--json"))


def sha(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def rounded(values: Iterable[float]) -> str:
    return " ".join(f"{value:.6f}" for value in values)


def numbers(value: Any) -> list[float]:
    """Return all finite numbers in a JSON value, sorted, so that renamed or reordered keys make no difference."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return sorted(number for each in value for number in numbers(each))
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else []


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a Parquet file."""
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    return columns


def samples(folder: Path) -> Values:
    """Return the sample corpora and the selection of the default strategy as text, byte for byte."""
    corpora = {each["name"]: numbers(each) for each in answer("corpus", "list")["corpora"]}
    text = folder / "selection.txt"
    told = answer(*SELECT, "--output", str(text))
    return {"corpora": corpora, "text": sha(text.read_bytes()), "counts": numbers(told)}


def strategies(folder: Path) -> Values:
    """Return ids and scores of every strategy's selection. Strategies that train use the encoder `tiny`."""
    values: Values = {}
    for name in (*UNTRAINED, *TRAINED):
        path = folder / f"{name}.jsonl"
        encoder = "tiny" if name in TRAINED else "minilm"
        # Pseudo-perplexity runs the encoder once per piece, so that the whole domain corpus would take seven minutes.
        few = ("--task", "medical-dev", "--domain", "medical-test") if name == "pseudo-perplexity" else ()
        core(*SELECT, "--strategy", name, "--encoder", encoder, "--seed", "1", *few, "--output", str(path))
        rows = lines(path)
        values[name] = {
            "ids": sha(" ".join(row["id"] for row in rows)),
            "scores": sha(rounded(row["score"] for row in rows)),
            "first and last": [rows[0]["score"], rows[-1]["score"]],
        }
    return values


def similarity(folder: Path) -> Values:
    """Return perplexity, vocabulary covered and word vector variance of two sources."""
    sources, short = "legal-domain,medical-domain", ("--draws", "2", "--sizes", "0", "--skipgram-epochs", "1")
    told = answer("similarity", "--target", "legal-task", "--source", sources, *short)
    rows = told["measurements"]
    return {f"{row['measure']} of {row['source']}": [row["value"], numbers(row["columns"])] for row in rows}


def difficulty(folder: Path) -> Values:
    """Return PVI and CEIM per mention, and the sets that are built from them."""
    path, short = folder / "mentions.parquet", ("--folds", "2", "--draws", "200", "--precision", "fp32")
    told = answer("difficulty", "--train", TRAIN, "--encoder", "tiny", *short, "--output", str(path))
    values: Values = {"result": numbers({key: each for key, each in told.items() if key != "seconds"})}
    for name, column in table(path).items():
        floats = [value for value in column if isinstance(value, float)]
        values[f"column {name}"] = (
            [sha(rounded(floats)), sum(floats)] if floats else sha(json.dumps(column, default=str))
        )
    for method in ("random2low", "random2high", "dataaug"):
        output, by = folder / f"{method}.conll", () if method == "dataaug" else ("--difficulty", told["run"])
        core("rebuild", "--train", TRAIN, "--method", method, "--encoder", "tiny", *by, "--output", str(output))
        values[f"rebuilt by {method}"] = sha(output.read_bytes())
    for kind in ("oov", "cross-category", "typos"):
        output = folder / f"{kind}.conll"
        core("robustness", "--test", TEST, "--train", TRAIN, "--kind", kind, "--output", str(output))
        values[f"test set {kind}"] = sha(output.read_bytes())
    return values


def skl(folder: Path) -> Values:
    """Return the divergence of shared entities, and the sentences that are kept."""
    values: Values = {}
    for assisting, mapped in ((DEV, ()), ("medical-train", ("--type-map", "DRUG=PARTY,PROBLEM=LAW"))):
        kept, drift = folder / f"{assisting}.conll", folder / f"{assisting}.csv"
        options = ("--threshold", "2", "--output", str(kept), "--drift", str(drift))
        told = answer("skl", "--primary", TRAIN, "--assisting", assisting, *mapped, *options)
        rows = [cell for row in csv.reader(io.StringIO(drift.read_text(encoding="utf-8"))) for cell in row]
        values[assisting] = {"kept": sha(kept.read_bytes()), "result": numbers(told), "entities": found(" ".join(rows))}
    return values


def verdict(folder: Path) -> Values:
    """Return intervals, pooled tests and verdicts, computed from the counts in choosing.jsonl."""
    import numpy as np

    from core.results import Evaluation
    from core.stats import sequential
    from core.stats.bootstrap import compare
    from core.stats.pooled import Estimate, pooled
    from core.stats.verdict import Arm, verdicts

    def evaluation(line: Mapping[str, Any], arm: str) -> Evaluation:
        """Unpack the counts of a tagger: a letter per sentence, `-` for a sentence that was not tested."""
        texts = {"gold": line["gold"], **{part: line["arms"][arm][part] for part in ("tp", "predicted")}}
        counts = {
            part: np.array([[max(ord(letter) - ord("0"), 0)] for letter in text], dtype=np.int32)
            for part, text in texts.items()
        }
        tested = np.array([letter != "-" for letter in line["gold"]])
        return Evaluation(types=("all",), **counts, tested=None if tested.all() else tested)

    grounds: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines(COUNTS):
        ground = line["settings"].get("ground", "crossner")
        grounds[ground][line["corpus"]].append(line)
    values: Values = {}
    for ground, corpora in grounds.items():
        estimates, replicates = [], 0
        for corpus, found_lines in corpora.items():
            ordered = sorted(found_lines, key=lambda line: int(line["replicate"]))
            replicates = len(ordered)
            arms = {arm: [evaluation(line, arm) for line in ordered] for arm in ("classifier", "random", "none")}
            estimates.append(Estimate.of(compare(arms["classifier"], arms["random"])))
            judged = {"classifier": Arm(system=arms["classifier"], random=arms["random"], unit="replicates")}
            judged["random"] = Arm(system=arms["random"], random=None, unit="replicates")
            for arm, each in verdicts(judged, arms["none"], claim="classifier").items():
                gaps = [gap for gap in (each.none, each.random) if gap]
                figures = [[gap.delta, gap.lo, gap.hi, gap.p] for gap in gaps]
                values[f"{corpus}, {arm}"] = [each.verdict, each.helped, each.chose, figures]
        mean, looks = pooled(estimates), (2, 4, 6)
        ended = sequential.ending(mean.look, looks, looks.index(replicates), 1.0)
        values[ground] = [ended, float(mean.delta), float(mean.half()), float(mean.p)]
    return values


def finished(folder: Path) -> Values:
    """Return exports and results of the finished sample, and the numbers in the tables of its report."""
    core("project", "import", str(FINISHED), "--name", PROJECT)
    home = ("--project", answer("project", "list")["projects"][-1]["project"])
    values: Values = {}
    for corpus in answer(*home, "corpus", "list")["corpora"]:
        for ending in ("txt", "jsonl", "conll" if corpus["labelled"] else "csv"):
            path = folder / f"{corpus['corpus']}.{ending}"
            core(*home, "corpus", "export", corpus["corpus"], "--output", str(path))
            values[f"corpus {corpus['name']} ({corpus['corpus'][:6]}).{ending}"] = sha(path.read_bytes())
    for run in answer(*home, "runs", "list")["runs"]:
        values[f"result of {run['run']}"] = numbers(answer(*home, "runs", "show", run["run"])["result"])
        if run["kind"] == "experiment":
            path = folder / "report.html"
            core(*home, "report", run["run"], "--date", "2026-01-01", "--output", str(path))
            cells = re.findall(r"(?s)<td[^>]*>(.*?)</td>", path.read_text(encoding="utf-8"))
            values["report"] = found(" ".join(re.sub("<[^>]+>", " ", cell) for cell in cells))
    selection = answer(*home, "choice", "list")["choices"][0]["choice"]
    for ending in ("txt", "jsonl", "csv"):
        path = folder / f"selection.{ending}"
        core(*home, "export", selection, "--output", str(path))
        values[f"selection.{ending}"] = sha(path.read_bytes())
    for name, command in (("folder", "export"), ("atlas", "atlas")):
        core(*home, command, selection, "--output", str(folder / name))
        for path in sorted((folder / name).rglob("*.parquet")):
            values[f"{name}/{path.name}"] = {key: sha(json.dumps(each)) for key, each in table(path).items()}
    return values


def found(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in NUMBER.findall(text.replace("\N{MINUS SIGN}", "-"))]


def helps(folder: Path) -> Values:
    """Return the hash of every command's help text."""
    values, waiting = {}, [()]
    while waiting:
        command: tuple[str, ...] = waiting.pop()
        text = core(*command, "--help")
        values[" ".join(("core", *command))] = sha(text)
        listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
        waiting += [(*command, name) for name in re.findall(r"(?m)^  ([\w-]+) ", listed)]
    return values


PARTS: dict[str, Callable[[Path], Values]] = {
    "samples": samples,
    "strategies": strategies,
    "similarity": similarity,
    "difficulty": difficulty,
    "skl": skl,
    "verdict": verdict,
    "finished": finished,
    HELP: helps,
}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its finished child processes."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def compute(parts: Sequence[str]) -> Values:
    """Return the values of each part, computed in a temporary home."""
    values: Values = {}
    settings = {"OMP_NUM_THREADS": "1", "WINNOW_DEVICE": "cpu", "WINNOW_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, settings | {"WINNOW_HOME": f"{folder}/home"}):
        for name in ("WINNOW_PROJECT", "WINNOW_ON"):
            os.environ.pop(name, None)
        core("samples")
        for part in parts:
            begun, busy = time.perf_counter(), cpu_seconds()
            (Path(folder) / part).mkdir()
            values[part] = PARTS[part](Path(folder) / part)
            wall, spent = time.perf_counter() - begun, cpu_seconds() - busy
            print(f"{part}: {len(values[part])} values, {spent:.0f} s of CPU time in {wall:.0f} s", flush=True)
    return json.loads(json.dumps(values))  # type: ignore[no-any-return]


def processor() -> str:
    """Return the model name of the processor, or its architecture if the system does not report a name."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    named = re.search(r"model name\s*: (.*)", text)
    return named[1] if named else platform.machine()


def pretty(golden: Mapping[str, Any]) -> str:
    """Return JSON text with one line per value, so that a changed value is one changed line."""
    texts = []
    for part, values in golden.items():
        rows = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
        texts.append(f" {json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(texts) + "\n}"


def same(golden: Any, now: Any) -> bool:
    """Return True if two values agree; numbers may differ in the seventh digit."""
    if isinstance(golden, list) and isinstance(now, list):
        return len(golden) == len(now) and all(map(same, golden, now))
    if isinstance(golden, float) and isinstance(now, int | float):
        return isclose(golden, now, rel_tol=1e-6, abs_tol=1e-9)
    return bool(golden == now)


def differences(golden: Any, now: Any, name: str = "") -> list[str]:
    """Return a line for each value that differs, is missing or is new."""
    if isinstance(golden, dict) and isinstance(now, dict):
        keys = [*golden, *(key for key in now if key not in golden)]
        pairs = [
            (golden.get(key, "(none)"), now.get(key, "(none)"), f"{name} / {key}" if name else key) for key in keys
        ]
        return [line for pair in pairs for line in differences(*pair)]
    if same(golden, now):
        return []
    if isinstance(golden, list) and isinstance(now, list):
        pairs = [(a, b, name) for a, b in zip(golden, now, strict=False) if not same(a, b)][:1]
        sizes = f" ({len(golden)} values, now {len(now)})" if len(golden) != len(now) else ""
        golden, now = (pairs[0][0], pairs[0][1]) if pairs else (f"... {golden[-1:]}", f"... {now[-1:]}")
        return [f"{name}{sizes}: {golden!s:.60}, now {now!s:.60}"]
    return [f"{name}: {golden!s:.60}, now {now!s:.60}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="Write golden.json instead of comparing with it.")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="Parts to compute; all if left out.")
    given = parser.parse_args()
    now = compute(given.only or list(PARTS))
    golden = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    if given.write:
        golden |= {"made on": {"processor": processor()}, **now}
        GOLDEN.write_text(pretty(golden) + "\n", encoding="utf-8")
        return
    changed = [line for part in now if part != HELP for line in differences(golden.get(part, {}), now[part], part)]
    helped = differences(golden.get(HELP, {}), now[HELP], HELP) if HELP in now else []
    for line in (*changed, *helped):
        print(line)
    print(f"{len(changed)} differences; {len(helped)} help texts changed, which is not counted.")
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
