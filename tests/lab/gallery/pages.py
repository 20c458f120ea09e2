"""Write the pages of the gallery from finished runs, and take their pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from playwright.sync_api import Locator, Page, sync_playwright

from core.errors import CorpusError
from core.experiment import results
from core.experiment.report.documents import examples
from core.experiment.result import ArmRow, ExperimentResult, baseline
from core.experiment.words import main as main_line
from core.importing import view as corpora
from core.projects import runs
from core.projects.home import library, store
from core.selection import view as selections
from core.shown import duration
from core.tagging import result as taggers
from tests.browser import chromium
from tests.browser.driver import PAGES, ROOT, Server, left, settled, watched
from tests.browser.test_every_page import painted
from tests.lab.gallery.texts import TASKS, Task
from tests.lab.pictures import VIEWPORT, VIEWS, View, take

FOLDER = ROOT / "docs" / "gallery"
PICTURES = {"Explore": "map", "Results": "results"}  # {page: name of its picture}
SHOWN = 4  # sentences from each end of the ranking
COMMANDS = {
    "propose": "corpus propose {texts} --use",
    "select": "select --task task --domain domain --train train --dev dev --holdout test --budget 300",
    "map": "map --selection {selection}",
    "experiment": "experiment --task task --domain domain --train train --dev dev --test test "
    "--arms none,random,classifier --budgets 300 --seeds 1,2,3 --repeat tagger --pretrain epochs=2 --finetune epochs=10",
}
OF_SAMPLE = {  # as in `.ci/finished`; {further}: see `FURTHER`
    "samples": "samples",
    "experiment": "experiment --task {name}-task --domain {name}-domain --train {name}-train --dev {name}-dev "
    "--test {name}-test --arms none,random,classifier --budgets 1000 --seeds 1,2,3{further} --pretrain epochs=2 "
    "--finetune epochs=8",
    "select": "select --task {name}-task --domain {name}-domain --train {name}-train --dev {name}-dev "
    "--holdout {name}-test --budget 1000",
    "map": "map --selection {selection}",
}
FURTHER = {"legal": "", "medical": " --repeat tagger"}
ROLES = {
    "task": "task corpus (T_C)",
    "domain": "domain corpus (D_C)",
    "train": "training set",
    "dev": "dev set",
    "test": "test set",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Ids of the runs that a page describes."""

    select: str
    map: str
    experiment: str

    @classmethod
    def newest(cls) -> Self:
        """Return the newest map of this project, its selection, and the newest experiment."""
        mapped, experiment = (runs.own(kind)[0] for kind in ("map", "experiment"))
        return cls(select=str(mapped.manifest.config["selection"]), map=mapped.id, experiment=experiment.id)


def page(task: Task, made: Runs) -> tuple[str, int]:
    """Return the page of a task in Markdown, and the number of sentences on its map."""
    board = results.board(made.experiment)
    config = store().get(made.experiment).manifest.config
    sizes = {role: corpora.find(config[role]) for role in ROLES}
    origin = (
        f"The texts are those of the sample set `{task.sample}`, which ships with Winnow. This page shows the finished "
        f"sample: press **Open the finished {task.sample} sample** on Home."
        if task.sample
        else f"`python -m tests.lab.gallery HOME {task.name}` generates the texts in `HOME/texts/{task.name}`, from the "
        f"rules in [{task.name}.txt](../../tests/lab/gallery/grammars/{task.name}.txt). All names are invented."
    )
    parts = [
        f"# {task.title}",
        f"{task.about} {origin}",
        _table(("corpus", "sentences"), [(ROLES[role], f"{len(corpus):,}") for role, corpus in sizes.items()]),
        "## Commands",
        _commands(task),
        _times(made),
        "## Selection",
        _selected(made.select),
        _picture(
            task, "Explore", "The map: the task corpus, the selected and the other sentences of the domain corpus."
        ),
        "## What came out",
        *results.finding(made.experiment).parts,
        _variants(board),
        _picture(task, "Results", "The results page: the verdict, and the interval against zero."),
        *_by_type(board),
        *_examples(board),
    ]
    return "\n\n".join(parts) + "\n", len(sizes["task"]) + len(sizes["domain"])


def index() -> str:
    """Return the page that links all tasks."""
    there = [task for task in TASKS if (FOLDER / f"{task.name}.md").exists()]
    links = "\n".join(
        f"- [{task.title}]({task.name}.md): {task.about.partition('. ')[0].rstrip('.')}." for task in there
    )
    return (
        "# Gallery\n\n"
        "Each page shows one task from its texts to the verdict: the commands, the time, two pictures and what came out. "
        "The texts are invented, and rules in this repository generate them. They are much more alike than real text, so "
        "the scores say nothing about yours.\n\n"
        f"{links}\n\n"
        "`python -m tests.lab.gallery HOME` makes these pages and their pictures.\n"
    )


