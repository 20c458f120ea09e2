"""Near duplicates and leaks: recall for the changes that people make to copies, and speed, on real text.

    python tests/lab/benchmarks/bench_hygiene.py copies
    python tests/lab/benchmarks/bench_hygiene.py [rows for both] [rows for ours alone]...

`copies`: sentences of contracts and news are copied and changed as people change them. This prints the share found
again, by change and length, then the share of contract sentences that are flagged although nothing was planted.

Otherwise, `core.corpora.hygiene` is compared with datasketch's MinHashLSH. Recall counts the pairs (planted variant,
its original) with a true Jaccard of word 5-grams of at least .8 and ten words or more, which both claim to find. The
base sentences are real, from the corpora beside the project. If more are needed, they repeat with every word marked, so
that the number of rows can grow without new duplicates. Seconds are CPU time of the process (OMP_NUM_THREADS=1), so
that a busy machine favours neither.
"""

import gzip
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from core.corpora.corpus import Corpus  # noqa: E402
from core.corpora.hygiene import audit  # noqa: E402
from core.corpora.library import Library  # noqa: E402
from core.reporter import Silent  # noqa: E402
from core.text.sentence import Sentence, sentence_id  # noqa: E402
from core.text.words import fold, tokenize  # noqa: E402

DATA = Path(os.environ.get("WINNOW_REAL_DATA", ROOT.parent / "shared" / "data")) / "unlabeled"
SHARE = 0.02  # share of the rows that are variants


