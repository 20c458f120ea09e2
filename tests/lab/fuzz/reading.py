"""Read one corrupted file, and check what must hold for every outcome."""

import importlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
from pydantic import TypeAdapter

from core import isolated
from core.corpora import uploads
from core.corpora.corpus import Corpus
from core.corpora.formats.ledger import Format, ReadOptions, ReadReport
from core.corpora.formats.source import open_stream
from core.corpora.library import Library
from core.corpora.preview import dry_run
from core.corpora.readers import Preview, read, sniff
from core.errors import ConfigError, PathError, ReadError, ResourceError, WinnowError
from core.importing.add_vectors import read_vectors
from core.text.schemes import SCHEMES
from core.text.sentence import Sentence
from core.text.words import Tokens
from tests.homes import project_in
from tests.lab.fuzz.mutate import mutated
from tests.lab.fuzz.seeds import SEEDS, VECTORS, Seed, options_of

_preview = TypeAdapter(Preview)
_OTHERS: Mapping[str, Sequence[Any]] = {
    "format": get_args(Format),
    "scheme": ("auto", *SCHEMES),
    "split": (True, False),
    "unit": ("line", "paragraph"),
    "encoding": (
        "utf-8",
        "utf-16",
        "utf-16-be",
        "cp1252",
        "latin-1",
        "utf-32",
        "shift_jis",
        "utf-7",
        "hex",
        "idna",
        "punycode",
        "undefined",
        "unicode_escape",
        "big5",
        "hz",
        "utf-8-sig",
    ),
    "repair": (True, False),
    "text_column": (None, "text", "n", "gone"),
    "doc_column": (None, "text", "n"),
    "group_column": (None, "text", "gone"),
    "part": (None, "train", "dev"),
    "tokens": get_args(Tokens),
}


class Reading:
    """The reader of one format. `attempt` returns "taken" or "refused"."""

    def __init__(self, name: str) -> None:
        self.name, self._seeds = name, SEEDS[name]

    def prepare(self) -> None:
        """Read documents in this child process; `attempt_apart` isolates them as an import does."""
        isolated._isolated.set()
        for reader in ("openpyxl", "pypdfium2.raw", "striprtf.striprtf"):
            importlib.import_module(reader)

    def attempt(self, random: Random, folder: Path) -> str:
        """Read one input. Any exception, such as AssertionError for a failed check, is a fault."""
        return self._attempt(random, folder, apart=False)

    def attempt_apart(self, random: Random, folder: Path) -> str:
        """Run native code in a separate process first, as an import does."""
        isolated._isolated.clear()
        return self._attempt(random, folder, apart=True)

    def _attempt(self, random: Random, folder: Path, *, apart: bool) -> str:
        os.environ["WINNOW_HOME"] = str(folder / "home")
        seed = random.choice(self._seeds)
        path, options = put(seed, random, folder / "in"), options_of(seed)
        if random.random() < 0.15:
            name = random.choice(list(_OTHERS))
            options = replace(options, **{name: random.choice(_OTHERS[name])})
        if apart:
            with suppress(ReadError, ConfigError, PathError):
                try:
                    dry_run(path, options)
                except ResourceError as error:
                    said(error, path)
                    return "refused"
        return outcome(path, options, folder)


class Vectors:
    """The reader of word vectors in text format."""

    name = "vectors"

    def prepare(self) -> None:
        """Do nothing."""

    def attempt(self, random: Random, folder: Path) -> str:
        """Read one input. Any exception, such as AssertionError for a failed check, is a fault."""
        path = put(random.choice(VECTORS), random, folder / "in")
        with (folder / "rows").open("w+b") as rows:
            try:
                table = read_vectors(path, rows, most_words=random.choice((0, 2)))
            except WinnowError as error:
                said(error, path)
                return "refused"
            rows.seek(0)
            values = np.frombuffer(rows.read(), np.float32).reshape(len(table.words), table.dimension)
        assert np.isfinite(values).all()
        assert len(set(table.words)) == len(table.words) > 0
        assert all(word.split() == [word] for word in table.words)
        return "taken"

    attempt_apart = attempt


