"""Run the commands of every table and figure of the five papers on real text, and write PAPERS.md.

    python -m tests.lab.benchmarks.bench_papers [--home DIR] [--only "Ma et al. 2023" ...] [--quick] [--write]

Runs the commands in RUNS on the first sentences of public corpora, in its own home, and appends their output to
papers.jsonl. It skips items that are there already, resumes inside a run with the same --home, and continues if an item
fails. Then it writes PAPERS.md from those lines and assets/papers.toml; `--write` does only that. `--quick` reruns the
items that take under a minute, which tests/test_papers.py compares with papers.jsonl. A full run takes some hours on
two cores. The figures show that the procedure runs. With so little text they show nothing else.
"""

import argparse
import gzip
import json
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from core import papers
from tests.homes import project_in
from tests.lab.benchmarks.data import DATA

HERE = Path(__file__).parent
ROOT, LINES, PAGE = HERE.parents[2], HERE / "papers.jsonl", HERE / "PAPERS.md"
MOST = 40  # lines of a command's output in PAPERS.md
LABELLED = {  # name: file below --data, number of sentences
    "music": ("crossner-music/train.conll", 100),
    "music-dev": ("crossner-music/dev.conll", 150),
    "music-test": ("crossner-music/test.conll", 300),
    "news": ("conll2003/train.conll", 300),
    "news-dev": ("conll2003/dev.conll", 100),
    "news-test": ("conll2003/test.conll", 200),
    "oov": ("conll2003/ood/oov.conll", 200),
    "cross": ("conll2003/ood/cross_category.conll", 200),
    "more-names": ("conll2003/dev.conll", 3250),
    "dutch": ("conll2002-nl/train.conll", 1000),
    "dutch-dev": ("conll2002-nl/dev.conll", 300),
    "dutch-test": ("conll2002-nl/test.conll", 400),
    "spanish": ("conll2002-es/train.conll", 1000),
    "contracts": ("inlegalner/train.conll", 2051),
}
UNLABELLED = {"wikipedia": 2000, "reviews": 2000, "pubmed": 2000}
LARGE = {"wikipedia-large": ("wikipedia", 26000), "reviews-large": ("reviews", 14000)}  # for word vectors
MIXED = "domain"  # all of UNLABELLED in one corpus
ENOUGH = 300_000  # tokens; word vectors trained on 30,000 are nearly all alike
ELSEWHERE = "elsewhere.vec"  # instead of GloVe's file: word vectors of MIXED in word2vec's text format
ANSWERS = "answers-made-up.csv"  # ten made-up answers, which show what `survey` prints
MADE_UP = (5, 4, 4, 5, 3, 4, 2, 5, 4, 4)
ON_MUSIC = "--train music --dev music-dev --test music-test"
ON_NEWS = "--train news --dev news-dev --test news-test"
SMALL = "--finetune epochs=6 --pretrain epochs=1"
HARDER = "--also-test oov,cross"
RUNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {  # {paper: {item: commands}}
    "Mahapatra et al. 2022": {
        "Figure 1": (f"select --task music --domain {MIXED} --strategy cos-mlm --budget 500",),
        "Table 1": (f"corpus show {MIXED}", "corpus show music"),
        "Table 2": ("corpus split contracts --by sentence --shares 1600,400 --names domain-part,task-part",),
        "Table 2 (ratios)": (
            "corpus split contracts --by sentence --shares 1600,400 --names domain-part,task-part",
            "corpus show contracts-task-part",
        ),
        "Table 3": (
            f"experiment --task music --domain wikipedia {ON_MUSIC} --arms none,tapt,gazetteer,pseudo-perplexity,"
            f"cos-pretrained,cos-mlm,cos-mlm-ner,ner-selected --budgets 300 --seeds 1 {SMALL}",
        ),
        "Table 3 (a list of names)": (
            f"experiment --task music --domain wikipedia {ON_MUSIC} --arms none,gazetteer --gazetteer more-names "
            f"--budgets 300 --seeds 1 {SMALL}",
        ),
        "Table 4": (
            f"experiment --task music --domain wikipedia {ON_MUSIC} --arms none,dapt,cos-mlm-ner --budgets 300 "
            f"--seeds 1 {SMALL}",
            "evaluate --model {finetune:dapt} --test music-test",
            "evaluate --model {finetune:cos-mlm-ner} --test music-test",
        ),
        "Beside Figure 1 (k-means)": (
            f"select --task music --domain {MIXED} --strategy cos-pretrained --option query=k-means --option centroids=0 "
            "--option quota=true --budget 500",
        ),
        "Table 5": (
            f"experiment --task music --domain wikipedia {ON_MUSIC} --arms none,tapt,cos-pretrained "
            f"--budgets 30,75,150,300 --seeds 1 {SMALL}",
        ),
        "Figure 2": (  # the same experiment, read as a curve
            f"experiment --task music --domain wikipedia {ON_MUSIC} --arms none,tapt,cos-pretrained "
            f"--budgets 30,75,150,300 --seeds 1 {SMALL}",
        ),
        "Figure 3": (
            "select --task music --domain wikipedia --train music --dev music-dev --strategy ner-selected --budget 300",
            "errors {finetune} --show 3",
        ),
        "Figure 4": (
            f"experiment --task music --domain wikipedia {ON_MUSIC} --arms none,cos-pretrained --budgets 300 "
            f"--train-sizes 50,100 --seeds 1 {SMALL}",
        ),
    },
    "Dai et al. 2019": {
        "Tables 1 and 2": ("corpus list",),
        "Table 3, left": ("similarity --target news --source wikipedia,reviews,pubmed --cap-tokens 100000",),
        "Table 3, right": (
            f"experiment {ON_NEWS} --sources wikipedia-large,reviews-large --arms none,vectors:wikipedia-large,"
            f"vectors:reviews-large,lm:wikipedia-large,lm:reviews-large --seeds 1,2 --finetune epochs=20 --cap-tokens {ENOUGH}",
        ),
        "Section 7.1 (kappa)": ("predictiveness assets/dai2019-table3.csv --measure ppl,wvv,tvc",),
        "Table 4": ("predictiveness assets/dai2019-table3.csv",),
        "Table 5": (
            "vectors add {folder}/files/" + ELSEWHERE + " --name elsewhere",
            f"experiment {ON_NEWS} --sources wikipedia-large --imported-vectors elsewhere --seeds 1 "
            "--finetune epochs=60,patience=60 "  # learning from 50-dimensional vectors is slow
            f"--arms none,vectors:wikipedia-large,vectors:elsewhere,lm:wikipedia-large --cap-tokens {ENOUGH}",
        ),
        "Figure 1 (survey)": ("survey {folder}/files/" + ANSWERS,),
        "Table 6": tuple(
            f"experiment {ON_NEWS} --sources wikipedia-large,reviews-large --arms none,vectors:wikipedia-large,"
            f"vectors:reviews-large --seeds 1 --finetune epochs=20 --cap-tokens {ENOUGH}{setting}"
            for setting in ("", " --vectors window=2,dimension=200,negative=10")
        ),
        "Figure 2": (
            f"experiment {ON_NEWS} --sources wikipedia-large --arms none,vectors:wikipedia-large,lm:wikipedia-large --seeds 1 "
            f"--finetune epochs=20 --cap-tokens {ENOUGH},400000,500000",
        ),
        "Section 7.2 (the rule)": ("predictiveness assets/dai2019-table3.csv",),
    },
    "Dai et al. 2019, slides": {
        "VIR, VcIR": ("similarity --target music --source wikipedia,reviews --measure tvc,tvcc --cap-tokens 100000",),
    },
    "Ma et al. 2023": {
        "Figure 3, Table 1": ("difficulty --train news --preset paper --calibrate no",),
        "Table 2": ("difficulty --train news --preset paper --calibrate no --output {folder}/mentions.parquet",),
        "Table 3": (
            f"experiment {ON_NEWS} {HARDER} --arms none,base:150,base+low:20,base+high:20 --seeds 1 --finetune epochs=6",
        ),
        "Figures 4 and 5": (
            f"experiment {ON_NEWS} {HARDER} --arms none,low-share:0%,low-share:30% --rebuild size=60 --seeds 1 "
            "--finetune epochs=6",
        ),
        "Tables 4 and 10": (
            f"experiment {ON_NEWS} {HARDER} --arms none,random2low:20%,highc2low:20%,redundant2low:20%,dataaug,lpft "
            "--seeds 1 --finetune epochs=6",
        ),
        "Tables 4 and 10 (MINER)": (
            f"experiment {ON_NEWS} {HARDER} --arms none,miner --seeds 1 --finetune epochs=20",
            f"experiment {ON_NEWS} {HARDER} --arms none,highc2low:20% --seeds 1 --finetune network=span "
            "--finetune beta=0.01 --finetune gamma=0.001 --finetune epochs=20",
        ),
        "Tables 5 and 11": (
            f"experiment {ON_NEWS} {HARDER} --arms none,random2high:20%,low2high:20% --seeds 1 --finetune epochs=6",
        ),
        "Tables 10 and 11, last rows": (
            f"experiment {ON_NEWS} {HARDER} --difficulty-encoder tiny --arms none,highc2low:20% --seeds 1 "
            "--finetune epochs=6",
        ),
        "Table 6": ("corpus show news",),
        "Tables 7 and 8": ("finetune --train news --dev news-dev --test news-test --preset paper-bias --seeds 1",),
        "Table 9": (
            "robustness --train news --test news-test --kind oov --gazetteer more-names",
            "robustness --train news --test news-test --kind cross-category --ambiguous textflint",
        ),
        "Figures 1 and 2": ("errors {finetune} --show 3",),  # for a tagger of the runs above
    },
    "Murthy et al. 2018": {
        "Table 1": ("corpus show dutch", "corpus show spanish"),
        "Section 2 (SKL)": ("skl --primary dutch --assisting spanish --threshold 0.5",),
        "Figure 1": ("skl --primary dutch --assisting spanish",),
        "Tables 2 and 3": (
            "assist --primary dutch --assisting spanish --dev dutch-dev --test dutch-test --network charcnn "
            "--thresholds 0.5 --shares all --seeds 1 --epochs 12",
        ),
        "Figure 2": (
            "assist --primary dutch --assisting spanish --dev dutch-dev --test dutch-test --network charcnn "
            "--thresholds 0.25,0.5,1 --shares all --seeds 1 --epochs 12",
        ),
    },
}
Line = dict[str, Any]


