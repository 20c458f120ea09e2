"""What a `finetune` run's taggers did on labelled splits, a file for each split and seed.

artifacts/  evaluation-<split>-<seed>.npz     spans right, predicted and labelled, by sentence and type
            predictions-<split>-<seed>.jsonl  {"entities": [[start, end, type], ...]}, a sentence a line
            abstain-<split>-<seed>.csv        precision and recall by least confidence
            outcome-<seed>.json               what came of a seed: its last file

Splits are `dev`, `test`, `test1`, `test2`, ... An `evaluate` run has one tagger and one split; its files are named
without a seed: `evaluation-test.npz`.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import zip_longest
from pathlib import Path
from statistics import mean, stdev

from pydantic import TypeAdapter

from core.errors import CorpusError
from core.files import read_back, read_json, replacing, write_atomic
from core.models.networks import MOST, beyond
from core.results import Evaluation
from core.runs.run import Run
from core.stats import learning
from core.stats.calibration import Abstaining, Calibration
from core.stats.scoring import TypeReport
from core.text.sentence import Entity, Prediction, Sentence

_ABSTAINING = tuple(each.name for each in fields(Abstaining))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScores:
    """Scores of one tagger on one split, in percent.

    micro_f1, precision, recall: over exact entities, strict, as the tagger decodes. by_type: F1 by entity type.
    decodings: micro F1 by how tags are decoded and read. lot: F1 that is no better than chance (`learning.chance_f1`).
    macro_f1: mean F1 of the types that the split holds. calibration: how far the entities' confidences are right.
    unseen_f1: micro F1 of the split without the sentences that were trained on; None where none was, or all were.
    report: seqeval's strict report, a line for each type and `micro avg`; empty in results of older versions.
    """

    micro_f1: float
    precision: float
    recall: float
    by_type: Mapping[str, float]
    decodings: Mapping[str, float]
    lot: float = 0.0  # the key on disk; results of older versions have none, nor the next two
    macro_f1: float | None = None
    calibration: Calibration | None = None
    unseen_f1: float | None = None
    report: Sequence[TypeReport] = ()

    @property
    def learnt(self) -> bool:
        """Whether the tagger learnt anything that shows here."""
        return learning.learnt(self.micro_f1, self.lot)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOutcome:
    """Result of one seed of a fine-tuning.

    best_epoch: from 1, the one that is best on dev. epochs: that were trained. seconds: of training. tests: one a test
    set. settings: of the training, by the option's name. last_layer: micro F1 on dev where a tagger that mixes layers
    is loaded without Winnow; None for any other.
    """

    seed: int
    best_epoch: int
    epochs: int
    seconds: float
    dev: SplitScores
    tests: Sequence[SplitScores]
    settings: Mapping[str, bool | int | float]
    last_layer: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverSeeds:
    """Scores of all seeds on one split, in percent.

    micro_f1: one a seed. mean, sd: of these; sd None for one seed. by_type: mean F1 by entity type. decodings: micro F1
    by how tags are decoded and read, one a seed. lot, macro_f1, calibration: as `SplitScores` has them, one a seed.
    intervals: of by_type, at 95%, over seeds and sentences. unseen_f1: as `SplitScores` has it, one a seed; none where
    no sentence of the split was trained on. report: seqeval's strict report, mean over seeds.
    """

    micro_f1: Sequence[float]
    mean: float
    sd: float | None
    by_type: Mapping[str, float]
    decodings: Mapping[str, Sequence[float]]
    lot: Sequence[float] = ()
    macro_f1: Sequence[float] = ()
    calibration: Sequence[Calibration] = ()
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    unseen_f1: Sequence[float] = ()
    report: Sequence[TypeReport] = ()

    @property
    def learnt(self) -> list[bool]:
        """Whether the tagger of each seed learnt anything that shows on this split."""
        return [learning.learnt(f1, lot) for f1, lot in zip_longest(self.micro_f1, self.lot, fillvalue=0.0)]

    @property
    def f1(self) -> float:
        """Mean over the seeds, worked out here: the `mean` that older versions stored was rounded."""
        return mean(self.micro_f1)

    @property
    def spread(self) -> float | None:
        """Standard deviation over the seeds; None for one."""
        return stdev(self.micro_f1) if len(self.micro_f1) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainInTest:
    """Training sentences that stand in dev or test too.

    exact: word for word. near: but for a few words, or 13 words of one in a row (`corpora.hygiene`).
    """

    exact: int = 0
    near: int = 0

    def __bool__(self) -> bool:
        return self.exact + self.near > 0

    @property
    def words(self) -> str:
        """Sentence with their number, exact and near."""
        n = self.exact + self.near
        return (
            f"{n:,} training sentence{'s are' if n > 1 else ' is'} in the dev or test set "
            f"too ({self.exact:,} word for word, {self.near:,} nearly)."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """Labelled entities per split that are longer than any span that a tagger of spans reads. of: all entities."""

    longer: Mapping[str, int]
    of: Mapping[str, int]

    @classmethod
    def count(cls, splits: Mapping[str, Sequence[Sentence]]) -> "TooLong":
        counts = {name: beyond(sentences) for name, sentences in splits.items()}
        return cls(
            longer={name: longer for name, (longer, _) in counts.items()},
            of={name: n for name, (_, n) in counts.items()},
        )

    @property
    def words(self) -> str:
        """Sentence with their share of each split; "" if there are none."""
        shares = [f"{n / self.of[name]:.1%} of the spans in {name}" for name, n in self.longer.items() if n]
        if not shares:
            return ""
        joined = f"{', '.join(shares[:-1])} and {shares[-1]}" if len(shares) > 1 else shares[0]
        return f"{joined} are longer than {MOST} words and cannot be found."


@dataclass(frozen=True, slots=True, kw_only=True)
class WithVector:
    """Shares of words with a pretrained vector. train: of L_C's different words. tests: of a test set's tokens.

    mean_cosine: of all pairs of words that have a vector; None in results of older versions.
    """

    train: float
    tests: Sequence[float]
    mean_cosine: float | None = None

    @property
    def words(self) -> str:
        """The shares, in a sentence."""
        tests = ", ".join(f"{share:.1%}" for share in self.tests)
        return f"{self.train:.1%} of the labels' different words have a vector" + (
            f", and of the tokens of the test {'sets' if len(self.tests) > 1 else 'set'} {tests}." if tests else "."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneResult:
    """Result of a `finetune` run.

    model: the folder of the seed that is best on dev. test: of the first test set, None where there is none. tests: one
    a test set. best_epoch, epochs, seconds: as `SeedOutcome` has them, one a seed. settings: of the training.
    train_in_test: what was both trained on and scored; None where an older version did not look. too_long: entities
    that a tagger of spans cannot find; None of other networks. with_vector: None where no word begins with a pretrained
    vector.
    """

    model: str
    dev: OverSeeds
    test: OverSeeds | None
    tests: Sequence[OverSeeds]
    best_epoch: Sequence[int]
    epochs: Sequence[int]
    seconds: Sequence[float]
    settings: Mapping[str, bool | int | float]
    train_in_test: TrainInTest | None = None
    too_long: TooLong | None = None
    with_vector: WithVector | None = None

    @property
    def ceiling_words(self) -> str:
        """Entities that a tagger of spans cannot find, in words; nothing of other networks, or where none is."""
        return self.too_long.words if self.too_long else ""

    @property
    def overlap_words(self) -> str:
        """Sentences both trained on and scored, and what that does to F1, in words; nothing where there are none."""
        if not self.train_in_test:
            return ""
        unseen = self.test.unseen_f1 if self.test else ()
        without = (
            f" Test score without what they share: {mean(unseen):.1f}; with it {self.test.f1:.1f}."
            if unseen and self.test
            else ""
        )
        return f"{self.train_in_test.words}{without}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateResult:
    """Result of an `evaluate` run. model: the tagger's folder, or the run that left it. test: of one tagger.

    abstaining: precision and recall where entities below a confidence are left out.
    """

    model: str
    test: OverSeeds
    abstaining: Sequence[Abstaining] = ()


def name_of_test_set(number: int) -> str:
    """The name of the test set of that number, the first 0."""
    return f"test{number or ''}"


def file_suffix(split: str, seed: int) -> str:
    """`<split>-<seed>`, which ends the names of a tagger's files."""
    return f"{split}-{seed}"