def photograph(task: Task, home: Path, slug: str, sentences: int) -> None:
    """Take the pictures of a task's project. sentences: number of sentences on its map."""
    mapped = VIEWS["Explore"]
    views = {
        "Explore": View(top=mapped.top, bottom=_text(f"{sentences:,} sentences"), act=mapped.act),
        "Results": View(top=VIEWS["Results"].top, bottom=_text("How sure this is")),
    }
    with (
        TemporaryDirectory() as folder,
        Server(home=home, data=Path(folder)) as server,
        sync_playwright() as playwright,
    ):
        server.start()
        browser = chromium.start(playwright, chromium.find())
        assert not isinstance(browser, str), browser
        with watched(browser, viewport=VIEWPORT, color_scheme="light", reduced_motion="reduce") as context:
            opened = context.new_page()
            for name, view in views.items():
                opened.goto(f"{server.url}/{PAGES[name]}?project={slug}")
                settled(opened)
                painted(opened, name)
                take(opened, view, FOLDER / f"{task.name}-{PICTURES[name]}.webp")
            left(opened)


def _text(words: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_text(words).first


def _commands(task: Task) -> str:
    if task.sample:
        lines = [
            each.format(name=task.sample, selection="RUN", further=FURTHER[task.sample]) for each in OF_SAMPLE.values()
        ]
    else:
        lines = [each.format(texts=f"HOME/texts/{task.name}", selection="RUN") for each in COMMANDS.values()]
    shown = "\n".join(f"python -m core {line}" for line in lines)
    return f"```\n{shown}\n```\n\nRUN is the run that `select` printed."


def _times(made: Runs) -> str:
    """Return a table of the durations, and the processor."""
    named = {"select": made.select, "map": made.map, "experiment": made.experiment}
    rows = [(name, duration(runs.state(run).seconds)) for name, run in named.items()]
    machines = {
        f"{state.machine}, {state.device}"
        for run in store().list("finetune", "pretrain")
        if (state := run.state()).device and run.manifest.parent
    }
    return f"{_table(('run', 'time'), rows)}\n\nMeasured on {'; '.join(sorted(machines))}."


def _selected(choice: str) -> str:
    """Return both ends of the ranking."""
    scored, outcome = selections.scored(choice), selections.result(choice)
    best = scored.table(scored.order[:SHOWN])
    worst = scored.table(scored.order[-SHOWN:])
    flagged = ", ".join(f"{n:,} {flag.replace('_', ' ')}" for flag, n in outcome.dropped.items() if n)
    count = f"{outcome.selected:,} of {len(scored.domain):,} sentences were selected ({outcome.tokens:,} tokens)."
    return "\n\n".join(
        (
            count + (f" Left out by a flag: {flagged}." if flagged else ""),
            "The highest scores:",
            _list([row["text"] for row in best]),
            "The lowest scores:",
            _list([row["text"] for row in worst]),
        )
    )


def _variants(board: ExperimentResult) -> str:
    def row(arm: ArmRow) -> tuple[str, ...]:
        gain = f"{arm.delta:+.1f} [{arm.interval[0]:+.1f}, {arm.interval[1]:+.1f}]" if arm.arm != "none" else "baseline"
        sd = "" if arm.sd is None else f"{arm.sd:.1f}"
        return arm.arm, f"{arm.sentences:,}", f"{arm.mean:.1f}", sd, gain

    heads = ("variant", "sentences read", "test F1", "sd", "difference to none")
    return _table(heads, [row(arm) for arm in board.leaderboard])


def _by_type(board: ExperimentResult) -> list[str]:
    lines = _pair(board)
    rows = [
        (each.type, f"{each.mentions:,}", f"{each.a:.1f}", f"{each.b:.1f}")
        for each in results.type_scores(*(tuple(line.finetunes) for line in lines))
    ]
    return ["F1 by entity type:", _table(("type", "mentions", lines[0].arm, lines[1].arm), rows)]


def _examples(board: ExperimentResult) -> list[str]:
    """Return test sentences that only one of the two taggers got right."""
    base, main = _pair(board)
    a, b = store().get(base.finetune_run), store().get(main.finetune_run)
    found = examples(
        taggers.side_by_side(a, a.manifest.config["seeds"][0], b, b.manifest.config["seeds"][0], library())
    )
    shown = [
        f"- {each.text}\n  - labelled: {each.labelled}\n  - `{base.arm}` finds: {each.without}\n"
        f"  - `{main.arm}` finds: {each.having}"
        for each in found.shown
    ]
    return ["Test sentences that only one of the first two taggers got right:", "\n".join(shown)] if shown else []


def _pair(board: ExperimentResult) -> tuple[ArmRow, ArmRow]:
    """Return the rows of the baseline and of the claimed variant."""
    main = main_line(board)
    base = main and baseline(main, board.leaderboard)
    if main is None or base is None:
        raise CorpusError("gallery: the experiment has no baseline or no variant to compare with it; run it again.")
    return base, main


def _picture(task: Task, name: str, words: str) -> str:
    return f"![{words}]({task.name}-{PICTURES[name]}.webp)"


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
