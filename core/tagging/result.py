"""Tables that compare finished taggers on their test sets: by type, by seen and unseen names, sentence by sentence.

A run here is a finished `finetune` run; its test set is the first of its `test` corpora.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from statistics import mean
from typing import Literal

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import CorpusError
from core.results import Evaluation
from core.runs import result
from core.runs.store import Run
from core.stats.bootstrap import intervals_by_type
from core.stats.mistakes import Mistake, mistakes
from core.stats.scoring import TypeReport, count
from core.tagging import evaluations
from core.tagging.config import FinetuneConfig
from core.tagging.evaluations import FinetuneResult
from core.text.sentence import Entity, Sentence
from core.training import saved_models as models

MODEL = "its model"
# `weakest` ignores types with fewer mentions in the test set, because their recall is too uncertain.
MENTIONS = 10
# A seed failed if its F1 is below this share of the best seed's F1 (Dodge et al. 2020).
FAILED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeScores:
    """F1 of one entity type with the taggers of two variants, A and B.

    mentions: number in the test set. a, b: F1 in percent, mean over seeds. interval_a, interval_b: 95% intervals over
    seeds and sentences; None if unknown.
    """

    type: str
    mentions: int
    a: float
    b: float
    interval_a: tuple[float, float] | None = None
    interval_b: tuple[float, float] | None = None

    @property
    def difference(self) -> float:
        """F1 of A minus F1 of B, points."""
        return self.a - self.b


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Entity type, and the share of its mentions that taggers find, 0 to 1."""

    type: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfound:
    """Entity type of which no mention was found.

    mentions: number of mentions in the test set. labelled: number of mentions in the training set.
    """

    type: str
    mentions: int
    labelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Novelty:
    """F1 on the mentions of `seen` or `unseen` names, percent, mean over seeds.

    surfaces: `seen` for names that are entities of the training set, `unseen` for all others. mentions: number of
    labelled mentions in the test set.
    """

    surfaces: Literal["seen", "unseen"]
    mentions: int
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDifference:
    """Option in which runs A and B differ. a, b: its value in each run; None if the run does not have the option."""

    option: str
    a: object
    b: object


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoReadings:
    """Test sentence with the predictions of two taggers, A and B, and the mistakes of each tagger."""

    sentence: Sentence
    a: tuple[Entity, ...]
    b: tuple[Entity, ...]
    wrong_a: tuple[Mistake, ...]
    wrong_b: tuple[Mistake, ...]

    @property
    def differs(self) -> bool:
        """True if taggers A and B predict different entities."""
        return set(self.a) != set(self.b)


def read(run: Run) -> FinetuneResult:
    """Return the result of a finished run. Errors: RunError."""
    return result.read(run, FinetuneResult)


def by_type(a: Sequence[Run], b: Sequence[Run]) -> list[TypeScores]:
    """Return F1 by entity type of two variants, frequent types first (Mahapatra et al. 2022, Table 4).

    a, b: runs of each variant, one per replicate. Each score is the mean over the seeds of all runs.
    """
    arm_a, arm_b = (_evaluations(runs) for runs in (a, b))
    gold = dict(zip(arm_a[0].types, arm_a[0].gold.sum(axis=0).tolist(), strict=True))
    types = sorted(
        {name for one in (*arm_a, *arm_b) for name in one.types}, key=lambda name: (-gold.get(name, 0), name)
    )

    def f1(arm: Sequence[Evaluation], name: str) -> float:
        return mean(one.by_type().get(name, 0.0) for one in arm)

    sure_a, sure_b = _intervals(a), _intervals(b)
    return [
        TypeScores(
            type=name,
            mentions=gold.get(name, 0),
            a=f1(arm_a, name),
            b=f1(arm_b, name),
            interval_a=sure_a.get(name),
            interval_b=sure_b.get(name),
        )
        for name in types
    ]


def _evaluations(runs: Sequence[Run]) -> list[Evaluation]:
    return [evaluation for run in runs for evaluation in evaluations.read(run)]


def _intervals(runs: Sequence[Run]) -> Mapping[str, tuple[float, float]]:
    """Return {type: 95% interval of F1}. Intervals of a single run are read; for several runs they are computed."""
    stored = [test.intervals for run in runs if (test := read(run).test)]
    if len(runs) == 1 or not all(stored):
        return stored[0] if len(runs) == 1 and stored else {}
    return intervals_by_type(_evaluations(runs))


