"""What needs a corpus: the runs that read it, by whether they are at work, and the corpora made from it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.runs.store import Run, RunStore

_KIND_WORDS = {  # of one run, of several
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The runs and corpora that need a corpus.

    Runs are those that somebody asked for, newest first; what their child runs read counts as read by them.

    active: at work or queued; they cannot end without it. ended: they stay readable, but cannot be run again.
    derived: corpora that were made from it, directly or through others, newest first.
    """

    corpus: Corpus
    active: tuple[Run, ...]
    ended: tuple[Run, ...]
    derived: tuple[Corpus, ...]

    @property
    def in_words(self) -> str:
        """Say what becomes of the runs that have ended ("2 selections, 1 training: they stay ..."); "" for none."""
        if not self.ended:
            return ""
        it = "it stays" if len(self.ended) == 1 else "they stay"
        return f"{', '.join(counts_in_words(self.ended))}: {it} readable, but cannot be run again"


def counts_in_words(runs: Iterable[Run]) -> list[str]:
    """Counts of some runs by kind, a phrase each: ["2 selections", "1 other run"]."""
    counts = Counter(_KIND_WORDS.get(run.manifest.kind, _OTHER_WORDS) for run in runs)
    kinds = dict.fromkeys((*_KIND_WORDS.values(), _OTHER_WORDS))
    return [f"{n} {one if n == 1 else several}" for one, several in kinds if (n := counts[one, several])]


def usage(corpus: Corpus, library: Library, store: RunStore) -> Usage:
    """Find the runs and corpora that need `corpus` now.

    A run at work may also come to need what was made from a corpus that it reads (its own subsets, an S_C that it
    would reuse), so for a derived corpus those runs count as active too.
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
        # A child may be resumed by itself, under a run that has ended: then it is the child that is at work.
        if outer.state().active or run.state().active:
            at_work = outer if outer.state().active else run
            active[at_work.id] = at_work
        # What has ended comes to need nothing that was made from it.
        elif corpus.fingerprint in inputs:
            ended[outer.id] = outer
    derived = [
        sealed
        for fingerprint, sealed in corpora.items()
        if corpus.fingerprint in lineage(fingerprint, corpora) - {fingerprint}
    ]
    return Usage(corpus=corpus, active=tuple(active.values()), ended=tuple(ended.values()), derived=tuple(derived))


def lineage(fingerprint: str, corpora: Mapping[str, Corpus]) -> set[str]:
    """Fingerprints of a corpus and of all that it was made from, as far back as they are still among `corpora`."""
    chain: list[str] = []
    while fingerprint and fingerprint not in chain:  # an origin is text in a file: a circle of them must end
        chain.append(fingerprint)
        fingerprint = corpora[fingerprint].parent if fingerprint in corpora else ""
    return set(chain)


def outermost(run: Run, runs: Mapping[str, Run]) -> Run:
    """The run that somebody asked for and that needed `run`, perhaps through others; itself where that is gone."""
    while (parent := run.manifest.parent) and parent in runs:
        run = runs[parent]
    return run


def runs_with_roles(
    runs: Iterable[Run],
    roles: Mapping[str, str],
    library: Library,
    unread: Callable[[Run], Collection[str]] = lambda run: (),
) -> list[Run]:
    """Runs, of `runs`, whose corpora have the roles that `roles` gives ({role: fingerprint}), or were made from these.

    What a run reads under a role's name (`train`, `test.0`) must be the corpus of that role; a run without such names
    (sources, what an encoder reads) must read one of them. All runs where no roles are given; a run without inputs too.
    unread: returns roles that a run names but does not read; their corpora may be any.
    """
    corpora = {corpus.fingerprint: corpus for corpus in library.list()}
    return [run for run in runs if _has_roles(run, roles, corpora, unread(run))]


def _has_roles(run: Run, roles: Mapping[str, str], corpora: Mapping[str, Corpus], unread: Collection[str]) -> bool:
    """Return True if the inputs that `run` reads are, or were made from, the corpora that have their roles."""
    lineages: dict[str, set[str]] = {}  # of `test.0` and `test.1` together
    for name, fingerprint in run.manifest.inputs.items():
        if (role := name.partition(".")[0]) not in unread:
            lineages.setdefault(role, set()).update(lineage(fingerprint, corpora))
    named = [roles[role] in lineages[role] for role in lineages.keys() & roles.keys()]
    if named:  # these decide alone: what it reads besides, under names that are no roles, may be any corpus
        return all(named)
    return not roles or not lineages or not set(roles.values()).isdisjoint(set[str]().union(*lineages.values()))
