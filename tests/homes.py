"""Prepared homes: built once per session by one of its workers, and copied for each test that asks for one.

`homes.copy(build, home)` fills the home of project `home` with what `build(project)` left and returns the names that
`build` returned: {name: run id or fingerprint}. Four builds serve many tests and have a fixture each:

- selected: corpora of contracts and recipes, a selection by n-gram perplexity, one at random, and a map (embeddings);
- trained: a tagger of two seeds, its evaluation, and a tagger that learnt nothing;
- experimented: an experiment with one pre-training per arm (`quick`), and one with two replicates whose taggers and
  encoders are not trained (`pipeline`);
- biased: a measured training set, a rebuilt one, and a test set with unseen names.

A test module with a home of its own passes its own `build`. Files that are never written to again are hard links, so
a test that spoils such a file must replace it: `copy` fails if a prepared file has changed.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from core.project_list import FIRST_SLUG, PROJECTS, shared_home
from core.runs.run import Run

Names = dict[str, str]
Build = Callable[[Path], Mapping[str, str]]
# Written once and never checked for changes. All other files are copied: a new link to a model's weights changes their
# ctime, so a test of another worker that loads them would find them changed meanwhile.
LINKED = {".parquet", ".npy", ".npz", ".bin"}
EXPERIMENT = {
    "task": "task",
    "domain": "domain",
    "train": "train",
    "dev": "dev",
    "test": "test",
    "encoder": "tiny",
    "arms": ("none", "classifier"),
    "budgets": ("30",),
    "seeds": (1, 2),
    "repeat": "tagger",
    "pretrain": {"epochs": 1},
    "finetune": {"epochs": 2, "head_learning_rate": 0.1},
}
SELECTION = {"task": "task", "domain": "domain", "encoder": "tiny", "budget": "40"}
TAGGER = {
    "init": "tiny",
    "epochs": 2,
    "learning_rate": 3e-3,
    "head_learning_rate": 3e-2,
    "batch_size": 8,
    "precision": "fp32",
}


def project_in(root: Path) -> Path:
    """Return the folder of a home's first project."""
    return root / PROJECTS / FIRST_SLUG


