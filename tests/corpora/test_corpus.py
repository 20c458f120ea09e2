"""Sealed corpora: fingerprints and names, access by row, and writing that completes or leaves nothing."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import files
from core.corpora import corpus as corpus_module
from core.corpora import library as library_module
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import CorpusError
from core.selection.base import Source
from core.selection.strategies.baselines import Random
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import clean, tokenize


def plain(text: str, doc: str | None = None) -> Sentence:
    text = clean(text)
    return Sentence(id=sentence_id(text), tokens=tokenize(text), text=text, doc=doc)


def tagged(*tokens: str, entities: Sequence[tuple[int, int, str]] = ()) -> Sentence:
    text, found = " ".join(tokens), tuple(Entity(start=s, end=e, type=t) for s, e, t in entities)
    return Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=found)


def rows(corpus: Corpus) -> list[Sentence]:
    return [sentence for batch in corpus.batches() for sentence in batch]


LABELLED = [
    tagged("Ann", "met", "Bo", entities=[(0, 1, "PER"), (2, 3, "PER")]),
    tagged("in", "St.", "Lo", entities=[(1, 3, "LOC")]),
    tagged("None"),
]


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda t: t.strip())


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=12), data=st.data())
def test_sealed_text_is_read_in_any_order(
    texts: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sentences = [plain(text, doc="d" if i % 2 else None) for i, text in enumerate(texts)]
    corpus = Library(tmp_path_factory.mktemp("home")).seal(iter(sentences), name="c", origin={"file": "x"})
    assert rows(corpus) == sentences
    assert (len(corpus), corpus.n_tokens) == (len(sentences), sum(len(s.tokens) for s in sentences))
    wanted = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    assert corpus.take(wanted) == [sentences[i] for i in wanted]
    assert [f"{i:016x}" for i in corpus.ids()] == [s.id for s in sentences]
    assert corpus.lengths().tolist() == [len(s.tokens) for s in sentences]
    assert corpus.length_counts().tolist() == np.bincount(corpus.lengths()).tolist()


def test_labels_blocks_and_subsets_keep_their_rows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Library(home).seal(LABELLED, name="l", origin={}, labelled=True)
    assert rows(corpus) == LABELLED
    assert (corpus.labelled, dict(corpus.types), corpus.n_tokens) == (True, {"PER": 2, "LOC": 1}, 7)
    for module in (corpus_module, library_module):
        monkeypatch.setattr(module, "BLOCK", 4)
    library = Library(home)
    sentences = [plain(f"Row number {i} {'!' * i}") for i in range(11)]
    corpus = library.seal(sentences, name="c", origin={})
    assert corpus.lengths().tolist() == [len(s.tokens) for s in sentences]
    assert corpus.length_counts().tolist() == np.bincount([len(s.tokens) for s in sentences]).tolist()
    assert [len(batch) for batch in corpus.batches()] == [4, 4, 3]
    assert [s for batch in corpus.batches(3, 9) for s in batch] == sentences[3:9]
    assert [len(batch) for batch in corpus.batches(3, 9)] == [1, 4, 1]
    assert [f"{i:016x}" for i in corpus.ids()] == [s.id for s in sentences]
    subset = library.subset(corpus, np.array([10, 0, 5, 5, 7]), name="s", origin={"run": "r"})
    assert rows(subset) == [sentences[i] for i in (10, 0, 5, 5, 7)]


def test_derived_corpora_are_distinguished_from_imported_ones(home: Path) -> None:
    library = Library(home)
    imported = library.seal([plain("Mine."), plain("Too.")], name="m", origin={"file": "m.txt", "run": "r-add"})
    selected = library.subset(imported, np.array([1]), name="s", origin={"run": "r", "from": "f"})
    typed = library.seal([plain("Try this.")], name="t", origin={"typed": True})
    assert [corpus.derived for corpus in (imported, selected, typed)] == [False, True, True]


def test_a_fingerprint_depends_on_the_content_alone(home: Path) -> None:
    library = Library(home)
    one = library.seal([plain("A."), plain("B.")], name="one", origin={"file": "a"})
    two = library.seal(iter([plain("A."), plain("B.")]), name="two", origin={"file": "b"})
    assert (one.fingerprint, two.name, len(library.list())) == (two.fingerprint, "one", 1)  # the first name stays
    assert {library.find(name).fingerprint for name in ("one", "two", one.fingerprint[:8])} == {one.fingerprint}
    others = [[plain("B."), plain("A.")], [plain("A. B.")], [plain("A."), plain("B.", doc="d")]]
    prints = {library.seal(o, name="o", origin={}).fingerprint for o in others} | {one.fingerprint}
    prints.add(library.seal([tagged("A", "."), tagged("B", ".")], name="l", origin={}, labelled=True).fingerprint)
    assert len(prints) == 5


def test_tokenised_text_keeps_its_tokens(home: Path) -> None:
    library, text = Library(home), "The U.S. , he said , is n't ."
    cut = [replace(plain(text), tokens=tuple(text.split())), plain("B.")]
    corpus = library.seal(cut[:1], name="c", origin={}, tokens="blanks")
    assert (rows(corpus), corpus.take([0]), corpus.tokens) == (cut[:1], cut[:1], "blanks")
    assert (library.find("c").tokens, corpus.n_tokens, corpus.lengths().tolist()) == ("blanks", 9, [9])
    assert rows(library.subset(corpus, np.array([0]), name="part", origin={})) == cut[:1]
    # Corpora from before `tokens` existed keep their fingerprint; the same text under another rule has its own.
    words = library.seal([plain(text), cut[1]], name="words", origin={})
    assert (words.fingerprint, words.tokens) == ("8fdab6f6e220f4767c1ec0af", "words")
    about = json.loads((words.path / "about.json").read_text())
    assert about.pop("tokens") == "words"
    (words.path / "about.json").write_text(json.dumps(about))
    assert rows(library.find("words")) == [plain(text), cut[1]]
    alike = [library.seal([plain("B")], name="b", origin={}, tokens=rule).fingerprint for rule in ("words", "blanks")]
    assert alike[0] != alike[1]


def test_a_stream_that_fails_leaves_nothing(home: Path) -> None:
    library = Library(home)

    def broken() -> Iterator[Sentence]:
        yield plain("A.")
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError):
        library.seal(broken(), name="c", origin={})
    with pytest.raises(CorpusError, match="no sentence"):
        library.seal([], name="c", origin={})
    assert list(library.folder.iterdir()) == []


def test_corpora_are_found_by_name_and_removed(home: Path) -> None:
    library = Library(home)
    one = library.seal([plain("A.")], name="c", origin={})
    other = library.seal([plain("B.")], name="c", origin={})
    assert [library.find(name).fingerprint for name in ("c", "c (2)")] == [one.fingerprint, other.fingerprint]
    with pytest.raises(CorpusError, match=r"known: c, c \(2\)"):
        library.find("../c")
    left = library.folder / f".removed-{one.fingerprint}"  # by a process that was killed
    left.mkdir()
    (left / "about.json").write_text("{}")
    library.remove(one.fingerprint)
    assert library.find("c (2)").n_sentences == 1
    assert [path.name for path in library.folder.iterdir()] == [other.fingerprint]


def test_an_accented_name_is_found_in_both_unicode_forms(home: Path) -> None:
    """macOS writes an accented letter of a file name as two characters, but a keyboard types one."""
    library = Library(home)
    written, typed = "contrats e\u0301te\u0301", "contrats \u00e9t\u00e9"
    corpus = library.seal([plain("A.")], name=written, origin={})
    assert library.find(typed).fingerprint == corpus.fingerprint
    assert library.seal([plain("B.")], name=typed, origin={}).name == f"{typed} (2)"


def test_each_corpus_has_its_own_name(home: Path) -> None:
    library = Library(home)
    one, two, three = (library.seal([plain(text)], name="c", origin={}) for text in ("A.", "B.", "C."))
    assert [one.name, two.name, three.name] == ["c", "c (2)", "c (3)"]
    assert (
        library.seal([plain("A.")], name="c (2)", origin={}).name == "c"
    )  # a second import does not take another corpus's name
    long = library.seal([plain("E.")], name="x" * 340, origin={})
    assert library.find("x" * 340).fingerprint == long.fingerprint
    with pytest.raises(CorpusError, match=r"another corpus is called 'c \(2\)' already"):
        library.rename("c", "c (2)")
    renamed = library.rename("c", "mine")
    assert (renamed.name, library.find("c").fingerprint) == ("mine", one.fingerprint)
    assert (
        library.seal([plain("D.")], name="c", origin={}).name == "c (4)"
    )  # an old name still finds its corpus, so it is taken


def test_a_name_that_two_older_corpora_share_is_ambiguous(home: Path) -> None:
    library = Library(home)
    for text in ("A.", "B."):
        about = library.seal([plain(text)], name=text, origin={}).path / "about.json"
        about.write_text(json.dumps({**json.loads(about.read_text()), "names": ["c"]}))
    with pytest.raises(CorpusError, match="several"):
        library.find("c")


def test_a_damaged_corpus_is_not_held_and_its_error_says_what_to_do(home: Path) -> None:
    library = Library(home)
    sealed = library.seal([plain("one .")], name="n", origin={})
    assert library.holds(sealed.fingerprint)
    assert not any(library.holds(mark) for mark in (sealed.fingerprint[:12], "0" * 24, "../corpora", "n", ""))
    file = sealed.path / "sentences.parquet"
    whole = pq.read_table(file)
    pq.write_table(whole.rename_columns([name.replace("n_tokens", "tokens_n") for name in whole.column_names]), file)
    with pytest.raises(CorpusError, match="cannot be read; add the same text again"):
        sealed.lengths()
    (sealed.path / "about.json").write_text("{")
    assert not library.holds(sealed.fingerprint)


def test_a_corpus_is_synced_to_disk_before_it_gets_its_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(file: int) -> None:
        steps.append(Path(f"/proc/self/fd/{file}").readlink().name)
        fsync(file)

    def noted_rename(self: Path, target: Path) -> Path:
        steps.append("named")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    Library(home).seal([plain("One .")], name="one", origin={})
    before, after = steps[: steps.index("named")], steps[steps.index("named") :]
    assert "sentences.parquet" in before
    assert any(name.startswith((".about", "about")) for name in before)
    assert "corpora" in after


def test_two_processes_may_seal_the_same_text_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, sync = Library(home), files.sync

    def sealed_by_another(path: Path) -> None:
        monkeypatch.setattr(library_module, "sync", sync)
        Library(home).seal([plain("one sentence .")], name="theirs", origin={})
        sync(path)

    monkeypatch.setattr(library_module, "sync", sealed_by_another)
    sealed = library.seal([plain("one sentence .")], name="mine", origin={})
    assert sealed.names == ("theirs", "mine")
    assert [path.name for path in (home / "corpora").iterdir()] == [sealed.fingerprint]


def test_a_chunk_reads_only_its_rows_and_the_footer_is_parsed_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 million rows make 12,208 chunks, so reading the whole file for each chunk would take hours."""
    for module in (corpus_module, library_module):
        monkeypatch.setattr(module, "BLOCK", 4)
    corpus = Library(home).seal((plain(f"sentence {i}") for i in range(22)), name="c", origin={})
    groups, footers = list[tuple[int, object]](), list[bool]()

    parsed = corpus_module._footer.cache_info().misses

    class Watched(pq.ParquetFile):  # type: ignore[misc]
        def __init__(self, file: Path, **options: object) -> None:
            footers.append(options.get("metadata") is None)
            super().__init__(file, **options)

        def read_row_group(self, i: int, columns: Sequence[str] | None = None) -> pa.Table:
            groups.append((i, columns))
            return super().read_row_group(i, columns)

        def read(self, columns: Sequence[str] | None = None) -> pa.Table:
            raise AssertionError("a chunk read a whole column")

    monkeypatch.setattr(pq, "ParquetFile", Watched)
    batches = [batch for start in (4, 12) for batch in Source(corpus=corpus).batches("text", start, start + 8)]
    assert groups == [(i, None) for i in (1, 2, 3, 4)]
    (ids,) = (batch.ids for batch in Source(corpus=corpus).batches("vectors", 17, 19))
    assert groups[4:] == [(4, ["id"])]
    (drawn,) = Source(corpus=corpus).batches(Random.reads, 17, 19)
    assert (drawn.ids.tolist(), drawn.sentences, groups[5:]) == (ids.tolist(), [], [(4, ["id"])])
    assert corpus.texts(7, 9) == ["sentence 7", "sentence 8"]  # only texts are sent to the encoder
    assert groups[6:] == [(1, ["text"]), (2, ["text"])]
    assert footers == [True, False, False, False, False, False]
    assert corpus_module._footer.cache_info().misses == parsed + 1
    texts = [sentence.text for batch in batches for sentence in batch.sentences]
    assert texts == [f"sentence {i}" for i in range(4, 20)]
    assert [f"{id:016x}" for id in ids.tolist()] == [sentence_id(f"sentence {i}") for i in (17, 18)]
    monkeypatch.undo()
    assert ids.tolist() == corpus.ids()[17:19].tolist()


def test_a_description_is_read_again_only_if_it_was_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages list all corpora many times; another process may rename one meanwhile."""
    library = Library(home)
    for text in ("The rent is due .", "The tenant pays ."):
        library.seal([plain(text)], name=text, origin={})
    first, second = library.list()
    opened, read_json = list[str](), files.read_json

    def watched(path: Path) -> Any:
        opened.append(path.parent.name)
        return read_json(path)

    monkeypatch.setattr(library_module, "read_json", watched)
    assert library.list() == [first, second]
    assert opened == []
    about = read_json(second.path / "about.json")
    files.write_atomic(second.path / "about.json", json.dumps({**about, "names": ["Leases"]}).encode())
    assert {corpus.name for corpus in library.list()} == {first.name, "Leases"}
    assert opened == [second.fingerprint]
