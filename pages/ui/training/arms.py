"""The arms of an experiment in plain words. Each label ends in the name that results and the command line use."""

from collections.abc import Mapping
from typing import Any

from core.experiment.arms import ARM_NAMES, ARM_SHAPES
from core.importing import view as corpora
from core.selection import view as selections
from pages.ui.bias.rebuild import METHODS

PLAIN = {
    "none": "No pre-training: what all others are compared with",
    "tapt": "The task corpus alone",
    "dapt": "All of the domain corpus",
    "tapt+dapt": "The task corpus and all of the domain corpus",
    "random-only": "As much random text of the domain corpus as the task corpus has",
    "random": "The task corpus and random sentences: what a selection must beat",
    "length-matched-random": "The task corpus and random sentences as long as its own",
    "states": "The encoder as it came, its states in another network",
    "all": "All sentences of the assisting corpus too",
    "lpft": "The last layer first, then the whole tagger",
    "span": "A type for every span of up to four words: what miner must beat",
    "miner": "The same, and names of one type are to be read alike",
    "dataaug": f"Labels and copies of them: {METHODS['dataaug'][0][0].lower()}{METHODS['dataaug'][0][1:]}",
}
VALUED = {
    "vectors": "Word vectors of {}",
    "lm": "The encoder's states after reading {}",
    "skl": "Assisting sentences that differ by less than {} nats",
    "base": "{} random labelled sentences",
    "base+low": "{0} random labelled sentences, and {0} told by their context",
    "base+near_zero": "{0} random labelled sentences, and {0} told by name and context alike",
    "base+high": "{0} random labelled sentences, and {0} told by their name",
}


def arm_label(name: str) -> str:
    """Label of an arm: what it does, and its name; a name that nobody knows stands for itself."""
    head, _, value = name.partition(":")
    if name in PLAIN:
        words = PLAIN[name]
    elif name in selections.STRATEGIES:
        words = "The task corpus and a selection from the domain corpus"
    elif value and head in VALUED:
        words = VALUED[head].format(value)
    elif value and head in METHODS:
        words = f"Labels rebuilt at {value}: {METHODS[head][0][0].lower()}{METHODS[head][0][1:]}"
    else:
        return name
    return f"{words} ({name})"


def arm_names(further: Mapping[str, Any]) -> list[str]:
    """Names of arms that can be chosen: the arms without a value, and those whose value goes with what was picked.

    further: the `sources`, the `imported_vectors` and the `assisting` corpus of the experiment.
    """
    values = {
        "SOURCE": [corpora.find(source).name for source in further["sources"]],
        "THRESHOLD": ["1", "2", "4"] if further["assisting"] else [],
        "RATE": ["20%"],
        "SIZE": ["1000"],
    }
    shapes = (shape.split(":") for shape in ARM_SHAPES)
    named = [f"{head}:{value}" for head, kind in shapes for value in values[kind]]
    imported = [f"vectors:{name}" for name in further.get("imported_vectors", ())]
    return [*ARM_NAMES, *dict.fromkeys([*named, *imported])]
