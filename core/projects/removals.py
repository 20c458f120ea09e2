"""Find the runs and corpora that depend on a corpus or a run, and remove all of them."""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core import project_list as projects
from core.audit_log import noted
from core.corpora import roles, uploads
from core.corpora.corpus import ABOUT, Corpus
from core.corpora.library import Library
from core.errors import MissingCorpus, RunError
from core.files import bytes_in, read_object
from core.labelling import answers
from core.paths import given_home, home, within
from core.projects.home import library, store
from core.projects.labels import size
from core.runs import launch
from core.runs.run import holders
from core.runs.store import Run, RunStore, is_run_id

_KIND_WORDS = {  # {kind: (word for one run, word for several)}
    "select": ("selection", "selections"),
    "pretrain": ("training", "trainings"),
    "finetune": ("training", "trainings"),
    "experiment": ("experiment", "experiments"),
    "study": ("study", "studies"),
    "map": ("map", "maps"),
    "similarity": ("comparison", "comparisons"),
    "difficulty": ("measurement of bias", "measurements of bias"),
}
_OTHER_WORDS = ("other run", "other runs")
_MARK = re.compile(r"\d{8}-\d{6}-[a-z][a-z0-9-]*-[0-9a-f]{4}|[0-9a-f]{24}")  # a run's id or a corpus's fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Runs and corpora that need a corpus.

    Only top-level runs are listed, newest first. If a child run uses the corpus, its top-level run is listed.

    active: running or queued runs, which would fail without the corpus. ended: runs that stay readable without the
    corpus, but cannot be run again. derived: corpora made from this corpus, directly or indirectly, newest first.
    """

    corpus: Corpus
    active: tuple[Run, ...]
    ended: tuple[Run, ...]
    derived: tuple[Corpus, ...]

    @property
    def in_words(self) -> str:
        """Effect on runs that are no longer active, such as "2 selections, 1 training: they stay ..."; "" if none."""
        if not self.ended:
            return ""
        it = "it stays" if len(self.ended) == 1 else "they stay"
        return f"{', '.join(counts_in_words(self.ended))}: {it} readable, but cannot be run again"


def counts_in_words(runs: Iterable[Run]) -> list[str]:
    """Return the number of runs per kind as phrases: ["2 selections", "1 other run"]."""
    counts = Counter(_KIND_WORDS.get(run.manifest.kind, _OTHER_WORDS) for run in runs)
    kinds = dict.fromkeys((*_KIND_WORDS.values(), _OTHER_WORDS))
    return [f"{n} {one if n == 1 else several}" for one, several in kinds if (n := counts[one, several])]


def usage(corpus: Corpus, library: Library, store: RunStore) -> Usage:
    """Find the runs and corpora that need `corpus`.

    Active runs that use a corpus from which `corpus` was made are included too, because they may reuse `corpus`. For
    example, an experiment may reuse a selected corpus.
    """
    corpora = {sealed.fingerprint: sealed for sealed in library.list()}
    runs = {run.id: run for run in store.list()}
    own_lineage = lineage(corpus.fingerprint, corpora)
    active, ended = dict[str, Run](), dict[str, Run]()
    for run in runs.values():
        inputs = set(run.manifest.inputs.values())
        if inputs.isdisjoint(own_lineage):
            continue
        outer = outermost(run, runs)
        # A user can resume a child run after its top-level run has ended. Then only the child run is active.
        if outer.state().active or run.state().active:
            working = outer if outer.state().active else run
            active[working.id] = working
        # An ended run does not need corpora that were made from its input.
        elif corpus.fingerprint in inputs:
            ended[outer.id] = outer
    derived = [
        sealed
        for fingerprint, sealed in corpora.items()
        if corpus.fingerprint in lineage(fingerprint, corpora) - {fingerprint}
    ]
    return Usage(corpus=corpus, active=tuple(active.values()), ended=tuple(ended.values()), derived=tuple(derived))


def lineage(fingerprint: str, corpora: Mapping[str, Corpus]) -> set[str]:
    """Return the fingerprints of a corpus, its source, the source of its source, and so on."""
    chain: list[str] = []
    while fingerprint and fingerprint not in chain:  # stops at a circle of sources, which a forged file may contain
        chain.append(fingerprint)
        fingerprint = corpora[fingerprint].parent if fingerprint in corpora else ""
    return set(chain)


def outermost(run: Run, runs: Mapping[str, Run]) -> Run:
    """Return the top-level run that started `run`, directly or through other runs.

    If a run between them was removed, return the outermost one that still exists.
    """
    while (parent := run.manifest.parent) and parent in runs:
        run = runs[parent]
    return run


def runs_with_roles(
    runs: Iterable[Run],
    roles: Mapping[str, str],
    library: Library,
    unread: Callable[[Run], Collection[str]] = lambda run: (),
) -> list[Run]:
    """Return the runs that used the corpora with the given roles, or corpora made from them.

    roles: {role: fingerprint}; without roles, return all runs. Some inputs of a run are named after roles (`train`,
    `test.0`). For each given role with such inputs, one of them must be the corpus with this role, or made from it. If
    a run has no such inputs, at least one of its inputs must be one of the given corpora, or made from one of them. A
    run without inputs is always returned.
    unread: function that returns the roles of inputs that a run does not use; these inputs are ignored.
    """
    corpora = {corpus.fingerprint: corpus for corpus in library.list()}
    return [run for run in runs if _has_roles(run, roles, corpora, unread(run))]


def _has_roles(run: Run, roles: Mapping[str, str], corpora: Mapping[str, Corpus], unread: Collection[str]) -> bool:
    """Return True if the inputs of `run` match the roles; see `runs_with_roles`."""
    lineages: dict[str, set[str]] = {}  # {role: lineage of all inputs with this role}; the role of `test.0` is `test`
    for name, fingerprint in run.manifest.inputs.items():
        if (role := name.partition(".")[0]) not in unread:
            lineages.setdefault(role, set()).update(lineage(fingerprint, corpora))
    named = [roles[role] in lineages[role] for role in lineages.keys() & roles.keys()]
    if named:  # if some inputs are named after roles, the others are not checked
        return all(named)
    return not roles or not lineages or not set(roles.values()).isdisjoint(set[str]().union(*lineages.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Corpora, runs and exports to remove. Each corpus or run comes after those that it depends on.

    active: running or queued runs that need any of these corpora and runs; they block the removal. exports: paths of
    exported files and folders in the project's folder.
    """

    corpora: tuple[Corpus, ...]
    runs: tuple[Run, ...]
    active: tuple[Run, ...]
    exports: tuple[Path, ...]

    @property
    def in_words(self) -> str:
        """Number of corpora, runs and exports to remove: "2 corpora, 1 selection, 3 child runs"."""
        here = {run.id for run in self.runs}
        parts = [run for run in self.runs if run.manifest.parent in here]
        listed = [_number(len(self.corpora), "corpus", "corpora")] if self.corpora else []
        listed += counts_in_words(run for run in self.runs if run not in parts)
        listed += [_number(len(parts), "child run", "child runs")] if parts else []
        listed += [_number(len(self.exports), "export", "exports")] if self.exports else []
        labelled = sum(len(answers.read(run.path).labelled) for run in self.runs if run.manifest.kind in answers.KINDS)
        listed += [_number(labelled, "labelled sentence", "labelled sentences")] if labelled else []
        return ", ".join(listed)


