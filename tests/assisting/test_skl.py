"""SKL: golden numbers of Murthy et al. 2018, a slow implementation, and properties (SOURCES.md, SKL)."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.assisting import skl
from core.assisting.skl import SklOptions
from core.corpora import readers
from core.errors import ConfigError
from tests.conftest import sentence

SPANISH = {"china": Counter(LOC=20, ORG=49, MISC=1)}
ENGLISH = {"china": Counter(LOC=91, ORG=7)}
PEOPLE = {"ada": Counter(PER=3)}  # the corpora know four types; China is never a person


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SklOptions(), 1.13121),
        (SklOptions(add_k=1), 1.00982),
        (SklOptions(add_k=0.5), 1.05803),
        (SklOptions(add_k=0.01), 1.13059),
        (SklOptions(add_k=1e-6), 1.19726),
        (SklOptions(add_k=1, log="base2"), 1.45687),
    ],
)
def test_skl_of_china_equals_the_golden_numbers(options: SklOptions, expected: float) -> None:
    found = skl.compare(SPANISH | PEOPLE, ENGLISH, options)
    assert found.types == ("LOC", "MISC", "ORG", "PER")
    assert float(found.skl[found.names.index("china")]) == pytest.approx(expected, abs=5e-6)


def test_kl_in_both_directions_and_of_disjoint_types() -> None:
    spanish, english = (skl.distributions(np.array([row]), SklOptions()) for row in ([20, 1, 49, 0], [91, 0, 7, 0]))
    assert (spanish * np.log(spanish / english)).sum() == pytest.approx(1.33176, abs=5e-6)
    assert (english * np.log(english / spanish)).sum() == pytest.approx(0.93066, abs=5e-6)
    found = skl.compare({"x": Counter(A=1)}, {"x": Counter(B=1), "y": Counter(C=1, D=1)}, SklOptions())
    assert found.skl[0] == pytest.approx(9.2067, abs=5e-5)  # the largest value that the floor allows


counts = st.dictionaries(st.sampled_from("ABCD"), st.integers(1, 50), min_size=1).map(Counter)
tables = st.dictionaries(st.sampled_from("uvwxyz"), counts, min_size=1)
options = st.builds(
    SklOptions,
    floor=st.sampled_from([1e-6, 1e-4, 0.01]),
    add_k=st.sampled_from([0.0, 0.0, 0.5]),
    log=st.sampled_from(["natural", "base2"]),
    shrinkage=st.sampled_from([0.0, 0.0, 2.0]),
    min_count=st.integers(1, 3),
)


@given(tables, tables, options)
def test_skl_is_symmetric_and_bounded_by_the_floor(
    primary: skl.Counts, assisting: skl.Counts, chosen: SklOptions
) -> None:
    here, there = skl.compare(primary, assisting, chosen), skl.compare(assisting, primary, chosen)
    assert here.names == there.names
    assert here.skl == pytest.approx(there.skl)
    assert (here.skl >= -1e-12).all()
    if not chosen.add_k:
        assert (here.skl <= -math.log(chosen.floor, 2 if chosen.log == "base2" else math.e)).all()


@given(tables, options, st.integers(1, 5))
def test_equal_distributions_have_zero_skl(table: skl.Counts, chosen: SklOptions, times: int) -> None:
    plain = chosen.model_copy(update={"shrinkage": 0.0, "add_k": 0.0})
    larger = {name: Counter({kind: n * times for kind, n in each.items()}) for name, each in table.items()}
    assert skl.compare(table, larger, plain).skl == pytest.approx(0, abs=1e-12)


@given(tables, tables, options)
def test_skl_equals_a_slow_implementation(primary: skl.Counts, assisting: skl.Counts, chosen: SklOptions) -> None:
    found = skl.compare(primary, assisting, chosen)
    shared = {
        name
        for name in set(primary) & set(assisting)
        if sum(primary[name].values()) >= chosen.min_count <= sum(assisting[name].values())
    }
    assert set(found.names) == shared
    kinds = sorted({kind for table in (primary, assisting) for each in table.values() for kind in each})
    pooled = Counter[str]()
    for name in shared:
        pooled.update(primary[name] + assisting[name])
    for name, value in zip(found.names, found.skl, strict=True):
        sides = []
        for table in (primary, assisting):
            raised = [
                table[name][kind] + chosen.add_k + chosen.shrinkage * pooled[kind] / sum(pooled.values())
                for kind in kinds
            ]
            shares = [value / sum(raised) for value in raised]
            floored = shares if chosen.add_k else [max(share, chosen.floor) for share in shares]
            sides.append([share / sum(floored) for share in floored])
        log = math.log2 if chosen.log == "base2" else math.log
        expected = sum((p * log(p / q) + q * log(q / p)) / 2 for p, q in zip(*sides, strict=True))
        assert value == pytest.approx(expected, abs=1e-12)


def test_shrinkage_lowers_skl_of_rare_names_only() -> None:
    primary = {"rare": Counter(A=1), "often": Counter(A=900)}
    assisting = {"rare": Counter(B=1), "often": Counter(B=900)}
    loud = skl.compare(primary, assisting, SklOptions()).skl
    often, rare = skl.compare(primary, assisting, SklOptions(shrinkage=5)).skl
    assert loud[0] == loud[1]
    assert rare < 1 < often


def test_sentence_score_is_the_mean_of_its_shared_occurrences() -> None:
    one = sentence("China met China Airlines in Rome .", [(0, 1, "LOC"), (2, 4, "ORG"), (5, 6, "LOC")])
    here, there = ({"china": Counter({kind: 1}), "rome": Counter(LOC=1)} for kind in ("LOC", "ORG"))
    drift = skl.compare(here, there, SklOptions())
    scores, overlaps = skl.score([one, sentence("Nobody came .", [])], drift, "token")
    assert overlaps.tolist() == [3, 0]
    assert scores == pytest.approx([2 * drift.skl[drift.names.index("china")] / 3, 0])
    rows = [sentence("New York and York", [(0, 2, "LOC"), (3, 4, "ORG")])]
    assert skl.count_types(rows, "token") == {"new": Counter(LOC=1), "york": Counter(LOC=1, ORG=1)}
    assert skl.count_types(rows, "surface") == {"new york": Counter(LOC=1), "york": Counter(ORG=1)}


@given(st.lists(st.floats(0, 10), max_size=30), st.floats(0.001, 10), st.floats(0.001, 10))
def test_kept_sets_are_nested(scores: list[float], one: float, other: float) -> None:
    values = np.array(scores)
    low, high = (skl.kept(values, step) for step in sorted((one, other)))
    assert not (low & ~high).any()
    assert low[values == 0].all()  # a sentence without overlap is always kept


def test_type_map_renames_and_drops_types() -> None:
    row = sentence("Ada of Rome , 1815", [(0, 1, "PER"), (2, 3, "LOC"), (4, 5, "DATE")])
    found = skl.renamed(row, skl.parse_map(["PER=person", "DATE="]))
    assert [(e.start, e.end, e.type) for e in found.entities or ()] == [(0, 1, "person"), (2, 3, "LOC")]
    assert skl.renamed(replace(row, entities=None), {"PER": "x"}).entities is None
    for pairs, words in ((["PER"], "OLD=NEW"), (["=x"], "OLD=NEW"), (["A=b", "A=c"], "is mapped to")):
        with pytest.raises(ConfigError, match=words):
            skl.parse_map(pairs)


@pytest.mark.real
def test_counts_of_english_and_spanish_equal_the_golden_numbers(real_data: Path) -> None:
    """The authors' copy of the Spanish corpus has 6,860 types, because every letter outside ASCII became U+FFFD.

    With the letters in place it has 6,864 types."""
    english, spanish = (
        list(readers.read(real_data / name / "train.conll", readers.ReadOptions(scheme="iob2")))
        for name in ("conll2003", "conll2002-es")
    )
    ascii_only = lambda token: "".join(letter if letter.isascii() else "\ufffd" for letter in token)
    lost = [replace(row, tokens=tuple(map(ascii_only, row.tokens))) for row in spanish]
    there = skl.count_types(english, "token")
    for primary, n_types in ((spanish, 6864), (lost, 6860)):
        drift = skl.compare(skl.count_types(primary, "token"), there, SklOptions())
        scores, _ = skl.score(english, drift, "token")
        assert drift.seen == (n_types, 7686)
        assert (len(drift.names), int((drift.skl > 1).sum())) == (1023, 321)
        assert [int((scores == 0).sum()), *(int(skl.kept(scores, t).sum()) for t in (1, 9))] == [9607, 11334, 13932]
        assert len(scores) == 14041
        assert drift.skl[drift.names.index("china")] == pytest.approx(1.13121, abs=5e-6)