def prepared(data: Path, folder: Path, home: Path, add: Callable[[Path, str], object]) -> None:
    """Write the corpora that RUNS uses below `folder` and import each by `add(home, command)`."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: _first(data / "unlabeled" / f"{name}.txt.gz", n) for name, n in UNLABELLED.items()}
    large = {name: _first(data / "unlabeled" / f"{of}.txt.gz", n) for name, (of, n) in LARGE.items()}
    plain = {**texts, MIXED: "".join(texts.values()), **large}
    files = {name: (f"{name}.txt", text) for name, text in plain.items()}
    for name, (place, n) in LABELLED.items():
        sentences = (data / place).read_text(encoding="utf-8").strip().split("\n\n")[:n]
        files[name] = (f"{name}.conll", "\n\n".join(sentences) + "\n")
    asked = [f"nobody-{n},music,wikipedia,reviews,{rating}" for n, rating in enumerate(MADE_UP, 1)]
    (folder / ANSWERS).write_text("\n".join(["person,target,a,b,answer", *asked]) + "\n", encoding="utf-8")
    if not (folder / ELSEWHERE).exists():
        _vectors("".join(texts.values()), folder / ELSEWHERE)
    for name, (file, text) in files.items():
        (folder / file).write_text(text, encoding="utf-8")
        add(home, f"corpus add {folder / file} --name {name}")


def _vectors(text: str, path: Path) -> None:
    from gensim.models import Word2Vec

    sentences = [line.split() for line in text.splitlines()]
    model = Word2Vec(sentences, vector_size=50, min_count=3, sg=1, epochs=3, workers=1, seed=0)
    model.wv.save_word2vec_format(str(path))


def _first(packed: Path, n: int) -> str:
    with gzip.open(packed, "rt", encoding="utf-8") as lines:
        return "".join(islice(lines, n))


def _ours(home: Path, command: str) -> str:
    """Return the output of a command. Errors: CalledProcessError; the command's message is on stderr."""
    words = [sys.executable, "-m", "core", "--home", str(home), *shlex.split(command)]
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _filled(command: str, home: Path) -> str:
    """Fill a command's placeholders: the home, the last tested tagger, or an arm's tagger of the last experiment."""
    command = command.replace("{folder}", str(home))
    for tagger in re.findall(r"{finetune(?::([\w-]+))?}", command):
        name = f"{{finetune:{tagger}}}" if tagger else "{finetune}"
        command = command.replace(name, _of_arm(home, tagger) if tagger else _tagger(home))
    return command


