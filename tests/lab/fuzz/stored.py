"""Corrupt one of the files that the app stores and reads: homes, plans, tables and models."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

from core import audit_log
from core import shown_command as commands
from core.assisting import view as assisting
from core.assisting.skl import SklResult
from core.bias import view as bias
from core.corpora.library import Library
from core.dictionary.lists import read_list
from core.errors import WinnowError
from core.experiment import deliver, next_step, results
from core.experiment.cli import read_plan
from core.explore import regions
from core.explore import view as maps
from core.explore.result import MapResult
from core.importing import view as corpora
from core.models import hub
from core.models.fingerprint import answer
from core.models.taggers import load_tagger, new_span_tagger
from core.projects import home, labels, runs
from core.projects import view as projects
from core.runs import journal
from core.runs.curves import Curves
from core.runs.result import read
from core.runs.store import Run
from core.runs.where import Where
from core.selection import choices
from core.selection import view as selections
from core.selection import which_view as which
from core.selection.which_strategy import WhichStrategyResult
from core.similarity import view as similarity
from core.similarity.result import SimilarityResult
from core.similarity.survey import opinions_in
from tests.homes import project_in
from tests.lab.fuzz.hunt import Target
from tests.lab.fuzz.mutate import mutated
from tests.lab.fuzz.reading import said

PLAN = """# what is compared
task: mine
domain: other
train: other
dev: other
test: other
arms: [none, random, classifier]
budgets: [5%, "20"]
seeds: [1, 2, 3]
pretrain:
  epochs: 1
"""


WHERE = Where(on="ray", mixed=True)
LASSO: regions.Region = {"kind": "lasso", "value": [[[0.5, 1], [2, 3], [4, 1]]]}


class Stored:
    """A folder that `make` fills once for all inputs. `read` reads a copy of it in which one file is corrupted.

    spoilt: patterns of the files to corrupt; each pattern is equally likely.
    """

    def __init__(
        self, name: str, shared: Path, make: Callable[[Path], None], read: Callable[[Path], None], *spoilt: str
    ) -> None:
        self.name, self._make, self._read, self._spoilt = name, make, read, spoilt
        self._sound = shared / name

    def prepare(self) -> None:
        """Create the intact folder unless an earlier child has, and read it."""
        if not self._sound.exists():
            draft = self._sound.with_suffix(".draft")
            draft.mkdir()
            use(draft)
            self._make(draft)
            draft.rename(self._sound)
        use(self._sound)
        self._read(self._sound)

    def attempt(self, random: Random, folder: Path) -> str:
        copy = Path(shutil.copytree(self._sound, folder / "home", copy_function=os.link))
        use(copy)
        files = sorted(copy.glob(random.choice(self._spoilt)))
        file = random.choice(files)
        data = mutated(random, file.name, file.read_bytes())
        file.unlink()
        file.write_bytes(data)
        before = {path.relative_to(copy) for path in copy.rglob("*")}
        try:
            self._read(copy)
        except WinnowError as error:
            said(error, folder / "home" / getattr(error, "file", ""))
            return "refused"
        finally:
            left = {path.relative_to(copy) for path in copy.rglob("*")} - before
            assert not left, f"left: {sorted(left)[:3]}"
        return "taken"

    attempt_apart = attempt


def use(folder: Path) -> None:
    """Make `folder` this process's home, and clear the cache of the previous home."""
    os.environ["WINNOW_HOME"] = str(folder)
    home.kept_store.cache_clear()


