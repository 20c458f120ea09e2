"""Taggers on several test sets: which finished ones share their tests, what they are called, how they stand."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from core.bias.frontier import FrontierRow as FrontierRow
from core.bias.frontier import averages as averages
from core.bias.frontier import frontier as frontier_rows
from core.bias.frontier import known_train
from core.bias.plot import TaggerPoint, best_of_both
from core.bias.result import read_edits
from core.errors import WinnowError
from core.experiment import result as leaderboard
from core.experiment.results import corpus_name
from core.experiment.words import line_name
from core.projects import runs
from core.projects.home import kept_per_home, library, store
from core.projects.titles import encoder
from core.runs import result
from core.runs.store import Run, is_run_id
from core.shown import distinct
from core.tagging import training_view as training
from core.tagging.predictions import PredictResult, TagResult
from core.training import saved_models as models


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedAlike:
    """Finished `finetune` runs, newest first, that were tested on the same corpora, the plain one first."""

    tests: tuple[str, ...]
    runs: tuple[str, ...]


def tested_alike() -> list[TestedAlike]:
    """Runs with two test sets or more, those with the newest run first; sets that were removed count for nothing."""
    runs_by_tests: dict[tuple[str, ...], list[str]] = defaultdict(list)
    here = {corpus.fingerprint for corpus in library().list()}
    for run in store().list("finetune", state="succeeded"):
        tests = tuple(run.manifest.config["test"])
        if len(tests) > 1 and here.issuperset(tests):
            runs_by_tests[tests].append(run.id)
    return [TestedAlike(tests=tests, runs=tuple(runs)) for tests, runs in runs_by_tests.items()]


def here() -> dict[str, str]:
    """Finished `finetune` runs whose model is still here, newest first: {run id: what it is called}."""
    return names([run.id for run in store().list("finetune", state="succeeded") if models.is_here(run)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraining:
    """A tagger to train in place of those whose models are not here. options: of a `finetune` run.

    seconds: about how long it takes; None: this machine has not been timed. run: the run, if it has begun.
    """

    name: str
    options: Mapping[str, object]
    seconds: float | None
    run: str


def retraining(run_ids: Mapping[str, str]) -> Retraining | None:
    """The first of these `finetune` runs that can be trained again here, with one seed; None if none can.

    run_ids: {finetune run: its name}. One that starts from an encoder that was not kept needs its pre-training too.
    """
    for run_id, name in sorted(run_ids.items(), key=lambda item: is_run_id(_begins(item[0]))):
        run = store().get(run_id)
        if is_run_id(_begins(run_id)) and not models.is_here(store().get(_begins(run_id))):
            continue
        seeds = run.manifest.config["seeds"]
        # A run with the same options is finished already, and would be returned without its model.
        seed = seeds[0] if len(seeds) > 1 else seeds[0] + 1000
        options = {**run.manifest.config, "seeds": (seed,)}
        with suppress(WinnowError):
            begun, estimate = runs.begun("finetune", options), training.preflight("finetune", options)
            return Retraining(
                name=f"{name}, trained again", options=options, seconds=estimate.seconds, run=begun.id if begun else ""
            )
    return None


def _begins(run_id: str) -> str:
    """What a tagger starts from: the id of a pre-training, or an encoder."""
    init = str(store().get(run_id).manifest.config["init"])
    return init.removesuffix("/artifacts/model").rsplit("/", 1)[-1]


def names(run_ids: Sequence[str]) -> dict[str, str]:
    """Names of `finetune` runs: the arm of the experiment that they belong to, else encoder and corpus; equal
    names get their date."""
    arms: dict[str, str] = {}
    for run in store().list("experiment", state="succeeded"):
        for row in leaderboard.read(run).leaderboard:
            for finetune in row.finetunes:
                # A tagger that experiments share is called as the newest of them calls it.
                arms.setdefault(finetune, line_name(row))
    names = {run_id: arms.get(run_id) or _named(store().get(run_id)) for run_id in run_ids}
    return distinct(names, {run_id: store().get(run_id).began.timestamp() for run_id in run_ids})


def _named(run: Run) -> str:
    return f"{encoder(run.manifest.config['init'])} on {corpus_name(run.manifest.config['train'])}"


def frontier(runs: Sequence[str], train: str = "") -> list[FrontierRow]:
    """Finished `finetune` runs on the plain and the robustness test sets; see `artifacts.frontier`.

    Errors: RunError.
    """
    return frontier_rows([store().get(run) for run in runs], library(), train)


def standings(run_ids: Sequence[str]) -> list[FrontierRow]:
    """`frontier`'s rows of runs that were tested alike. Slots are ambiguous by one corpus for all of those, picked or
    not, so that a tagger's figures do not depend on which others are shown."""
    tests = tuple(store().get(run_ids[0]).manifest.config["test"])
    alike = next((group.runs for group in tested_alike() if group.tests == tests), run_ids)
    return _standings(tuple(run_ids), known_train([store().get(run) for run in alike], library()).fingerprint)


@kept_per_home(8)
def _standings(run_ids: tuple[str, ...], train: str) -> list[FrontierRow]:
    return frontier(run_ids, train)


def frontier_points(
    rows: Sequence[FrontierRow], test: str, names: Mapping[str, str], *, certain: bool
) -> list[TaggerPoint]:
    """`figures.frontier`'s points of one harder set. rows: of `standings`. certain: without ambiguous slots."""
    f1s = {(row.run, row.test): row.certain_f1 if certain else row.micro_f1 for row in rows}
    plain = {row.run: f1s[row.run, row.test] for row in rows if row.kind == "test"}
    hard = {row.run: f1s[row.run, row.test] for row in rows if row.test == test}
    best = best_of_both(*(np.array([np.mean(side[run]) for run in hard]) for side in (plain, hard)))
    return [
        TaggerPoint(name=names[run], plain=plain[run], hard=hard[run], best=bool(ahead))
        for run, ahead in zip(hard, best, strict=True)
    ]


def tagged(run_id: str) -> TagResult | PredictResult:
    """Result of a finished `tag` or `predict` run. Errors: RunError."""
    run = store().get(run_id)
    return result.read(run, TagResult) if run.manifest.kind == "tag" else result.read(run, PredictResult)


def changed_sentences(run_id: str) -> int:
    """The number of sentences that a finished `rebuild` or `robustness` run changed or made."""
    return len({edit.row for edit in read_edits(store().get(run_id))})
