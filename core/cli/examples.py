"""One example for each command, shown at the end of its `--help`."""

import click

CORE = "python -m core"
LABELS = "--train loans-train --dev loans-dev"
RUN = "20261126-111307-finetune-6ac7"
EXAMPLES = {
    "": "select --task loans --domain contracts --budget 20%",
    "samples": "samples",
    "corpus": "corpus add loans.txt",
    "corpus add": "corpus add train.conll --name loans-train",
    "corpus propose": "corpus propose train.conll test.conll contracts.csv --use",
    "corpus list": "corpus list --json",
    "corpus show": "corpus show loans-train",
    "corpus audit": "corpus audit --task loans --domain contracts --labelled loans-dev,loans-test",
    "corpus split": "corpus split loans-labelled --by document",
    "corpus filter": "corpus filter loans --where year=2019 --where year=2020",
    "corpus rename": "corpus rename loans loans-2026",
    "corpus export": "corpus export loans-train --output loans-train.jsonl",
    "corpus remove": "corpus remove loans --with-runs",
    "check": "check",
    "similarity": "similarity --target loans --source contracts,news",
    "predictiveness": "predictiveness measured.csv",
    "survey": "survey answers.csv",
    "prevalence": "prevalence --task loans --domain contracts",
    "which-strategy": "which-strategy --task loans --domain contracts --budget 20%",
    "select": "select --task loans --domain contracts --strategy classifier --budget 20%",
    "map": "map --selection 20261126-110622-select-c236",
    "atlas": "atlas loans-1880 --output atlas",
    "export": "export loans-1880 --output selected.jsonl",
    "choice": "choice list",
    "choice list": "choice list --json",
    "choice show": "choice show loans-1880",
    "choice keep": "choice keep loans-1880",
    "choice take": "choice take loans-1880",
    "choice set": "choice set loans-1880 --budget 10%",
    "choice rename": "choice rename loans-1880 loans-final",
    "choice compare": "choice compare loans-1880 loans-940",
    "choice remove": "choice remove loans-940",
    "label": "label next --task loans --domain contracts --train loans-train",
    "label next": f"label next --task loans --domain contracts {LABELS} --model {RUN} --output to-label.jsonl",
    "label agreement": "label agreement 20261126-110622-queue-c236",
    "label draw": "label draw --task loans --known loans-train --n 120",
    "label export": "label export 20261126-110622-queue-c236 --tool brat --output labelled.zip",
    "label import": "label import 20261126-110622-queue-c236 labelled.jsonl",
    "label review": "label review --corpus loans-train --dev loans-dev --against news-train",
    "label seal": "label seal 20261126-110622-queue-c236",
    "pretrain": "pretrain --corpus loans,contracts --init minilm --preset quick",
    "finetune": f"finetune {LABELS} --test loans-test --seeds 1,2,3",
    "evaluate": f"evaluate --model {RUN} --test loans-test",
    "predict": f"predict new.txt --model {RUN} --output tagged.jsonl",
    "dictionary": "dictionary --list drugs.csv --list diseases.txt=DISEASE --test clinic-test",
    "llm": "llm --model qwen3:8b --train loans-train --test loans-test --examples 8",
    "zero-shot": "zero-shot --model models/bert-base-NER --test news-test --dev news-dev --type-map PER=person",
    "errors": f"errors {RUN} --kind missed",
    "experiment": f"experiment --task loans --domain contracts {LABELS} --test loans-test --plan-only",
    "study": "study study.yaml --plan-only",
    "report": "report 20261126-110622-experiment-c236 --output report.pdf",
    "demo": "demo",
    "skl": "skl --primary loans-train --assisting news-train",
    "assist": "assist --primary loans-train --assisting news-train --dev loans-dev --test loans-test",
    "difficulty": "difficulty --train loans-train",
    "rebuild": "rebuild --train loans-train --method random2low --rate 0.2",
    "robustness": "robustness --test loans-test --train loans-train --kind typos",
    "frontier": f"frontier {RUN}",
    "project": "project list",
    "project list": "project list --json",
    "project new": "project new Loans",
    "project rename": "project rename Loans 'Loans 2026'",
    "project archive": "project archive Loans",
    "project unarchive": "project unarchive Loans",
    "project export": "project export Loans --output loans.zip",
    "project import": "project import loans.zip",
    "project remove": "project remove Loans",
    "runs": "runs list",
    "runs list": "runs list --tag march",
    "runs label": f"runs label {RUN} --name 'with crf' --tag march",
    "runs diff": f"runs diff {RUN} 20261126-111206-finetune-4bdd",
    "runs curves": f"runs curves {RUN} --output curves.csv",
    "runs show": f"runs show {RUN}",
    "runs cancel": f"runs cancel {RUN}",
    "runs resume": f"runs resume {RUN}",
    "runs remove": f"runs remove {RUN}",
    "encoders": "encoders list",
    "encoders list": "encoders list --json",
    "encoders get": "encoders get mpnet",
    "encoders rank": f"encoders rank {LABELS} --encoder minilm",
    "vectors": "vectors list",
    "vectors add": "vectors add glove.txt",
    "vectors list": "vectors list --json",
    "audit": "audit --json",
    "doctor": "doctor",
    "key": "key",
}
_ANYWHERE = ("--home", "--project", "--device", "--on")  # options of the program that may also follow a command


def with_examples(command: click.Command, name: str = "") -> None:
    """Add an example to the end of the help of a command, and of each of its subcommands. name: full command name."""
    if example := EXAMPLES.get(name):
        command.epilog = f"\b\nExample:\n  {CORE} {example}\n\n{_anywhere(command if name else None)}"
    if isinstance(command, click.Group):
        for below, child in command.commands.items():
            with_examples(child, f"{name} {below}".strip())


def _anywhere(command: click.Command | None) -> str:
    """Say which options of the program may follow a command. None: the program itself."""
    own = {flag for param in (command.params if command else ()) for flag in param.opts}
    *flags, last = (flag for flag in _ANYWHERE if flag not in own)
    text = f"{', '.join(flags)} and {last} can be given before or after the command."
    return f"{text} To choose the project, give --project NAME before the command." if "--project" in own else text
