"""What a finished `difficulty` run says: whether labels teach names or contexts, mention by mention."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.bias.plot import BIN_LOOKS, CeimPanel, ceim_bars
from core.bias.result import BAND, BINS, Bin, Mention, read_mentions
from core.bias.result import DifficultyResult as DifficultyResult
from core.bias.result import mentions_file as mentions_path
from core.corpora.corpus import Corpus
from core.corpora.writers import harmless
from core.projects.audit import exporting
from core.projects.home import kept_per_home, library, store
from core.results import FloatArray, IntArray
from core.runs.result import read
from core.shown import count

FEW = 20  # mentions of a type; with fewer its numbers are hardly more than chance
MOST_DRAWN = 10_000  # points of the scatter; what is drawn around is counted on all
MOST_PANELS = 24  # types with a histogram of their own, the frequent ones
_COLUMNS = (
    "number",
    "sentence",
    "start",
    "end",
    "mention",
    "type",
    "pvi_entity",
    "pvi_context",
    "ceim",
    "bin",
    "text",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """A finished `difficulty` run, read. Arrays `(n,)`, one entry a mention; a mention's number is its place here.

    few: types with too few mentions to be judged: under `FEW`, or fewer than there are folds.
    """

    run: str
    corpus: Corpus
    mentions: Sequence[Mention]
    types: npt.NDArray[np.object_]
    bins: npt.NDArray[np.object_]
    entity: FloatArray
    context: FloatArray
    ceim: FloatArray
    bars: IntArray
    few: frozenset[str]

    def __len__(self) -> int:
        return len(self.mentions)

    def counts(self) -> dict[str, int]:
        """{type: mentions}, frequent ones first."""
        names, counts = np.unique(self.types.astype(str), return_counts=True)
        return {str(names[i]): int(counts[i]) for i in np.argsort(-counts, kind="stable").tolist()}


@kept_per_home(4)
def measured(run_id: str) -> Measured:
    """A finished `difficulty` run, read once. Where its corpus was removed, its numbers stay and its text raises."""
    run = store().get(run_id)
    rows = read_mentions(mentions_path(run))
    ceim = np.array([mention.ceim for mention in rows])
    # With fewer mentions than folds, some fold has none of the type.
    enough = max(FEW, 1 + max(mention.fold for mention in rows))
    counts = Counter(mention.type for mention in rows)
    return Measured(
        run=run_id,
        corpus=library().recall(run.manifest.inputs["train"]),
        mentions=rows,
        types=np.array([mention.type for mention in rows], dtype=object),
        bins=np.array([mention.bin for mention in rows], dtype=object),
        entity=np.array([mention.pvi_entity for mention in rows]),
        context=np.array([mention.pvi_context for mention in rows]),
        ceim=ceim,
        bars=ceim_bars(ceim, BAND),
        few=frozenset(kind for kind, n in counts.items() if n < enough),
    )


def result(run_id: str) -> DifficultyResult:
    """A finished `difficulty` run's result. Errors: RunError."""
    return read(store().get(run_id), DifficultyResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinRow:
    """A bin of CEIM. name: in words. share: of all mentions. entity, context: mean PVI, bits; None in an empty bin."""

    bin: Bin
    name: str
    mentions: int
    share: float
    entity: float | None
    context: float | None


def bin_rows(run_id: str) -> list[BinRow]:
    """One row a bin (Ma et al. 2023, Table 1)."""
    difficulty = measured(run_id)
    rows = []
    for kind in BINS:
        mask = difficulty.bins == kind
        rows.append(
            BinRow(
                bin=kind,
                name=BIN_LOOKS[kind][0],
                mentions=int(mask.sum()),
                share=float(mask.mean()),
                entity=float(difficulty.entity[mask].mean()) if mask.any() else None,
                context=float(difficulty.context[mask].mean()) if mask.any() else None,
            )
        )
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRow:
    """A type of entity. few: too few mentions to judge. entity, context, ceim: means, bits. low, high: shares of its
    mentions in these bins of CEIM."""

    type: str
    mentions: int
    few: bool
    entity: float
    context: float
    ceim: float
    low: float
    high: float


def type_rows(run_id: str) -> list[TypeRow]:
    """One row a type, frequent ones first."""
    difficulty = measured(run_id)
    rows = []
    for name, n in difficulty.counts().items():
        mask = difficulty.types == name
        rows.append(
            TypeRow(
                type=name,
                mentions=n,
                few=name in difficulty.few,
                entity=float(difficulty.entity[mask].mean()),
                context=float(difficulty.context[mask].mean()),
                ceim=float(difficulty.ceim[mask].mean()),
                low=float((difficulty.bins[mask] == "low").mean()),
                high=float((difficulty.bins[mask] == "high").mean()),
            )
        )
    return rows


def panels(run_id: str, by_type: bool) -> list[CeimPanel]:
    """One panel of all mentions, or one a type, the `MOST_PANELS` frequent ones."""
    difficulty = measured(run_id)
    if not by_type:
        return [CeimPanel(name="all mentions", bars=difficulty.bars, bins=difficulty.bins.tolist())]
    return [
        CeimPanel(
            name=f"{name}: {count(n, 'mention')}",
            bars=difficulty.bars[difficulty.types == name],
            bins=difficulty.bins[difficulty.types == name].tolist(),
            weak="too few to judge" if name in difficulty.few else "",
        )
        for name, n in list(difficulty.counts().items())[:MOST_PANELS]
    ]


def in_bar(run_id: str, bar: int, kind: str = "") -> IntArray:
    """`(k,)` numbers of the mentions in a bar of the histogram, of one type or (kind "") of all; extreme first."""
    difficulty = measured(run_id)
    mask = difficulty.bars == bar
    return _farthest(difficulty, np.flatnonzero(mask & (difficulty.types == kind) if kind else mask))


def in_box(run_id: str, context: tuple[float, float], entity: tuple[float, float]) -> IntArray:
    """`(k,)` numbers of the mentions with both PVI in these spans, drawn or not; those with the largest CEIM first."""
    difficulty = measured(run_id)
    (x0, x1), (y0, y1) = sorted(context), sorted(entity)
    inside = (
        (difficulty.context >= x0) & (difficulty.context <= x1) & (difficulty.entity >= y0) & (difficulty.entity <= y1)
    )
    return _farthest(difficulty, np.flatnonzero(inside))


def _farthest(difficulty: Measured, numbers: IntArray) -> IntArray:
    return numbers[np.argsort(-np.abs(difficulty.ceim[numbers]), kind="stable")]


def drawn(run_id: str, seed: int = 0) -> IntArray:
    """`(m,)` numbers of the mentions that a scatter draws: all, or a sample of `MOST_DRAWN`."""
    n = len(measured(run_id))
    if n <= MOST_DRAWN:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, MOST_DRAWN, replace=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionRow:
    """A mention by its number, with its sentence; see `difficulty.mentions.Mention`. mention: its words. place:
    file and page, or ""."""

    number: int
    sentence: str
    start: int
    end: int
    mention: str
    type: str
    pvi_entity: float
    pvi_context: float
    ceim: float
    bin: Bin
    text: str
    tokens: Sequence[str]
    place: str


def mention_rows(run_id: str, numbers: Sequence[int] | IntArray) -> list[MentionRow]:
    """Mentions with their sentences, in the order of `numbers`."""
    difficulty = measured(run_id)
    picked = [difficulty.mentions[number] for number in numbers]
    sentences = difficulty.corpus.take([mention.row for mention in picked])
    return [
        MentionRow(
            number=number,
            sentence=mention.sentence,
            start=mention.start,
            end=mention.end,
            mention=mention.surface,
            type=mention.type,
            pvi_entity=mention.pvi_entity,
            pvi_context=mention.pvi_context,
            ceim=mention.ceim,
            bin=mention.bin,
            text=sentence.text,
            tokens=sentence.tokens,
            place=sentence.place,
        )
        for number, mention, sentence in zip(map(int, numbers), picked, sentences, strict=True)
    ]


@exporting
def mentions_csv(run_id: str, numbers: IntArray) -> bytes:
    """The same for a spreadsheet, with nothing in it that one would compute."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for row in mention_rows(run_id, numbers):
        rows.writerow([harmless(getattr(row, name)) for name in _COLUMNS])
    return out.getvalue().encode("utf-8-sig")


def mentions_file(run_id: str) -> Path:
    """All mentions of a finished `difficulty` run: Parquet."""
    return mentions_path(store().get(run_id))