def each(*calls: Callable[[], object]) -> None:
    """Call all of them, then raise their first WinnowError, so that a refusal cannot hide a bug in a later call."""
    errors = []
    for call in calls:
        try:
            call()
        except WinnowError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def make_home(folder: Path) -> None:
    """Create two corpora with parts, two finished runs, and all files that a user's actions leave."""
    from tests import finished

    made = finished.corpora(folder)
    options = {"task": made["task"].fingerprint, "domain": made["domain"].fingerprint}
    pretrain = {"corpora": (made["task"].fingerprint,), "init": "tiny"}
    run = finished.finish(folder, "pretrain", pretrain, finished.constant(finished.pretrained()))
    select = finished.finish(folder, "select", options, finished.constant(finished.SELECTED))
    for each_run in (run, select):
        journal.append(each_run.path / "edits.jsonl", action="add", rows=[1, 2, 3])
        journal.append(each_run.path / "edits.jsonl", action="undo", rows=[])
        for choice in (each_run.path, each_run.path / "choices" / "0b15"):
            choice.mkdir(parents=True, exist_ok=True)
            (choice / "budget.json").write_text('"20.5%"')
            (choice / "choice.json").write_text('{"name": "Leases", "created": 1.5e9, "taken": 1.6e9}')
        (each_run.path / "label.json").write_text('{"name": "mine", "tags": ["a", "b"], "note": "x", "pinned": true}')
        (each_run.path / "where.json").write_text(json.dumps(asdict(WHERE)))
        (each_run.path / "region.json").write_text('{"kind": "lasso", "value": [[[0.5, 1], [2, 3], [4, 1]]]}')
        (each_run.path / "launched").write_text('{"pid": 1, "created": 1.0, "run": "x"}')
    audit_log.note("look", runs=[run.id])
    (folder / "PLAN.yaml").write_text(PLAN.replace("mine", "my task").replace("other", "my train"))
    (folder / "table.csv").write_text(similarity.EXAMPLE.read_text(encoding="utf-8"))
    (folder / "answers.csv").write_text("person,target,a,b,answer\nx,t,a,b,5\ny,t,b,a,Agree\n")
    (folder / "names.tsv").write_text("Oslo\tLOC\nAcme Ltd.\tORG\nZo\u00eb\tPER\n", encoding="utf-8")
    (folder / "types.txt").write_text("PER=PERSON\nORG=COMPANY\n")


def read_home(folder: Path) -> None:
    """Read all that lists, pages and commands need of a project's home."""
    projects.unreadable()
    each(
        *(lambda corpus=corpus: read_corpus(folder, corpus.fingerprint) for corpus in corpora.listed()),
        *(lambda run=run: read_run(run) for run in runs.listed()),
        corpora.roles,
        lambda: [(choices.title(each), choices.proposed_name(each)) for each in choices.in_use()],
        lambda: list(audit_log.lines()),
        audit_log.spoilt,
        lambda: read_plan(folder / "PLAN.yaml", {}),
        lambda: similarity.judge_named(str(folder / "table.csv")),
        lambda: opinions_in(folder / "answers.csv"),
        lambda: read_list(folder / "names.tsv"),
        lambda: assisting.read_type_map(folder / "types.txt"),
    )


def read_runs(folder: Path) -> None:
    """Read what pages show of the finished runs in `folder`, this process's home."""
    assert runs.listed(), folder
    each(*(lambda run=run: read_run(run) for run in runs.listed()))


def read_corpus(folder: Path, fingerprint: str) -> None:
    corpus = Library(folder).find(fingerprint)
    each(
        lambda: list(corpus.batches()),
        lambda: corpus.take([0, corpus.n_sentences - 1]),
        lambda: (corpus.ids(), corpus.lengths(), corpus.column("text").to_pylist()),
        lambda: (
            corpus.names,
            corpus.parent,
            corpus.derived,
            corpora.describe(corpus),
            corpora.first_sentences(corpus),
        ),
        lambda: corpora.needed_by(corpus.fingerprint),
    )


def read_run(run: Run) -> None:
    state = run.state()
    assert (state.elapsed(2e9), state.seconds) is not None
    state.left(2e9)
    curves = Curves(run)
    curves.read(), curves.children(), run.events(), run.log_tail(), run.worker(), run.spoilt()
    commands.command(run.manifest.kind, run.manifest.config)
    runs.place(run.id), labels.read(run), labels.size(run)
    if state.state == "succeeded":
        each(*(lambda call=call: call(run.id) for call in OF_RUNS.get(run.manifest.kind, ())), run.result)


def scored(run_id: str) -> bool:
    """Return True if a selection has scores; in a home without artifacts it has none."""
    return bool(selections.result(run_id).score_run) and bool(selections.scored(run_id))


