"""What needs a corpus: the runs that read it, by whether they are at work, and the corpora made from it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.runs.store import Run, RunStore

WORDS = {
    "select": ("selection", "selections"),
    "pretrain": ("training", "trainings"),
    "finetune": ("training", "trainings"),
    "experiment": ("experiment", "experiments"),
    "study": ("study", "studies"),
    "map": ("map", "maps"),
    "similarity": ("comparison", "comparisons"),
    "difficulty": ("measurement of bias", "measurements of bias"),
}
OTHERS = ("other run", "other runs")


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
        return f"{', '.join(counted(self.ended))}: {it} readable, but cannot be run again"


def counted(runs: Iterable[Run]) -> list[str]:
    """Some runs by what they are: ["2 selections", "1 other run"]."""
    counts = Counter(WORDS.get(run.manifest.kind, OTHERS) for run in runs)
    kinds = dict.fromkeys((*WORDS.values(), OTHERS))
    return [f"{n} {one if n == 1 else several}" for one, several in kinds if (n := counts[one, several])]


def usage(corpus: Corpus, library: Library, store: RunStore) -> Usage:
    """Find the runs and corpora that need `corpus` now.

    A run at work may also come to need what was made from a corpus that it reads (its own subsets, an S_C that it
    would reuse), so for a derived corpus those runs count as active too.
    """
    here = {sealed.fingerprint: sealed for sealed in library.list()}
    runs = {run.id: run for run in store.list()}
    sources = lineage(corpus.fingerprint, here)
    active, ended = dict[str, Run](), dict[str, Run]()
    for run in runs.values():
        read = set(run.manifest.inputs.values())
        if read.isdisjoint(sources):
            continue
        outer = outermost(run, runs)
        if outer.state().active or run.state().active:
            at_work = outer if outer.state().active else run
            active[at_work.id] = at_work
        # What has ended comes to need nothing that was made from it.
        elif corpus.fingerprint in read:
            ended[outer.id] = outer
    derived = [sealed for mark, sealed in here.items() if corpus.fingerprint in lineage(mark, here) - {mark}]
    return Usage(corpus=corpus, active=tuple(active.values()), ended=tuple(ended.values()), derived=tuple(derived))


def lineage(fingerprint: str, here: Mapping[str, Corpus]) -> set[str]:
    """A corpus and all that it was made from, as far back as they are still here."""
    chain: list[str] = []
    while fingerprint and fingerprint not in chain:  # an origin is text in a file: a circle of them must end
        chain.append(fingerprint)
        fingerprint = here[fingerprint].parent if fingerprint in here else ""
    return set(chain)


def outermost(run: Run, runs: Mapping[str, Run]) -> Run:
    """The run that somebody asked for and that needed `run`, perhaps through others; itself where that is gone."""
    while (parent := run.manifest.parent) and parent in runs:
        run = runs[parent]
    return run


def of_corpora(runs: Iterable[Run], roles: Mapping[str, str], library: Library) -> list[Run]:
    """The `runs` whose corpora play the parts that `roles` gives ({role: fingerprint}), or were made from these.

    What a run reads in a part by name (`train`, `test.0`) must be the corpus of that part; a run that names no part
    (sources, what an encoder reads) must read one of them. All runs where there are no parts or no inputs.
    """
    here = {corpus.fingerprint: corpus for corpus in library.list()}
    return [run for run in runs if _plays(run, roles, here)]


def _plays(run: Run, roles: Mapping[str, str], here: Mapping[str, Corpus]) -> bool:
    read: dict[str, set[str]] = {}
    for name, mark in run.manifest.inputs.items():
        read.setdefault(name.partition(".")[0], set()).update(lineage(mark, here))
    named = [roles[part] in marks for part, marks in read.items() if part in roles]
    if named:
        return all(named)
    return not roles or not read or not set(roles.values()).isdisjoint(set[str]().union(*read.values()))
