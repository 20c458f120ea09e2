"""Removing a corpus or a run with everything that was made from it."""

import shutil
import time
from contextlib import suppress

from core import project_list as projects
from core.corpora import uploads
from core.corpora.corpus import ABOUT
from core.errors import MissingCorpus, RunError
from core.files import bytes_in
from core.importing.view import forget_roles
from core.paths import within
from core.projects.audit import noted
from core.projects.home import given_home, home, library, store
from core.projects.labels import size
from core.projects.removal import Removal as Removal
from core.projects.removal import alone, everything
from core.runs import launch
from core.runs.run import holders
from core.runs.store import Run, is_run_id


def removal(reference: str) -> Removal:
    """The removal of a corpus (name, fingerprint; of a removed one all of it) or a run (id), with all that needs it.

    Errors: CorpusError, RunError where it is not here.
    """
    return everything(_mark(reference), library(), store())


def _mark(reference: str) -> str:
    if is_run_id(reference):
        return store().get(reference).id
    try:
        return library().find(reference).fingerprint
    except MissingCorpus:
        if any(reference in run.manifest.inputs.values() for run in store().list()):
            return reference
        raise


def removal_alone(run_id: str) -> tuple[list[Run], int]:
    """Runs that `remove_run` deletes, and the bytes that this frees. Errors: RunError where it is not here."""
    runs = alone(store().get(run_id), store())
    return runs, sum(map(size, runs))


def bytes_of(doomed: Removal) -> int:
    """Bytes that `remove_everything` frees."""
    return sum(map(size, doomed.runs)) + sum(map(bytes_in, (*(each.path for each in doomed.corpora), *doomed.exports)))


def remove_everything(reference: str) -> Removal:
    """Delete a corpus or a run and all that was made from it; what went.

    Errors: RunError while a run at work or queued needs some of it; nothing is deleted then.
    """
    with store().critical():  # no run begins between the question and the deletion
        doomed = removal(reference)
        if doomed.active:
            runs = ", ".join(run.id for run in doomed.active)
            raise RunError(
                f"{reference}: is needed by a running run ({runs}); wait for its end or cancel it first"
                f"{holders(doomed.active)}."
            )
        names = {"runs": [run.id for run in doomed.runs], "corpora": [corpus.fingerprint for corpus in doomed.corpora]}
        with noted("remove", **names):
            _remove(doomed)
    forget_roles({corpus.fingerprint for corpus in doomed.corpora})
    return doomed


def _remove(doomed: Removal) -> None:
    for path in doomed.exports:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for run in reversed(doomed.runs):  # what is interrupted still leads to the rest from its beginning
        store().remove(run.id)
    for corpus in reversed(doomed.corpora):
        library().remove(corpus.fingerprint)


def remove_run(run_id: str) -> None:
    """Delete a run and what it made, except what other runs need. Errors: RunError while it runs."""
    with store().critical():
        first, *parts = alone(store().get(run_id), store())
        with noted("remove", runs=[first.id, *(part.id for part in parts)]):
            store().remove(first.id)
            for part in parts:
                with suppress(RunError):  # at work by itself
                    store().remove(part.id)


def sweep() -> None:
    """Delete what nobody came back for in a day: uploads, tries that were never shown, what killed processes left.

    A run whose canceller was killed before it has stopped is seen to its end. In every project.
    """
    for project in projects.listed(given_home()):
        with within(project.slug):
            _sweep()


def _sweep() -> None:
    uploads.sweep(home())
    for run in store().list():
        if run.cancel_file.exists() and run.state().active:
            launch.see_to_end(run)
    for corpus in library().list():
        typed = "typed" in corpus.origin and len(corpus.names) == 1
        if typed and time.time() - (corpus.path / ABOUT).stat().st_mtime > uploads.STALE:
            with suppress(RunError):  # one that is at work after all
                remove_everything(corpus.fingerprint)
