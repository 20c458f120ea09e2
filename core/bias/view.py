"""Queries of the page Bias and its commands: measurements, new training and test sets, and F1 of taggers on them."""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from core.bias import rebuild, result
from core.bias.plot import CeimPanel, TaggerPoint, best_of_both, ceim_bars
from core.bias.result import BAND, FEW, Diff, DifficultyResult, Mention, RebuildResult, RobustnessResult
from core.bias.robustness import FINDERS, FrontierRow, known_train
from core.bias.robustness import frontier as frontier_of
from core.bias.training_sentences import Training, measures
from core.corpora.corpus import Corpus
from core.corpora.writers import harmless
from core.importing.view import roles
from core.projects.audit import exporting
from core.projects.home import kept_per_home, library, store
from core.projects.titles import run_titles
from core.results import FloatArray, IntArray
from core.runs.result import read
from core.shown import count
from core.tagging.evaluations import labelled

# Maximum number of points in the scatter plot.
MOST_DRAWN = 10_000
# Maximum number of histograms by type. The most frequent types get one.
MOST_PANELS = 24
_MENTION = ("number", "sentence", "start", "end", "mention", "type", "pvi_entity", "pvi_context", "ceim", "bin", "text")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Mentions of a finished `difficulty` run. Arrays have shape `(n,)`; the number of a mention is its index.

    weak: {type: reason}, for the types whose means are too uncertain. They have fewer than `FEW` mentions, fewer
    mentions than folds, or mentions in only one fold.
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
    weak: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.mentions)

    def counts(self) -> dict[str, int]:
        """Return {type: number of mentions}, frequent types first."""
        names, counts = np.unique(self.types.astype(str), return_counts=True)
        return {str(names[i]): int(counts[i]) for i in np.argsort(-counts, kind="stable").tolist()}


@kept_per_home(4)
def measured(run_id: str) -> Measured:
    """Return the mentions of a finished `difficulty` run, cached.

    If its corpus was removed, the measurements can still be read. Reading the text of a sentence then raises an error.
    """
    run = store().get(run_id)
    rows = _mentions(run_id)
    ceim = np.array([mention.ceim for mention in rows])
    # If a type has fewer mentions than there are folds, some fold has no mention of the type.
    enough = max(FEW, 1 + max(mention.fold for mention in rows))
    counts = Counter(mention.type for mention in rows)
    # The models that predict a fold have not seen a type that is only in this fold.
    spread = Counter(kind for kind, _ in {(mention.type, mention.fold) for mention in rows})
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
        weak={
            kind: "too few to judge" if n < enough else "all in one fold, so its models never saw it"
            for kind, n in counts.items()
            if n < enough or spread[kind] == 1 < len(counts)
        },
    )


@kept_per_home(4)
def _mentions(run_id: str) -> Sequence[Mention]:
    return result.read_mentions(result.mentions_file(store().get(run_id)))


def difficulty_result(run_id: str) -> DifficultyResult:
    """Return the result of a finished `difficulty` run. Errors: RunError."""
    return read(store().get(run_id), DifficultyResult)


def panels(run_id: str, by_type: bool) -> list[CeimPanel]:
    """Return one histogram panel of all mentions, or one for each of the `MOST_PANELS` most frequent types."""
    difficulty = measured(run_id)
    if not by_type:
        return [CeimPanel(name="all mentions", bars=difficulty.bars, bins=difficulty.bins.tolist())]
    return [
        CeimPanel(
            name=f"{name}: {count(n, 'mention')}",
            bars=difficulty.bars[difficulty.types == name],
            bins=difficulty.bins[difficulty.types == name].tolist(),
            weak=difficulty.weak.get(name, ""),
        )
        for name, n in list(difficulty.counts().items())[:MOST_PANELS]
    ]


def in_bar(run_id: str, bar: int, kind: str = "") -> IntArray:
    """Return the numbers `(k,)` of the mentions in a bar of the histogram, largest |CEIM| first.

    kind: entity type, "" for all types.
    """
    difficulty = measured(run_id)
    mask = difficulty.bars == bar
    return _extreme_first(difficulty, mask & (difficulty.types == kind) if kind else mask)