def _number(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"


def _everything(mark: str, library: Library, store: RunStore) -> Removal:
    """Return the corpus or run `mark` (a fingerprint or an id) and everything that depends on it.

    A corpus or run depends on all corpora and runs that are named in its description, options or result. Child runs are
    included if no other run needs them. Exports are found by the id of their run, which is in their file name.
    """
    corpora, runs = {corpus.fingerprint: corpus for corpus in library.list()}, {run.id: run for run in store.list()}
    named = {mark: _named(corpus.path / ABOUT) for mark, corpus in corpora.items()}
    named |= {name: _needed(run) for name, run in runs.items()}
    going = {mark: None}  # in the order of discovery
    size = 0
    while len(going) > size:  # add dependents until the set stops growing
        size = len(going)
        going |= {name: None for name, marks in named.items() if not marks.isdisjoint(going)}
        going |= dict.fromkeys(_own_parts(going, runs, named))
    return Removal(
        corpora=tuple(corpora[name] for name in going if name in corpora),
        runs=tuple(runs[name] for name in going if name in runs),
        active=_blocking(going, corpora, runs, library, store),
        exports=_exports(store.home / "exports", [name for name in going if name in runs]),
    )


def _alone(run: Run, store: RunStore) -> list[Run]:
    """Return a list of a run and its child runs, without child runs that other runs need."""
    runs = {other.id: other for other in store.list()}
    named = {name: _needed(other) for name, other in runs.items()}
    return [run, *(runs[name] for name in _own_parts({run.id}, runs, named))]


def _needed(run: Run) -> set[str]:
    """Return the fingerprints of corpora and ids of runs that a run depends on. Its parent run is not included.

    An experiment or a study does not depend on the earlier analyses of its test set, which its result only lists.
    """
    text = json.dumps([run.manifest.config, run.manifest.inputs])
    if run.manifest.kind in ("experiment", "study") and (result := read_object(run.result_file)):
        parts = {name: part for name, part in result.items() if name != "earlier"}
        return set(_MARK.findall(f"{text} {json.dumps(parts)}"))
    return _named(run.result_file).union(_MARK.findall(text))


def _named(file: Path) -> set[str]:
    """Return all ids of runs and fingerprints of corpora in a file."""
    return set(_MARK.findall(file.read_text(encoding="utf-8", errors="replace"))) if file.exists() else set()


def _own_parts(going: Collection[str], runs: Mapping[str, Run], named: Mapping[str, set[str]]) -> list[str]:
    """Return the ids of child runs of `going`, direct and indirect, except those that a remaining run needs.

    going: ids to remove. named: {id: ids and fingerprints on which this run or corpus depends}.
    """
    parts = _begun_for(going, runs, named)
    while parts:
        stays = [name for name in runs if name not in going and name not in parts]
        needed = set[str]().union(*(named[name] | _named(runs[name].events_file) for name in stays))
        if needed.isdisjoint(parts):
            break
        parts -= needed  # search again, because a child run that stays may need another one
    return [name for name in runs if name in parts and name not in going]


def _begun_for(going: Collection[str], runs: Mapping[str, Run], named: Mapping[str, set[str]]) -> set[str]:
    """Return the ids of child runs of `going` at any depth, and of the orphaned runs that they reuse.

    going: ids to remove. A run is orphaned if its parent run was removed before.
    """
    parts, size = set[str](), -1
    while len(parts) > size:
        size, users = len(parts), [name for name in runs if name in going or name in parts]
        used = set[str]().union(*(named[name] | _named(runs[name].events_file) for name in users))
        begun = {name: run.manifest.parent for name, run in runs.items() if not _made_corpora(run, runs)}
        parts |= {name for name, by in begun.items() if by in users or (by and by not in runs and name in used)}
    return parts


def _made_corpora(run: Run, runs: Mapping[str, Run]) -> bool:
    """Return True for a finished import or split that an `intake` run started.

    It is not removed with the `intake` run, because the corpora that it made are not removed either.
    """
    begun_by = runs.get(run.manifest.parent or "")
    return begun_by is not None and begun_by.manifest.kind == "intake" and run.result_file.exists()


def _blocking(
    going: Iterable[str], corpora: Mapping[str, Corpus], runs: Mapping[str, Run], library: Library, store: RunStore
) -> tuple[Run, ...]:
    """Return the active runs that block the removal of `going` (ids of runs and fingerprints of corpora).

    Such a run is itself in `going`, needs one of its corpora, or reuses one of its runs.
    """
    blocking = dict[str, Run]()
    for run in runs.values():
        if run.state().active and (run.id in going or not _named(run.events_file).isdisjoint(going)):
            outer = outermost(run, runs)
            blocking[outer.id] = outer
    for name in going:
        if name in corpora:
            blocking |= {run.id: run for run in usage(corpora[name], library, store).active}
    return tuple(blocking.values())


def _exports(folder: Path, run_ids: Iterable[str]) -> tuple[Path, ...]:
    """Return the exports whose file name has a run's id, or its last four digits (`contracts-knn-1a2b-10pct.txt`)."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    marks = [(run_id, f"-{run_id[-4:]}-") for run_id in run_ids]
    return tuple(path for path in files if any(whole in path.name or short in path.name for whole, short in marks))


def removal(reference: str) -> Removal:
    """Return everything that would be deleted with a corpus or a run.

    reference: name or fingerprint of a corpus, or id of a run. A corpus that was removed before is found only by its
    full fingerprint. Errors: CorpusError or RunError if there is no such corpus or run.
    """
    return _everything(_mark(reference), library(), store())


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
    """Return the runs that `remove_run` would delete, and their size in bytes. Errors: RunError."""
    runs = _alone(store().get(run_id), store())
    return runs, sum(map(size, runs))


def bytes_of(doomed: Removal) -> int:
    """Return the number of bytes that `remove_everything` would free."""
    return sum(map(size, doomed.runs)) + sum(map(bytes_in, (*(each.path for each in doomed.corpora), *doomed.exports)))


def remove_everything(reference: str) -> Removal:
    """Delete a corpus or a run and everything made from it. Return what was deleted.

    Errors: RunError if an active run needs any of this; then nothing is deleted.
    """
    with store().critical():  # no run can start between the check and the deletion
        doomed = removal(reference)
        if doomed.active:
            runs = ", ".join(run.id for run in doomed.active)
            raise RunError(
                f"{reference}: an active run needs it ({runs}); wait until it ends, or cancel it first"
                f"{holders(doomed.active)}."
            )
        names = {"runs": [run.id for run in doomed.runs], "corpora": [corpus.fingerprint for corpus in doomed.corpora]}
        with noted("remove", **names):
            for path in doomed.exports:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            for run in reversed(doomed.runs):  # dependents first, so that an interrupted removal can be repeated
                store().remove(run.id)
            for corpus in reversed(doomed.corpora):
                library().remove(corpus.fingerprint)
    roles.forget(home(), {corpus.fingerprint for corpus in doomed.corpora})
    return doomed


def remove_run(run_id: str) -> None:
    """Delete a run and its child runs, except those that other runs need. Errors: RunError if the run is active."""
    with store().critical():
        first, *parts = _alone(store().get(run_id), store())
        with noted("remove", runs=[first.id, *(part.id for part in parts)]):
            store().remove(first.id)
            for part in parts:
                with suppress(RunError):  # a user has resumed the child run, and it is still running
                    store().remove(part.id)


def sweep() -> None:
    """Delete uploads and typed texts that were not used for a day, in every project.

    Also finish the cancellation of a run if the process that cancelled it was killed.
    """
    for project in projects.listed(given_home()):
        with within(project.slug):
            _sweep()


def _sweep() -> None:
    uploads.sweep(home(), store())
    for run in store().list():
        if run.cancel_file.exists() and run.state().active:
            launch.see_to_end(run)
    for corpus in library().list():
        typed = "typed" in corpus.origin and len(corpus.names) == 1
        if typed and time.time() - (corpus.path / ABOUT).stat().st_mtime > uploads.STALE:
            with suppress(RunError):  # an active run may need this corpus
                remove_everything(corpus.fingerprint)
