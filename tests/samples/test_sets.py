"""The sample sets equal their generator's output, have the counts of ABOUT.md, and are varied."""

import gzip
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from core.errors import ConfigError
from core.samples import sets
from core.samples.plant import jaccard, runs, similarity, words
from core.text.words import clean, fold, tokenize

SAMPLES = Path(sets.__file__).parents[2] / "assets" / "samples"
TYPES = {"legal": {"PARTY", "GUARANTOR", "AMOUNT", "DATE", "LAW"}, "medical": {"DRUG", "DOSE", "PROBLEM", "TEST"}}


@dataclass(frozen=True)
class Loaded:
    name: sets.Name
    task: list[str]
    domain: list[str]
    truth: list[dict[str, Any]]
    splits: dict[str, list[list[tuple[str, str]]]]

    def texts(self, split: str) -> list[str]:
        return [" ".join(token for token, _ in sentence) for sentence in self.splits[split]]


def _lines(file: Path) -> list[str]:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode().splitlines()


def _conll(file: Path) -> list[list[tuple[str, str]]]:
    blocks = file.read_text("utf-8").strip("\n").split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n")] for block in blocks]
    return [[(token, tag) for token, tag in row] for row in rows]


@pytest.fixture(scope="module", params=["legal", "medical"])
def loaded(request: pytest.FixtureRequest) -> Loaded:
    home = SAMPLES / request.param
    return Loaded(
        name=request.param,
        task=_lines(home / "task.txt"),
        domain=_lines(home / "domain.txt.gz"),
        truth=[json.loads(line) for line in _lines(home / "truth.jsonl.gz")],
        splits={split: _conll(home / f"{split}.conll") for split in ("train", "dev", "test")},
    )


@pytest.mark.parametrize("name", ["legal", pytest.param("medical", marks=pytest.mark.full)])
def test_committed_samples_equal_those_of_the_generator(name: sets.Name, tmp_path: Path) -> None:
    sets.build(name, tmp_path)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == sorted(file.name for file in (SAMPLES / name).iterdir())
    for file in files:
        ours, theirs = tmp_path / file, SAMPLES / name / file
        assert _lines(ours) == _lines(theirs), file  # compare unpacked, because builds of zlib may pack differently
        if file.endswith(".gz"):
            for packed in (ours, theirs):
                assert packed.read_bytes()[3:8] == bytes(5)  # neither a file name nor a time in the header


