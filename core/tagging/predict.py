"""`tag`, `predict` and `evaluate`: apply a saved tagger to other sentences."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from core.config import Config, option
from core.corpora.corpus import Corpus
from core.errors import ModelError
from core.kind import About, Job, Kind
from core.models.fingerprint import fingerprint
from core.paths import user_path
from core.reporter import Reporter
from core.runs import chunks
from core.runs.chunks import Opened
from core.runs.spread import spread
from core.runs.store import is_run_id
from core.selection.evidence import flat
from core.shown import count
from core.tagging import evaluations, predictions
from core.tagging.evaluations import EvaluateResult, labelled, name_of_test_set, over_seeds, score_split, types_of
from core.tagging.finetune import model_folder
from core.tagging.predictions import PredictResult, TagResult
from core.text.cut import over_tokens, recut
from core.text.sentence import Prediction, Sentence, in_context
from core.training.on_device import on_device, worker_device

if TYPE_CHECKING:
    from core.models.tagger import Tagger

CHUNK = 8192  # number of sentences per work item


class TagConfig(Config):
    """Options of `tag`: the corpus, and the tagger."""

    corpus: str = option(..., "The corpus to tag.", corpus=True)
    model: str = option(..., "Folder of a saved tagger.")
    constrained: bool = option(True, "Allow only valid BIOES tag sequences, however the tagger was trained.")
    weights: str = option("", "Hash of the tagger, so that a changed tagger makes a new run.", hidden=True)

    def settled(self) -> Self:
        """Return these options with the tagger's hash. Errors: ModelError if the tagger is not on this machine."""
        return self.model_copy(update={"weights": fingerprint(self.model)})


class ModelConfig(Config):
    """Options of the tagger, shared by `predict` and `evaluate`."""

    model: str = option(..., "Folder of a tagger, or the id of a finished finetune run.")
    constrained: bool = option(True, "Allow only valid BIOES tag sequences, however the tagger was trained.")
    weights: str = option("", "Hash of the tagger.", hidden=True)

    def settled(self) -> Self:
        """Return these options with the tagger's hash, unless the tagger is given as the id of a run.

        Errors: ModelError if the tagger is missing.
        """
        if is_run_id(self.model):
            return self
        try:
            return self.model_copy(update={"weights": fingerprint(self.model)})
        except ModelError as error:
            if user_path(os.path.expanduser(self.model)).is_dir():
                raise
            raise ModelError(
                f"model: {self.model} is neither a tagger's folder nor the id of a run; list the runs with "
                "`python -m core runs list`, or train a tagger with `python -m core finetune`."
            ) from error


class PredictConfig(ModelConfig):
    """Options of `predict`: the corpus, and the minimum confidence."""

    min_confidence: float = option(
        0.0,
        "Leave out entities with a lower confidence. `evaluate` shows the effect on precision and recall.",
        ge=0,
        lt=1,
    )
    corpus: str = option(..., "The sentences to tag.", corpus=True)


