"""Sealed corpora: one Parquet file under its content's fingerprint, opened in blocks, never whole.

home/corpora/<fingerprint>/sentences.parquet    one row a sentence; a row is a permanent address
                           about.json           names, counts, types, where it came from
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

    def texts(self, start: int, stop: int) -> list[str]:
        """Texts of rows `start` to `stop` in order: nothing else is read, or cut into tokens."""
        with self.opened() as file:
            return [text for table in blocks(file, BLOCK, start, stop, ["text"]) for text in table["text"].to_pylist()]

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
        """One stored column whole: `text` (string); `doc`, `group`, `file` (string), `page` (int32),
        `columns` (map of strings), nullable."""
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
