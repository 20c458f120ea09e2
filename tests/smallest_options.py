"""The smallest options of a real run of every kind, in two groups; the second uses runs of the first."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.corpora.library import Library
from core.explore import view as maps
from core.models.offered import OFFERS, kept
from core.paths import home
from core.projects import runs
from tests import fake_llm
from tests.conftest import sentence
from tests.experiment.test_experiment import OPTIONS
from tests.fake_models import ready_model
from tests.planted import contracts, distinct, kitchen

Wave = Mapping[str, Mapping[str, Any]]


def piles() -> dict[str, list[str]]:
    """Return the texts of the corpora for `first`, by name. All except `task` and `domain` must be labelled."""
    texts = contracts(110, seed=1)
    return {
        "task": texts[:36],
        "domain": [*texts[56:], *kitchen(60)],
        "train": texts[:24],
        "dev": texts[24:36],
        "test": texts[36:56],
        "again": contracts(20, seed=9),
    }


def first(made: Mapping[str, str], again: str, file: Path) -> Wave:
    """Return {kind: options}. made: fingerprints of five corpora; again: another labelled corpus; file: to import."""
    return {
        "add": {"path": str(file)},
        "intake": {"path": str(several()), "domain": ("one.txt", "two.txt")},
        "vectors-import": {"path": str(vectors_file())},
        "experiment": {**OPTIONS, **made, "seeds": (1,), "finetune": {"epochs": 1}},
        "study": {
            **{name: (made[name],) for name in ("train", "dev", "test")},
            "arms": ("none", "lpft"),
            "encoder": "tiny",
            "seeds": (1,),
            "finetune": {"epochs": 1},
        },
        "similarity": {
            "target": (made["task"],),
            "source": (made["domain"],),
            "draws": 2,
            "sizes": 1,
            "skipgram_epochs": 1,
            "min_source_tokens": 100,
        },
        "halves": {
            **{split: made[split] for split in ("train", "dev", "test")},
            **{"train_sentences": 6, "dev_sentences": 3},
        },
        "split": {"corpus": made["train"], "by": "sentence", "shares": (2, 1)},
        "rank": {"train": made["train"], "dev": made["dev"], "encoders": ("tiny",)},
        "prevalence": {"task": made["task"], "domain": made["domain"], "encoder": "tiny"},
        "which-strategy": {**hideable(), "encoder": "tiny", "strategies": ("random",), "draws": 5},
        "difficulty": {"train": made["train"], "encoder": "tiny", "folds": 2, "context_epochs": 1, "entity_epochs": 1},
        "assist": {
            "primary": made["train"],
            "assisting": again,
            "dev": made["dev"],
            "test": made["test"],
            "thresholds": (1000.0,),
            "hidden": 4,
            "seeds": (1,),
            "epochs": 1,
            "vectors": made["task"],
        },
        "dictionary": {"names": (made["train"],), "test": (made["test"],)},
        "llm": {
            "model": "fake",
            "address": fake_llm.lasting(),
            "train": made["train"],
            "test": (made["test"],),
            "examples": 1,
        },
        "draw": {"task": made["task"], "known": (made["train"],), "n": 4},
        "fetch": {"encoder": fetched(), "allow_download": True},
        "robustness": {"test": made["test"], "train": made["train"], "kind": "typos"},
        "rebuild": {"train": made["train"], "method": "dataaug", "encoder": "tiny"},
        "zero-shot": {"model": str(ready()), "test": (made["test"],), "dev": made["dev"]},
    }


def several() -> Path:
    """Write a folder of two files into the home, so that copies of the home contain it."""
    folder = home() / "several"
    folder.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate(("one.txt", "two.txt")):
        (folder / name).write_text("\n".join(contracts(100, seed=20 + i)), encoding="utf-8")
    return folder


def hideable() -> dict[str, str]:
    """Seal a task and a domain corpus without near duplicates, and return their fingerprints."""
    texts = {"task": distinct(contracts(60, seed=30), 1), "domain": distinct(kitchen(80), 2)}
    library = Library(home())
    return {
        role: library.seal(map(sentence, lines), name=f"hideable {role}", origin={}).fingerprint
        for role, lines in texts.items()
    }


def vectors_file() -> Path:
    """Write word vectors into the home, so that copies of the home contain them."""
    folder = home() / "vectors"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "few.vec"
    file.write_text("".join(f"word{i} {i} 0.5\n" for i in range(20)), encoding="utf-8")
    return file


def ready() -> Path:
    """Write a ready model into the home, so that copies of the home contain it. Its types are those of the tests."""
    return ready_model(home() / "ready", ("O", "B-PARTY", "B-PATIENT"), {"Harlow": {"B-PARTY": 0.9}})


def fetched() -> str:
    """Return an encoder that counts as fetched, so that nothing is downloaded."""
    [name, *_] = OFFERS
    kept(name).mkdir(parents=True)
    return name


def second(made: Mapping[str, str]) -> Wave:
    """Return {kind: options} of kinds that use runs of the first group."""
    select, tagger = runs.listed("select")[0].id, runs.listed("finetune")[0].id
    return {
        "select": {**{name: made[name] for name in ("task", "domain")}, "encoder": "tiny", "cascade": True},
        "map": maps.options(select, sample=60, clusters=2),
        "predict": {"model": tagger, "corpus": made["task"]},
        "queue": {
            **{name: made[name] for name in ("task", "domain", "train")},
            "model": tagger,
            "encoder": "tiny",
            "n": 4,
        },
        "review": {"corpus": made["train"], "dev": made["dev"], "init": "tiny", "folds": 2, "against": made["test"]},
        "evaluate": {"model": tagger, "test": made["test"]},
    }