def in_box(run_id: str, context: tuple[float, float], entity: tuple[float, float]) -> IntArray:
    """Return the numbers `(k,)` of the mentions whose two PVIs are in these ranges, largest |CEIM| first."""
    difficulty = measured(run_id)
    (x0, x1), (y0, y1) = sorted(context), sorted(entity)
    inside_x = (difficulty.context >= x0) & (difficulty.context <= x1)
    return _extreme_first(difficulty, inside_x & (difficulty.entity >= y0) & (difficulty.entity <= y1))


def _extreme_first(difficulty: Measured, mask: npt.NDArray[np.bool_]) -> IntArray:
    numbers = np.flatnonzero(mask)
    return numbers[np.argsort(-np.abs(difficulty.ceim[numbers]), kind="stable")]


def drawn(run_id: str, seed: int = 0) -> IntArray:
    """Return the numbers `(m,)` of the mentions in the scatter plot: all, or a random sample of `MOST_DRAWN`."""
    n = len(measured(run_id))
    if n <= MOST_DRAWN:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, MOST_DRAWN, replace=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionRow(Mention):
    """A mention with its number and its sentence. place: file and page of the sentence, or ""."""

    number: int
    text: str
    tokens: Sequence[str]
    place: str


def mention_rows(run_id: str, numbers: Sequence[int] | IntArray) -> list[MentionRow]:
    """Return the mentions with these numbers and their sentences, in the order of `numbers`."""
    difficulty = measured(run_id)
    picked = [difficulty.mentions[number] for number in numbers]
    sentences = difficulty.corpus.take([mention.row for mention in picked])
    return [
        MentionRow(**asdict(mention), number=number, text=sentence.text, tokens=sentence.tokens, place=sentence.place)
        for number, mention, sentence in zip(map(int, numbers), picked, sentences, strict=True)
    ]


