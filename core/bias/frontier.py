"""F1 of finished taggers on the plain test set and on robustness sets (SOURCES.md, Never only an average).

Each set has F1 with and without ambiguous slots. A slot is ambiguous if the training sentences have its name under
several types, or if its sentence has no content word outside of names. Predictions that overlap an ambiguous slot are
not counted in F1 without them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import mean, stdev

from core.bias.names import Known
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError
from core.runs.store import Run
from core.stats.scoring import count
from core.tagging.evaluations import read_predictions
from core.text.sentence import Entity, Sentence

PLAIN = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierRow:
    """A run on a test set. F1 in percent.

    test: fingerprint. kind: `test`, `oov`, `cross-category`, `typos`, or "" if unknown. mentions, ambiguous: slots.
    micro_f1: per seed; certain_f1: without ambiguous slots. mean, sd, certain_mean, certain_sd: over seeds; sd is None
    for one seed. known: fingerprint of the corpus whose names decide which slots are ambiguous.
    """

    run: str
    test: str
    name: str
    kind: str
    mentions: int
    ambiguous: int
    micro_f1: Sequence[float]
    certain_f1: Sequence[float]
    mean: float
    sd: float | None
    certain_mean: float
    certain_sd: float | None
    known: str


def frontier(runs: Sequence[Run], library: Library, train: str = "") -> list[FrontierRow]:
    """Return one row per run and test set, the plain test set first.

    runs: finished `finetune` runs with the same tests in the same order. train: the labelled corpus whose names are
    known, the same for all runs so that they are compared on the same slots; "": `known_train` of the runs.
    Errors: ConfigError if the tests differ or a run is of another kind; CorpusError if there are no tests, or a corpus
    or file is missing.
    """
    for run in runs:
        if run.manifest.kind != "finetune" or run.state().state != "succeeded":
            raise ConfigError(
                f"frontier: {run.id} is a {run.manifest.kind} run ({run.state().state}); give finetune runs that have"
                " succeeded."
            )
    tests = [tuple(run.manifest.config["test"]) for run in runs]
    if not tests or not tests[0]:
        raise CorpusError("frontier: no run was tested; fine-tune with the test set and robustness sets as tests.")
    if len(set(tests)) > 1:
        raise ConfigError("frontier: the runs were tested on different corpora; compare runs of the same tests.")
    by = library.find(train) if train else known_train(runs, library)
    known = Known.of(_all(by))
    corpora = [library.find(reference) for reference in tests[0]]
    splits = [_Split(corpus, known) for corpus in corpora]
    return [_row(run, i, split, by.fingerprint) for run in runs for i, split in enumerate(splits)]


def known_train(runs: Sequence[Run], library: Library) -> Corpus:
    """Return the corpus whose names count as known; it does not depend on the order of `runs`.

    Candidates are the training sets that the robustness sets were made for, or else those of the runs; of a sample or
    a rebuilt set, its original. The one with most mentions is taken. Errors: CorpusError if none is left here.
    """
    here = {corpus.fingerprint: corpus for corpus in library.list()}
    tests = [here[test] for run in runs for test in run.manifest.config["test"] if test in here]
    against = [here[train] for test in tests if (train := test.origin.get("train")) in here]
    trains = [here[train] for run in runs if (train := run.manifest.config["train"]) in here]
    if not trains and not against:
        raise CorpusError("frontier: the training corpora of these runs were removed; name another one as `train`.")
    return max(against or (_base(train, here) for train in trains), key=_mentions)


def _base(corpus: Corpus, here: Mapping[str, Corpus]) -> Corpus:
    """Return the original that `corpus` was derived from, over several steps if they are all here."""
    seen = {corpus.fingerprint}  # origins are read from files, so a cycle must not hang
    while (source := here.get(corpus.parent)) and source.fingerprint not in seen:
        seen.add(source.fingerprint)
        corpus = source
    return corpus


def _mentions(corpus: Corpus) -> tuple[int, str]:
    # The fingerprint breaks ties, so that the order of the runs does not matter.
    return sum(corpus.types.values()), corpus.fingerprint


def averages(rows: Iterable[FrontierRow]) -> dict[str, float]:
    """Return {run: mean over its test sets of mean F1}, as in Ma et al. 2023. Show it beside the rows, never alone."""
    f1_by_run: dict[str, list[float]] = {}
    for row in rows:
        f1_by_run.setdefault(row.run, []).append(row.mean)
    return {run: mean(values) for run, values in f1_by_run.items()}


class _Split:
    """A test set and its ambiguous slots."""

    def __init__(self, corpus: Corpus, known: Known) -> None:
        self.corpus = corpus
        self.gold = [set(sentence.entities or ()) for sentence in _all(corpus)]
        self.unsure = [
            {entity for entity in sentence.entities or () if known.ambiguity(sentence, entity)}
            for sentence in _all(corpus)
        ]

    def f1(self, predictions: Sequence[Iterable[Entity]], *, certain: bool) -> float:
        """Return micro F1 of one seed's predictions, percent. certain: leave out ambiguous slots."""
        if not certain:
            return count(self.gold, predictions).f1()
        # Drop ambiguous slots from the gold labels, and what overlaps them from the predictions.
        gold = [entities - unsure for entities, unsure in zip(self.gold, self.unsure, strict=True)]
        guess = [
            [e for e in entities if not any(e.start < o.end and o.start < e.end for o in unsure)]
            for unsure, entities in zip(self.unsure, predictions, strict=True)
        ]
        return count(gold, guess).f1()


def _row(run: Run, index: int, split: _Split, known: str) -> FrontierRow:
    by_seed = [read_predictions(run, seed, index) for seed in run.manifest.config["seeds"]]
    f1s, certain = ([split.f1(one, certain=sure) for one in by_seed] for sure in (False, True))
    return FrontierRow(
        run=run.id,
        test=split.corpus.fingerprint,
        name=split.corpus.name,
        kind=str(split.corpus.origin.get("kind", "")) if index else PLAIN,
        mentions=sum(map(len, split.gold)),
        ambiguous=sum(map(len, split.unsure)),
        micro_f1=f1s,
        certain_f1=certain,
        mean=mean(f1s),
        sd=_spread(f1s),
        certain_mean=mean(certain),
        certain_sd=_spread(certain),
        known=known,
    )


def _spread(f1s: Sequence[float]) -> float | None:
    return stdev(f1s) if len(f1s) > 1 else None


def _all(corpus: Corpus) -> Iterable[Sentence]:
    return chain.from_iterable(corpus.batches())