def lines(name: str) -> Iterator[str]:
    with gzip.open(DATA / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
        yield from file


def texts(n: int) -> Iterator[str]:
    """Yield real sentences of four corpora, one corpus after the other. Later laps mark every word."""
    for lap in range(100):
        for line in chain.from_iterable(map(lines, ("legal", "news", "pubmed", "reviews"))):
            words = line.split()
            yield " ".join(words if not lap else [f"{word}{lap}" for word in words])
            n -= 1
            if not n:
                return


def shingles(text: str) -> set[str]:
    words = fold(text).split()
    return {" ".join(words[i : i + 5]) for i in range(len(words) - 4)}


def planted(n: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Return `n` rows in random order, and the (original, variant) pairs that are near duplicates by definition."""
    rng = Random(7)
    rows = list(texts(n - int(n * SHARE)))
    twins = []
    for original in rng.sample(range(len(rows)), int(n * SHARE)):
        words = rows[original].split()
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.choice([0, len(words) - 1, rng.randrange(len(words))])
            words[at] = f"x{rng.randrange(10**6)}"
        twins.append((original, len(rows)))
        rows.append(" ".join(words))
    place = rng.sample(range(len(rows)), len(rows))
    shuffled = [""] * len(rows)
    for row, to in enumerate(place):
        shuffled[to] = rows[row]
    near = []
    for a, b in twins:
        x, y = shingles(rows[a]), shingles(rows[b])
        if len(x) >= 6 and len(y) >= 6 and len(x & y) >= 0.8 * len(x | y):
            near.append((place[a], place[b]))
    return shuffled, near


def mistyped(words: list[str], rng: Random) -> None:
    at = rng.choice([i for i, word in enumerate(words) if len(word) > 3])
    letters = list(words[at])
    letters[rng.randrange(len(letters))] = rng.choice("abcdefghijklmnopqrstuvwxyz")
    words[at] = "".join(letters)


def renumbered(words: list[str], rng: Random) -> None:
    at = rng.choice([i for i, word in enumerate(words) if word.isdigit()])
    words[at] = str(rng.randrange(10, 10_000))


def renamed(words: list[str], rng: Random) -> None:
    at = rng.choice([i for i, word in enumerate(words) if i and word.istitle() and word.isalpha()])
    words[at] = rng.choice(["Borrower", "Licensee", "Henderson", "Volkov", "Lisbon"])


def inserted(words: list[str], rng: Random) -> None:
    words.insert(rng.randrange(1, len(words)), rng.choice(["also", "however", "duly", "then"]))


def shortened(words: list[str], rng: Random) -> None:
    del words[rng.randrange(len(words))]


def twice(words: list[str], rng: Random) -> None:
    for at in rng.sample(range(len(words)), 2):
        words[at] = rng.choice(["other", "such", "any", "same", "former"])


def shouted(words: list[str], rng: Random) -> None:
    words[:] = [word.upper() for word in words]


def hyphenated(words: list[str], rng: Random) -> None:
    words[:] = [f"{word[:4]}\u00ad{word[4:]}" if len(word) > 6 else word for word in words]


def full_width(words: list[str], rng: Random) -> None:
    words[:] = ["".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in word) for word in words]


CHANGES: dict[str, Callable[[list[str], Random], None]] = {
    "a letter mistyped": mistyped,
    "a number is another": renumbered,
    "a name is another": renamed,
    "a word put in": inserted,
    "a word left out": shortened,
    "two words are others": twice,
    "upper case": shouted,
    "soft hyphens": hyphenated,
    "full-width letters": full_width,
}
BANDS = ((5, 9), (10, 14), (15, 24), (25, 48), (49, 100))
A_BAND = 200  # copies per change and band


def copies() -> None:
    """Print recall by change and length, as duplicate and as leak, then the share of untouched contracts flagged."""
    rng, bases = Random(7), list(dict.fromkeys(" ".join(line.split()) for line in islice(texts(400_000), 100_000)))
    by_band = [[text for text in bases if low <= len(fold(text).split()) <= high] for low, high in BANDS]
    print(
        f"{'change':22}" + "".join(f"{f'{low}-{high}':>14}" for low, high in BANDS) + "   found as duplicate / as leak"
    )
    for name, change in CHANGES.items():
        cells = []
        for pool in by_band:
            pairs: list[tuple[str, str]] = []
            for text in rng.sample(pool, len(pool)):
                words = text.split()
                with suppress(IndexError, ValueError):  # the change does not apply to this sentence
                    change(words, rng)
                    if len(pairs) < A_BAND and " ".join(words) != text:
                        pairs.append((text, " ".join(words)))
                if len(pairs) == A_BAND:
                    break
            cells.append(recall(pairs))
        print(f"{name:22}" + "".join(f"{a:7.2f} /{b:5.2f}" for a, b in cells), flush=True)
    contracts = list(dict.fromkeys(" ".join(line.split()) for line in islice(lines("legal"), 40_300)))
    rng.shuffle(contracts)
    with TemporaryDirectory() as home:
        found = audit(seal(home, contracts[300:]), [seal(home, contracts[:300])], Silent())
    n = len(contracts) - 300
    print(f"of {n:,} contract sentences, {found.counts['leak'] / n:.2%} leak 300 others {dict(found.leak_rules)}; ")
    print(f"{found.counts['near_duplicate'] / n:.2%} are near duplicates {dict(found.near_rules)}")


def recall(pairs: list[tuple[str, str]]) -> tuple[float, float]:
    """Return the share of copies found beside their originals, and with the originals held out."""
    originals, changed = ([text for text, _ in pairs], [text for _, text in pairs])
    with TemporaryDirectory() as home:
        cluster = audit(seal(home, originals + changed), [], Silent()).cluster
        leaks = audit(seal(home, changed), [seal(home, originals)], Silent()).has("leak")
    n = len(pairs)
    return float(np.mean(cluster[:n] == cluster[n:])), float(np.mean(leaks))


def seal(home: str, rows: list[str]) -> Corpus:
    sealing = (Sentence(id=sentence_id(text), tokens=tokenize(text), text=text) for text in rows)
    return Library(Path(home)).seal(sealing, name=f"rows {len(rows)}", origin={})


def ours(corpus: Corpus, pairs: list[tuple[int, int]]) -> tuple[float, float, str]:
    begin = time.process_time()
    found = audit(corpus, [], Silent())
    seconds = time.process_time() - begin
    recall = np.mean([found.cluster[a] == found.cluster[b] for a, b in pairs])
    return seconds, float(recall), f"{found.counts['exact_duplicate']} exact, {found.counts['near_duplicate']} near"


def datasketch(corpus: Corpus, pairs: list[tuple[int, int]], bands: tuple[int, int]) -> tuple[float, float, str]:
    """Fold, make 5-grams, call MinHash.update_batch, insert and query, as datasketch's guide does."""
    from datasketch import MinHash, MinHashLSH

    begin = time.process_time()
    n_hashes = bands[0] * bands[1]
    index = MinHashLSH(num_perm=n_hashes, params=bands)
    meets: dict[int, list[str]] = {}
    for row, text in enumerate(corpus.column("text").to_pylist()):
        if not (members := shingles(text)):
            continue
        sketch = MinHash(num_perm=n_hashes)
        sketch.update_batch([member.encode() for member in members])
        meets[row] = index.query(sketch)
        index.insert(str(row), sketch, check_duplication=False)
    seconds = time.process_time() - begin
    recall = np.mean([str(min(pair)) in meets[max(pair)] for pair in pairs])
    return seconds, float(recall), f"{sum(map(bool, meets.values()))} rows with a candidate, not verified"


def show(name: str, n: int, n_pairs: int, result: tuple[float, float, str]) -> None:
    seconds, recall, found = result
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name:28} {n:9} {seconds:8.1f} {n / seconds:8.0f} {recall:7.4f} {n_pairs:6} {peak:8}  {found}", flush=True)


def main() -> None:
    if sys.argv[1:] == ["copies"]:
        return copies()
    few, *many = [int(argument) for argument in sys.argv[1:]] or [50_000, 300_000, 1_000_000]
    print(f"{'method':28} {'rows':>9} {'CPU s':>8} {'rows/s':>8} {'recall':>7} {'of':>6} {'peak MB':>8}  found")
    with TemporaryDirectory() as home:
        for n in (few, *many):
            rows, pairs = planted(n)
            corpus = seal(home, rows)
            del rows
            show("winnow, exact join", n, len(pairs), ours(corpus, pairs))
            for bands in ((14, 8), (20, 6)) if n == few else ():
                name = "datasketch, {} x {} hashes".format(*bands)
                show(name, n, len(pairs), datasketch(corpus, pairs, bands))


if __name__ == "__main__":
    main()
