"""Earlier analyses of a test set: each further one makes a false "helped" more likely (SOURCES.md, Ledger)."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from core.errors import CorpusError, RunError
from core.experiment import result as boards
from core.experiment.result import EarlierAnalysis, StudyResult
from core.runs import result as results
from core.runs.run import Run
from core.runs.store import RunStore


def earlier_analyses(run: Run, store: RunStore) -> list[EarlierAnalysis]:
    """Return the finished analyses of the test sets of `run` that were started before it, oldest first.

    An analysis is an experiment or a study that tested a claim. A study counts once; its experiments do not count. An
    earlier analysis of the same claim counts too, because its seeds or other options differ: an equal run is reused.
    """
    if run.manifest.parent:  # an experiment of a study, which has its own ledger
        return []
    own, before = _tests(run), run.manifest.created
    runs = [
        earlier
        for earlier in store.list("experiment", "study", state="succeeded")
        if not earlier.manifest.parent and earlier.manifest.created < before and own & _tests(earlier)
    ]
    return list(_claims(reversed(runs)))


def _tests(run: Run) -> set[str]:
    """Return the fingerprint of the first test set of an experiment, or of the test sets of a study's tasks."""
    return {mark for name, mark in run.manifest.inputs.items() if name.partition(".")[0] == "test"}


def _claims(runs: Iterable[Run]) -> Iterator[EarlierAnalysis]:
    for run in runs:
        with suppress(RunError, CorpusError, OSError):  # its result is gone or damaged
            study = run.manifest.kind == "study"
            planned = (results.read(run, StudyResult) if study else boards.read(run)).planned
            if planned:
                claim = f"{planned.arm} {planned.budget}".strip()
                yield EarlierAnalysis(run=run.id, claim=claim, replicates=planned.replicates)