def write(run: Run, suffix: str, table: Evaluation, predictions: Sequence[Prediction]) -> None:
    """Write a tagger's results on one split. suffix: see `file_suffix`; the split alone where there are no seeds."""
    table.save(_table(run, suffix))
    write_predictions(run, suffix, predictions)


def write_predictions(run: Run, suffix: str, predictions: Sequence[Prediction]) -> None:
    """Write a tagger's entities, sentence by sentence."""
    with replacing(_predictions(run, suffix)) as file:
        for one in predictions:
            file.write(json.dumps({"entities": [[e.start, e.end, e.type] for e in one.entities]}).encode() + b"\n")


def write_abstaining(run: Run, suffix: str, rows: Sequence[Abstaining]) -> None:
    """Write what each least confidence would keep of a tagger's entities on one split."""
    lines = [",".join(_ABSTAINING), *(",".join(f"{value:.6g}" for value in asdict(row).values()) for row in rows)]
    write_atomic(_abstaining(run, suffix), "\n".join([*lines, ""]).encode())


def read_abstaining(run: Run, suffix: str) -> list[Abstaining]:
    """Read what `write_abstaining` wrote; nothing where an older version left nothing."""
    path = _abstaining(run, suffix)
    if not path.exists():
        return []
    with read_back(path), path.open(encoding="utf-8", newline="") as file:
        return [TypeAdapter(Abstaining).validate_python(row) for row in csv.DictReader(file)]


