"""Make the gallery in `docs/gallery`: one page per task with its commands, times, results and two pictures.

    python -m tests.lab.gallery HOME [TASK ...]

Contracts and clinical notes are the finished sample sets. The texts of the other tasks are generated in HOME/texts, and
the commands of their pages run in a home per task below HOME. This trains for about a quarter of an hour on two idle
cores. Runs that are finished in HOME are not repeated. TASK: make only these pages.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from core.paths import within
from core.projects import view as projects
from core.samples.sets import SETS, Name
from tests.lab.gallery.pages import COMMANDS, FOLDER, Runs, index, page, photograph
from tests.lab.gallery.texts import TASKS, Task, write


def core(home: Path, words: str) -> dict[str, object]:
    """Run a command with --json and return its object. Errors: CalledProcessError."""
    command = [sys.executable, "-m", "core", "--home", str(home), *words.split(), "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(os.cpu_count())}  # the imports of tests above have set it to 1
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)
    assert isinstance(found, dict)
    return found


def computed(task: Task, home: Path, texts: Path) -> tuple[str, Runs]:
    """Generate the texts of a task and run its commands. Return the slug of its project, and the runs."""
    if not texts.exists():
        write(task, texts)
        core(home, COMMANDS["propose"].format(texts=texts))
    selection = str(core(home, COMMANDS["select"])["run"])
    mapped = str(core(home, COMMANDS["map"].format(selection=selection))["run"])
    experiment = str(core(home, COMMANDS["experiment"])["run"])
    return projects.usual().slug, Runs(select=selection, map=mapped, experiment=experiment)


def finished(sample: Name) -> tuple[str, Runs]:
    """Open a finished sample. Return the slug of its project, and its runs."""
    slug = projects.open_finished_sample(sample).slug
    with within(slug):
        return slug, Runs.newest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("home", type=Path, help="Folder of the homes and of the texts; it is kept.")
    parser.add_argument("tasks", nargs="*", help=f"Tasks: {', '.join(task.name for task in TASKS)}. Default: all.")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        if given.tasks and task.name not in given.tasks:
            continue
        home = given.home.absolute() / task.name
        os.environ["WINNOW_HOME"] = str(home)
        sample = next((name for name in SETS if name == task.sample), None)
        slug, made = finished(sample) if sample else computed(task, home, given.home.absolute() / "texts" / task.name)
        with within(slug):
            text, sentences = page(task, made)
        (FOLDER / f"{task.name}.md").write_text(text, "utf-8")
        photograph(task, home, slug, sentences)
        print(f"{FOLDER / task.name}.md", flush=True)
    (FOLDER / "README.md").write_text(index(), "utf-8")


if __name__ == "__main__":
    main()
