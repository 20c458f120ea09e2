"""What goes with a corpus or a run: all that was made from it, as far as this home's own files name it."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.corpora.corpus import ABOUT, Corpus
from core.corpora.library import Library
from core.projects.usage import counts_in_words, outermost, usage
from core.runs.store import Run, RunStore

_MARK = re.compile(r"\d{8}-\d{6}-[a-z][a-z0-9-]*-[0-9a-f]{4}|[0-9a-f]{24}")  # a run's id, a corpus's fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The corpora, runs and exports that go, nearest to the beginning first.

    active: runs at work or queued that need some of it; nothing goes before they have ended. exports: in the home.
    """

    corpora: tuple[Corpus, ...]
    runs: tuple[Run, ...]
    active: tuple[Run, ...]
    exports: tuple[Path, ...]

    @property
    def in_words(self) -> str:
        """Counts of all that goes: "2 corpora, 1 selection, 3 parts of runs"."""
        here = {run.id for run in self.runs}
        parts = [run for run in self.runs if run.manifest.parent in here]
        listed = [_number(len(self.corpora), "corpus", "corpora")] if self.corpora else []
        listed += counts_in_words(run for run in self.runs if run not in parts)
        listed += [_number(len(parts), "part of these runs", "parts of these runs")] if parts else []
        listed += [_number(len(self.exports), "export", "exports")] if self.exports else []
        return ", ".join(listed)


def _number(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"


def everything(mark: str, library: Library, store: RunStore) -> Removal:
    """The corpus or run `mark` (a fingerprint, an id) and all that rests on it.

    A corpus or run rests on what its description, options or result name. With a run go those of its parts that no
    other run needs. An export is known by the run in its name.
    """
    corpora, runs = {corpus.fingerprint: corpus for corpus in library.list()}, {run.id: run for run in store.list()}
    named = {mark: _named(corpus.path / ABOUT) for mark, corpus in corpora.items()}
    named |= {name: _needed(run) for name, run in runs.items()}
    going = {mark: None}  # in the order in which they were come upon
    size = 0
    while len(going) > size:  # what goes takes along what rests on it, and so on until nothing joins
        size = len(going)
        going |= {name: None for name, marks in named.items() if not marks.isdisjoint(going)}
        going |= dict.fromkeys(_own_parts(going, runs, named))
    return Removal(
        corpora=tuple(corpora[name] for name in going if name in corpora),
        runs=tuple(runs[name] for name in going if name in runs),
        active=_in_the_way(going, corpora, runs, library, store),
        exports=_exports(store.home / "exports", [name for name in going if name in runs]),
    )


def alone(run: Run, store: RunStore) -> list[Run]:
    """A run and those of its parts that no other run needs."""
    runs = {other.id: other for other in store.list()}
    named = {name: _needed(other) for name, other in runs.items()}
    return [run, *(runs[name] for name in _own_parts({run.id}, runs, named))]


def _needed(run: Run) -> set[str]:
    """The fingerprints and ids that a run rests on; not the run that began it, for another may need it as much."""
    text = json.dumps([run.manifest.config, run.manifest.inputs])
    return _named(run.result_file).union(_MARK.findall(text))


def _named(file: Path) -> set[str]:
    """The runs and corpora whose id or fingerprint stands in a file."""
    return set(_MARK.findall(file.read_text(encoding="utf-8", errors="replace"))) if file.exists() else set()


def _own_parts(going: Collection[str], runs: Mapping[str, Run], named: Mapping[str, set[str]]) -> list[str]:
    """The runs that were begun for `going`, also through others, without those that a run which stays needs."""
    parts = _begun_for(going, runs, named)
    while parts:
        stays = [name for name in runs if name not in going and name not in parts]
        needed = set[str]().union(*(named[name] | _named(runs[name].events_file) for name in stays))
        if needed.isdisjoint(parts):
            break
        parts -= needed  # one that is spared may itself need another
    return [name for name in runs if name in parts and name not in going]


def _begun_for(going: Collection[str], runs: Mapping[str, Run], named: Mapping[str, set[str]]) -> set[str]:
    """Parts of `going` and of these parts; also what these reuse of a run that is gone."""
    parts, size = set[str](), -1
    while len(parts) > size:
        size, users = len(parts), [name for name in runs if name in going or name in parts]
        used = set[str]().union(*(named[name] | _named(runs[name].events_file) for name in users))
        begun = {name: run.manifest.parent for name, run in runs.items() if not _for_itself(run, runs)}
        parts |= {name for name, by in begun.items() if by in users or (by and by not in runs and name in used)}
    return parts


def _for_itself(run: Run, runs: Mapping[str, Run]) -> bool:
    """Whether it is one of several imports or divisions that were begun at once, of which each made its own corpora."""
    begun_by = runs.get(run.manifest.parent or "")
    return begun_by is not None and begun_by.manifest.kind == "intake" and run.result_file.exists()


def _in_the_way(
    going: Iterable[str], corpora: Mapping[str, Corpus], runs: Mapping[str, Run], library: Library, store: RunStore
) -> tuple[Run, ...]:
    """The runs at work or queued that go, that need a corpus which goes, or that reuse a run which goes."""
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
    """Exports that carry a run's id in their name, whole or its last four digits (`choice-1a2b-10pct.txt`)."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    marks = [(run_id, f"-{run_id[-4:]}-") for run_id in run_ids]
    return tuple(path for path in there if any(whole in path.name or short in path.name for whole, short in marks))
