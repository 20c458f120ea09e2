"""Sealed corpora: one Parquet file per corpus, named by the fingerprint of its content and read in blocks.

home/corpora/<fingerprint>/sentences.parquet    one row per sentence; row numbers never change
                           about.json           names, counts, types, origin
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpora.table import KEPT, blocks, opened, to_sentences
from core.results import IntArray
from core.text.sentence import Sentence
from core.text.words import Tokens

SENTENCES, ABOUT = "sentences.parquet", "about.json"  # files of a corpus's folder
BLOCK = 8192  # rows per row group: about 1 MB of text, the unit of every read and write


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A handle on a sealed corpus.

    fingerprint: 24 hex digits of the content's sha256. types: entities per type, empty if unlabelled. origin: file,
    format and scheme, or the run that made it. tokens: rule that cuts its text; labelled sentences keep their own
    tokens.
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
        """Yield rows `start` to `stop` in order, at most `BLOCK` at a time."""
        return (sentences for _, sentences in self.with_ids(start, stop, text=True))

    def with_ids(self, start: int, stop: int | None, *, text: bool) -> Iterator[tuple[IntArray, list[Sentence]]]:
        """Yield ids (see `ids`) and sentences in blocks. text: False reads ids only, and yields no sentences."""
        with self.opened() as file:
            for table in blocks(file, BLOCK, start, stop, None if text else ["id"]):
                yield table.column("id").to_numpy(), to_sentences(table) if text else []

    def texts(self, start: int, stop: int) -> list[str]:
        """Return the texts of rows `start` to `stop` in order. Reads no other column and cuts no tokens."""
        with self.opened() as file:
            return [text for table in blocks(file, BLOCK, start, stop, ["text"]) for text in table["text"].to_pylist()]

    def take(self, rows: Sequence[int] | IntArray) -> list[Sentence]:
        """Return the sentences at `rows`, in that order; reads only their row groups."""
        addresses = np.asarray(rows, dtype=np.int64)
        by_row: dict[int, Sentence] = {}
        with self.opened() as file:
            for group in np.unique(addresses // BLOCK):
                inside = np.unique(addresses[addresses // BLOCK == group])
                table = file.read_row_group(int(group)).take(pa.array(inside - group * BLOCK))
                by_row.update(zip(inside.tolist(), to_sentences(table), strict=True))
        return [by_row[row] for row in addresses.tolist()]

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a whole column: `text` (string), or nullable `doc`, `group`, `file` (string), `page` (int32) or
        `columns` (map of strings)."""
        with self.opened() as file:
            if name in KEPT and name not in file.schema_arrow.names:  # an older version's has none
                return pa.chunked_array([pa.nulls(self.n_sentences, KEPT[name])])
            return file.read([name]).column(0)

    def ids(self) -> IntArray:
        """Return the ids, shape (n,), uint64; `f"{id:016x}"` is `Sentence.id`."""
        return self.column("id").to_numpy()  # type: ignore[no-any-return]

    def lengths(self) -> IntArray:
        """Return the number of tokens per sentence, shape (n,), int32."""
        return self.column("n_tokens").to_numpy()  # type: ignore[no-any-return]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that find the corpus, its current one first; () for a removed corpus."""
        names = self.origin.get("names")
        return tuple(names) if isinstance(names, list) else ()

    @property
    def parent(self) -> str:
        """Return the fingerprint of the corpus that this one was made from, "" if there is none."""
        return str(self.origin.get("from", ""))

    @property
    def derived(self) -> bool:
        """Return True if Winnow made it, from another corpus (selection, subset, changed copy) or typed sentences."""
        return not self.origin.keys().isdisjoint(("from", "typed"))

    def opened(self) -> AbstractContextManager[pq.ParquetFile]:
        """Open its file for a `with` block. Errors: CorpusError."""
        return opened(self.path / SENTENCES, self.name)
