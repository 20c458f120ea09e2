"""Halves swapped: replicates that differ in which half of L_C is learnt from and which is the test."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.experiment.halves_result import Half
from core.kind import Options

if TYPE_CHECKING:
    from core.experiment.config import ExperimentConfig

SPLITS = ("train", "dev", "test")  # that are pooled


def check(config: "ExperimentConfig") -> None:
    """Errors: ConfigError where halves cannot be swapped, or where what is said of them is about nothing."""
    if not config.cross:
        if config.cross_train or config.cross_dev:
            raise ConfigError("cross_train, cross_dev: are of halves that are swapped; give cross, or leave them out.")
        return
    if config.task:
        raise ConfigError(
            "task: with cross each half's own text is the task corpus, so that no test text is in it; leave it out."
        )
    if config.repeat != "pipeline":
        raise ConfigError("cross: every replicate has its own half, so each makes all anew; give repeat pipeline.")
    if len(config.seeds) % 2:
        raise ConfigError(
            f"seeds: cross swaps the halves of every split, so it takes two replicates each, and {len(config.seeds)} "
            "seeds leave one half untested; give 2, 4 or 6."
        )
    if odd := [look for look in config.looks if look % 2]:
        raise ConfigError(f"looks: {odd[0]} replicates are not both halves of every split; look at 2,4,6.")


def side(number: int) -> int:
    """Half that a replicate learns from, 0 or 1. number: of the replicate, from 1."""
    return (number - 1) % 2


def options(config: "ExperimentConfig", number: int, sizes: Mapping[str, int]) -> Options:
    """Options of splitting the pool for a replicate: the same for the two that swap its halves."""
    named = {split: getattr(config, split) for split in SPLITS}
    sizes = labelled(config, sizes)
    seed = config.seeds[number - 1 - side(number)]
    return {**named, "train_sentences": sizes["train"], "dev_sentences": sizes["dev"], "seed": seed}


def labelled(config: "ExperimentConfig", sizes: Mapping[str, int]) -> dict[str, int]:
    """Sentences of a half that are learnt from with their labels, and those to choose by. sizes: of the splits, each
    corpus once.

    Where nothing is said: as many as `train` has, two thirds of the half at most, and half as many to choose by.
    """
    half = sum(sizes.values()) // 2
    train = config.cross_train or max(min(sizes["train"], 2 * half // 3), 1)
    return {"train": train, "dev": config.cross_dev or max(min(train // 2, half - train), 1)}


def on_half(config: "ExperimentConfig", half: Half) -> "ExperimentConfig":
    """The experiment as a replicate on that half has it."""
    return config.model_copy(update={name: getattr(half, name) for name in ("task", *SPLITS)})


def resized(config: "ExperimentConfig", corpora: Mapping[str, Corpus]) -> dict[str, Corpus]:
    """The corpora of a replicate as far as they are known beforehand: their sizes. corpora: by role."""
    each = {corpora[split].fingerprint: corpora[split] for split in SPLITS}
    pool = sum(map(len, each.values()))
    tokens = sum(corpus.n_tokens for corpus in each.values()) / pool
    sizes = {"train": len(each.pop(corpora["train"].fingerprint)), **{name: len(other) for name, other in each.items()}}
    parts = {"task": pool // 2, "test": pool // 2, **labelled(config, sizes)}
    sized = {name: replace(corpora["train"], n_sentences=n, n_tokens=round(n * tokens)) for name, n in parts.items()}
    return {**corpora, **sized}
