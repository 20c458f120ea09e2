"""Sealed corpora: one Parquet file under its content's fingerprint, opened in blocks, never whole.

home/corpora/<fingerprint>/sentences.parquet    one row a sentence; a row is a permanent address
                           about.json           names, counts, types, where it came from
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from filecmp import cmpfiles
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpora.table import KEPT, blocks, opened, to_sentences, write_sentences
from core.errors import CorpusError, MissingCorpus
from core.files import newest_first, sync, write_atomic
from core.results import IntArray
from core.shown import shown
from core.text.sentence import Sentence
from core.text.words import Tokens

_FINGERPRINT = re.compile(r"[0-9a-f]{24}")  # a name may be of any length, a path's part may not
SENTENCES, ABOUT = "sentences.parquet", "about.json"  # what a corpus's folder holds
BLOCK = 8192  # rows a group: about 1 MB of text, the unit of every read and write


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A handle on a sealed corpus.

    fingerprint: 24 hex digits of the content's sha256. types: entities a type, empty where unlabelled. origin: where it
    came from (file, format, scheme, or the run that made it). tokens: the rule that its text is cut by; labelled
    sentences keep their own.
    """

    fingerprint: str
    name: str
    n_sentences: int
    n_tokens: int
    labelled: bool
    path: Path
    types: Mapping[str, int] = field(default_factory=dict)
    origin: Mapping[str, object] = field(default_factory=dict)
    tokens: Tokens = "words"

    def __len__(self) -> int:
        return self.n_sentences

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[list[Sentence]]:
        """Rows `start` to `stop` in order, at most `BLOCK` at a time."""
        return (sentences for _, sentences in self.with_ids(start, stop, text=True))

    def with_ids(self, start: int, stop: int | None, *, text: bool) -> Iterator[tuple[IntArray, list[Sentence]]]:
        """The same with their ids (see `ids`), from one look at the file. text: else ids alone are read."""
        with self.opened() as file:
            for table in blocks(file, BLOCK, start, stop, None if text else ["id"]):
                yield table.column("id").to_numpy(), to_sentences(table) if text else []

    def take(self, rows: Sequence[int] | IntArray) -> list[Sentence]:
        """The sentences at `rows`, in the order asked for; reads only the row groups they lie in."""
        addresses = np.asarray(rows, dtype=np.int64)
        by_row: dict[int, Sentence] = {}
        with self.opened() as file:
            for group in np.unique(addresses // BLOCK):
                inside = np.unique(addresses[addresses // BLOCK == group])
                table = file.read_row_group(int(group)).take(pa.array(inside - group * BLOCK))
                by_row.update(zip(inside.tolist(), to_sentences(table), strict=True))
        return [by_row[row] for row in addresses.tolist()]

    def column(self, name: str) -> pa.ChunkedArray:
        """One stored column whole: `text` (string); `doc`, `group`, `file` (string), `page` (int32), nullable."""
        with self.opened() as file:
            if name in KEPT and name not in file.schema_arrow.names:  # an older version's has none
                return pa.chunked_array([pa.nulls(self.n_sentences, KEPT[name])])
            return file.read([name]).column(0)

    def ids(self) -> IntArray:
        """`(n,)` uint64; `f"{id:016x}"` is `Sentence.id`."""
        return self.column("id").to_numpy()  # type: ignore[no-any-return]

    def lengths(self) -> IntArray:
        """`(n,)` int32, tokens a sentence."""
        return self.column("n_tokens").to_numpy()  # type: ignore[no-any-return]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it is found by, the present one first; none once it was removed."""
        names = self.origin.get("names")
        return tuple(names) if isinstance(names, list) else ()

    @property
    def parent(self) -> str:
        """Fingerprint of the corpus that it was made from, "" where it was made from none."""
        return str(self.origin.get("from", ""))

    @property
    def derived(self) -> bool:
        """Whether Winnow made it: from another corpus (a selection, a subset, a changed copy) or of typed sentences."""
        return not self.origin.keys().isdisjoint(("from", "typed"))

    def opened(self) -> AbstractContextManager[pq.ParquetFile]:
        """Its file, for a block. Errors: CorpusError."""
        return opened(self.path / SENTENCES, self.name)


class Library:
    """All corpora of a home folder."""

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
        """Write a stream of sentences in blocks and name it by its content.

        tokens: see `Corpus`. describe: called at the stream's end for what joins `origin` (a reader's report).
        Content that is here already keeps its place and its name, and is found by `name` too. A name that another
        corpus bears is numbered: "contracts (2)". Nothing is left of a stream that fails. Errors: CorpusError for none.
        """
        name = shown(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=".draft-", dir=self.folder))
        try:
            written = write_sentences(draft / SENTENCES, iter(sentences), labelled, BLOCK, tokens)
            if not written["n_sentences"]:
                raise CorpusError(f"{name}: no sentence was left to keep; choose a file with a line of text at least.")
            about = {**written, "names": [self._free(name)], "origin": {**origin, **describe()}}
            _write_json(draft / ABOUT, about)
            target = self.folder / written["fingerprint"]
            sync(draft / SENTENCES)
            if _renamed(draft, target):
                sync(self.folder)
            elif spoilt := _spoilt(target, draft):  # and here is all of it again
                for part in spoilt:
                    (draft / part).replace(target / part)
                sync(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return self._also_named(target, name)

    def subset(self, corpus: Corpus, rows: IntArray, *, name: str, origin: Mapping[str, object]) -> Corpus:
        """The sentences at `rows`, in that order, sealed as a corpus of their own: same ids, same text."""
        sentences = (s for i in range(0, len(rows), BLOCK) for s in corpus.take(rows[i : i + BLOCK]))
        return self.seal(sentences, name=name, origin=origin, labelled=corpus.labelled, tokens=corpus.tokens)

    def list(self) -> list[Corpus]:
        """All sealed corpora, newest first."""
        return [corpus for path in newest_first(self.folder, ABOUT) if (corpus := _readable(path))]

    def unreadable(self) -> Sequence[Path]:
        """Descriptions of corpora that cannot be read or are gone; `list` passes these corpora over."""
        folders = sorted(path for path in self.folder.glob("*") if _FINGERPRINT.fullmatch(path.name))
        return [path / ABOUT for path in folders if path.is_dir() and _readable(path) is None]

    def find(self, reference: str) -> Corpus:
        """A corpus by name or by fingerprint (at least 6 digits of it).

        Errors: CorpusError if nothing or more than one corpus answers to `reference`.
        """
        if _FINGERPRINT.fullmatch(reference) and (corpus := _readable(self.folder / reference)):
            return corpus
        matches = [
            corpus
            for corpus in self.list()
            if reference in (*corpus.names, corpus.name)
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
            raise CorpusError(f"{reference!r}: several corpora have this name; say which fingerprint: {which}.")
        return matches[0]

    def recall(self, fingerprint: str, n_sentences: int = 0) -> Corpus:
        """A corpus by fingerprint or, once removed, a handle that knows its size and raises where it is read."""
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
        """Delete a sealed corpus."""
        corpus = self.find(reference)
        grave = corpus.path.with_name(f".removed-{corpus.fingerprint}")
        corpus.path.rename(grave)  # gone at once for every reader, whatever the deletion takes
        shutil.rmtree(grave)

    def rename(self, reference: str, name: str) -> Corpus:
        """Give a corpus another name; it is found by its old ones too. Errors: CorpusError if another bears it."""
        path, name = self.find(reference).path, shown(name)
        if self._free(name, path.name) != name:
            raise CorpusError(f"name: another corpus is called {name!r} already; choose another name.")
        return _names(path, lambda names: [name, *(other for other in names if other != name)])

    def _also_named(self, path: Path, name: str) -> Corpus:
        free = self._free(name, path.name) == name
        return _names(path, lambda names: [*names, name] if free and name not in names else names)

    def _free(self, name: str, fingerprint: str = "") -> str:
        """`name`, or numbered where a corpus other than `fingerprint` bears it."""
        taken = {bearer for corpus in self.list() if corpus.fingerprint != fingerprint for bearer in corpus.names}
        numbered = (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3)))
        return next(candidate for candidate in numbered if candidate not in taken)


def _renamed(draft: Path, target: Path) -> bool:
    """Give a corpus its place, unless it is taken, perhaps only now."""
    try:
        draft.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _names(path: Path, change: Callable[[list[str]], list[str]]) -> Corpus:
    about = json.loads((path / ABOUT).read_text(encoding="utf-8"))
    names = change(about["names"])
    if names != about["names"]:
        _write_json(path / ABOUT, {**about, "names": names})
    return _open(path)


def _open(path: Path) -> Corpus:
    """A sealed corpus; its description is only ever replaced as a whole, and read again where it was."""
    status = os.stat(path / ABOUT)
    return _described(path, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(2048)
def _described(path: Path, changed: int, size: int, inode: int) -> Corpus:
    about = json.loads((path / ABOUT).read_text(encoding="utf-8"))  # keys of a newer version are passed over
    names = about["names"]
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if about["fingerprint"] != path.name or not texts or set(map(type, about["types"].values())) - {int}:
        raise ValueError("describes another corpus, or none")
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


def _readable(path: Path) -> Corpus | None:
    """None where there is no corpus, or its description cannot be read: a torn write, a failing disk."""
    try:
        return _open(path)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None


def _spoilt(path: Path, again: Path) -> Sequence[str]:
    """What a failing disk spoilt of a corpus's folder. again: the same corpus, just written."""
    if _readable(path) is None:
        return (SENTENCES, ABOUT)
    return () if cmpfiles(path, again, [SENTENCES], shallow=False)[0] else (SENTENCES,)


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    write_atomic(path, json.dumps(value, ensure_ascii=False, indent=1).encode())