def reports(runs: Sequence[Run]) -> list[TypeReport]:
    """Return seqeval's strict report, averaged over all runs of a variant; [] if a run has no report."""
    lines = [test.report if (test := read(run).test) else () for run in runs]
    if not all(lines):
        return []
    together = [[line for report in lines for line in report if line.type == first.type] for first in lines[0]]
    return [
        replace(
            same[0],
            precision=mean(line.precision for line in same),
            recall=mean(line.recall for line in same),
            f1=mean(line.f1 for line in same),
        )
        for same in together
    ]


def decodings(runs: Iterable[Run]) -> dict[str, float]:
    """Return {decoding: mean test F1 over the seeds of all runs}; {} without a test set."""
    f1s: dict[str, list[float]] = {}
    for test in (read(run).test for run in runs):
        for name, values in test.decodings.items() if test else ():
            f1s.setdefault(name, []).extend(values)
    return {name: mean(values) for name, values in f1s.items()}


def kept_seed(run: Run) -> tuple[int, int]:
    """Return the index and the value of the seed whose tagger was kept because it is best on dev."""
    f1s = read(run).dev.micro_f1
    # Of equal seeds, the run keeps the first.
    place = f1s.index(max(f1s))
    return place, run.manifest.config["seeds"][place]


def macro(runs: Sequence[Run]) -> float:
    """Return macro F1 on the test set, percent, averaged over the seeds of all runs.

    Errors: see `evaluations.read`.
    """
    return mean(one.macro_f1() for one in _evaluations(runs))


def unfound(runs: Sequence[Run], train: Corpus) -> list[Unfound]:
    """Return the entity types of which no tagger found any mention. Errors: CorpusError as in `evaluations.read`."""
    by_run = [evaluations.read(run) for run in runs]
    tables = [one for tables in by_run for one in tables]
    gold = Counter[str]()
    for one in {test_of(run): tables[0] for run, tables in zip(runs, by_run, strict=True)}.values():
        gold.update(dict(zip(one.types, one.gold.sum(axis=0).tolist(), strict=True)))
    right = {name for one in tables for name, n in zip(one.types, one.tp.sum(axis=0), strict=True) if n}
    return [
        Unfound(type=name, mentions=n, labelled=train.types.get(name, 0))
        for name, n in gold.items()
        if n and name not in right
    ]


def weakest(runs: Sequence[Run]) -> Found | None:
    """Return the entity type with the lowest recall over all taggers of `runs`.

    Types with fewer than `MENTIONS` mentions in the test set are ignored. Return None if no type is left, or if every
    mention was found. Errors: CorpusError as in `evaluations.read`.
    """
    found, gold = Counter[str](), Counter[str]()
    for table in (table for run in runs for table in evaluations.read(run)):
        for name, right, all_ in zip(table.types, table.tp.sum(axis=0), table.gold.sum(axis=0), strict=True):
            if all_ >= MENTIONS:
                found[name] += int(right)
                gold[name] += int(all_)
    name = min(gold, key=lambda name: (found[name] / gold[name], name), default="")
    return Found(type=name, share=found[name] / gold[name]) if name and found[name] < gold[name] else None


def by_novelty(run: Run, library: Library) -> list[Novelty]:
    """Return F1 on mentions of names seen in training, and F1 on all other mentions (SOURCES.md, Leaks).

    A name is seen if it is an entity of the training set; case is ignored. Errors: CorpusError if a corpus or a file is
    missing.
    """
    known = {_surface(s, e) for s in _all(library, run.manifest.config["train"]) for e in s.entities or ()}
    gold = _tested_on(run, library)
    by_seed = [evaluations.read_predictions(run, seed) for seed in run.manifest.config["seeds"]]

    def row(name: Literal["seen", "unseen"], wanted: Callable[[Sentence, Entity], bool]) -> Novelty:
        truth = [{e for e in s.entities or () if wanted(s, e)} for s in gold]
        guesses = ([{e for e in es if wanted(s, e)} for s, es in zip(gold, arm, strict=True)] for arm in by_seed)
        scores = [count(truth, guess).f1() for guess in guesses]
        return Novelty(surfaces=name, mentions=sum(map(len, truth)), f1=mean(scores))

    return [
        row("seen", lambda sentence, entity: _surface(sentence, entity) in known),
        row("unseen", lambda sentence, entity: _surface(sentence, entity) not in known),
    ]


