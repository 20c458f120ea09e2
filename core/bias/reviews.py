"""Labels that neither their name nor their context speaks for, looked at one by one, and the corrected corpus."""

import csv
import io
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from core.bias import review_log as log
from core.bias.review_log import Action as Action
from core.bias.review_log import Reviews as Reviews
from core.bias.view import measured, mention_rows
from core.corpora.corpus import Corpus
from core.corpora.writers import harmless, write_conll
from core.errors import ConfigError
from core.projects.audit import exporting
from core.projects.home import home, library, store
from core.results import IntArray
from core.runs import journal
from core.stats.mistakes import KINDS as KINDS
from core.stats.mistakes import Kind as Kind
from core.stats.mistakes import Mistake as Mistake
from core.stats.mistakes import TypeMistakes as TypeMistakes
from core.stats.mistakes import by_type as by_type

_COLUMNS = (
    "time",
    "action",
    "sentence",
    "start",
    "end",
    "mention",
    "before",
    "after",
    "pvi_entity",
    "pvi_context",
    "text",
)
_DECIMALS = 6  # of PVI


def suspicious(run_id: str) -> IntArray:
    """`(k,)` numbers of the mentions that neither name nor context speaks for (no PVI above 0) and one speaks against.

    Worst first: by the larger PVI, then by their sum; mentions of types that are too few to be judged are last. A view
    that calibration found to tell nothing has a PVI of 0 but for rounding, which must not hide what the other one says.
    """
    difficulty = measured(run_id)
    entity, context = np.round(difficulty.entity, _DECIMALS), np.round(difficulty.context, _DECIMALS)
    best, both = np.maximum(entity, context), entity + context
    numbers = np.flatnonzero((best <= 0) & (both < 0))
    few = np.isin(difficulty.types[numbers].astype(str), list(difficulty.few))
    return numbers[np.lexsort((both[numbers], best[numbers], few))]


def read(run_id: str) -> Reviews:
    """The reviews of this run's labels: `history`, `latest` {mention: review}, `changes`."""
    return log.read(store().get(run_id).path)


def review(run_id: str, number: int, action: Action, type: str = "", *, seen: float | None = None) -> None:
    """Accept, fix (to `type`), remove or skip one label; kept at once.

    seen: the time of the review of it that was shown, 0: none was; None: whatever was said of it before.
    Errors: ConfigError for a mention or a type that there is not; Overtaken where it was reviewed since.
    """
    difficulty = measured(run_id)
    if not 0 <= number < len(difficulty):
        raise ConfigError(f"review: there is no mention {number}; give one of 0 to {len(difficulty) - 1}.")
    if action == "fix" and (type not in difficulty.corpus.types or type == difficulty.mentions[number].type):
        raise ConfigError(f"review: {type!r} is not another type of {difficulty.corpus.name}; choose one that it has.")
    with journal.changing(home()):
        journal.refuse_overtaken(read(run_id).latest.get(number), seen, "The label")
        log.append(store().get(run_id).path, action, number, type)


def undo(run_id: str, seen: float | None = None) -> None:
    """Take the last review back; nothing happens where there is none.

    seen: the time of the one that was shown as the last. Errors: Overtaken where another one is.
    """
    with journal.changing(home()):
        if history := read(run_id).history:
            journal.refuse_overtaken(history[-1], seen, "The last review")
            log.append(store().get(run_id).path, "undo")


@exporting
def export(run_id: str, path: Path) -> int:
    """Write the corpus with the reviewed labels as CoNLL (IOB2); how many sentences."""
    difficulty = measured(run_id)
    return write_conll(log.corrected(difficulty.corpus, difficulty.mentions, read(run_id).changes), path)


def seal(run_id: str) -> Corpus:
    """The corpus with the reviewed labels, ready to train on."""
    difficulty = measured(run_id)
    changes = read(run_id).changes
    name = f"{difficulty.corpus.name}, {len(changes)} label{'s' if len(changes) != 1 else ''} corrected"
    origin = {"run": run_id, "from": difficulty.corpus.fingerprint, "changed": len(changes)}
    rows = log.corrected(difficulty.corpus, difficulty.mentions, changes)
    return library().seal(rows, name=name, origin=origin, labelled=True)


@exporting
def review_log(run_id: str) -> bytes:
    """The reviews that count, oldest first, for a spreadsheet: what became of which label, and when (UTC)."""
    reviews = read(run_id)
    counting = [review for review in reviews.history if reviews.latest[review.mention] is review]
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_COLUMNS)
    mentions = mention_rows(run_id, [review.mention for review in counting])
    for review, mention in zip(counting, mentions, strict=True):
        after = {"fix": review.type, "remove": ""}.get(review.action, mention.type)
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(review.time))
        row = {**asdict(mention), "time": when, "action": review.action, "before": mention.type, "after": after}
        rows.writerow([harmless(row[name]) for name in _COLUMNS])
    return out.getvalue().encode("utf-8-sig")