def test_another_seed_gives_other_sentences(loaded: Loaded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("N_IN", "N_OFF"):
        monkeypatch.setattr(sets, name, 150)
    for name in ("N_EXACT", "N_NEAR"):
        monkeypatch.setattr(sets, name, (10, 10))
    for seed in (0, 1):
        sets.build(loaded.name, tmp_path / str(seed), seed=seed)
    first, second = (set(_lines(tmp_path / str(seed) / "task.txt")) for seed in (0, 1))
    assert len(first & second) < len(first) / 10


def test_counts_equal_the_plan(loaded: Loaded) -> None:
    assert {split: len(rows) for split, rows in loaded.splits.items()} == {"train": 150, "dev": 150, "test": 300}
    assert len(loaded.task) == 500
    assert len(loaded.domain) == len(loaded.truth) >= 6000
    assert [row["row"] for row in loaded.truth] == list(range(len(loaded.domain)))
    off = sum(row["domain"] == "off" for row in loaded.truth) / len(loaded.truth)
    assert abs(off - 1 / 3) < 0.03
    copies = Counter((row["kind"], row["domain"]) for row in loaded.truth if row["copy_of"] is not None)
    assert copies == {("exact", "in"): 80, ("exact", "off"): 40, ("near", "in"): 80, ("near", "off"): 40}
    leaks = Counter((row["leak_of"][0], row["kind"]) for row in loaded.truth if row["leak_of"])
    assert leaks == {("test", "exact"): 40, ("test", "near"): 20, ("dev", "exact"): 10, ("dev", "near"): 5}
    plan = sets.SETS[loaded.name]
    assert {row["topic"] for row in loaded.truth} == set(plan.inside) | set(plan.outside)


def test_lines_are_clean_and_the_task_corpus_has_train_and_dev_not_test(loaded: Loaded) -> None:
    for text in loaded.task + loaded.domain:
        assert text == clean(text) != ""
        assert not set(text) & set("{}|<>[]~_"), text
    task = {fold(text) for text in loaded.task}
    assert len(task) == len(loaded.task)
    for split in ("train", "dev"):
        assert {fold(text) for text in loaded.texts(split)} <= task
    assert not {fold(text) for text in loaded.texts("test")} & task


def test_tags_are_iob2_and_every_type_is_common_enough_to_learn(loaded: Loaded) -> None:
    for split, sentences in loaded.splits.items():
        counts: Counter[str] = Counter()
        for sentence in sentences:
            assert [token for token, _ in sentence] == list(tokenize(" ".join(token for token, _ in sentence)))
            before = "O"
            for _, tag in sentence:
                if tag.startswith("I-"):
                    assert before in (tag, "B" + tag[1:])
                else:
                    assert tag == "O" or tag.startswith("B-")
                before = tag
            counts.update(tag[2:] for _, tag in sentence if tag.startswith("B-"))
        assert set(counts) == TYPES[loaded.name], split
        assert min(counts.values()) >= 10, (split, counts)


def test_names_of_two_types_differ_only_by_context(loaded: Loaded) -> None:
    """The planted bias is one stock of names for two types."""
    pair = {"legal": ("PARTY", "GUARANTOR"), "medical": ("TEST", "PROBLEM")}[loaded.name]
    words_of: dict[str, set[str]] = {kind: set() for kind in pair}
    for sentences in loaded.splits.values():
        for sentence in sentences:
            for token, tag in sentence:
                if tag[2:] in words_of and token[0].isupper():
                    words_of[tag[2:]].add(token)
    assert len(words_of[pair[0]] & words_of[pair[1]]) >= 12


def test_duplicates_and_leaks_match_the_truth(loaded: Loaded) -> None:
    for row in loaded.truth:
        text = loaded.domain[row["row"]]
        if row["kind"] is None:
            assert row["copy_of"] is row["leak_of"] is row["change"] is None
            continue
        if row["leak_of"]:
            split, sentence = row["leak_of"]
            original = loaded.texts(split)[sentence]
        else:
            assert row["copy_of"] < row["row"]
            original = loaded.domain[row["copy_of"]]
        if row["kind"] == "exact":
            assert fold(text) == fold(original)
        else:
            a, b = fold(text), fold(original)
            assert a != b
            if len(a.split()) < 10:
                assert similarity(a, b) >= 0.9
            else:
                assert jaccard(tuple(a.split()), tuple(b.split())) >= 0.8


@pytest.mark.parametrize("marks", [True, False])
def test_no_other_two_lines_are_near_duplicates(loaded: Loaded, marks: bool) -> None:
    view = words if marks else lambda text: tuple(fold(text).split())
    lines = loaded.domain + loaded.task
    planted = {(row["copy_of"], row["row"]) for row in loaded.truth}
    leaked = {row["row"] for row in loaded.truth if row["leak_of"]}
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    sizes: list[int] = []
    for i, line in enumerate(lines):
        shingles = set(runs(view(line), 5))
        sizes.append(len(shingles))
        for j, n in Counter(j for shingle in shingles for j in holders[shingle]).items():
            if (j, i) not in planted and j not in leaked:
                assert n <= 0.7 * (len(shingles) + sizes[j] - n), (lines[j], line)
        for shingle in shingles:
            holders[shingle].append(i)


def test_no_other_short_lines_are_near_duplicates(loaded: Loaded) -> None:
    planted = {(row["copy_of"], row["row"]) for row in loaded.truth}
    short = [(i, fold(text)) for i, text in enumerate(loaded.domain) if len(words(text)) < 10]
    assert len(short) > 20
    for n, (i, text) in enumerate(short):
        for j, earlier in short[:n]:
            if abs(len(text) - len(earlier)) < 6 and (j, i) not in planted:
                assert similarity(text, earlier, 0.9) < 0.9, (text, earlier)


def test_held_out_sentences_leak_only_where_planted(loaded: Loaded) -> None:
    """Apply the leak rule: 13 equal words in a row, or 8 if either sentence has fewer than 13."""
    planted = {row["row"] for row in loaded.truth if row["leak_of"]}
    elsewhere = [text for i, text in enumerate(loaded.domain) if i not in planted] + loaded.texts("train")
    for view in (words, lambda text: tuple(fold(text).split())):
        held_out = [view(text) for split in ("dev", "test") for text in loaded.texts(split)]
        long = {run for text in held_out for run in runs(text, 13)}
        of_short = {run for text in held_out if len(text) < 13 for run in runs(text, 8)}
        short = {run for text in held_out for run in runs(text, 8)}
        for text in map(view, elsewhere):
            assert long.isdisjoint(runs(text, 13)), text
            assert of_short.isdisjoint(runs(text, 8)), text
            assert len(text) >= 13 or short.isdisjoint(runs(text, 8)), text


def test_the_domain_corpus_is_varied(loaded: Loaded) -> None:
    templates = Counter(row["template"] for row in loaded.truth)
    assert len(templates) > 200
    assert templates.most_common(1)[0][1] < 0.02 * len(loaded.domain)
    lengths = sorted(len(words(text)) for text in loaded.domain)
    assert lengths[0] >= 4
    assert lengths[-1] <= 60
    assert lengths[len(lengths) * 9 // 10] > 1.5 * lengths[len(lengths) // 10]
    assert len({word for text in loaded.domain for word in words(text)}) > 2500
    rng, distinct = Random(1), []
    for _ in range(50):
        twenty = [loaded.domain[i] for i in rng.sample(range(len(loaded.domain)), 20)]
        distinct.append(len({words(text)[:3] for text in twenty}))
        tokens = [word for text in twenty for word in words(text)]
        assert len(set(tokens)) > 0.4 * len(tokens)
    assert sum(distinct) / len(distinct) > 17


def test_sample_sets_differ_and_are_offered_only_if_complete(tmp_path: Path) -> None:
    legal, medical = (set(_lines(SAMPLES / name / "domain.txt.gz")) for name in ("legal", "medical"))
    assert not legal & medical
    plans = sets.SETS["legal"], sets.SETS["medical"]
    assert set(plans[0].outside) & set(plans[1].outside) == {"hard"}

    found = sets.sample_sets(SAMPLES)
    assert [sample.name for sample in found] == ["legal", "medical"]
    assert all(sample.domain.is_file() and sample.description for sample in found)
    assert sets.sample_sets(tmp_path) == ()

    with pytest.raises(ConfigError, match="no sample set 'cooking'"):
        sets.build("cooking", tmp_path)  # type: ignore[arg-type]  # no set has this name