@exporting
def mentions_csv(run_id: str, numbers: IntArray) -> bytes:
    """Return the mentions with these numbers and their sentences, as CSV for a spreadsheet."""
    return _csv(_MENTION, ({**asdict(row), "mention": row.surface} for row in mention_rows(run_id, numbers)))


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> bytes:
    """Return CSV with a byte order mark for Excel. Cells that a spreadsheet would run as a formula are escaped."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([harmless(row[name]) for name in columns] for row in rows)
    return out.getvalue().encode("utf-8-sig")


def preview(options: Mapping[str, object]) -> rebuild.Preview:
    """Return the expected outcome of a rebuild. options: options of the `rebuild` run.

    Errors: ConfigError, CorpusError, RunError.
    """
    config = rebuild.RebuildConfig.parse(options)
    training = _training(config.train, config.difficulty, config.holdout)
    train = library().find(config.train)
    return rebuild.preview(config, train, _mentions(config.difficulty), training, store())


@kept_per_home(2)
def _training(train: str, run_id: str, holdout: tuple[str, ...]) -> Training:
    """Return the training sentences with their measurements. Cached, because each change in the form needs them."""
    corpus = library().find(train)
    sentences = labelled(corpus)
    held = rebuild.held_out(corpus, sentences, [library().find(name) for name in holdout], note=lambda _: None)
    return Training.of(sentences, measures(_mentions(run_id)), held)


def splits_of(train: str) -> tuple[list[str], str]:
    """Return the dev and test sets that belong to a training set, and how they were found (see `rebuild.splits_of`)."""
    return rebuild.splits_of(library().find(train), roles(), library(), store())


def new_set(run_id: str) -> str:
    """Return the fingerprint of the corpus that a finished `rebuild` or `robustness` run made."""
    run = store().get(run_id)
    return read(run, RebuildResult).corpus if run.manifest.kind == "rebuild" else read(run, RobustnessResult).corpus


def changed(run_id: str, start: int = 0, n: int = 20) -> list[Diff]:
    """Return `n` changed sentences of a finished `rebuild` or `robustness` run, from number `start` on."""
    run = store().get(run_id)
    before = library().find(run.manifest.inputs["train" if run.manifest.kind == "rebuild" else "test"])
    after = library().find(new_set(run_id))
    return result.diffs(result.read_edits(run), before, after, start, n, slots=result.read_slots(run))


def changed_sentences(run_id: str) -> int:
    """Return the number of sentences that a finished `rebuild` or `robustness` run changed or added."""
    return len({edit.row for edit in result.read_edits(store().get(run_id))})


def finders() -> dict[str, str]:
    """Return {run: title} of the finished runs whose predicted names a robustness set can use, newest first."""
    names = {corpus.fingerprint: corpus.name for corpus in library().list()}
    done = sorted(store().list(*FINDERS, state="succeeded"), key=lambda run: run.id, reverse=True)
    here = [run for run in done if run.manifest.inputs["corpus"] in names]
    return run_titles(here, lambda run: names[run.manifest.inputs["corpus"]])


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedAlike:
    """Finished `finetune` runs with the same test sets. tests: the original set first. runs: the newest first."""

    tests: tuple[str, ...]
    runs: tuple[str, ...]


def tested_alike() -> list[TestedAlike]:
    """Return groups of runs that have the same two or more test sets. The group of the newest run comes first.

    Runs whose test sets were removed are left out.
    """
    runs_by_tests: dict[tuple[str, ...], list[str]] = defaultdict(list)
    here = {corpus.fingerprint for corpus in library().list()}
    for run in store().list("finetune", state="succeeded"):
        tests = tuple(run.manifest.config["test"])
        if len(tests) > 1 and here.issuperset(tests):
            runs_by_tests[tests].append(run.id)
    return [TestedAlike(tests=tests, runs=tuple(runs)) for tests, runs in runs_by_tests.items()]


def frontier(runs: Sequence[str], train: str = "") -> list[FrontierRow]:
    """Return F1 of finished `finetune` runs on the original test set and the robustness sets. Errors: RunError."""
    return frontier_of([store().get(run) for run in runs], library(), train)


def standings(run_ids: Sequence[str]) -> list[FrontierRow]:
    """Return F1 of runs with the same test sets, as rows of `frontier`.

    One corpus decides which slots are ambiguous for all runs of the project with these test sets. The scores of a
    tagger therefore do not depend on which other taggers are shown.
    """
    tests = tuple(store().get(run_ids[0]).manifest.config["test"])
    alike = next((group.runs for group in tested_alike() if group.tests == tests), run_ids)
    rows = _standings(tuple(run_ids), known_train([store().get(run) for run in alike], library()).fingerprint)
    # The rows are cached, and a test set may have been renamed since.
    return [replace(row, name=library().find(row.test).name) for row in rows]


@kept_per_home(8)
def _standings(run_ids: tuple[str, ...], train: str) -> list[FrontierRow]:
    return frontier(run_ids, train)


def frontier_points(
    rows: Sequence[FrontierRow], test: str, names: Mapping[str, str], *, certain: bool
) -> list[TaggerPoint]:
    """Return the points of one robustness set for the figure, one point per tagger.

    rows: rows of `standings`. test: fingerprint of the robustness set. names: {run: name to show}. certain: True to
    leave out ambiguous slots.
    """
    f1s = {(row.run, row.test): row.certain_f1 if certain else row.micro_f1 for row in rows}
    plain = {row.run: f1s[row.run, row.test] for row in rows if row.kind == "test"}
    hard = {row.run: f1s[row.run, row.test] for row in rows if row.test == test}
    best = best_of_both(*(np.array([np.mean(side[run]) for run in hard]) for side in (plain, hard)))
    return [
        TaggerPoint(name=names[run], plain=plain[run], hard=hard[run], best=bool(ahead))
        for run, ahead in zip(hard, best, strict=True)
    ]
