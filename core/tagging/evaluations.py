"""Results of `finetune` and `evaluate` runs: scores, predictions and outcomes of taggers on labelled splits.

artifacts/  evaluation-<split>-<seed>.npz     numbers of correct, predicted and gold spans, by sentence and type
            predictions-<split>-<seed>.jsonl  {"entities": [[start, end, type], ...]}, one sentence per line
            abstain-<split>-<seed>.csv        precision and recall by minimum confidence
            outcome-<seed>.json               outcome of a seed, written last

Splits are `dev`, `test`, `test1`, `test2`, ... File names of runs without seeds, such as `evaluate` and `dictionary`,
have no seed: `evaluation-test.npz`.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import chain, zip_longest
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.files import read_back, read_json, replacing, write_atomic
from core.kind import Job
from core.models.networks import MOST, beyond
from core.results import BoolArray, Evaluation
from core.runs.run import Run
from core.shown import listed
from core.stats.bootstrap import intervals_by_type
from core.stats.calibration import Abstaining, Calibration, abstaining, calibration, confidences
from core.stats.scoring import MICRO, TypeReport, chance_f1, cited_spans, evaluate, learnt, seqeval_report
from core.text.sentence import Entity, Prediction, Sentence

_ABSTAINING = tuple(each.name for each in fields(Abstaining))


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScores:
    """Scores of one tagger on one split, in percent.

    micro_f1, precision, recall: scores of exact matches (strict), with the tagger's own decoding. by_type: F1 by entity
    type. decodings: micro F1 by decoding. lot: micro F1 up to which a tagger may have guessed (`chance_f1`). macro_f1:
    mean F1 over the types in the split. calibration: calibration of the entities' confidences. unseen_f1: micro F1 on
    the sentences that are not in the training set; None if the training set contains all sentences of the split or
    none. report: seqeval's strict report, a row per type and `micro avg`.
    """

    micro_f1: float
    precision: float
    recall: float
    by_type: Mapping[str, float]
    decodings: Mapping[str, float]
    lot: float = 0.0
    macro_f1: float | None = None
    calibration: Calibration | None = None
    unseen_f1: float | None = None
    report: Sequence[TypeReport] = ()

    @property
    def learnt(self) -> bool:
        """True if the tagger scores better than chance on this split."""
        return learnt(self.micro_f1, self.lot)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOutcome:
    """Result of one seed of a fine-tuning.

    best_epoch: epoch whose weights were kept, from 1. epochs: number of trained epochs. seconds: training time. tests:
    scores on each test set. settings: {option: value} of the training. last_layer: dev micro F1 of the last layer
    alone, for a tagger that mixes layers; else None. dev_epochs: dev micro F1 after each epoch, percent.
    """

    seed: int
    best_epoch: int
    epochs: int
    seconds: float
    dev: SplitScores
    tests: Sequence[SplitScores]
    settings: Mapping[str, bool | int | float]
    last_layer: float | None = None
    dev_epochs: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OverSeeds:
    """Scores of all seeds on one split, in percent.

    micro_f1: micro F1 of each seed. mean, sd: mean and standard deviation of micro_f1; sd is None for one seed.
    by_type: mean F1 by entity type. decodings: {decoding: micro F1 of each seed}. lot, macro_f1, calibration,
    unseen_f1: as in `SplitScores`, a value per seed; empty if unknown. intervals: 95% intervals of by_type, over seeds
    and sentences. report: seqeval's strict report, averaged over seeds.
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
        """For each seed, True if its tagger scores better than chance on this split."""
        return [learnt(f1, lot) for f1, lot in zip_longest(self.micro_f1, self.lot, fillvalue=0.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainInTest:
    """Numbers of training sentences that are also in the dev set or in a test set.

    exact, near: in the dev set or the first test set, which the verdicts of an experiment use. exact: identical words.
    near: near duplicates, which differ in a few words or share 13 words in a row (`corpora.hygiene`). further: only in
    further test sets.
    """

    exact: int = 0
    near: int = 0
    further: int = 0

    def __bool__(self) -> bool:
        return self.exact + self.near + self.further > 0

    @property
    def words(self) -> str:
        """Sentences for users with the numbers of exact and near duplicates."""
        n, more = self.exact + self.near, self.further
        told = f"({self.exact:,} word for word, {self.near:,} nearly)"
        of = "more" if n else "training sentence" + "s" * (more > 1)
        parts = (
            f"{n:,} training sentence{'s are' if n > 1 else ' is'} in the dev or test set too {told}." if n else "",
            f"{more:,} {of} {'are' if more > 1 else 'is'} in further test sets{'' if n else ' too'}." if more else "",
        )
        return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """Number of labelled entities in each split. longer: entities too long for a span tagger. of: all entities."""

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
        """Sentence for users with the share of entities in each split that are too long; "" if there are none."""
        shares = [f"{n / self.of[name]:.1%} of the spans in {name}" for name, n in self.longer.items() if n]
        if not shares:
            return ""
        joined = f"{', '.join(shares[:-1])} and {shares[-1]}" if len(shares) > 1 else shares[0]
        return f"{joined} are longer than {MOST} words and cannot be found."


@dataclass(frozen=True, slots=True, kw_only=True)
class WithVector:
    """Shares of words with a pretrained vector, 0 to 1.

    train: share of the distinct words of the training set. tests: share of the tokens of each test set. mean_cosine:
    mean cosine of all pairs of vectors; None if unknown.
    """

    train: float
    tests: Sequence[float]
    mean_cosine: float | None = None

    @property
    def words(self) -> str:
        """Sentence for users with the shares of words that have a vector."""
        tests = listed([f"{share:.1%}" for share in self.tests])
        return f"{self.train:.1%} of the distinct words of the training set have a vector" + (
            f", and {tests} of the tokens of the test set{'s' * (len(self.tests) > 1)}." if self.tests else "."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneResult:
    """Result of a `finetune` run.

    model: folder of the tagger that is best on dev. test: scores on the first test set, None without one. tests: scores
    on each test set. best_epoch, epochs, seconds: as in `SeedOutcome`, a value per seed. settings: {option: value} of
    the training. too_long: None unless the network is `span`. with_vector: None without pretrained vectors.
    dev_epochs: dev micro F1 after each epoch, percent, one row per seed.
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
    dev_epochs: Sequence[Sequence[float]] = ()

    @property
    def ceiling_words(self) -> str:
        """Sentence about entities that are too long for a span tagger; "" if there are none."""
        return self.too_long.words if self.too_long else ""

    @property
    def overlap_words(self) -> str:
        """Sentences for users on training sentences in the dev or test set, and on F1 without them; or ""."""
        if not self.train_in_test:
            return ""
        unseen = self.test.unseen_f1 if self.test else ()
        without = (
            f" Test F1 without the shared sentences: {mean(unseen):.1f}; with them {self.test.mean:.1f}."
            if unseen and self.test
            else ""
        )
        return f"{self.train_in_test.words}{without}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateResult:
    """Result of an `evaluate` run. model: the tagger's folder or run. test: scores of one tagger.

    abstaining: precision and recall at several minimum confidences.
    """

    model: str
    test: OverSeeds
    abstaining: Sequence[Abstaining] = ()


def name_of_test_set(number: int) -> str:
    """Return the name of a test set by its index: `test`, `test1`, ..."""
    return f"test{number or ''}"


def file_suffix(split: str, seed: int | None) -> str:
    """Return the end of a result file's name: `<split>-<seed>`, or `<split>` for a run without seeds."""
    return split if seed is None else f"{split}-{seed}"


def write(run: Run, suffix: str, table: Evaluation, predictions: Sequence[Prediction]) -> None:
    """Write a tagger's results on one split. suffix: see `file_suffix`."""
    table.save(_table(run, suffix))
    write_predictions(run, suffix, predictions)


def write_predictions(run: Run, suffix: str, predictions: Sequence[Prediction]) -> None:
    """Write a tagger's entities, one sentence per line."""
    with replacing(_predictions(run, suffix)) as file:
        for one in predictions:
            file.write(json.dumps({"entities": [[e.start, e.end, e.type] for e in one.entities]}).encode() + b"\n")


def write_abstaining(run: Run, suffix: str, rows: Sequence[Abstaining]) -> None:
    """Write a tagger's precision and recall on one split, one row per minimum confidence."""
    lines = [",".join(_ABSTAINING), *(",".join(f"{value:.6g}" for value in asdict(row).values()) for row in rows)]
    write_atomic(_abstaining(run, suffix), "\n".join([*lines, ""]).encode())


def read_abstaining(run: Run, suffix: str) -> list[Abstaining]:
    """Read the rows that `write_abstaining` wrote; return [] if there is no such file."""
    path = _abstaining(run, suffix)
    if not path.exists():
        return []
    with read_back(path), path.open(encoding="utf-8", newline="") as file:
        return [TypeAdapter(Abstaining).validate_python(row) for row in csv.DictReader(file)]


def read(run: Run, number: int = 0) -> list[Evaluation]:
    """Read the tables of span counts on a test set, one table per seed; a run without seeds has one table.

    number: index of the test set. Errors: CorpusError if a table is missing.
    """
    seeds = run.manifest.config.get("seeds", (None,))
    paths = [_table(run, file_suffix(name_of_test_set(number), seed)) for seed in seeds]
    if not all(path.exists() for path in paths):
        raise CorpusError(f"run {run.id}: has no scores of a test set; fine-tune again with a test corpus.")
    return [Evaluation.load(path) for path in paths]


def read_table(run: Run, suffix: str) -> Evaluation:
    """Read a tagger's table of span counts on one split. Errors: RunError if it is missing or damaged."""
    return Evaluation.load(_table(run, suffix))


def read_predictions(run: Run, seed: int | None, number: int = 0) -> list[tuple[Entity, ...]]:
    """Read the entities that a tagger predicted on a test set, one tuple per sentence.

    seed: None for an `evaluate` run, which has one tagger. number: index of the test set. Errors: CorpusError if the
    file is missing.
    """
    path = _predictions(run, file_suffix(name_of_test_set(number), seed))
    if not path.exists():
        under = "" if seed is None else f" under seed {seed}"
        raise CorpusError(f"run {run.id}: has no predictions{under}; fine-tune again with a test corpus.")
    with read_back(path), path.open(encoding="utf-8") as file:
        return [
            tuple(Entity(start=start, end=end, type=kind) for start, end, kind in json.loads(line)["entities"])
            for line in file
        ]


def write_outcome(run: Run, seed: int, outcome: SeedOutcome) -> None:
    """Write a seed's outcome. Call this last, because a resumed run does not train a seed that has an outcome."""
    write_atomic(_outcome(run, seed), json.dumps(asdict(outcome)).encode())


def read_outcome(run: Run, seed: int) -> SeedOutcome | None:
    """Read a seed's outcome; None if the seed is not finished."""
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


if TYPE_CHECKING:
    from core.models.tagger import Tagger


def labelled(corpus: Corpus) -> list[Sentence]:
    """Return all sentences of a labelled corpus. Errors: CorpusError if it is not labelled."""
    if not corpus.labelled:
        raise CorpusError(f"{corpus.name}: is not labelled; give a corpus with entities, for example a CoNLL file.")
    return list(chain.from_iterable(corpus.batches()))


def types_of(*splits: Sequence[Sentence]) -> set[str]:
    """Return the entity types in the splits."""
    return {entity.type for split in splits for sentence in split for entity in sentence.entities or ()}


def score_split(
    job: Job,
    tagger: "Tagger",
    gold: Sequence[Sentence],
    types: Sequence[str],
    name: str,
    *,
    seen: BoolArray | None,
) -> SplitScores:
    """Return a tagger's scores on one split, with every decoding, and write the result files.

    The main score is strict and uses the tagger's own decoding. name: see `file_suffix`. seen: `(n,)`, True for
    sentences that are in the training set.
    """
    from core.models.tagger import prediction_of

    job.context.stage(f"evaluating {name}")
    tags, (plain, best) = tagger.read((1.0, tagger.crf.temperature), gold, job.context)
    table = evaluate(gold, best, types)
    write(job.context.run, name, table, best)
    sure, right = confidences(gold, (plain, best))
    write_abstaining(job.context.run, name, abstaining(sure[:, 1], right, int(table.gold.sum())))
    decoded = {
        "viterbi": [prediction_of(sentence.viterbi) for sentence in tags],
        "argmax": [prediction_of(sentence.argmax) for sentence in tags],
        "cited_scorer": [cited_spans(sentence.viterbi) for sentence in tags],
        "constrained": [prediction_of(sentence.constrained) for sentence in tags],
    }
    return SplitScores(
        micro_f1=table.f1(),
        precision=table.precision(),
        recall=table.recall(),
        by_type=table.by_type(),
        decodings={decoding: evaluate(gold, spans, types).f1() for decoding, spans in decoded.items()},
        lot=chance_f1(gold, best),
        macro_f1=table.macro_f1(),
        calibration=calibration(sure, right, tagger.crf.temperature),
        # Without training sentences in this split, this score would equal `micro_f1`. If all are training sentences,
        # there is no score.
        unseen_f1=table.of(~seen).f1() if seen is not None and seen.any() and not seen.all() else None,
        report=seqeval_report(gold, best),
    )


def score_found(run: Run, gold: Sequence[Sentence], found: Sequence[Prediction], name: str) -> OverSeeds:
    """Return the scores of entities that a dictionary, an LLM or a zero-shot model found; write the result files.

    found: entities found in each sentence. name: name of the test set, see `name_of_test_set`.
    """
    types = sorted({*types_of(gold), *(entity.type for each in found for entity in each.entities)})
    table = evaluate(gold, found, types)
    write(run, name, table, found)
    scores = SplitScores(
        micro_f1=table.f1(),
        precision=table.precision(),
        recall=table.recall(),
        by_type=table.by_type(),
        decodings={},
        lot=chance_f1(gold, found),
        macro_f1=table.macro_f1(),
        report=seqeval_report(gold, found),
    )
    return over_seeds([scores], [table])


def without_mix(job: Job, tagger: "Tagger", gold: Sequence[Sentence], types: Sequence[str]) -> float | None:
    """Return the micro F1 that a tagger with mixed layers reaches in other software; None for other taggers.

    Other software uses only the last layer and decodes each word alone. For a tagger that does not mix layers, this
    score equals its `argmax` score.
    """
    from core.models.tagger import prediction_of
    from core.models.taggers import EncoderTagger

    if not isinstance(tagger, EncoderTagger) or tagger.mix is None:
        return None
    job.context.stage("evaluating with the last layer alone")
    with tagger.mix.off():
        tags = tagger.tag(gold, job.context)
    return evaluate(gold, [prediction_of(sentence.argmax) for sentence in tags], types).f1()


def note_unlearnt(job: Job, outcome: SeedOutcome) -> None:
    """Add a note to the run if a seed's tagger is no better than chance on dev."""
    results = [outcome.dev, *outcome.tests]
    if not outcome.dev.learnt:
        names = ["dev", *map(name_of_test_set, range(len(outcome.tests)))]
        f1s = ", ".join(f"{name} {result.micro_f1:.2f}" for name, result in zip(names, results, strict=True))
        job.context.note(
            f"Seed {outcome.seed} learnt nothing: its score on dev is no better than chance ({f1s}). Train for more "
            "epochs or at a higher learning rate."
        )


def over_seeds(results: Sequence[SplitScores], tables: Sequence[Evaluation] = ()) -> OverSeeds:
    """Combine the unrounded scores of all seeds on one split.

    tables: span counts of each seed, from which intervals by type are computed; without them there are no intervals.
    """
    values = [one.micro_f1 for one in results]
    return OverSeeds(
        micro_f1=values,
        mean=mean(values),
        sd=stdev(values) if len(values) > 1 else None,
        by_type={name: mean(one.by_type[name] for one in results) for name in results[0].by_type},
        decodings={name: [one.decodings[name] for one in results] for name in results[0].decodings},
        lot=[one.lot for one in results],
        macro_f1=[one.macro_f1 for one in results if one.macro_f1 is not None],
        calibration=[one.calibration for one in results if one.calibration],
        intervals=intervals_by_type(tables) if tables else {},
        unseen_f1=[one.unseen_f1 for one in results if one.unseen_f1 is not None],
        report=_mean_report([one.report for one in results]),
    )


def _mean_report(reports: Sequence[Sequence[TypeReport]]) -> list[TypeReport]:
    """Average the reports of all seeds row by row. If a report lacks a type, the type's scores count as 0."""
    lines: dict[str, list[TypeReport]] = {}
    for report in reports:
        for line in report:
            lines.setdefault(line.type, []).append(line)
    n = len(reports)
    return [
        TypeReport(
            type=name,
            precision=sum(line.precision for line in seeds) / n,
            recall=sum(line.recall for line in seeds) / n,
            f1=sum(line.f1 for line in seeds) / n,
            support=max(line.support for line in seeds),
        )
        for name, seeds in sorted(lines.items(), key=lambda pair: (pair[0] == MICRO, pair[0]))
    ]


def all_seeds(
    model: str,
    outcomes: Sequence[SeedOutcome],
    tables: Sequence[Sequence[Evaluation]] = (),
    train_in_test: TrainInTest | None = None,
    too_long: TooLong | None = None,
    *,
    with_vector: WithVector | None = None,
) -> FinetuneResult:
    """Combine the outcomes of all seeds of a fine-tuning.

    model: folder of the best tagger. tables: for each test set, the span counts of each seed, from which intervals by
    type are computed.
    """
    tests = [
        over_seeds([outcome.tests[i] for outcome in outcomes], tables[i] if tables else ())
        for i in range(len(outcomes[0].tests))
    ]
    return FinetuneResult(
        model=model,
        dev=over_seeds([outcome.dev for outcome in outcomes]),
        test=tests[0] if tests else None,
        tests=tests,
        best_epoch=[outcome.best_epoch for outcome in outcomes],
        epochs=[outcome.epochs for outcome in outcomes],
        dev_epochs=[outcome.dev_epochs for outcome in outcomes],
        seconds=[outcome.seconds for outcome in outcomes],
        settings=outcomes[0].settings,
        train_in_test=train_in_test,
        too_long=too_long,
        with_vector=with_vector,
    )
