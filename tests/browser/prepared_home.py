"""Prepare a home with a finished run for every page, without the hours of training."""

from dataclasses import asdict, dataclass
from pathlib import Path

from core.corpora.library import Library
from core.explore import view as maps
from core.projects import runs
from tests import finished, finished_bias
from tests.assisting.test_assist import AWAY, HOME
from tests.conftest import sentence
from tests.homes import Names
from tests.planted import contracts, kitchen
from tests.similarity.test_measures import FRUIT, METAL, chained

NASTY = "The <img src=x onerror=alert(1)> clause of [the contract](http://evil.example) is :red[void] here ."
TINY = ("none", "", 0), ("classifier", "10", 60), ("random", "10", 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Ids of finished runs."""

    experiment: str
    select: str
    similarity: str
    difficulty: str
    skl: str


def build_prepared(home: Path) -> Names:
    """Do as `prepare` does, with the signature that `Homes.copy` needs."""
    return asdict(prepare(home))


def prepare(home: Path) -> Prepared:
    """Write all runs into the home that `WINNOW_HOME` names."""
    made = finished.corpora(home)
    labels = finished_bias.contracts(home)
    difficulty = finished_bias.measured(home, labels).id
    held = made["test"].fingerprint
    runs.execute(
        "rebuild",
        {
            "train": labels.fingerprint,
            "difficulty": difficulty,
            "method": "random2low",
            "rate": 0.2,
            "holdout": (held,),
        },
    )
    experiment = finished.experiment(home, made, TINY).id
    for run in runs.listed("finetune"):  # a run that starts from this model only checks that the file exists
        (run.artifacts / "model" / "model.safetensors").write_bytes(b"weights")
    runs.execute("robustness", {"test": held, "train": made["train"].fingerprint, "kind": "typos"})
    return Prepared(
        experiment=experiment,
        select=_mapped(home),
        similarity=_compared(home),
        difficulty=difficulty,
        skl=_scored(home),
    )


def _sealed(home: Path, name: str, lines: list[str]) -> str:
    return Library(home).seal(map(sentence, lines), name=name, origin={}, labelled=False).fingerprint


def _mapped(home: Path) -> str:
    """Make a selection with a map; the domain corpus has duplicates."""
    clauses = contracts(100, seed=2)
    domain = _sealed(home, "pile", [*clauses, *kitchen(99), NASTY, *clauses[:5]])
    options = {"task": _sealed(home, "clauses", contracts(40, seed=1)), "domain": domain, "encoder": "tiny"}
    select = runs.execute("select", {**options, "budget": "40", "strategy": "knn"}).id
    runs.execute("map", maps.options(select, sample=150, clusters=4))
    return select


def _compared(home: Path) -> str:
    texts = {"fruit": (FRUIT, 40, 1), "orchard": (FRUIT, 200, 2), "foundry": (METAL, 200, 3)}
    marks = [_sealed(home, name, [" ".join(line) for line in chained(*how)]) for name, how in texts.items()]
    options = {"target": marks[:1], "source": marks[1:], "measure": ("tvc",), "draws": 2, "min_source_tokens": 1_000}
    return runs.execute("similarity", options).id


def _scored(home: Path) -> str:
    own, other = (
        Library(home).seal(rows, name=name, origin={}, labelled=True).fingerprint
        for name, rows in (("home", HOME), ("away", AWAY))
    )
    return runs.execute("skl", {"primary": own, "assisting": other}).id
