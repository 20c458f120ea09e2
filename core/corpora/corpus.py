"""Write and read sealed corpora, which never change. The name of a corpus's folder is a hash of its content.

home/corpora/<fingerprint>/sentences.parquet    one row per sentence; row numbers never change
                           about.json           names, counts, types, origin
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import CorpusError
from core.results import IntArray
from core.text.sentence import Entity, Sentence
from core.text.words import Tokens, cutter

KEPT: dict[str, pa.DataType] = {  # columns that a corpus of an older version may lack
    "group": pa.string(),
    "file": pa.string(),
    "page": pa.int32(),
    "columns": pa.map_(pa.string(), pa.string()),
}
_PLAIN = pa.schema(
    [("id", pa.uint64()), ("text", pa.string()), ("n_tokens", pa.int32()), ("doc", pa.string()), *KEPT.items()]
)
_ENTITY = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("type", pa.string())])
_TOKENS = b"tokens"  # key of the token rule in the Parquet schema's metadata; missing if the rule is `words`
_LABELLED = _PLAIN.append(pa.field("tokens", pa.list_(pa.string()))).append(pa.field("entities", pa.list_(_ENTITY)))
# Files in the folder of a corpus.
SENTENCES, ABOUT = "sentences.parquet", "about.json"
# Rows per row group, about 1 MB of text. Sentences are read and written in whole row groups.
BLOCK = 8192


class _EntityCell(TypedDict):
    start: int
    end: int
    type: str


class _Columns(TypedDict):
    id: list[int]
    text: list[str]
    n_tokens: list[int]
    doc: list[str | None]
    group: list[str | None]
    file: list[str | None]
    page: list[int | None]
    columns: list[tuple[tuple[str, str], ...] | None]
    tokens: NotRequired[list[list[str]]]
    entities: NotRequired[list[list[_EntityCell]]]


class Written(TypedDict):
    """Summary of a written corpus.

    types: {type: number of entities}, most frequent first. tokens: rule by which the text is tokenised.
    """

    fingerprint: str
    n_sentences: int
    n_tokens: int
    labelled: bool
    types: dict[str, int]
    tokens: Tokens


def write_sentences(
    file: Path, sentences: Iterator[Sentence], labelled: bool, block: int, tokens: Tokens = "words"
) -> Written:
    """Write a stream of sentences to a Parquet file, `block` rows per row group, and return a summary."""
    schema = _LABELLED if labelled else _PLAIN
    head = "winnow corpus 1" + ", labelled" * labelled
    # Store only a rule other than `words`. Older corpora, whose rule is `words`, store no rule and must keep their
    # fingerprint.
    if tokens != "words" and not labelled:
        schema, head = schema.with_metadata({_TOKENS: tokens}), f"{head}, {tokens}"
    digest = sha256(f"{head}\n".encode())
    types: Counter[str] = Counter()
    n_sentences = n_tokens = 0
    with pq.ParquetWriter(file, schema, compression="zstd", compression_level=1) as writer:
        while (columns := _take_block(sentences, labelled, block))["id"]:
            kept: dict[str, Sequence[object]] = {
                "group": columns["group"],
                "file": columns["file"],
                "page": columns["page"],
                "columns": columns["columns"],
            }
            # The fingerprint is a hash of all columns except the ids. It ignores columns in `kept` that have no value,
            # because older corpora lack these columns and must keep their fingerprint.
            without = {"id", *(name for name in kept if not any(cell is not None for cell in kept[name]))}
            cells = [column for name, column in columns.items() if name not in without]
            digest.update(json.dumps(cells, ensure_ascii=False).encode())
            writer.write_table(pa.table(columns, schema=schema))
            n_sentences += len(columns["id"])
            n_tokens += sum(columns["n_tokens"])
            types.update(entity["type"] for row in columns.get("entities", ()) for entity in row)
    return {
        "fingerprint": digest.hexdigest()[:24],
        "n_sentences": n_sentences,
        "n_tokens": n_tokens,
        "labelled": labelled,
        "types": dict(types.most_common()),
        "tokens": "words" if labelled else tokens,
    }


@contextmanager
def opened(file: Path, name: str) -> Iterator[pq.ParquetFile]:
    """Open the stored sentences of corpus `name`.

    Errors: CorpusError if the corpus was removed, or if the `with` block reads damaged data.
    """
    try:
        about = file.stat()
        footer = _footer(file, about.st_ino, about.st_mtime_ns, about.st_size)
        with pq.ParquetFile(file, metadata=footer) as parquet:
            yield parquet
    except FileNotFoundError as error:
        raise CorpusError(f"{name}: the corpus was removed, so it cannot be read; add it again.") from error
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
        raise CorpusError(f"{name}: {file} cannot be read; add the same text again to repair it.") from error


@lru_cache(maxsize=4)
def _footer(file: Path, *written: int) -> pq.FileMetaData:
    """Return a file's metadata. It is cached, because reading it takes 0.1 s for a corpus of 100 million sentences.

    written: inode, time of change and size of the file, so that the cache does not return metadata of a replaced file.
    """
    # Limit the lengths of lists in the metadata. Before Arrow reads a list, it allocates memory for the length that the
    # file declares, which may be false.
    most = file.stat().st_size
    with pq.ParquetFile(file, thrift_container_size_limit=max(most, 1)) as parquet:
        return parquet.metadata


def blocks(
    file: pq.ParquetFile, block: int, start: int, stop: int | None, columns: Sequence[str] | None
) -> Iterator[pa.Table]:
    """Yield rows `start` to `stop` of a file in order, one table per row group. Other row groups are not read.

    block: number of rows per row group. columns: names of the columns to read, None for all.
    """
    stop = min(file.metadata.num_rows if stop is None else stop, file.metadata.num_rows)
    for group in range(start // block, -(-stop // block)):
        table = file.read_row_group(group, columns)
        low, high = max(start - group * block, 0), min(stop - group * block, len(table))
        yield table.slice(low, high - low)


def _take_block(sentences: Iterator[Sentence], labelled: bool, block: int) -> _Columns:
    """Return the next `block` sentences as columns. To build a list of sentences first would take a third longer."""
    columns: _Columns = {
        "id": [],
        "text": [],
        "n_tokens": [],
        "doc": [],
        "group": [],
        "file": [],
        "page": [],
        "columns": [],
    }
    ids, texts, lengths = columns["id"], columns["text"], columns["n_tokens"]
    docs, groups, files, pages = columns["doc"], columns["group"], columns["file"], columns["page"]
    others = columns["columns"]
    tokens: list[list[str]] = []
    entities: list[list[_EntityCell]] = []
    if labelled:
        columns["tokens"], columns["entities"] = tokens, entities
    for sentence in islice(sentences, block):
        ids.append(int(sentence.id, 16))
        texts.append(sentence.text)
        lengths.append(sentence.n_tokens)
        docs.append(sentence.doc)
        groups.append(sentence.group)
        files.append(sentence.file)
        pages.append(sentence.page)
        others.append(sentence.columns or None)
        if labelled:
            tokens.append(list(sentence.tokens))
            entities.append([{"start": e.start, "end": e.end, "type": e.type} for e in sentence.entities or ()])
    return columns


def to_sentences(table: pa.Table) -> list[Sentence]:
    """Return the sentences of a row group. Unlabelled text is tokenised by the corpus's token rule.

    Errors: ValueError for an unknown token rule.
    """
    # Do not convert columns without values, because most corpora have no documents, groups or files.
    silent = [name for name in ("doc", *KEPT) if name in table.column_names and table[name].null_count == len(table)]
    columns = table.drop_columns(silent).to_pydict()
    tokens: Iterable[tuple[str, ...]]
    entities: Iterable[tuple[Entity, ...] | None]
    if "tokens" in columns:
        tokens = map(tuple, columns["tokens"])
        entities = (tuple(Entity(**cell) for cell in cells) for cells in columns["entities"])
    else:
        tokens, entities = map(cutter(_rule(table)), columns["text"]), [None] * len(table)
    kept = (columns.get(name) or [None] * len(table) for name in ("doc", *KEPT))
    return [
        Sentence(
            id=f"{id:016x}",
            tokens=cut,
            text=text,
            doc=doc,
            group=group,
            file=file,
            page=page,
            columns=tuple(others or ()),
            entities=own,
        )
        for id, text, cut, own, doc, group, file, page, others in zip(
            columns["id"], columns["text"], tokens, entities, *kept, strict=True
        )
    ]


def _rule(table: pa.Table) -> Tokens:
    rule = (table.schema.metadata or {}).get(_TOKENS, b"words").decode()
    if rule not in get_args(Tokens):
        raise ValueError(f"tokens by {rule!r}")
    return cast(Tokens, rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A sealed corpus. Its sentences are read from disk when a method needs them.

    fingerprint: first 24 hex digits of the content's sha256. types: {type: number of entities}, empty if unlabelled.
    origin: file, format and scheme of the import, or the run that made the corpus. tokens: rule by which the text is
    tokenised; labelled sentences have their own tokens. path: folder of the corpus.
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
        """Yield the sentences of rows `start` to `stop` in order, in lists of at most `BLOCK` sentences."""
        return (sentences for _, sentences in self.with_ids(start, stop, text=True))

    def with_ids(self, start: int, stop: int | None, *, text: bool) -> Iterator[tuple[IntArray, list[Sentence]]]:
        """Yield (ids, sentences) of rows `start` to `stop` in blocks. The ids are numbers, as in the method `ids`.

        text: False to read only the ids; the lists of sentences are then empty.
        """
        with self.opened() as file:
            for table in blocks(file, BLOCK, start, stop, None if text else ["id"]):
                yield table.column("id").to_numpy(), to_sentences(table) if text else []

    def texts(self, start: int, stop: int) -> list[str]:
        """Return the texts of rows `start` to `stop` in order. Reads no other column and does not tokenise."""
        with self.opened() as file:
            return [text for table in blocks(file, BLOCK, start, stop, ["text"]) for text in table["text"].to_pylist()]

    def take(self, rows: Sequence[int] | IntArray) -> list[Sentence]:
        """Return the sentences at `rows`, in the order of `rows`. Only the row groups of these rows are read."""
        addresses = np.asarray(rows, dtype=np.int64)
        by_row: dict[int, Sentence] = {}
        with self.opened() as file:
            for group in np.unique(addresses // BLOCK):
                inside = np.unique(addresses[addresses // BLOCK == group])
                table = file.read_row_group(int(group)).take(pa.array(inside - group * BLOCK))
                by_row.update(zip(inside.tolist(), to_sentences(table), strict=True))
        return [by_row[row] for row in addresses.tolist()]

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a whole column, shape (n,).

        name: `id` (uint64), `text` (string), `n_tokens` (int32), or one of the nullable columns `doc`, `group`, `file`
        (string), `page` (int32) and `columns` (map of strings).
        """
        with self.opened() as file:
            if name in KEPT and name not in file.schema_arrow.names:  # an older version stored no such column
                return pa.chunked_array([pa.nulls(self.n_sentences, KEPT[name])])
            return file.read([name]).column(0)

    def ids(self) -> IntArray:
        """Return the sentences' ids as numbers, shape (n,), uint64. `f"{id:016x}"` gives `Sentence.id`."""
        return self._numbers("id", np.uint64)

    def lengths(self) -> IntArray:
        """Return the number of tokens per sentence, shape (n,), int32."""
        return self._numbers("n_tokens", np.int32)

    def length_counts(self) -> IntArray:
        """Return how many sentences have 0, 1, 2, ... tokens, shape (longest + 1,). Holds one block in memory."""
        counts = np.zeros(1, dtype=np.int64)
        with self.opened() as file:
            for batch in file.iter_batches(BLOCK, columns=["n_tokens"]):
                more = np.bincount(batch.column("n_tokens").to_numpy(), minlength=len(counts))
                more[: len(counts)] += counts
                counts = more
        return counts

    def _numbers(self, name: str, dtype: type[np.integer[Any]]) -> IntArray:
        """Return a numeric column. Reads it in blocks, because Arrow would hold the whole column a second time."""
        found = bytearray()  # grows in place
        with self.opened() as file:
            for batch in file.iter_batches(BLOCK, columns=[name]):
                found += batch.column(name).to_numpy().astype(dtype, copy=False).data
        return np.frombuffer(found, dtype=dtype)

    @property
    def names(self) -> tuple[str, ...]:
        """Current and former names of the corpus, the current one first; () for a removed corpus."""
        names = self.origin.get("names")
        return tuple(names) if isinstance(names, list) else ()

    @property
    def parent(self) -> str:
        """Fingerprint of the corpus that this corpus was made from; "" if it was imported."""
        return str(self.origin.get("from", ""))

    @property
    def derived(self) -> bool:
        """True if Winnow made the corpus from another corpus (selection, subset, copy) or from typed sentences."""
        return not self.origin.keys().isdisjoint(("from", "typed"))

    def opened(self) -> AbstractContextManager[pq.ParquetFile]:
        """Open the corpus's Parquet file for a `with` block. Errors: CorpusError."""
        return opened(self.path / SENTENCES, self.name)