class Homes:
    """Prepared homes below a folder that all workers of a session share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def copy(self, build: Build, home: Path) -> Names:
        """Fill the home of a project with the prepared home of `build`; return its names. home: the project's folder."""
        prepared = self._prepared(build)
        about = json.loads((prepared / "about.json").read_text(encoding="utf-8"))
        root = shared_home(home)
        shutil.copytree(prepared / "home", root, copy_function=link, dirs_exist_ok=True)
        changed = [name for name, stamp in about["linked"].items() if _stamp(root / name) != stamp]
        assert not changed, f"an earlier test wrote into files of {prepared} in place: {changed}"
        names: Names = about["names"]
        return names

    def _prepared(self, build: Build) -> Path:
        folder = self._folder / f"{build.__module__}.{build.__qualname__}"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "about.json").exists():
                self._build(build, folder)
        return folder

    def _build(self, build: Build, folder: Path) -> None:
        home = folder / "home"
        shutil.rmtree(home, ignore_errors=True)  # left by a build that failed
        home.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WINNOW_HOME", str(home))
            patch.setenv("WINNOW_DATA_DIRS", str(self._folder.parent))
            patch.setattr("core.tagging.calibrate.SECONDS", 0.0)
            names = build(project_in(home))
        files = [path for path in home.rglob("*") if path.suffix in LINKED]
        about = {"names": names, "linked": {str(path.relative_to(home)): _stamp(path) for path in files}}
        (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def link(source: str, target: str) -> None:
    """Hard-link a file that is never written to again; copy any other."""
    if Path(source).suffix in LINKED:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def _stamp(path: Path) -> list[int]:
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Homes:
    """Prepared homes in the base folder of the session, which the workers of xdist share."""
    base = tmp_path_factory.getbasetemp()
    return Homes((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prepared")


@pytest.fixture
def selected(homes: Homes, home: Path) -> Names:
    """Copy the home with two selections and a map: `select`, `random`, `map`."""
    return homes.copy(build_selected, home)


@pytest.fixture
def trained(homes: Homes, home: Path) -> Names:
    """Copy the home with taggers: `tagger`, `evaluate`, `idle`."""
    return homes.copy(build_trained, home)


@pytest.fixture
def experimented(homes: Homes, home: Path) -> Names:
    """Copy the home with two experiments: `quick`, `pipeline`."""
    return homes.copy(build_experimented, home)


@pytest.fixture
def biased(homes: Homes, home: Path) -> Names:
    """Copy the home with measured, rebuilt and robust sets: `difficulty`, `rebuild`, `oov`."""
    return homes.copy(build_biased, home)


def executed(kind: str, options: Mapping[str, object] = {}, /, **more: object) -> Run:
    """Execute a run of `kind`; return it."""
    from core.projects import runs

    return runs.execute(kind, {**options, **more})


def done(kind: str, options: Mapping[str, object] = {}, /, **more: object) -> str:
    """Execute a run of `kind`; return its id."""
    return executed(kind, options, **more).id


def build_selected(home: Path) -> Names:
    """Build T_C of 40 contracts, and D_C of 120 contracts, 120 recipes, a short sentence and one with markup."""
    from core.explore import view as maps
    from core.importing import view as corpora
    from tests.conftest import sealer
    from tests.planted import contracts, kitchen

    texts = {
        "task": contracts(40, seed=1),
        "domain": [*contracts(120, seed=2), *kitchen(120), "Stir .", "Slowly stir the ROUX , müde <img src=x> ."],
    }
    for role, lines in texts.items():
        corpora.set_role(role, sealer(home)(lines, role).fingerprint)
    select = done("select", SELECTION, strategy="ngram-perplexity")
    random = done("select", SELECTION, budget="60", strategy="random")
    return {"select": select, "random": random, "map": done("map", maps.options(select, sample=150, clusters=4))}


def build_trained(home: Path) -> Names:
    """Build L_C of 24, 12 and 12 sentences with PER and LOC; the second tagger learns nothing."""
    from core.importing import view as corpora
    from tests.conftest import sealer
    from tests.training.test_finetune import labelled

    parts = {}
    for role, n, seed in (("train", 24, 1), ("dev", 12, 2), ("test", 12, 3)):
        parts[role] = sealer(home)(labelled(n, seed), role, labelled=True).fingerprint
        corpora.set_role(role, parts[role])
    options = {**TAGGER, **parts, "test": (parts["test"],), "seeds": (1, 2)}
    tagger = done("finetune", options)
    idle = done("finetune", options, epochs=1, learning_rate=1e-9, head_learning_rate=1e-9, seeds=(1,))
    return {"tagger": tagger, "idle": idle, "evaluate": done("evaluate", model=tagger, test=parts["test"])}


def build_experimented(home: Path) -> Names:
    """Build the corpora of `fill` and EXPERIMENT, repeated by tagger and, without training, by pipeline."""
    from tests.experiment.test_experiment import fill
    from tests.untrained import without_training

    fill(home)
    quick = done("experiment", EXPERIMENT)
    with without_training():
        return {"quick": quick, "pipeline": done("experiment", EXPERIMENT, repeat="pipeline")}


def build_biased(home: Path) -> Names:
    """Build a training set of 60 sentences with bits drawn at random, and a test set of 24."""
    from tests.bias.planted import sentences
    from tests.conftest import sealer
    from tests.finished_bias import measured_at_random

    test = sealer(home)(sentences(24, 2), "test", labelled=True).fingerprint
    train = sealer(home)(sentences(60, 1), "train", labelled=True)
    difficulty = measured_at_random(home, train).id
    oov = done("robustness", {"test": test, "train": train.fingerprint, "kind": "oov"})
    rebuild = done("rebuild", train=train.fingerprint, method="highc2low", rate=0.2, difficulty=difficulty, seed=9)
    return {"difficulty": difficulty, "rebuild": rebuild, "oov": oov}