def put(seed: Seed, random: Random, folder: Path) -> Path:
    """Write a seed's files, one of them corrupted, sometimes under another extension. Return the path to read."""
    folder.mkdir()
    spoilt = random.choice(list(seed.files))
    for name, data in seed.files.items():
        (folder / name).write_bytes(mutated(random, name, data) if name == spoilt else data)
    path = folder / seed.path
    if seed.path and random.random() < 0.1:
        other = random.choice([name for each in SEEDS.values() for one in each for name in one.files])
        path = path.rename(folder / other)
    return path


def outcome(path: Path, options: ReadOptions, folder: Path) -> str:
    """Read and seal as an import does, and check all files that are left. Return "taken" or "refused"."""
    library, rejects, report = Library(project_in(folder / "home")), folder / "rejects.jsonl", ReadReport()
    seen: list[Sentence] = []
    try:
        preview = sniff(path, options)
        written = json.loads(json.dumps(asdict(preview), ensure_ascii=False).encode("utf-8", "replace"))
        assert _preview.validate_python(written).format == preview.format
        sentences = _kept(read(path, options, report=report, rejects=rejects), seen)
        kind, cut = preview.labelled, options.tokens
        corpus = library.seal(sentences, name="x", origin={}, labelled=kind, tokens=cut, describe=report.as_dict)
    except WinnowError as error:
        said(error, path)
        assert not list(library.folder.glob("*")) if library.folder.exists() else True, "files left in the library"
        return "refused"
    finally:
        uploads.forget_unpacked(path)
        assert not list((library.folder.parent).glob("unpacked/*")), "files left of an archive"
        _accounted(report, rejects)
    assert [file.name for file in library.folder.iterdir()] == [corpus.fingerprint], "more than the corpus is left"
    assert (report.sentences, len(corpus)) == (len(seen), len(seen))
    assert report.kept <= report.sentences or options.split or report.pages
    _stored(corpus, seen)
    for problem in report.problems:
        _placed(problem.file, problem.line, path)
    return "taken"


def _kept(sentences: Iterator[Sentence], seen: list[Sentence]) -> Iterator[Sentence]:
    for sentence in sentences:
        seen.append(sentence)
        yield sentence


def said(error: WinnowError, path: Path) -> None:
    """Check an error: any terminal can print its message, which is short. A ReadError names an existing place."""
    message = str(error)
    message.encode()
    assert message.strip()
    assert len(message) < 2_000, len(message)
    if isinstance(error, ReadError):
        _placed(error.file, error.line, path)
        json.dumps(error.__reduce__()[1])


def _placed(file: str, line: int | None, path: Path) -> None:
    """Check that the file is one of those given, and has this line."""
    if path.suffix == ".zip":  # the error names a member of the archive
        return
    folder = path if path.is_dir() else path.parent
    assert file in {path.name, *(each.name for each in folder.iterdir())}, file
    if line is None or not (folder / file).is_file() or (folder / file).suffix in (".parquet", ".arrow", ".xlsx"):
        return
    assert line >= 1
    try:
        with open_stream(folder / file, "utf-8") as stream:
            text = stream.read(20_000_000)
    except WinnowError:
        return
    marks = max(text.count(mark) for mark in (b"\n", b"\r", b"\x85", "\u2028".encode(), b"\0\n", b"\n\0"))
    assert line <= marks + 2 + text.count(b"\r"), (line, marks)


def _accounted(report: ReadReport, rejects: Path) -> None:
    assert report.read == report.kept + report.rejected + report.skipped, report
    rows = rejects.read_text(encoding="utf-8").splitlines() if rejects.exists() else []
    assert len(rows) == report.rejected + report.rejected_spans, (len(rows), report)


def _stored(corpus: Corpus, seen: Sequence[Sentence]) -> None:
    """Check that the stored sentences equal those given, and that every entity lies within its sentence."""
    back = [sentence for block in corpus.batches() for sentence in block]
    assert [(s.id, s.text, s.tokens) for s in back] == [(s.id, s.text, s.tokens) for s in seen]
    assert not corpus.labelled or [s.entities for s in back] == [s.entities for s in seen]
    for sentence in back:
        assert sentence.text == sentence.text.strip() != ""
        ends = 0
        for entity in sorted(sentence.entities or ()):
            assert ends <= entity.start < entity.end <= len(sentence.tokens)
            assert entity.type
            ends = entity.end
        assert all(sentence.tokens)
