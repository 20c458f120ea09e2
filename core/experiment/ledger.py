"""List earlier analyses of a test set: each one makes a false positive verdict more likely (SOURCES.md, Ledger)."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from core.errors import CorpusError, RunError
from core.experiment import result as boards
from core.experiment.result import EarlierAnalysis, StudyResult
from core.experiment.words import main
from core.runs import result as results
from core.runs.run import Run
from core.runs.store import RunStore


def earlier_analyses(run: Run, store: RunStore) -> list[EarlierAnalysis]:
    """Return the finished analyses of the test sets of `run`, in the order in which they started.

    Call this function when `run` finishes. An analysis is an experiment or a study that compared variants with two
    seeds or more. A finished study counts once, without its experiments. The experiments of an unfinished study count
    one by one. An earlier analysis of the same claim also counts. Its seeds or other options are different, because a
    run with the same options would have been reused.
    """
    if run.manifest.parent:  # The run belongs to a study. Only the study itself lists earlier analyses.
        return []
    own = _tests(run)
    finished = [each for each in store.list("experiment", "study", state="succeeded") if own & _tests(each)]
    within = {run.id, *(each.id for each in finished if each.manifest.kind == "study")}
    return list(_claims(each for each in reversed(finished) if each.manifest.parent not in within))


def _tests(run: Run) -> set[str]:
    """Return the fingerprint of the first test set of an experiment, or of the test sets of a study's tasks."""
    return {mark for name, mark in run.manifest.inputs.items() if name.partition(".")[0] == "test"}


def _claims(runs: Iterable[Run]) -> Iterator[EarlierAnalysis]:
    for run in runs:
        with suppress(RunError, CorpusError, OSError):  # Skip a run with a missing or damaged result.
            if run.manifest.kind == "study":
                study = results.read(run, StudyResult)
                arm, budget, n = study.arm, study.budget, study.replicates
            else:
                row = main(boards.read(run))
                arm, budget, n = (row.arm, row.budget, len(row.micro_f1)) if row else ("", "", 0)
            if n > 1:
                yield EarlierAnalysis(run=run.id, claim=f"{arm} {budget}".strip(), replicates=n)
