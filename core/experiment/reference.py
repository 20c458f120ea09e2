"""Reference lines of an experiment: other ways to find the entities of its test set, without training a tagger.

A reference line is a run of one of `KINDS` on the first test set. It takes no part in the planned test, and it has no
spread of its own. Its difference to `none` has an interval over the seeds of `none` and over test sentences.

To add one, add its kind to `KINDS` with its options and its words, and a reference arm (`arms.py`) with that kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.corpora.library import Library
from core.dictionary.dictionary import DictionaryResult
from core.experiment.arms import NONE, Arm
from core.experiment.config import ExperimentConfig
from core.experiment.result import ArmRow, Reference, tables
from core.kind import Options
from core.runs import result
from core.runs.store import Run, RunStore
from core.shown import count
from core.stats.bootstrap import compare
from core.tagging import evaluations


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceKind:
    """A kind of run that can be a reference line.

    options: returns the options of its run for an arm of an experiment, without the test set. about: describes a
    finished run.
    """

    options: Callable[[Arm, ExperimentConfig], Options]
    about: Callable[[Run, Library], str]


def _dictionary_about(run: Run, library: Library) -> str:
    found = result.read(run, DictionaryResult)
    lists = ", ".join(library.recall(mark).name for mark in run.manifest.config["names"])
    return f"{count(found.names - found.common, 'name')} of {lists}"


KINDS: Mapping[str, ReferenceKind] = {
    "dictionary": ReferenceKind(
        options=lambda _, config: {"names": config.dictionary or (config.train,)}, about=_dictionary_about
    )
}


def references(
    rows: Sequence[ArmRow], test: str, runs: Sequence[Run], store: RunStore, library: Library
) -> list[Reference]:
    """Return the reference lines among `runs`, the highest F1 first.

    rows: the leaderboard. test: fingerprint of the experiment's first test set; runs on others are left out. Return []
    if taggers of `none` are gone, and if halves of the labels are swapped, because the variants then have other test
    sets. Errors: CorpusError if an evaluation is damaged.
    """
    row = next((row for row in rows if row.arm == NONE), None)
    if row is None or row.halves_runs:
        return []
    if not {run.id for run in store.list("finetune", state="succeeded")} >= {*row.finetunes}:
        return []
    none, found = tables(row, store), []
    for run in runs:
        tests = list(run.manifest.config["test"])
        if run.manifest.kind in KINDS and test in tests:
            table = evaluations.read_table(run, evaluations.name_of_test_set(tests.index(test)))
            found.append(
                Reference(
                    run=run.id,
                    about=KINDS[run.manifest.kind].about(run, library),
                    f1=table.f1(),
                    difference=compare([table] * len(none), none),
                )
            )
    return sorted(found, key=lambda line: -line.f1)
