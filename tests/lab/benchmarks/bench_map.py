"""Time the map: 20,000 sentences in a cold process; lasso, search and the page's functions over a million rows.

    python tests/lab/benchmarks/bench_map.py [rows]

Goals: under 20 s from cold on two cores, under 1 s per lasso, under 0.3 s per search, under 0.5 s per page.
CPU seconds are printed beside wall seconds, because other processes on the machine lengthen only the latter.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from core.corpora.columns import matches, stored  # noqa: E402
from core.corpora.hygiene import Audit  # noqa: E402
from core.corpora.library import Library  # noqa: E402
from core.explore.distinctive_words import count_words  # noqa: E402
from core.explore.result import MapView  # noqa: E402
from core.results import Scores  # noqa: E402
from core.selection.near import cosines  # noqa: E402
from core.selection.result import Scored  # noqa: E402
from core.text.sentence import Sentence, sentence_id  # noqa: E402

COLD = """
import time; begun = time.perf_counter()
import sys; sys.path.insert(0, {root!r})
import numpy as np
from core.explore import projection
vectors = np.load({path!r})
points = projection.Pca.fit(vectors)(vectors)
projection.fit(points)
print(time.perf_counter() - begun, time.process_time())
"""


def cold(n: int = 20_000) -> None:
    """Time a new process that has the embeddings already: PCA, neighbours, UMAP.

    The first process finds nothing compiled, as after an installation. The second finds the cache of the first.
    """
    lots = np.random.default_rng(0)
    topics = lots.normal(size=(40, 384))
    vectors = topics[lots.integers(0, 40, n)] + lots.normal(size=(n, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        np.save(path, vectors.astype(np.float16))
        for before in ("nothing compiled yet", "compiled before"):
            command = [sys.executable, "-c", COLD.format(root=str(ROOT), path=str(path))]
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            wall, cpu = map(float, done.stdout.split())
            print(f"{n:,} rows, a cold process, {before}: {wall:.1f} s ({cpu:.1f} CPU)   goal 20 s on two free cores")


def timed(name: str, function: Callable[[], Any], goal: float) -> None:
    wall, cpu = [], []
    for _ in range(3):
        a, b = time.perf_counter(), time.process_time()
        function()
        wall.append(time.perf_counter() - a)
        cpu.append(time.process_time() - b)
    print(f"{name:<58} {sorted(wall)[1]:6.3f} s ({sorted(cpu)[1]:.3f} CPU)   goal {goal:g} s")


def world(home: Path, n: int) -> tuple[MapView, Scored]:
    """Return a map and scores of a sealed D_C of `n` sentences of made-up words."""
    lots = np.random.default_rng(0)
    words = ["".join(letters) for letters in lots.choice(list("aeioubcdlmnprst"), (20_000, 6))]

    def sentences(size: int) -> Any:
        for row in range(size):
            drawn = (lots.zipf(1.3, 16) % len(words)).tolist()
            text = " ".join([words[i] for i in drawn]) + f" {row}"
            yield Sentence(id=sentence_id(text), tokens=tuple(text.split()), text=text)

    library = Library(home)
    domain, task = (library.seal(sentences(k), name=name, origin={}) for k, name in ((n, "domain"), (2000, "task")))
    total = n + len(task)
    found = MapView(
        run_id="map",
        selection="select",
        task=task,
        domain=domain,
        xy=lots.normal(size=(2, total)).astype(np.float32),
        rows=np.concatenate([np.arange(len(task)), np.arange(n)]),
        n_task=len(task),
        fitted=np.arange(total) % 50 == 0,
        cluster=np.zeros(total, dtype=np.int16),
        clusters=[],
        seed=0,
        embedded={},
    )
    values = lots.normal(size=n)
    scored = Scored(
        domain=domain,
        scores=Scores(name="s", unit="u", prefer="high", values=values, corpus=domain.fingerprint),
        order=np.argsort(-values),
        audit=Audit(corpus="", mask=np.zeros(n, dtype=np.uint8), cluster=np.arange(n), leak_rules={}, near_rules={}),
        lengths=domain.lengths(),
    )
    return found, scored


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    cold()
    with tempfile.TemporaryDirectory() as folder:
        found, scored = world(Path(folder), n)
        angles = np.linspace(0, 2 * np.pi, 300, endpoint=False)
        radius = 1.5 + 0.3 * np.random.default_rng(1).random(300)
        polygon = list(zip(radius * np.cos(angles), radius * np.sin(angles), strict=True))
        begun = time.perf_counter()
        texts = stored(found.domain, "text")
        print(f"reading the text of {n:,} rows, once: {time.perf_counter() - begun:.2f} s")
        kinds = found.classes(scored.order[: n // 10])
        points = found.lasso(polygon)
        timed(f"lasso of 300 corners, {len(points):,} of {len(found):,} rows inside", lambda: found.lasso(polygon), 1)
        timed("search, a common substring", lambda: matches(texts, "TA", "substring"), 0.3)
        timed("search, a rare substring", lambda: matches(texts, " 123456", "substring"), 0.3)
        timed("search, a word that no sentence contains", lambda: matches(texts, "zzzz", "words"), 0.3)
        timed("search, a letter that all sentences contain, as a word", lambda: matches(texts, "a", "words"), 0.3)
        common = [word for word, _ in count_words(texts.slice(0, 1000).to_pylist()).most_common(3)]
        for words in (common[:1], common[:2], common):
            query = " ".join(words)
            timed(f"search, the {len(words)} commonest words", partial(matches, texts, query, "words"), 0.3)
        timed("search with points on the map", lambda: found.search(" 99", "substring"), 0.3)
        timed("the same, the commonest word", lambda: found.search(common[0], "words"), 0.3)
        timed("classes and counts of all points", lambda: found.classes(scored.order[: n // 10]), 0.5)
        timed("20,000 points to draw", lambda: found.draw(kinds, 20_000), 0.5)
        drawn = found.draw(kinds, 20_000)
        timed("their texts for hovering", lambda: found.texts(drawn), 0.5)
        timed("a page of 50 rows of the lasso", lambda: found.table(points[:50], kinds, scored), 0.5)
        timed("words over-represented in the lasso", lambda: found.telling(points, 30), 5)
        task = np.random.default_rng(2).normal(size=(20_000, 384)).astype(np.float16)
        timed("nearest of 20,000 sentences of T_C", lambda: cosines(task, task[:1]), 0.5)


if __name__ == "__main__":
    main()