def _of_arm(home: Path, arm: str) -> str:
    """Return the id of the first fine-tuning of an arm of the last experiment."""
    result = json.loads(max((project_in(home) / "runs").glob("*-experiment-*/result.json")).read_bytes())
    return str(next(row["finetune_run"] for row in result["leaderboard"] if row["arm"] == arm))


def _tagger(home: Path) -> str:
    """Return the id of the last fine-tuning with a test set."""
    about = {
        file.parent: json.loads(file.read_bytes())
        for file in (project_in(home) / "runs").glob("*-finetune-*/manifest.json")
    }
    tested = [run.name for run, each in about.items() if each["config"]["test"] and (run / "result.json").exists()]
    return max(tested)


def read(lines: Path) -> dict[tuple[str, str], Line]:
    """Return the last line of each paper and item."""
    texts = lines.read_text(encoding="utf-8").splitlines() if lines.exists() else []
    return {(line["paper"], line["item"]): line for line in map(json.loads, texts)}


def quick(line: Line) -> bool:
    """Return True if an item's commands take under a minute and need nothing that another item made."""
    words = " ".join(line["commands"])
    return line["seconds"] < 60 and not re.search(
        r"experiment |finetune|difficulty |vectors |ner-selected|corpus list", words
    )


def make(home: Path, paper: str, item: str) -> Line:
    """Run an item's commands and return the line with their output."""
    commands, begun, printed = RUNS[paper][item], time.perf_counter(), []
    for command in commands:
        text = _ours(home, _filled(command, home))
        printed.append(text.replace(str(home), "HOME").rstrip())
    return {
        "paper": paper,
        "item": item,
        "commands": commands,
        "printed": printed,
        "seconds": round(time.perf_counter() - begun),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{platform.machine()}, {platform.system()}",
    }


