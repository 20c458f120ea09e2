"""The options of a study: the corpora side by side, and all else as an experiment has it."""

from copy import copy
from typing import Any, Self

from pydantic import model_validator

from core.config import Config, option
from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment.arms import Cell
from core.experiment.config import ExperimentConfig
from core.experiment.rivals import control
from core.kind import Options

EACH = ("task", "domain", "train", "dev", "test")  # a corpus of every task


def _same(name: str) -> Any:
    """An option as an experiment has it."""
    return copy(ExperimentConfig.model_fields[name])


class StudyConfig(Config):
    """One claim, on several corpora."""

    train: tuple[str, ...] = option(
        ..., "Training set of every task: labelled sentences (L_C); all lists in one order.", corpus=True
    )
    dev: tuple[str, ...] = option(..., "Dev set of every task.", corpus=True)
    test: tuple[str, ...] = option(..., "Test set of every task: read once per variant (arm).", corpus=True)
    task: tuple[str, ...] = option(
        (), "Task corpus (T_C) of every task, unlabelled; for variants (arms) that are pre-trained.", corpus=True
    )
    domain: tuple[str, ...] = option(
        (), "Domain corpus (D_C): one that all tasks select from, or one for each.", corpus=True
    )
    names: tuple[str, ...] = option((), "What the tasks are called; else as their test splits are.")
    arms: tuple[str, ...] = _same("arms")
    budgets: tuple[str, ...] = _same("budgets")
    claim: str = _same("claim")
    seeds: tuple[int, ...] = _same("seeds")
    cross: bool = _same("cross")
    cross_train: int = _same("cross_train")
    cross_dev: int = _same("cross_dev")
    looks: tuple[int, ...] = _same("looks")
    effect: float = _same("effect")
    encoder: str = _same("encoder")
    preset: str = _same("preset")
    fixed: str = _same("fixed")
    transductive: str = _same("transductive")
    strategies: dict[str, Options] = _same("strategies")
    select: Options = _same("select")
    pretrain: Options = _same("pretrain")
    finetune: Options = _same("finetune")
    draw_seed: int = _same("draw_seed")
    allow_download: bool = _same("allow_download")

    weights: str = _same("weights")

    def settled(self) -> Self:
        """Options in an experiment's spelling, with the encoder's hash.

        Errors: ModelError if it is not here and may not be fetched.
        """
        settled = self.experiment(0, len(self.seeds)).settled()
        return self.model_copy(update={name: getattr(settled, name) for name in self._shared() - {"looks"}})

    @classmethod
    def _shared(cls) -> set[str]:
        """Options that are an experiment's, and the same for all tasks."""
        return (cls.model_fields.keys() & ExperimentConfig.model_fields.keys()) - set(EACH)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Check that there are as many corpora of each part, and that every experiment can be."""
        n = len(self.train)
        if not n:
            raise ConfigError("train: give the labelled training sentences of at least one task.")
        one_for_all = {1} if n > 1 else set[int]()
        for name, may_be in (("dev", {n}), ("test", {n}), ("task", {0, n}), ("domain", {0, n} | one_for_all)):
            if len(getattr(self, name)) not in may_be:
                raise ConfigError(
                    f"{name}: {len(getattr(self, name))} corpora for {n} tasks; give one for each, in the order of "
                    f"train{' (or one domain for all)' if name == 'domain' else ''}."
                )
        if len(set(self.test)) < n:
            raise ConfigError("test: a corpus is there twice, and would count twice; name each task once.")
        if self.names and len(set(self.names)) != n:
            raise ConfigError(f"names: give a different one for each of the {n} tasks, or none.")
        experiments = [self.experiment(number) for number in range(n)]
        if experiments[0].claimed is None:
            raise ConfigError("arms: none of them is judged, so there is no claim; add a strategy, for example.")
        return self

    def experiment(self, number: int, replicates: int = 0) -> ExperimentConfig:
        """The experiment on one of the tasks. replicates: the first so many, without looks; 0: all, with them.

        Errors: ConfigError.
        """
        shared = {
            name: getattr(self, name) for name in type(self).model_fields if name in ExperimentConfig.model_fields
        }
        shared |= {name: self._of(name, number) for name in EACH}
        if replicates:
            shared |= {"seeds": self.seeds[:replicates], "looks": ()}
        return ExperimentConfig.parse({**shared, "repeat": "pipeline", "weights": ""})

    def _of(self, name: str, number: int) -> str:
        values: tuple[str, ...] = getattr(self, name)
        return values[number if len(values) > 1 else 0] if values else ""

    @property
    def claimed(self) -> Cell:
        """The line that the claim is about."""
        cell = self.experiment(0).claimed
        assert cell
        return cell

    @property
    def control(self) -> Cell | None:
        """Control that the claim must beat beside `none`; None where it chooses nothing."""
        return control(self.claimed, self.experiment(0).cells)

    @property
    def unit(self) -> str:
        """Unit that is made anew for every seed: replicates, or seeds where that is the tagger alone."""
        return "replicates" if self.experiment(0).replicates(self.claimed)[0].number else "seeds"

    @property
    def stops(self) -> tuple[int, ...]:
        """Numbers of replicates at which it may end; the last is the plan's."""
        return self.experiment(0).stops


def task_names(config: StudyConfig, library: Library) -> list[str]:
    """Names of the tasks: as was said, else as their test splits are called, no two alike."""
    names = config.names or [library.find(test).name for test in config.test]
    return [f"{name} ({number})" if name in names[: number - 1] else name for number, name in enumerate(names, 1)]
