"""Reference lines of an experiment: other ways to find the entities of its test sets, without training a tagger.

A reference line is a line of the leaderboard (`arms.py`) whose evaluation comes from a run of one of `KINDS`. Finished
runs of these kinds that were started alone are listed beside the leaderboard of an experiment with the same test set.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.dictionary.dictionary import DictionaryResult
from core.experiment.arms import NONE, Arm
from core.experiment.config import ExperimentConfig
from core.experiment.result import ArmRow, Reference, by_replicate, tables
from core.kind import Options
from core.runs import result
from core.runs.store import Run, RunStore
from core.shown import count, listed
from core.stats.bootstrap import compare_line
from core.tagging import evaluations
from core.tagging.estimate import START

READ_NAMES, LOOK_UP = 3e-6, 1e-5  # seconds per token of the lists; of the test sets, with the scoring


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceKind:
    """A kind of run that can be a reference line.

    options: returns the options of its run for an arm of an experiment, or of one of its halves, without the test sets.
    seconds: estimates its time from the lists of names (the training set without any) and the test sets. doing: what it
    does, in words for the progress of an experiment. about: describes a finished run.
    """

    options: Callable[[Arm, ExperimentConfig], Options]
    seconds: Callable[[Sequence[Corpus], Sequence[Corpus]], float]
    doing: str
    about: Callable[[Run, Library], str]


def _dictionary_seconds(names: Sequence[Corpus], tests: Sequence[Corpus]) -> float:
    read, tested = (sum(corpus.n_tokens for corpus in corpora) for corpora in (names, tests))
    return START / 3 + read * READ_NAMES + tested * LOOK_UP


def _dictionary_about(run: Run, library: Library) -> str:
    found = result.read(run, DictionaryResult)
    lists = listed([library.recall(mark).name for mark in run.manifest.config["names"]])
    return f"{count(found.names - found.common, 'name')} of {lists}, looked up without training."


KINDS: Mapping[str, ReferenceKind] = {
    "dictionary": ReferenceKind(
        options=lambda _, config: {"names": config.dictionary or (config.train,)},
        seconds=_dictionary_seconds,
        doing="looking names up",
        about=_dictionary_about,
    )
}


def beside(rows: Sequence[ArmRow], test: str, store: RunStore, library: Library) -> list[Reference]:
    """Return the finished runs that could be reference lines but are no rows of the leaderboard, the highest F1 first.

    rows: the leaderboard. test: fingerprint of the experiment's first test set; runs on others are left out. Return []
    if taggers of `none` are gone, and if halves of the labels are swapped, because the variants then have other test
    sets. Errors: CorpusError if an evaluation is damaged.
    """
    none = next((row for row in rows if row.arm == NONE), None)
    if none is None or none.halves_runs:
        return []
    if not {run.id for run in store.list("finetune", state="succeeded")} >= {*none.finetunes}:
        return []
    known = {run for row in rows for run in row.finetunes}
    base, found = tables(none, store), []
    for run in store.list(*KINDS, state="succeeded"):
        tests = list(run.manifest.config["test"])
        if test in tests and run.id not in known:
            table = by_replicate(evaluations.read(run, tests.index(test)), none.taggers)
            found.append(
                Reference(
                    run=run.id,
                    about=KINDS[run.manifest.kind].about(run, library),
                    f1=table[0].f1(),
                    difference=compare_line(table, base),
                )
            )
    return sorted(found, key=lambda line: -line.f1)
