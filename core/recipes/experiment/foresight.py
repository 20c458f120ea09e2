"""What an experiment could show, before it starts: the smallest difference, by what was trained on its labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from core.artifacts import evaluations
from core.corpora.corpus import Library
from core.errors import CorpusError
from core.recipes.experiment.config import ExperimentConfig
from core.results import Evaluation
from core.runs.store import Run, RunStore
from core.stats.spread import Spread, assumed, measured, smallest_difference

NEWEST = 8  # trainings that the spread is measured on
FURTHER = (3, 5, 10)  # seeds that are offered beside those asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """points: the smallest difference that `seeds` seeds could show at `level`. further: the same for more seeds."""

    points: float
    seeds: int
    level: float
    spread: Spread
    further: Mapping[int, float]

    def in_words(self) -> str:
        """A sentence with the number, and one with what it rests on."""
        if self.seeds < 2:
            return (
                "One seed cannot show a difference, however large: it does not say how far F1 moves by chance. "
                f"Give 3 seeds or more; {self._more(3)}."
            )
        more = [self._more(seeds) for seeds in self.further if seeds > self.seeds][:2]
        return (
            f"With {self.seeds} seeds an arm only differences of about {_points(self.points)} points of F1 or more can "
            f"show{''.join(f'; {words}' for words in more)}. {self._basis()}"
        )

    def _more(self, seeds: int) -> str:
        return f"with {seeds} seeds, about {_points(self.further[seeds])}"

    def _basis(self) -> str:
        moves = f"F1 differs by {self.spread.seeds:.1f} points from seed to seed (standard deviation)"
        test = f"the test set has {self.spread.n_sentences:,} sentences"
        if not self.spread.trainings:
            return (
                f"That is assumed, as nothing was trained on these labels yet: {moves}, more after few epochs; {test}."
            )
        n = self.spread.trainings
        return f"By {n} training{'s' * (n > 1)} on these labels so far: {moves}; {test}."

    def as_json(self) -> dict[str, object]:
        """Fields that `--plan-only --json` prints of it."""
        return {
            "points": self.points,
            "seeds": self.seeds,
            "level": self.level,
            "with_more_seeds": dict(self.further),
            "sd_between_seeds": self.spread.seeds,
            "assumed": not self.spread.trainings,
            "trainings": self.spread.trainings,
            "test_sentences": self.spread.n_sentences,
        }


def _points(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def foresee(config: ExperimentConfig, home: Path) -> Foresight:
    """The level is that of the surest of the arms that are judged (Holm), the first that could show anything."""
    library = Library(home)
    train, test = library.find(config.train), library.find(config.test)
    judged = sum(cell.arm.judged for cell in config.cells)
    level = 1 - 0.05 / max(judged, 1)
    spread = measured(_before(train.fingerprint, test.fingerprint, home)) or assumed(len(test))
    n = len(config.seeds)
    return Foresight(
        points=smallest_difference(spread, n, level),
        seeds=n,
        level=level,
        spread=spread,
        further={seeds: smallest_difference(spread, seeds, level) for seeds in FURTHER if seeds > n},
    )


def _before(train: str, test: str, home: Path) -> list[list[Evaluation]]:
    """The newest finished trainings on these labels with this test set, an evaluation a seed."""
    runs = (run for run in RunStore(home).list("finetune") if _alike(run, train, test))
    finished = (run for run in runs if run.state().state == "succeeded")
    trainings = []
    for run in islice(finished, NEWEST):
        try:
            trainings.append(evaluations.read(run))
        except (OSError, CorpusError):  # its files are gone
            continue
    return trainings


def _alike(run: Run, train: str, test: str) -> bool:
    inputs = run.manifest.inputs
    return (inputs.get("train"), inputs.get("test.0")) == (train, test) and len(run.manifest.config["seeds"]) > 1