def side_by_side(a: Run, seed_a: int | None, b: Run, seed_b: int | None, library: Library) -> list[TwoReadings]:
    """Return the test sentences with the predictions of two taggers, in corpus order.

    seed_a, seed_b: seed of each tagger; None for an `evaluate` run. Errors: CorpusError if the test sets differ.
    """
    if not tested_alike(a, b):
        raise CorpusError(f"{a.id} and {b.id}: were tested on different corpora; compare runs of one test set.")
    readings = (evaluations.read_predictions(run, seed) for run, seed in ((a, seed_a), (b, seed_b)))
    table = zip(_tested_on(a, library), *readings, strict=True)
    return [
        TwoReadings(
            sentence=sentence,
            a=entities_a,
            b=entities_b,
            wrong_a=mistakes(sentence.entities or (), entities_a),
            wrong_b=mistakes(sentence.entities or (), entities_b),
        )
        for sentence, entities_a, entities_b in table
    ]


def tested_alike(a: Run, b: Run) -> bool:
    """Return True if two runs have the same first test set."""
    return test_of(a) == test_of(b)


def test_of(run: Run) -> str:
    """Return the fingerprint of a run's first test set; "" without one."""
    tests = run.manifest.config["test"]  # For an `evaluate` run, this is a single name.
    return tests if isinstance(tests, str) else str(tests[0]) if tests else ""


def _tested_on(run: Run, library: Library) -> list[Sentence]:
    return list(_all(library, test_of(run)))


def _all(library: Library, reference: str) -> Iterable[Sentence]:
    return chain.from_iterable(library.find(reference).batches())


def _surface(sentence: Sentence, entity: Entity) -> str:
    return " ".join(sentence.tokens[max(entity.start, 0) : entity.end]).lower()


def failed_seeds(run: Run) -> list[int]:
    """Return the seeds whose tagger failed: less than half the best seed's test F1, or no better than chance on dev.

    Reported means over seeds include these seeds (SOURCES.md, Seeds).
    """
    test = read(run).test
    scores, collapsed = test.micro_f1 if test else (), collapsed_seeds(run)
    weak = [f1 < FAILED * max(scores) for f1 in scores]
    return [seed for seed, bad in zip_longest(run.manifest.config["seeds"], weak) if bad or seed in collapsed]


def collapsed_seeds(run: Run) -> list[int]:
    """Return the seeds whose tagger is no better than chance on dev (`scoring.learnt`).

    Only dev F1 counts, as for early stopping. A good test F1 does not make up for a dev F1 of 0.
    """
    learnt = read(run).dev.learnt
    return [seed for seed, good in zip(run.manifest.config["seeds"], learnt, strict=False) if not good]


def config_differences(a: Run, b: Run) -> list[OptionDifference]:
    """Return the options in which two runs differ. Corpora are compared by fingerprint."""
    config_a, config_b = complete_config(a), complete_config(b)
    return [
        OptionDifference(option=name, a=config_a.get(name), b=config_b.get(name))
        for name in dict.fromkeys((*config_a, *config_b))
        if name != "weights" and config_a.get(name) != config_b.get(name)
    ]


def differing_settings(a: Run, b: Run) -> list[OptionDifference]:
    """Return the settings in which two finished runs differ, except the encoder that they start from."""
    settings_a, settings_b = _settings(a), _settings(b)
    return [
        OptionDifference(option=name, a=settings_a.get(name), b=settings_b.get(name))
        for name in dict.fromkeys((*settings_a, *settings_b))
        if name not in _SAME_ANYWAY and settings_a.get(name) != settings_b.get(name)
    ]


# Options that `differing_settings` leaves out: the encoder and its hash, which the user compares on purpose, and an
# option that changes no score.
_SAME_ANYWAY = ("init", "weights", "allow_download")


def _settings(run: Run) -> Mapping[str, object]:
    """Return the config of a run. For options that the user left to the preset, return the value that the run used."""
    own = {name: value for name, value in complete_config(run).items() if value is not None}
    return {**read(run).settings, **own}


def complete_config(run: Run) -> Mapping[str, object]:
    """Return the config of a `finetune` run, with the defaults of options that did not exist when it was made."""
    later = [name for name in FinetuneConfig.model_fields if name not in run.manifest.config]
    defaults = {name: FinetuneConfig.model_fields[name].get_default(call_default_factory=True) for name in later}
    # A manifest stores tuples as lists, so convert the defaults, too.
    return {**run.manifest.config, **json.loads(json.dumps(defaults))}


def missing(run: Run, library: Library) -> list[str]:
    """Name what a run has lost: corpora, without which it cannot be repeated, and its model; [] if nothing."""
    gone = []
    for role, fingerprint in run.manifest.inputs.items():
        try:
            library.find(fingerprint)
        except CorpusError:
            gone.append(f"the corpus of {role.partition('.')[0]} ({fingerprint[:8]})")
    if run.manifest.kind == "finetune" and not models.is_here(run):
        gone.append(MODEL)
    return gone
