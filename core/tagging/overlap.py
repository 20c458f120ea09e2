"""Labelled test text that is trained on: training sentences that stand in dev or test too (SOURCES.md, Leaks)."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.corpora import hygiene
from core.corpora.corpus import Corpus
from core.kind import Job
from core.reporter import Silent
from core.results import BoolArray
from core.tagging.evaluations import TrainInTest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlap:
    """Sentences that stand on both sides.

    train: training sentences that stand in a split. seen: of each split, `(n,)` whether its sentence stands in the
    training part.
    """

    train: TrainInTest
    seen: Sequence[BoolArray]


def overlap(train: Corpus, splits: Sequence[Corpus], job: Job) -> Overlap:
    """Look for the sentences of `train` in `splits`, exact and near as in any leak, and note how many there are.

    About a second for each 10,000 sentences of all.
    """
    job.context.stage("looking for training sentences that are tested on")
    flags = hygiene.audit(train, splits, Silent())
    exact = flags.leak_rules["exact"]
    both = TrainInTest(exact=exact, near=flags.counts["leak"] - exact)
    seen = [hygiene.audit(split, [train], Silent()).has("leak") for split in splits]
    if both:
        job.context.note(
            f"{both.words} A tagger may know their entities by heart, so the score is given without them too."
        )
    return Overlap(train=both, seen=seen)
