"""What a rebuild would come to, before it is run: the method itself says, on sentences that are thrown away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.bias.rebuild import METHODS, RebuildConfig, check_pools, measures, pools_of, rebuild, sizes
from core.bias.rebuildable import held_out, refuse_tests
from core.bias.result import BINS, Mention
from core.bias.training_sentences import Rebuilt, Training
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError
from core.runs.store import RunStore
from core.tagging.scores import labelled

__all__ = ["Preview", "Training", "preview", "training_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Preview of what a rebuild would draw from, and how much it would change.

    pools, reached: as the result's. of: mentions of the training set; measured: of these. wanted: to be changed; able:
    how many would be, by a method that changes mentions by their measurement. bins: {CEIM bin: sentences with such a
    mention}. low, drawn: of a set drawn by CEIM, its low-CEIM mentions and all its measured mentions. empty: why it
    cannot be run, or "".
    """

    pools: Mapping[str, Mapping[str, int]]
    reached: str
    of: int
    measured: int
    wanted: int
    able: int
    bins: Mapping[str, int]
    low: int
    drawn: int
    empty: str


def training_of(train: Corpus, mentions: Sequence[Mention], holdout: Sequence[Corpus]) -> Training:
    """The sentences of `train` under a measurement. Errors: CorpusError where a held-out split is among them."""
    sentences = labelled(train)
    return Training.of(sentences, measures(mentions), held_out(train, sentences, holdout, note=lambda _: None))


def preview(
    config: RebuildConfig, train: Corpus, mentions: Sequence[Mention], training: Training, store: RunStore
) -> Preview:
    """Preview a rebuild. mentions: as a finished `difficulty` run measured them; training: in its sentences."""
    rungs = pools_of(config, training)
    outcome, empty = Rebuilt(sentences=[], edits=[]), ""
    try:
        refuse_tests(train, store)
        check_pools(config.method, rungs, train.name)
        if config.method in (*METHODS, "low-share"):
            outcome = rebuild(config, training, rungs)
    except (ConfigError, CorpusError) as error:
        empty = str(error)
    return Preview(
        pools=sizes(rungs, outcome),
        reached=outcome.reached,
        of=len(training),
        measured=len(mentions),
        wanted=outcome.wanted,
        able=len(outcome.edits),
        bins={name: len({mention.row for mention in mentions if mention.bin == name}) for name in BINS},
        low=outcome.low,
        drawn=outcome.measured,
        empty=empty,
    )
