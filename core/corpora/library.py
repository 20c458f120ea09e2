"""Seal, list, find, rename and remove the corpora of a project.

Sealing stores a corpus in a folder named by the fingerprint (hash) of its content. A sealed corpus never changes.
"""

import errno
import json
import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from filecmp import cmpfiles
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from tempfile import mkdtemp

from core.corpora.corpus import ABOUT, BLOCK, SENTENCES, Corpus, write_sentences
from core.errors import CorpusError, MissingCorpus
from core.files import read_json, sync, write_atomic
from core.results import IntArray
from core.shown import shown
from core.text.sentence import Sentence
from core.text.words import Tokens

_FINGERPRINT = re.compile(r"[0-9a-f]{24}")  # checked before use in a path, because file names have a maximum length


class Library:
    """All corpora of a project. home: folder of the project."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "corpora"

    def seal(
        self,
        sentences: Iterable[Sentence],
        *,
        name: str,
        origin: Mapping[str, object],
        labelled: bool = False,
        tokens: Tokens = "words",
        describe: Callable[[], Mapping[str, object]] = dict,
    ) -> Corpus:
        """Store a stream of sentences as a corpus, in a folder named by the fingerprint of its content.

        tokens: see `Corpus`. describe: called at the end; its result (a reader's report) is added to `origin`.
        If a corpus with the same content exists, it gets `name` as a further name. If another corpus has the name, a
        number is added: "contracts (2)". If the stream fails, no files remain. Errors: CorpusError for an empty stream.
        """
        name = shown(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=".draft-", dir=self.folder))
        try:
            written = write_sentences(draft / SENTENCES, iter(sentences), labelled, BLOCK, tokens)
            if not written["n_sentences"]:
                raise CorpusError(f"{name}: it has no sentence; choose a file with at least one line of text.")
            about = {**written, "names": [self._free(name)], "origin": {**origin, **describe()}}
            _write_json(draft / ABOUT, about)
            target = self.folder / written["fingerprint"]
            sync(draft / SENTENCES)
            if _renamed(draft, target):
                sync(self.folder)
            elif spoilt := _spoilt(target, draft):  # replace damaged files of the stored corpus by the new ones
                for part in spoilt:
                    (draft / part).replace(target / part)
                sync(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return self._add_name(target, name)

    def subset(self, corpus: Corpus, rows: IntArray, *, name: str, origin: Mapping[str, object]) -> Corpus:
        """Seal the sentences at `rows`, in the order of `rows`, as a new corpus. Ids and texts stay the same."""
        sentences = (s for i in range(0, len(rows), BLOCK) for s in corpus.take(rows[i : i + BLOCK]))
        return self.seal(sentences, name=name, origin=origin, labelled=corpus.labelled, tokens=corpus.tokens)

    def list(self) -> list[Corpus]:
        """Return all sealed corpora, newest first."""
        sealed = list[tuple[int, str, Corpus]]()
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and (dated := _dated(entry.path)):
                    sealed.append((-dated[0], entry.name, dated[1]))
        return [corpus for *_, corpus in sorted(sealed, key=itemgetter(0, 1))]

    def holds(self, fingerprint: str) -> bool:
        """Return True if the corpus with this full fingerprint exists and is readable."""
        return _FINGERPRINT.fullmatch(fingerprint) is not None and _readable(self.folder / fingerprint) is not None

    def unreadable(self) -> Sequence[Path]:
        """Return the paths of about.json files that are damaged or missing. `list` leaves out their corpora."""
        folders = sorted(path for path in self.folder.glob("*") if _FINGERPRINT.fullmatch(path.name))
        return [path / ABOUT for path in folders if path.is_dir() and _readable(path) is None]

    def find(self, reference: str) -> Corpus:
        """Return a corpus by its name, or by at least the first 6 digits of its fingerprint.

        Accented letters match in both Unicode forms, because macOS writes them in file names as two characters.
        Errors: CorpusError if no corpus, or more than one, has this name or fingerprint.
        """
        if _FINGERPRINT.fullmatch(reference) and (corpus := _readable(self.folder / reference)):
            return corpus
        matches = [
            corpus
            for corpus in self.list()
            if _composed(reference) in map(_composed, corpus.names)
            or (len(reference) >= 6 and corpus.fingerprint.startswith(reference))
        ]
        if not matches:
            spoilt = next((file for file in self.unreadable() if file.parent.name.startswith(reference)), None)
            if spoilt and len(reference) >= 6:
                raise MissingCorpus(
                    f"{reference!r}: {spoilt} cannot be read; add the corpus again, or delete the file's folder."
                )
            known = ", ".join(sorted(corpus.name for corpus in self.list())[:8]) or "none yet"
            raise MissingCorpus(f"{reference!r}: no corpus of this name or fingerprint (known: {known}); add it first.")
        if len(matches) > 1:
            which = ", ".join(corpus.fingerprint[:12] for corpus in matches)
            raise CorpusError(f"{reference!r}: several corpora have this name; give a fingerprint instead: {which}.")
        return matches[0]

    def recall(self, fingerprint: str, n_sentences: int = 0) -> Corpus:
        """Return a corpus by its fingerprint.

        For a removed corpus, return a placeholder with `n_sentences`. Reading its sentences raises CorpusError.
        """
        try:
            return self.find(fingerprint)
        except CorpusError:
            return Corpus(
                fingerprint=fingerprint,
                name=f"a removed corpus ({fingerprint[:8]})",
                n_sentences=n_sentences,
                n_tokens=0,
                labelled=False,
                path=self.folder / fingerprint,
            )

    def remove(self, reference: str) -> None:
        """Delete a corpus. reference: see `find`."""
        corpus = self.find(reference)
        removed = corpus.path.with_name(f".removed-{corpus.fingerprint}")
        shutil.rmtree(removed, ignore_errors=True)  # left by a process that was killed while it removed the same corpus
        corpus.path.rename(removed)  # rename the folder first, so that no reader finds a half-deleted corpus
        shutil.rmtree(removed)

    def rename(self, reference: str, name: str) -> Corpus:
        """Rename a corpus. `find` also accepts its old names. Errors: CorpusError if another corpus has the name."""
        path, name = self.find(reference).path, shown(name)
        if self._free(name, path.name) != name:
            raise CorpusError(f"name: another corpus is called {name!r} already; choose another name.")
        return _names(path, lambda names: [name, *(other for other in names if other != name)])

    def _add_name(self, path: Path, name: str) -> Corpus:
        free = self._free(name, path.name) == name
        return _names(path, lambda names: [*names, name] if free and name not in names else names)

    def _free(self, name: str, fingerprint: str = "") -> str:
        """Return `name`, with a number added if a corpus other than `fingerprint` has this name."""
        others = (corpus for corpus in self.list() if corpus.fingerprint != fingerprint)
        taken = {_composed(bearer) for corpus in others for bearer in corpus.names}
        numbered = (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3)))
        return next(candidate for candidate in numbered if _composed(candidate) not in taken)


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _renamed(draft: Path, target: Path) -> bool:
    """Rename a draft to its final folder. Return False if this folder exists already."""
    try:
        draft.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _names(path: Path, change: Callable[[list[str]], list[str]]) -> Corpus:
    about = read_json(path / ABOUT)
    names = change(about["names"])
    if names != about["names"]:
        _write_json(path / ABOUT, {**about, "names": names})
    return _last_changed(str(path))[1]


def _last_changed(path: str) -> tuple[int, Corpus]:
    """Return the time at which a corpus's about.json last changed, in ns, and the corpus.

    about.json is always replaced as a whole, so its cached content is valid until the file changes.
    """
    status = os.stat(f"{path}/{ABOUT}")
    return status.st_mtime_ns, _described(path, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(2048)
def _described(folder: str, changed: int, size: int, inode: int) -> Corpus:
    path = Path(folder)
    about = read_json(path / ABOUT)  # may have further keys from a newer version, which are ignored
    names = about["names"]
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if about["fingerprint"] != path.name or not texts or set(map(type, about["types"].values())) - {int}:
        raise ValueError("is not the description of this corpus")
    return Corpus(
        fingerprint=about["fingerprint"],
        name=str(names[0]),
        n_sentences=int(about["n_sentences"]),
        n_tokens=int(about["n_tokens"]),
        labelled=bool(about["labelled"]),
        path=path,
        types=dict(about["types"]),
        origin={**about["origin"], "names": names},
        tokens=about.get("tokens", "words"),
    )


def _dated(path: str) -> tuple[int, Corpus] | None:
    """Return the result of `_last_changed`; None if there is no corpus or its about.json is damaged."""
    try:
        return _last_changed(path)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None


def _readable(path: Path) -> Corpus | None:
    """Return the corpus in a folder; None if there is no corpus or its about.json is damaged."""
    dated = _dated(str(path))
    return dated and dated[1]


def _spoilt(path: Path, again: Path) -> Sequence[str]:
    """Return the names of the damaged files in a corpus's folder. again: folder with a new copy of the same corpus."""
    if _readable(path) is None:
        return (SENTENCES, ABOUT)
    return () if cmpfiles(path, again, [SENTENCES], shallow=False)[0] else (SENTENCES,)


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    write_atomic(path, json.dumps(value, ensure_ascii=False, indent=1).encode())