class EvaluateConfig(ModelConfig):
    """Options of `evaluate`: the tagger, and the test set."""

    test: str = option(..., "Labelled sentences.", corpus=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Neighbourhood:
    """Consecutive sentences of a corpus: some to tag, and their neighbours, which are only context.

    first: row of the first sentence. start, n: row of the first sentence to tag, and number of sentences to tag.
    """

    sentences: Sequence[Sentence]
    first: int
    start: int
    n: int


@dataclass(frozen=True, kw_only=True)
class TagWork:
    """Work, shared by several workers, that finds the entities in a corpus.

    model: the tagger's folder, at the same path for every worker.
    """

    corpus: Corpus
    model: str
    constrained: bool
    card: bool = True

    @property
    def stage(self) -> str:
        return f"finding entities in {self.corpus.name}"

    def read(self, start: int, stop: int, about: chunks.About) -> _Neighbourhood:
        # Also read neighbours of the first and last sentence. A sentence has at least one piece, so `context` sentences
        # always contain at least `context` pieces.
        first, last = max(start - about["context"], 0), min(stop + about["context"], len(self.corpus))
        kept = list(chain.from_iterable(self.corpus.batches(first, last)))
        return _Neighbourhood(sentences=kept, first=first, start=start, n=stop - start)

    def open(self, report: Reporter) -> Opened:
        from core.models.taggers import load_tagger

        report.stage("loading the tagger")
        tagger = load_tagger(Path(self.model))
        tagger.crf.constrained = self.constrained
        # Labelled corpora and files that were already tokenised keep their tokens.
        raw = not self.corpus.labelled and self.corpus.tokens == "words"

        def compute(rows: _Neighbourhood, report: Reporter) -> Any:
            own = slice(rows.start - rows.first, rows.start - rows.first + rows.n)
            predictions = predicted(tagger, rows.sentences, own, report, raw=raw)
            return flat(predictions, tagger.types, rows.start)

        return Opened(compute=compute, about={"types": list(tagger.types), "context": tagger.context_pieces})

    def device(self) -> tuple[str, str]:
        return worker_device()


def predicted(
    tagger: "Tagger", kept: Sequence[Sentence], own: slice, report: Reporter, *, raw: bool
) -> Sequence[Prediction]:
    """Return the entities of the sentences `kept[own]`, as positions in their tokens. Other sentences are context.

    raw: True if the user's text was not tokenised. For the tagger, it is then cut into tokens by the rule of the
    training set.
    """
    cut = tagger.cut if raw else None
    # A word has at least one piece, so `context_pieces` words of context are enough.
    read = in_context([recut(one, cut) for one in kept] if cut else kept, tagger.context_pieces)[own]
    predictions = tagger.predict(read, report)
    if not cut:
        return predictions
    triples = zip(predictions, read, kept[own], strict=True)
    return [over_tokens(each, of.tokens, one.tokens) for each, of, one in triples]


def tag(config: TagConfig, job: Job) -> TagResult:
    """Find the entities of every sentence of a corpus. Artifacts: see `predictions`.

    Raw text is cut into tokens by the rule of the tagger's training set. The entities refer to the corpus's own tokens.
    """
    corpus = job.corpus(config.corpus)
    work = TagWork(corpus=corpus, model=config.model, constrained=config.constrained)
    device = partial(on_device, job, alone=False)
    paths, about = spread(job.context, len(corpus), CHUNK, work, "tag", device=device)
    records = np.concatenate([np.load(path) for path in paths])
    predictions.write_spans(job.context.run, records)
    for path in paths:
        path.unlink()
    return TagResult(types=about["types"], sentences=len(corpus), entities=len(records))


def predict(config: PredictConfig, job: Job) -> PredictResult:
    """Tag a corpus in a `tag` run, and write the entities to files. Artifacts: see `predictions`."""
    corpus = job.corpus(config.corpus)
    folder = model_folder(config.model, job)
    run = job.child("tag", corpus=corpus.fingerprint, model=folder, constrained=config.constrained)
    tagged = predictions.read_spans(run).surer_than(config.min_confidence)
    job.context.stage(f"writing the entities found in {corpus.name}")
    sentences = chain.from_iterable(corpus.batches())
    predictions.write(
        job.context.run,
        (
            (replace(sentence, entities=tagged.entities(row)), tagged.part(row, row + 1).records["confidence"].tolist())
            for row, sentence in enumerate(sentences)
        ),
    )
    totals = zip(tagged.types, np.bincount(tagged.records["type"], minlength=len(tagged.types)).tolist(), strict=True)
    types = dict(sorted(((name, n) for name, n in totals if n), key=lambda pair: -pair[1]))
    return PredictResult(sentences=len(corpus), entities=sum(types.values()), types=types)


def evaluate(config: EvaluateConfig, job: Job) -> EvaluateResult:
    """Score a tagger on a test set. Artifacts: see `evaluations`."""
    from core.models.taggers import load_tagger

    gold = labelled(job.corpus(config.test))
    with on_device(job, alone=False):
        job.context.stage("loading the tagger")
        tagger = load_tagger(Path(model_folder(config.model, job)))
        tagger.crf.constrained = config.constrained
        gold = in_context(gold, tagger.context_pieces)
        types = sorted({*tagger.types, *types_of(gold)})
        result = score_split(job, tagger, gold, types, name_of_test_set(0), seen=None)
    return EvaluateResult(
        model=config.model,
        test=over_seeds([result], [evaluations.read_table(job.context.run, name_of_test_set(0))]),
        abstaining=evaluations.read_abstaining(job.context.run, name_of_test_set(0)),
    )


def found_in_words(result: TagResult | PredictResult, _: About) -> str:
    """Describe the result of a `tag` or `predict` run: number of entities and of sentences."""
    return f"{count(result.entities, 'entity', 'entities')} in {count(result.sentences, 'sentence')}"


TAG = Kind(
    "tag",
    TagConfig,
    tag,
    TagResult,
    title=lambda run: f"Find entities in {run.corpus(run.config['corpus'])}",
    outcome=found_in_words,
    page="Explore",
    command=None,
)
EVALUATE = Kind(
    "evaluate",
    EvaluateConfig,
    evaluate,
    EvaluateResult,
    title=lambda run: f"Test {run.tagger(run.config['model'])} on {run.corpus(run.config['test'])}",
    outcome=lambda result, _: f"Score (F1) {result.test.mean:.1f}",
    page="Results",
    here=True,
)
PREDICT = Kind(
    "predict",
    PredictConfig,
    predict,
    PredictResult,
    title=lambda run: f"Find entities with {run.tagger(run.config['model'])}",
    outcome=found_in_words,
    page="Results",
    command=("predict", "--output", "tagged.jsonl"),
    positional=("corpus",),
)
