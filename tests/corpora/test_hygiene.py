"""Flags against their definitions: planted cases, near misses, and every pair of small corpora."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import numpy as np
import pytest

from core import processes
from core.corpora import edit_similarity, hygiene
from core.corpora.grams import WordHasher
from core.corpora.hygiene import FLAGS, Audit, audit, differing, leaks, near_duplicates_of
from core.errors import Cancelled
from core.reporter import Silent
from core.text.words import fold
from tests.conftest import ROOT, Seal
from tests.corpora.test_edit_similarity import distance
from tests.corpora.test_near import clusters

WORDS = """court party seller buyer notice term rent tenant lease clause breach damage loss claim judge order
appeal law state city bank loan share board vote fund trust heir deed title""".split()  # noqa: SIM905


def sentences(rng: Random, n: int, least: int = 4, most: int = 24) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=rng.randint(least, most))) for _ in range(n)]


def flags(found: Audit, row: int) -> set[str]:
    return {flag for flag in FLAGS if found.has(flag)[row]}


# --- the definitions, written out ---------------------------------------------------------------------------


def jaccard(a: str, b: str) -> float:
    x, y = ({tuple(w[i : i + 5]) for i in range(len(w) - 4)} for w in (fold(a).split(), fold(b).split()))
    return len(x & y) / len(x | y) if x | y else 0.0


def edited_share(a: Sequence[str], b: Sequence[str]) -> float:
    """Return the edit similarity in letters or words."""
    return 1 - distance(a, b) / max(len(a), len(b), 1)


def near(a: str, b: str) -> bool:
    return jaccard(a, b) >= 0.8 or edited(a, b)


def edited(a: str, b: str) -> bool:
    a, b = fold(a), fold(b)
    x, y = a.split(), b.split()
    fewer, more = sorted((len(x), len(y)))
    if more <= 60 and abs(len(x) - len(y)) <= more / 10 and edited_share(x, y) >= 0.9 - 1e-12:
        return True
    same_numbers = numbers_of(a) == numbers_of(b)
    return fewer < 10 and more < 12 and same_numbers and edited_share(a, b) >= 0.9 - 1e-12


def roman(number: int) -> str:
    places = [("m", "", ""), ("c", "d", "m"), ("x", "l", "c"), ("i", "v", "x")]
    digit = "{} {0} {0}{0} {0}{0}{0} {0}{1} {1} {1}{0} {1}{0}{0} {1}{0}{0}{0} {0}{2}"
    written = [
        ["", *(" " + digit[2:]).split(" ")[2:]][int(value)].format(*place)
        for place, value in zip(places, f"{number:04}", strict=True)
    ]
    return "".join(written)


ROMANS = {roman(number) for number in range(1, 4_000)}


def numbers_of(folded: str) -> list[str]:
    """Return the words that are numbers."""
    return [word for word in folded.split() if word in ROMANS or any(char.isdecimal() for char in word)]


def quotes(text: str, held: str) -> bool:
    words, theirs = fold(text).split(), fold(held).split()
    n = 13 if len(theirs) >= 13 else 8
    runs = {tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1)}
    return any(tuple(words[i : i + n]) in runs for i in range(len(words) - n + 1))


def variants(rng: Random, bases: Sequence[str], n: int) -> list[str]:
    texts = list(bases)
    for _ in range(n):
        words = rng.choice(bases).split()
        at = rng.choice([0, -1, rng.randrange(len(words))])
        match rng.randrange(6):
            case 5:
                words[at] = rng.choice(("12", "13", "13a", "xi", "xii", "१०", "१२"))
            case 0:
                words[at] = words[at].upper() + ","
            case 1:
                words[at] = words[at][:-1] + rng.choice("xyz")
            case 2:
                words.insert(at, rng.choice("abc"))
            case 3:
                words.append(rng.choice(WORDS))
            case _:
                words[at] = rng.choice(WORDS)
        texts.append(" ".join(words))
    rng.shuffle(texts)
    return texts


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))]

# --- all flags against the definitions ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_duplicates_are_the_clusters_of_the_definition(seal: Seal, seed: int) -> None:
    rng = Random(seed)
    texts = variants(rng, sentences(rng, 40), 80)
    found = audit(seal(texts), [], Silent())
    alike = [(i, j) for (i, a), (j, b) in combinations(enumerate(texts), 2) if fold(a) == fold(b) or near(a, b)]
    head = clusters(len(texts), alike)
    seen: set[str] = set()
    exact = [fold(t) in seen or bool(seen.add(fold(t))) for t in texts]  # type: ignore[func-returns-value]
    assert found.cluster.tolist() == head
    assert found.has("exact_duplicate").tolist() == exact
    assert found.has("near_duplicate").tolist() == [
        not e and h != i for i, (e, h) in enumerate(zip(exact, head, strict=True))
    ]
    assert found.counts["exact_duplicate"] > 10
    assert found.counts["near_duplicate"] > 10
    kinds = [any(i != j and edited(text, other) for j, other in enumerate(texts)) for i, text in enumerate(texts)]
    assert found.near_rules["edited"] == (found.has("near_duplicate") & np.array(kinds)).sum()
    assert sum(found.near_rules.values()) == found.counts["near_duplicate"]


@pytest.mark.parametrize("seed", SEEDS)
def test_leaks_are_those_of_the_definition(seal: Seal, seed: int) -> None:
    rng = Random(10 + seed)
    held = sentences(rng, 25)
    quoting = [f"{' '.join(rng.choices(WORDS, k=6))} {text} {' '.join(rng.choices(WORDS, k=9))}" for text in held]
    texts = variants(rng, held, 70) + quoting
    splits = [seal(held[:12], "dev"), seal(held[12:], "test")]
    found = audit(seal(texts), splits, Silent())
    exact = [any(fold(t) == fold(h) for h in held) for t in texts]
    ngram = [any(quotes(t, h) for h in held) for t in texts]
    like = [not e and any(near(t, h) for h in held) for t, e in zip(texts, exact, strict=True)]
    assert found.leak_rules == {"exact": sum(exact), "ngram": sum(ngram), "near": sum(like)}
    assert found.has("leak").tolist() == [any(rules) for rules in zip(exact, ngram, like, strict=True)]
    assert leaks(texts, splits).tolist() == found.has("leak").tolist()
    assert min(found.leak_rules.values()) > 5


LONG = "the tenant shall pay the rent on the first day of every month without any deduction"  # 16 words
MIDDLE = "the seller shall give notice to every buyer"  # 8 words


@pytest.mark.parametrize(
    ("held", "text", "rules"),
    [
        ("Germany", "GERMANY !", "exact"),
        ("Germany", "Germany won", ""),
        (LONG, LONG.upper().replace(" ", " , "), "exact ngram"),
        (LONG, "who knows whether " + " ".join(LONG.split()[:13]) + " or not at all", "ngram"),
        (LONG, "who knows whether " + " ".join(LONG.split()[:12]) + " or not at all", ""),
        (MIDDLE, "it was agreed that " + MIDDLE + " and that was that", "ngram"),
        (MIDDLE, "it was agreed that " + MIDDLE[:-6] + " and that was that", ""),
        (MIDDLE, MIDDLE.replace("every", "evary"), "near"),
        (MIDDLE, MIDDLE.replace("every", "neither"), ""),
        (LONG, LONG + " whatever", "ngram near"),
        (LONG, "then " + " ".join(LONG.split()[:8]) + " or so", ""),  # 8 equal words suffice only in short sentences
        ("7 words are too few for this", "so it is that 7 words are too few for this rule of ours", ""),
    ],
)
def test_each_leak_rule_and_its_near_miss(seal: Seal, held: str, text: str, rules: str) -> None:
    other = "an unrelated sentence about something else entirely"
    found = audit(seal([other, text, other]), [seal([held], "held")], Silent())
    assert {name for name, n in found.leak_rules.items() if n} == set(rules.split())
    assert found.has("leak").tolist() == [False, bool(rules), False]


@pytest.mark.parametrize(
    ("held", "text"),
    [
        ("Article 10.", "Article 12."),
        ("Article XI. Rent", "Article XII. Rent"),
        ("The flat has room 12a", "The flat has room 12b"),
        ("अनुच्छेद १० लागू", "अनुच्छेद १२ लागू"),
        ("கட்டுரை பிரிவு ௧௦", "கட்டுரை பிரிவு ௧௨"),
        ("மாதிரி கட்டுரை 10", "மாதிரி கட்டுரை 12"),
        ("المادة رقم ١٠ من العقد", "المادة رقم ١٢ من العقد"),
        ("มาตรา ๑๐ ของสัญญาเช่า", "มาตรา ๑๒ ของสัญญาเช่า"),
        ("本合同第三条规定的义务由乙方承担", "本合同第四条规定的义务由乙方承担"),
    ],
)
def test_short_sentences_with_other_numbers_are_no_duplicates_or_leaks(seal: Seal, held: str, text: str) -> None:
    found = audit(seal([text, held, "something else altogether"]), [seal([held], "held")], Silent())
    assert found.has("leak").tolist() == [False, True, False]
    assert found.leak_rules["exact"] == 1
    assert found.counts["near_duplicate"] == 0


def test_misprints_and_long_sentences_with_other_numbers_are_near_duplicates(seal: Seal) -> None:
    long = "Under Article {} the tenant pays the rent on the first day of the month."
    rows = ["Article 10 aplies here", "Article 10 applies here", long.format(10), long.format(12)]
    assert audit(seal(rows), [], Silent()).cluster.tolist() == [0, 0, 2, 2]


def test_duplicates_of_a_leak_are_leaks(seal: Seal) -> None:
    spoilt = MIDDLE.replace("every", "evary")
    found = audit(seal([spoilt, "something else altogether here", spoilt + "."]), [seal([MIDDLE], "held")], Silent())
    assert found.has("leak").tolist() == [True, False, True]
    assert found.leak_rules["near"] == 2


def test_held_out_sentences_do_not_join_duplicate_clusters(seal: Seal) -> None:
    """Two rows near the same held-out sentence, but not near each other, are leaks and not duplicates."""
    held = " ".join(f"w{i}" for i in range(40))
    one, two = (" ".join([*held.split()[4:], "a"]), " ".join(["b", *held.split()[:-4]]))
    assert jaccard(one, held) >= 0.8 <= jaccard(two, held)
    assert jaccard(one, two) < 0.8
    found = audit(seal([one, two]), [seal([held, held + " x"], "held")], Silent())
    assert found.counts | {"leak": 2} == found.counts
    assert found.counts["near_duplicate"] == 0
    assert found.cluster.tolist() == [0, 1]


def test_length_limits_count_letters_in_scripts_without_blanks(seal: Seal) -> None:
    rows = ["a b c d", "a b c d e", "a, b, c", *(" ".join(f"x{n}{i}" for i in range(n)) for n in (8, 9))]
    found = audit(seal(rows, "tokens"), [], Silent(), min_tokens=5, max_tokens=8)
    assert np.flatnonzero(found.has("too_short")).tolist() == [0]
    assert np.flatnonzero(found.has("too_long")).tolist() == [4]
    rows = ["合同自双方签字之日起生效。", "你好吗？", "契約はその日から有効です", "สัญญามีผลบังคับ", "ສັນຍາມີຜົນບັງຄັບ"]
    rows += ["កិច្ចសន្យាមានប្រសិទ្ធភាព", "စာချုပ်အတည်ဖြစ်သည်", "合同" * 20, "Договор вступает в силу сегодня .", "Il est né ."]
    found = audit(seal(rows), [], Silent(), min_tokens=5, max_tokens=30)
    assert [rows[i] for i in np.flatnonzero(found.has("too_short"))] == ["你好吗？", "Il est né ."]
    assert [rows[i] for i in np.flatnonzero(found.has("too_long"))] == ["合同" * 20]


# --- edges --------------------------------------------------------------------------------------------------


def test_rows_without_words_are_not_near_duplicates_and_one_row_is_clean(seal: Seal) -> None:
    found = audit(seal(["the only sentence there is"], "one"), [], Silent())
    assert (found.mask.tolist(), found.cluster.tolist()) == ([0], [0])
    assert (found.mask.dtype, found.cluster.dtype) == (np.dtype(np.uint8), np.dtype(np.int64))
    found = audit(seal(["- - - - -", "! ! ! ! !", "- - - - -"]), [seal(["?", "..."], "held")], Silent())
    assert [flags(found, row) for row in range(3)] == [set(), set(), {"exact_duplicate"}]


def test_unicode_is_folded_before_comparison(seal: Seal) -> None:
    rows = [
        "STRASSE nach Köln, heute ganz früh",
        "Straße nach KÖLN heute ganz früh!",
        "Straße nach Köln heute ganz frük",
        "合同双方应当遵守本协议的全部条款和条件",
        "合同双方应当遵守本协议的全部条款或条件",
        "😀 𝔘𝔫𝔦 один два три",
    ]
    found = audit(seal(rows), [], Silent())
    assert found.cluster.tolist() == [0, 0, 0, 3, 3, 5]
    assert flags(found, 1) == {"exact_duplicate"}
    assert flags(found, 2) == {"near_duplicate"}


def test_counts_do_not_depend_on_order_or_block_size(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(20)
    held = sentences(rng, 10)
    texts = variants(rng, [*held, *sentences(rng, 30)], 80)
    split = seal(held, "held")
    one = audit(seal(texts), [split], Silent())
    order = rng.sample(range(len(texts)), len(texts))
    monkeypatch.setattr("core.corpora.near.RANGE", 7)
    two = audit(seal([texts[row] for row in order], "shuffled"), [split], Silent())
    assert one.counts == two.counts
    assert one.leak_rules == two.leak_rules
    assert one.has("leak")[order].tolist() == two.has("leak").tolist()
    groups = [{frozenset(np.flatnonzero(a.cluster == c).tolist()) for c in set(a.cluster.tolist())} for a in (one, two)]
    assert groups[0] == {frozenset(order[row] for row in group) for group in groups[1]}


def test_audits_are_equal_with_several_processes(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    bases = sentences(Random(11), 4000)
    texts = [*(text + end for text in bases for end in ("", " indeed", " 7")), "Art. 1", "Art.  1"]
    corpus, held = seal(texts), seal([MIDDLE, *bases[:20]], "held")
    alone = audit(corpus, [held], Silent())
    started, send = list[object](), processes._send

    def noted(pipe: Connection, value: object) -> None:
        started.append(value)
        send(pipe, value)

    monkeypatch.setattr(processes, "cores", lambda: 2)
    monkeypatch.setattr(processes, "_send", noted)
    for module in (hygiene, edit_similarity):
        monkeypatch.setattr(module, "PAYS", 1)
    together = audit(corpus, [held], Silent())
    assert len([value for value in started if isinstance(value, partial)]) == 3 * 2
    assert alone.counts["near_duplicate"] > 4000
    assert alone.counts["leak"] > 10
    assert together.mask.tobytes() == alone.mask.tobytes()
    assert together.cluster.tobytes() == alone.cluster.tobytes()
    assert (together.leak_rules, together.near_rules) == (alone.leak_rules, alone.near_rules)


SCRIPT = """
import sys
from pathlib import Path
from core.corpora.library import Library
from core.corpora.grams import WordHasher
from core.corpora.hygiene import audit
from core.reporter import Silent
library = Library(Path(sys.argv[1]))
found = audit(library.find("corpus"), [library.find("held")], Silent())
print(found.mask.tolist(), found.cluster.tolist(), found.leak_rules, WordHasher()(["a b"]).hashes.tolist())
"""


def test_audits_are_equal_in_every_process(seal: Seal, home: Path) -> None:
    rng = Random(30)
    held = sentences(rng, 5)
    corpus, split = seal(variants(rng, [*held, *sentences(rng, 20)], 40)), seal(held, "held")
    here = audit(corpus, [split], Silent())
    hashes = WordHasher()(["a b"]).hashes.tolist()
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-c", SCRIPT, str(home)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
        assert there.stdout.strip() == f"{here.mask.tolist()} {here.cluster.tolist()} {here.leak_rules} {hashes}"


def test_an_audit_is_saved_and_loaded(seal: Seal, tmp_path: Path) -> None:
    found = audit(seal([MIDDLE, MIDDLE, "too short"]), [seal([MIDDLE], "held")], Silent())
    found.save(tmp_path / "audit")
    again = Audit.load(tmp_path / "audit")
    assert (again.mask == found.mask).all()
    assert (again.cluster == found.cluster).all()
    assert (again.corpus, again.leak_rules, again.counts) == (found.corpus, found.leak_rules, found.counts)
    assert again.near_rules == found.near_rules
    about = json.loads((tmp_path / "audit" / "audit.json").read_text())
    del about["near_rules"]
    (tmp_path / "audit" / "audit.json").write_text(json.dumps(about))
    assert Audit.load(tmp_path / "audit").near_rules == {}  # an older version saved none
    assert {path.suffix for path in (tmp_path / "audit").iterdir()} == {".npy", ".json"}


def test_near_duplicates_of_a_row(seal: Seal) -> None:
    found = audit(seal([MIDDLE, "not like any other row here", MIDDLE + "!", MIDDLE + "s"]), [], Silent())
    assert near_duplicates_of(2, found).tolist() == [0, 3]
    assert near_duplicates_of(2, found, limit=1).tolist() == [0]
    assert near_duplicates_of(1, found).tolist() == []


class _Counting(Silent):
    def __init__(self, stop_at: str = "") -> None:
        self.seen: list[tuple[int, int | None]] = []
        self.stages: list[str] = []
        self.stop_at = stop_at

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self.seen.append((done, total))

    def check(self) -> None:
        if self.stages[-1] == self.stop_at:
            raise Cancelled("stopped")


def test_reports_progress_and_can_be_cancelled_in_every_stage(seal: Seal) -> None:
    corpus, split = seal(sentences(Random(40), 30)), seal([MIDDLE], "held")
    report = _Counting()
    audit(corpus, [split], report)
    assert (30, 30) in report.seen
    for stage in report.stages:
        with pytest.raises(Cancelled):
            audit(corpus, [split], _Counting(stage))


def conll_texts(file: Path) -> list[str]:
    sentences = file.read_text(encoding="utf-8").strip().split("\n\n")
    return [" ".join(line.split()[0] for line in lines.split("\n")) for lines in sentences]


@pytest.mark.real
@pytest.mark.full
def test_leaks_and_duplicates_of_conll2003_are_found(seal: Seal, real_data: Path) -> None:
    """SOURCES.md, Golden numbers: 126 sentences of test are in train word by word, 50 in dev, 269 repeat inside test."""

    texts = {split: conll_texts(real_data / "conll2003" / f"{split}.conll") for split in ("train", "dev", "test")}
    test = seal(texts["test"], "test")
    for split, verbatim in (("train", 126), ("dev", 50)):
        found = audit(test, [seal(texts[split], split)], Silent())
        there = np.array([text in set(texts[split]) for text in texts["test"]])
        assert there.sum() == verbatim
        assert found.has("leak")[there].all()
        folded = {fold(text) or text for text in texts[split]}
        assert found.leak_rules["exact"] == sum((fold(text) or text) in folded for text in texts["test"]) >= verbatim
    assert len(texts["test"]) - len(set(texts["test"])) == 269
    assert found.counts["exact_duplicate"] >= 269


@pytest.mark.parametrize("sample", ["legal", "medical"])
def test_planted_duplicates_and_leaks_of_the_samples_are_found(seal: Seal, sample: str) -> None:
    folder = ROOT / "assets" / "samples" / sample
    with gzip.open(folder / "domain.txt.gz", "rt", encoding="utf-8") as file:
        rows = file.read().splitlines()
    with gzip.open(folder / "truth.jsonl.gz", "rt", encoding="utf-8") as file:
        truth = [json.loads(line) for line in file]
    splits = [seal(conll_texts(folder / f"{split}.conll"), split) for split in ("dev", "test")]
    found = audit(seal(rows), splits, Silent())
    copies = [row["kind"] if row["copy_of"] is not None else None for row in truth]
    leaks, near = np.array([row["leak_of"] is not None for row in truth]), np.array([kind == "near" for kind in copies])
    assert found.has("exact_duplicate").tolist() == [kind == "exact" for kind in copies]
    assert found.has("leak")[leaks].all()
    assert found.has("near_duplicate")[near].all()
    held = [text for split in ("dev", "test") for text in conll_texts(folder / f"{split}.conll")]
    for row in np.flatnonzero(found.has("leak") & ~leaks):
        assert any(edited(rows[row], text) for text in held)
    for row in np.flatnonzero(found.has("near_duplicate") & ~near):
        assert any(edited(rows[row], rows[other]) for other in near_duplicates_of(int(row), found))
    assert min(copies.count("exact"), copies.count("near"), found.counts["leak"]) > 50


@pytest.mark.parametrize("n", [10, 14, 20, 31, 48, 60])
def test_one_changed_word_in_ten_is_near_at_every_position(seal: Seal, n: int) -> None:
    words = [f"w{i}" for i in range(n)]
    changed = [" ".join([*words[:at], f"x{at}", *words[at + 1 :]]) for at in range(n)]
    without = [" ".join([*words[:at], *words[at + 1 :]]) for at in range(n)]
    more = " ".join([*words[: n // 2], "x", *words[n // 2 :]]) if n < 60 else changed[0]
    rows = [*changed, *without, more]
    other = " ".join(f"x{i}" if i % 5 == 2 else word for i, word in enumerate(words))
    found = audit(seal([*rows, other]), [seal([" ".join(words)], "held")], Silent())
    assert found.has("leak").tolist() == [True] * len(rows) + [False]
    assert found.leak_rules["near"] == len(rows)


def test_thresholds_are_options(seal: Seal) -> None:
    rows = [" ".join(f"w{i}" for i in range(30)), " ".join([*(f"w{i}" for i in range(20)), *"abcdefghij"])]
    assert jaccard(*rows) == pytest.approx(16 / 36)
    for threshold, found in ((0.44, 1), (0.45, 0)):
        assert audit(seal(rows, "r"), [], Silent(), near_threshold=threshold).counts["near_duplicate"] == found
    rows = [" ".join(f"w{i}" for i in range(20)), " ".join(f"x{i}" if i % 7 == 3 else f"w{i}" for i in range(20))]
    assert audit(seal(rows), [], Silent(), near_words=0.85).near_rules == {"edited": 1, "overlapping": 0}
    assert audit(seal(rows), [], Silent()).counts["near_duplicate"] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Company pays.", "Company -> Borrower"),
        ("The Borrower now pays.", "now -> (nothing)"),
        ("Borrower pays.", "(nothing) -> The"),
        ("The Borrower pays.", ""),
        ("A b C d E f G h.", "A b C d E f G h -> The Borrower pays"),
    ],
)
def test_the_words_in_which_two_texts_differ(text: str, words: str) -> None:
    assert differing(text, "The Borrower pays.") == words
    assert differing("a x b x c x d x e", "a y b y c y d y e") == "x -> y; x -> y; x -> y; 1 more"


WRITTEN_OTHERWISE = {
    "合同 自 双方 签字 之 日 起 生效 。": "合同自双方签字之日起生效。",
    "すべて の 人間 は 自由 で ある 。": "すべての人間は自由である。",
    "สัญญา นี้ มี ผล บังคับ ใช้": "สัญญานี้มีผลบังคับใช้",
    "He did n't pay -LRB- or can not -RRB- .": "He didn't pay (or cannot).",
    "İSTANBUL ILICA": "istanbul ılıca",
    "مُحَمَّدٌ رَسُولُ اللّٰهِ": "محمد رسول الله",
    "the tenant pays": "ｔｈｅ ｔｅｎａｎｔ ｐａｙｓ",
    "the seller pays": "the sel\u00adler pa\u200bys",
    # Labelled data of scripts without blanks may have a token per code point, vowels and tones apart.
    **{" ".join(text): text for text in ("สัญญานี้มีผลใช้ทำงาน", "ສັນຍາມີຜົນບັງຄັບ", "កិច្ចសន្យាមានប្រសិទ្ធភាព", "စာချုပ်အတည်ဖြစ်သည်")},
}


def test_other_spellings_of_a_text_match_but_other_marks_do_not(seal: Seal) -> None:
    rows = [*WRITTEN_OTHERWISE.values(), "उसने दिल्ली में पानी पिया", "काल", "कुल", "कौल"]
    found = audit(seal(rows), [seal([*WRITTEN_OTHERWISE, "उसने दिल्ली मे पाना पाया", "कील"], "held")], Silent())
    assert found.has("leak").tolist() == [True] * len(WRITTEN_OTHERWISE) + [False] * 4
    assert (found.leak_rules["exact"], found.leak_rules["near"]) == (len(WRITTEN_OTHERWISE), 0)
    assert found.counts["exact_duplicate"] == found.counts["near_duplicate"] == 0


HAN = "缔约各方应当按照本协议规定的期限和方式履行各自的义务并对因违反本协议而给其他各方造成的一切损失承担全部赔偿责任"


@pytest.mark.parametrize("n", [19, 30, 45, 49, len(HAN)])
def test_a_changed_letter_is_found_at_every_length(seal: Seal, n: int) -> None:
    held = HAN[:n]
    for at in (0, n // 2, n - 1):
        found = audit(seal([f"{held[:at]}乙{held[at + 1 :]}", held[::-1]]), [seal([held], "held")], Silent())
        assert found.has("leak").tolist() == [True, False]


def test_quotations_without_blanks_need_twice_as_many_letters(seal: Seal) -> None:
    rows = [
        f"我们{HAN[5:31]}吗那是另一回事情",
        f"我们{HAN[5:30]}吗那是另一回事情",
        f"那么{HAN[30:46]}呢这里什么都没有写",
    ]
    found = audit(seal(rows), [seal([HAN, HAN[30:50]], "held")], Silent())
    assert found.has("leak").tolist() == [True, False, True]