def of_map(run_id: str) -> None:
    assert maps.get(run_id)
    kinds = maps.classes(run_id)
    regions.named_regions(run_id)
    if region := regions.kept_region(run_id):
        regions.region_points(run_id, region, kinds)


def another_choice(run_id: str) -> None:
    """Read the further selections that are saved in a selection run, if any."""
    for kept in (runs.get(run_id).path / "choices").glob("*"):
        selections.kept_budget(f"{run_id}.{kept.name}")
        selections.edits(f"{run_id}.{kept.name}")


OF_RUNS: Mapping[str, Sequence[Callable[[str], object]]] = {
    "select": (
        *(selections.result, selections.kept_budget, selections.edits, regions.kept_region),
        another_choice,
        lambda run_id: scored(run_id) and (selections.kept(run_id), selections.chosen(run_id)),
    ),
    "difficulty": (
        bias.difficulty_result,
        bias.measured,
    ),
    "finetune": (results.tuned, results.macro_f1),
    "experiment": (results.board, results.missing, next_step.next_steps, deliver.report, deliver.board_csv),
    "map": (lambda run_id: read(runs.get(run_id), MapResult), of_map, regions.kept_region),
    "skl": (lambda run_id: read(runs.get(run_id), SklResult), assisting.get, assisting.drift),
    "similarity": (lambda run_id: read(runs.get(run_id), SimilarityResult), similarity.rows),
    "which-strategy": (lambda run_id: which.lines(read(runs.get(run_id), WhichStrategyResult)),),
}
_PROJECT = (
    *("corpora/*/about.json", "corpora/*/sentences.parquet", "roles.json"),
    *("PLAN.yaml", "table.csv", "answers.csv", "names.tsv", "types.txt"),
    *("runs/*/launched", "runs/*/lock", "runs/*/result.json"),
    *(f"runs/*/{name}" for name in ("manifest.json", "events.jsonl", "edits.jsonl")),
    *(f"runs/*/{name}" for name in ("budget.json", "region.json", "choice.json", "label.json")),
    *("runs/*/where.json", "runs/*/sums.json"),
    *("runs/*/choices/*/budget.json", "runs/*/choices/*/choice.json"),
)
HOME = ("audit.jsonl", *(f"projects/*/{name}" for name in _PROJECT))
ARTIFACTS = tuple(
    f"projects/*/{name}"
    for name in (
        "runs/*/artifacts/*.np[yz]",
        "runs/*/artifacts/*/*.*",
        "runs/*/artifacts/*.parquet",
        "runs/*/result.json",
        "runs/*/artifacts/*.jsonl",
        "runs/*/region*.json",
    )
)


def make_furnished(folder: Path) -> None:
    from tests.full_home import furnish

    furnish(folder)
    for run in runs.listed("map"):
        regions.name_region(run.id, LASSO, "mine")
        regions.keep_region(run.id, LASSO)


def make_models(folder: Path) -> None:
    """Create an encoder, a recurrent tagger and a span tagger."""
    from tests.models.test_bilstm import tagger

    tagger().write(folder / "recurrent")
    new_span_tagger("tiny", ["LOC"], device="cpu").write(folder / "spans")
    hub.load_model("tiny").save_pretrained(folder / "encoder")
    hub.load_tokenizer("tiny").save_pretrained(folder / "encoder")


def read_models(folder: Path) -> None:
    name = str(folder / "encoder")
    each(
        lambda: answer(name),
        lambda: hub.load_tokenizer(name),
        lambda: hub.load_model(name),
        lambda: load_tagger(folder / "recurrent"),
        lambda: load_tagger(folder / "spans"),
    )


def in_project(function: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return a function of a home that calls `function` with the folder of its first project."""
    return lambda home: function(project_in(home))


def stored(shared: Path) -> Iterator[Target]:
    """Yield all targets. shared: folder for the files that they create once."""
    from tests.lab.fuzz.projects import Archive, Intake, Projects

    yield Stored("home", shared, in_project(make_home), in_project(read_home), *HOME)
    yield Stored("artifacts", shared, in_project(make_furnished), in_project(read_runs), *ARTIFACTS)
    yield Stored("models", shared, make_models, read_models, "*/*.json", "*/*.safetensors")
    yield from (Projects(shared), Archive(shared), Intake())