def page(known: Mapping[tuple[str, str], Line]) -> str:
    """Return the text of PAPERS.md."""
    parts = [
        "# The papers, table by table\n",
        "Every table and figure of the five papers: what it shows, how Winnow differs, the command for your text (capitals"
        " are your corpora), and its output on real text. Written by\n",
        "    python -m tests.lab.benchmarks.bench_papers\n",
        "from `assets/papers.toml`, which the page Papers shows too. The runs use the first sentences of public corpora,"
        " so that two cores suffice. They show that the procedure runs and what it prints. [RESULTS.md](RESULTS.md) shows"
        " what the methods are worth. Durations were measured on a busy machine; an item is fast if an earlier one made"
        " what it needs. With one seed there is no interval: older tables print [-100, +100], newer ones say so.\n",
    ]
    for paper in papers.listed():
        parts += [f"## {paper.name}\n", f"[{paper.title}]({paper.link})\n"]
        for item in paper.items:
            commands = "".join(f"    python -m core {command}\n" for command in item.commands)
            where = f" Page: {item.page.split('_')[1]}." if item.page else ""
            parts += [f"### {item.item}\n", f"{item.shows}{where} {item.differs}\n", commands]
            if line := known.get((paper.name, item.item)):
                parts += [f"{item.evidence}\n"] if item.evidence else []
                if tuple(line["commands"]) != RUNS[paper.name][item.item]:
                    parts.append("This output comes from an earlier command; the present one has not been run.\n")
                parts.append(f"On {line['date']} ({line['machine']}, {line['seconds']} s):\n")
                parts += [_block(*pair) for pair in zip(line["commands"], line["printed"], strict=True)]
            elif item.item in RUNS.get(paper.name, {}):
                parts.append("Not run yet.\n")
    return "\n".join(part for part in parts if part)


def _block(command: str, printed: str) -> str:
    lines = printed.splitlines()
    cut = [*lines[:MOST], f"... {len(lines) - MOST} more lines"] if len(lines) > MOST else lines
    text = "\n".join([f"$ python -m core {command}", *cut])
    return f"````\n{text}\n````\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--home", type=Path, help="Home of the runs; default: a temporary folder.")
    parser.add_argument("--lines", type=Path, default=LINES)
    parser.add_argument("--only", nargs="+", default=tuple(RUNS), choices=tuple(RUNS), help="Only these papers.")
    parser.add_argument("--quick", action="store_true", help="Rerun only the items that take under a minute.")
    parser.add_argument("--write", action="store_true", help="Run nothing; write PAPERS.md from stored lines.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = given.home or Path(folder)
        known = read(given.lines)
        missing = [
            (paper, item)
            for paper in given.only
            for item, commands in RUNS[paper].items()
            if (
                quick(known.get((paper, item), {"commands": (), "seconds": 60}))
                if given.quick
                else tuple(known.get((paper, item), {"commands": ()})["commands"]) != commands
            )
        ]
        if missing and not given.write:
            prepared(given.data, home / "files", home, _ours)
        failed = 0
        for paper, item in missing if not given.write else ():
            try:
                line = make(home, paper, item)
            except subprocess.CalledProcessError as error:
                failed += 1
                print(f"{paper}, {item}: failed with {error.returncode}: {shlex.join(error.cmd)}", flush=True)
                continue
            with given.lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(f"{paper}, {item}: {line['seconds']} s", flush=True)
    PAGE.write_text(page(read(given.lines)), encoding="utf-8")
    if failed:
        sys.exit(f"{failed} items failed; their errors are above. Run the command again to retry them.")


if __name__ == "__main__":
    main()