def read(run: Run, number: int = 0) -> list[Evaluation]:
    """One for each seed, of the test set of that number. Errors: CorpusError where not tested or files are gone."""
    paths = [_table(run, file_suffix(name_of_test_set(number), seed)) for seed in run.manifest.config["seeds"]]
    if not all(path.exists() for path in paths):
        raise CorpusError(f"run {run.id}: has no scores of a test set; fine-tune again with a test corpus.")
    return [Evaluation.load(path) for path in paths]


def read_table(run: Run, suffix: str) -> Evaluation:
    """A tagger's table on one split. Errors: RunError where it is gone or spoilt."""
    return Evaluation.load(_table(run, suffix))


def read_predictions(run: Run, seed: int | None, number: int = 0) -> list[tuple[Entity, ...]]:
    """The entities that the tagger of `seed` predicts, by sentence of a test set. Errors: CorpusError as `read`.

    seed: None of an `evaluate` run, which has one tagger.
    """
    path = _predictions(run, name_of_test_set(number) if seed is None else file_suffix(name_of_test_set(number), seed))
    if not path.exists():
        under = "" if seed is None else f" under seed {seed}"
        raise CorpusError(f"run {run.id}: has no predictions{under}; fine-tune again with a test corpus.")
    with read_back(path), path.open(encoding="utf-8") as file:
        return [
            tuple(Entity(start=start, end=end, type=kind) for start, end, kind in json.loads(line)["entities"])
            for line in file
        ]


def write_outcome(run: Run, seed: int, outcome: SeedOutcome) -> None:
    """Write a seed's outcome, when all else of it is there: a resumed run does not train it again."""
    write_atomic(_outcome(run, seed), json.dumps(asdict(outcome)).encode())


def read_outcome(run: Run, seed: int) -> SeedOutcome | None:
    """Read what `write_outcome` wrote; None where the seed was not finished."""
    path = _outcome(run, seed)
    return TypeAdapter(SeedOutcome).validate_python(read_json(path)) if path.exists() else None


def _table(run: Run, suffix: str) -> Path:
    return run.artifacts / f"evaluation-{suffix}.npz"


def _predictions(run: Run, suffix: str) -> Path:
    return run.artifacts / f"predictions-{suffix}.jsonl"


def _abstaining(run: Run, suffix: str) -> Path:
    return run.artifacts / f"abstain-{suffix}.csv"


def _outcome(run: Run, seed: int) -> Path:
    return run.artifacts / f"outcome-{seed}.json"
