"""Queries of pages and commands about trainings and taggers: curves, estimates, models, names, entities found."""

import csv
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from core.bias.difficulty import DifficultyConfig
from core.corpora.corpus import Corpus
from core.corpora.readers import ReadReport, read
from core.corpora.writers import harmless, output_file
from core.encoders.vectors import ImportResult, imports
from core.errors import CorpusError, RunError, WinnowError
from core.experiment import result as leaderboard
from core.experiment.arms import NONE
from core.experiment.words import line_name, reads
from core.importing.add import AddConfig, reading
from core.kinds import KINDS
from core.pretraining.pretrain import PretrainConfig
from core.projects import labels, runs
from core.projects.audit import exporting
from core.projects.home import kept_per_home, library, store
from core.projects.titles import NO_PRETRAINING, tagger_name, text_name
from core.results import FloatArray, IntArray
from core.runs import result
from core.runs.curves import Curves, MetricName
from core.runs.store import Run, is_run_id
from core.selection import STRATEGIES
from core.shown import distinct
from core.shown_command import command
from core.stats.scoring import MICRO
from core.tagging import estimate as estimates
from core.tagging import evaluations, predictions, watched
from core.tagging import result as tagger_tables
from core.tagging.config import FinetuneConfig
from core.tagging.estimate import Preflight
from core.tagging.evaluations import FinetuneResult
from core.tagging.predictions import PredictResult, TagResult
from core.text.sentence import Sentence
from core.text.source import Places, Source
from core.text.words import token_places
from core.training import saved_models as models

WITHIN = "_within"  # suffix of the name of a score that was measured before the end of an epoch
TRAININGS = ("pretrain", "finetune", "experiment", "study")
# Batch size of the presets for small training sets, in sentences.
SMALLEST_BATCH = 16
# Kinds of run that train a model themselves; an experiment only starts such runs.
_TRAINING = ("pretrain", "finetune")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metric:
    """One curve of a training run.

    name: name of the value without entity type and seed, such as `dev_f1`. type: entity type, "" for all types. seed:
    None if the run trains only one seed. steps: number of optimizer steps or epochs, `(n,)`, ascending. values: `(n,)`.
    """

    name: str
    type: str
    seed: int | None
    steps: IntArray | FloatArray
    values: FloatArray


def curves(run_id: str) -> list[Metric]:
    """Return the curves of a training run, ordered by first point. Only events since the last call are read."""
    history = _history(run_id).read()
    return [_metric(name, curve.steps, curve.values) for name, curve in history.items()]


@kept_per_home(64)
def _history(run_id: str) -> Curves:
    return Curves(store().get(run_id))


def _metric(name: str, steps: list[int], values: list[float]) -> Metric:
    metric, type, seed = MetricName.parse(name)
    points = np.array(steps, np.int64), np.array(values, np.float64)
    return Metric(name=metric, type=type, seed=seed, steps=points[0], values=points[1])


def joined(metrics: Sequence[Metric]) -> list[Metric]:
    """Merge each curve of scores measured during epochs (`dev_f1_within`) into the curve for epoch ends (`dev_f1`)."""
    parts: dict[tuple[str, str, int | None], list[Metric]] = {}
    for metric in metrics:
        parts.setdefault((metric.name.removesuffix(WITHIN), metric.type, metric.seed), []).append(metric)
    curves = []
    for (name, _, _), found in parts.items():
        steps = np.concatenate([each.steps for each in found])
        order = np.argsort(steps)
        values = np.concatenate([each.values for each in found])
        curves.append(replace(found[0], name=name, steps=steps[order], values=values[order]))
    return curves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaggerCurve:
    """Dev F1 of one tagger during its training in an experiment.

    variant: name of the text that the tagger was pre-trained on. tagger: run and seed. f1: percent, `(n,)`. epochs:
    number of epochs trained when each score was measured, `(n,)`, ascending, with fractions.
    """

    variant: str
    tagger: str
    epochs: FloatArray
    f1: FloatArray


def tagger_curves(run_id: str) -> list[TaggerCurve]:
    """Return the curves of all taggers of an experiment so far, in the order in which they were trained."""
    found = []
    for run in trainings(run_id):
        metrics = [each for each in curves(run.id) if each.name.removesuffix(WITHIN) == "dev_f1" and not each.type]
        # Number of optimizer steps in one epoch, by seed.
        an_epoch = {each.seed: each.steps[0] for each in metrics if each.name == "dev_f1"}
        found += [
            TaggerCurve(
                variant=_variant(run),
                tagger=f"{run.id}, seed {metric.seed}",
                epochs=metric.steps / an_epoch[metric.seed],
                f1=metric.values,
            )
            for metric in joined(metrics)
            if metric.seed in an_epoch
        ]
    return found


def _variant(run: Run) -> str:
    """Name the text that a tagger was pre-trained on: strategy and budget of a selection, or else the corpus."""
    init = str(run.manifest.config["init"])
    if not is_run_id(init):
        return NO_PRETRAINING
    with suppress(RunError):
        return text_name(store().get(init).manifest.config["corpora"][-1])
    return "pre-trained"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSentence:
    """A dev sentence twice: with its gold entities, and with the entities found at the newest evaluation."""

    gold: Sentence
    found: Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedEpoch:
    """The dev sentences that the live page shows, tagged after `epoch` epochs of a seed."""

    seed: int
    epoch: float
    sentences: Sequence[WatchedSentence]


def watched_epoch(run_id: str) -> WatchedEpoch | None:
    """Return the dev sentences that the live page shows for a `finetune` run, with the entities found so far.

    Return None before the first evaluation, or if the dev set is missing.
    """
    with suppress(RunError, CorpusError):
        run = store().get(run_id)
        if run.manifest.kind == "finetune" and (now := watched.read(run)):
            by_id = _by_id(run.manifest.config["dev"], tuple(now.found))
            rows = [
                WatchedSentence(gold=by_id[id], found=replace(by_id[id], entities=found))
                for id, found in now.found.items()
                if id in by_id and all(entity.end <= len(by_id[id].tokens) for entity in found)
            ]
            return WatchedEpoch(seed=now.seed, epoch=now.epoch, sentences=rows)
    return None


@kept_per_home(8)
def _by_id(corpus: str, ids: tuple[str, ...]) -> dict[str, Sentence]:
    """Return {id: sentence} for these sentences of a corpus. Errors: CorpusError."""
    return {each.id: each for block in library().find(corpus).batches() for each in block if each.id in ids}


def trainings(run_id: str) -> list[Run]:
    """Return this run and its descendants, if they train a model themselves, in the order in which they were needed."""
    return list({run.id: run for run in _below(run_id)}.values())


def _below(run_id: str) -> Iterator[Run]:
    with suppress(RunError):  # The run may have been removed.
        run = store().get(run_id)
        if run.manifest.kind in _TRAINING:
            yield run
        for child in _history(run_id).children():
            yield from _below(child)


def preflight(kind: str, options: Mapping[str, object]) -> Preflight:
    """Estimate time, memory and disk space of a `pretrain` or `finetune` run. Errors: ConfigError, CorpusError."""
    config = KINDS[kind].config.parse(dict(options))
    assert isinstance(config, PretrainConfig | FinetuneConfig)
    return estimates.preflight(config, library(), store())


def difficulty_estimate(options: Mapping[str, object]) -> float | None:
    """Estimate the seconds of a `difficulty` run; None if no `calibrate` run timed its encoder on this machine."""
    config = DifficultyConfig.parse(dict(options))
    train = library().find(config.train)
    measured = estimates.Speeds(store()).of_classifiers(config.encoder, [train.fingerprint])
    if measured is None:
        return None
    pieces = measured.pieces["train"] * train.n_tokens / len(train)
    return estimates.difficulty(config, train, measured, pieces=pieces)


def root_encoder(init: str) -> str:
    """Return the encoder at the start of a chain of pre-trainings. init: an encoder, or the id of a pre-training."""
    return estimates.root(init, store())


def halved(run_id: str) -> tuple[str, dict[str, object]] | None:
    """Return the kind and options to repeat a run in about half the memory, with the same optimizer steps.

    Accumulation is doubled, so micro-batches have half the size. Return None if a micro-batch is already a single
    sentence, or if no training of the run has started.
    """
    run = store().get(run_id)
    begun = trainings(run_id)
    if not begun:
        return None
    kind, config = begun[-1].manifest.kind, begun[-1].manifest.config
    parts = 2 * (config["accumulation"] or 1)
    if parts > (config["batch_size"] or _usual_batch(config)):
        return None
    options = dict(run.manifest.config)
    if run.manifest.kind == kind:
        return kind, options | {"accumulation": parts}
    parent = begun[-1].manifest.parent
    # The strategies of a `score` or `cascade` run train the models B1 or B2, so change the options of these strategies.
    if parent and store().get(parent).manifest.kind in ("score", "cascade"):
        learnt = [name for name in options["arms"] if name in STRATEGIES and STRATEGIES[name].models]
        own = {name: {**options["strategies"].get(name, {}), "accumulation": parts} for name in learnt}
        return run.manifest.kind, options | {"strategies": options["strategies"] | own}
    return run.manifest.kind, options | {kind: {**options[kind], "accumulation": parts}}


def _usual_batch(config: Mapping[str, Any]) -> int:
    """Return the preset's batch size for a fine-tuning, in sentences; `SMALLEST_BATCH` if its training set is missing.

    config: options of the `finetune` run.
    """
    with suppress(CorpusError):
        return FinetuneConfig.model_validate(config).training(len(library().find(config["train"]))).batch_size
    return SMALLEST_BATCH


def left_behind(run_id: str) -> tuple[int | None, Path | None]:
    """Return the step of a stopped training's last checkpoint, and the folder of the best model so far.

    Return None for a checkpoint or a model that does not exist.
    """
    begun = trainings(run_id)
    if not begun:
        return None, None
    written = begun[-1].checkpoints.rglob("checkpoint-*/trainer_state.json")
    latest = max(written, key=lambda path: path.stat().st_mtime, default=None)
    step = int(latest.parent.name.rpartition("-")[2]) if latest else None
    return step, models.folder(begun[-1]) if models.is_here(begun[-1]) else None


def card(run_id: str) -> str:
    """Return the model card of a finished training, in Markdown."""
    return models.read_card(models.folder(store().get(run_id)))


def model(run_id: str) -> str:
    """Return the folder of a training's model."""
    return str(models.folder(store().get(run_id)))


def has_model(run_id: str) -> bool:
    """Return True if the project holds a training's model. A user may have deleted it, or not exported it."""
    return models.is_here(store().get(run_id))


def loading(run_id: str) -> Mapping[str, str]:
    """Return {description: code that loads the model of a finished training}, for use without Winnow and with it."""
    folder = model(run_id)
    if store().get(run_id).manifest.kind == "pretrain":
        return {
            "With transformers": "from transformers import AutoModelForMaskedLM, AutoTokenizer\n\n"
            f"model = AutoModelForMaskedLM.from_pretrained({folder!r})\n"
            f"tokenizer = AutoTokenizer.from_pretrained({folder!r})"
        }
    trained = FinetuneConfig.model_validate(store().get(run_id).manifest.config)
    as_evaluated = "constrained" if trained.within_bioes else "viterbi"
    # The folder holds the tagger of one seed, so give the scores of this seed.
    place, seed = tagger_tables.kept_seed(store().get(run_id))
    by_decoding = result.read(store().get(run_id), FinetuneResult).dev.decodings
    dev = {decoding: f1s[place] for decoding, f1s in by_decoding.items()}
    whole = f"On the command line, decoded as in the evaluation{_on_dev(dev.get(as_evaluated))}"
    asked = {"model": folder, "corpus": "TEXT.txt", "constrained": trained.within_bioes}
    by_winnow = {whole: command("predict", asked)}
    if trained.network != "encoder":  # Other software cannot load Winnow's own networks.
        return by_winnow
    without, f1 = "the CRF's transitions", dev.get("argmax")
    if trained.layers == "mix":
        outcome = evaluations.read_outcome(store().get(run_id), seed)
        without, f1 = f"{without} and the mix of layers", outcome.last_layer if outcome else None
    aside = ", with neighbouring sentences, which a pipeline does not read" if trained.context else ""
    alone = f"With transformers, without {without}{_on_dev(f1, aside)}"
    pipeline = (
        "from transformers import pipeline\n\n"
        f'tagger = pipeline("token-classification", {folder!r}, aggregation_strategy="first")\n'
        'print(tagger("A sentence of yours ."))'
    )
    return {alone: pipeline, **by_winnow}


def _on_dev(f1: float | None, aside: str = "") -> str:
    """Return a dev F1 as words in parentheses; "" without a score. aside: remark to append."""
    return "" if f1 is None else f" (score {f1:.1f} on the dev set{aside})"


def here() -> dict[str, str]:
    """Return {run id: name} of the finished `finetune` runs whose model still exists, newest first.

    Taggers that a `review` run trained are left out, because each was trained on only a part of the training set.
    """
    reviews = {run.id for run in store().list("review")}
    done = [run for run in store().list("finetune", state="succeeded") if run.manifest.parent not in reviews]
    return names([run.id for run in done if models.is_here(run)])


def shares_found(run_id: str) -> dict[str, float]:
    """Return {entity type: recall on the test set, 0 to 1}, averaged over seeds; {} without a test set.

    Types without mentions in the test set are left out. Errors: RunError.
    """
    lines = tagger_tables.reports([store().get(run_id)])
    return {line.type: line.recall / 100 for line in lines if line.support and line.type != MICRO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraining:
    """Tagger to train again because its model does not exist.

    options: options of the new `finetune` run. seconds: estimated time; None if this machine has not been timed. run:
    id of the new run if it has already started, else "".
    """

    name: str
    options: Mapping[str, object]
    seconds: float | None
    run: str


def retraining(run_ids: Mapping[str, str]) -> Retraining | None:
    """Return how to repeat one of these `finetune` runs with a single seed; None if no run can be repeated.

    run_ids: {finetune run: its name}. A run cannot be repeated if its pre-trained encoder was not kept.
    """
    for run_id, name in sorted(run_ids.items(), key=lambda item: is_run_id(_begins(item[0]))):
        run = store().get(run_id)
        if is_run_id(_begins(run_id)) and not models.is_here(store().get(_begins(run_id))):
            continue
        seeds = run.manifest.config["seeds"]
        # Change the seeds, because the same options would give back the finished run, which has no model.
        seed = seeds[0] if len(seeds) > 1 else seeds[0] + 1000
        options = {**run.manifest.config, "seeds": (seed,)}
        with suppress(WinnowError):
            begun, estimate = runs.begun("finetune", options), preflight("finetune", options)
            return Retraining(
                name=f"{name}, trained again", options=options, seconds=estimate.seconds, run=begun.id if begun else ""
            )
    return None


def _begins(run_id: str) -> str:
    """Return what a tagger started from: the id of a pre-training, or the name of an encoder."""
    init = str(store().get(run_id).manifest.config["init"])
    return init.removesuffix("/artifacts/model").rsplit("/", 1)[-1]


def names(run_ids: Sequence[str]) -> dict[str, str]:
    """Return {run id: name} for `finetune` runs. Equal names get a date.

    A name given by the user is used. Otherwise, the name consists of training set, pre-training, variant and replicate.
    The variant is left out if it follows from the pre-training.
    """
    parts: dict[str, str] = {}
    for run in store().list("experiment", state="succeeded"):
        for row in leaderboard.read(run).leaderboard:
            variant = "" if row.arm == NONE or reads(row) else f", variant {line_name(row)}"
            for i, finetune in enumerate(row.finetunes, 1):
                # If several experiments share a tagger, its name comes from the newest one.
                parts.setdefault(finetune, f"{variant}{f', replicate {i}' if len(row.finetunes) > 1 else ''}")
    found = [store().get(run_id) for run_id in run_ids]
    names = {
        run.id: labels.read(run).name or f"{tagger_name(run.manifest.config)}{parts.get(run.id, '')}" for run in found
    }
    return distinct(names, {run.id: run.began.timestamp() for run in found})


def tagged(run_id: str) -> TagResult | PredictResult:
    """Return the result of a finished `tag` or `predict` run. Errors: RunError."""
    run = store().get(run_id)
    return result.read(run, TagResult) if run.manifest.kind == "tag" else result.read(run, PredictResult)


def imported_vectors() -> Mapping[str, ImportResult]:
    """Return finished imports of word vectors by run id, newest first."""
    return imports(store())


FOUND_ENDINGS = (".jsonl", ".csv", ".conll")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntity:
    """Entity that a `predict` run found. All ends are exclusive.

    start, end: characters of the sentence's `text`, so that `text[start:end]` is the entity. line: line of the file in
    which the entity begins. file_start, file_end: characters of the whole file; None unless it is plain text.
    first_token, end_token: tokens of the sentence.
    """

    start: int
    end: int
    text: str
    type: str
    confidence: float
    line: int | None
    file_start: int | None
    file_end: int | None
    first_token: int
    end_token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSentence:
    """Tagged sentence. text: its text in the file. file, line, page: where the sentence begins; None if unknown."""

    id: str
    file: str | None
    line: int | None
    page: int | None
    text: str
    tokens: tuple[str, ...]
    entities: tuple[FoundEntity, ...]


@exporting
def write_found(run_id: str, path: Path, given: str = "", report: ReadReport | None = None) -> None:
    """Write the entities of a finished `predict` run to a .csv file, or sentences with entities to a .jsonl file.

    given, report: as in `found_sentences`.
    """
    with output_file(path) as out:
        if path.suffix == ".csv":
            _write_csv(found_sentences(run_id, given, report), out)
        else:
            lines = (json.dumps(asdict(each), ensure_ascii=False) for each in found_sentences(run_id, given, report))
            out.writelines(line.encode() + b"\n" for line in lines)


@exporting
def export_found(run_id: str, given: str = "", report: ReadReport | None = None) -> Iterator[FoundSentence]:
    """Return the sentences of `found_sentences` for standard output, and log the export."""
    return found_sentences(run_id, given, report)


def found_sentences(run_id: str, given: str = "", report: ReadReport | None = None) -> Iterator[FoundSentence]:
    """Yield the sentences that a finished `predict` run tagged, in order.

    given: path of the tagged file or folder; "": the file that the corpus was imported from. It is read again, because
    a corpus keeps only cleaned text. If the file is missing or has changed, positions refer to the cleaned text.
    report: report that counts unreadable rows; it is complete after the last sentence.
    """
    run = store().get(run_id)
    lines = predictions.lines(run)
    corpus = library().find(str(run.manifest.config["corpus"]))
    for sentence, line in zip(_sentences(corpus, given, report or ReadReport()), lines, strict=False):
        yield _found(sentence, line)


def _sentences(corpus: Corpus, given: str, report: ReadReport) -> Iterator[Sentence]:
    """Yield the sentences of a corpus, with their position in the file if the file still has the same text."""
    stored = chain.from_iterable(corpus.batches())
    again = _read_again(corpus, given, report)
    for sentence in stored:
        # The file also has sentences that the import left out, for example because a label was lost.
        own = next((each for each in again if each.id == sentence.id), None)
        yield own or sentence
    deque(again, maxlen=0)  # Read the file to its end, so that the report is complete.


def _read_again(corpus: Corpus, given: str, report: ReadReport) -> Iterator[Sentence]:
    """Yield the sentences of the file that a corpus was imported from; none if it is missing or cannot be read."""
    with suppress(WinnowError, OSError):
        config = AddConfig(path=str(Path(given).absolute())) if given else _import(corpus)
        if config and Path(config.path).exists():
            yield from read(Path(config.path), reading(config), report=report, sources=True)


def _import(corpus: Corpus) -> AddConfig | None:
    """Return the options of the import that created a corpus; None if its run is missing or is no import."""
    try:
        run = store().get(str(corpus.origin.get("run", "")))
    except RunError:
        return None
    return AddConfig(**run.manifest.config) if run.manifest.kind == "add" else None


def _found(sentence: Sentence, line: predictions.Line) -> FoundSentence:
    source = sentence.source or Source(text=sentence.text)
    places = Places(sentence.text, source)
    tokens = token_places(sentence.text, line.tokens)
    entities = []
    for entity in line.entities:
        start, end = places.span(tokens[entity.start][0], tokens[entity.end - 1][1])
        entities.append(
            FoundEntity(
                start=start,
                end=end,
                text=source.text[start:end],
                type=entity.type,
                confidence=entity.confidence,
                line=source.line_at(start),
                file_start=None if source.at is None else source.at + start,
                file_end=None if source.at is None else source.at + end,
                first_token=entity.start,
                end_token=entity.end,
            )
        )
    return FoundSentence(
        id=line.id,
        file=sentence.file or source.file,
        line=source.line_at(source.start),
        page=sentence.page,
        text=source.text.rstrip("\r\n"),
        tokens=line.tokens,
        entities=tuple(entities),
    )


_COLUMNS = ("file", "line", "page", "start", "end", "text", "type", "confidence", "file_start", "file_end", "sentence")


def _write_csv(sentences: Iterable[FoundSentence], out: BinaryIO) -> None:
    """Write one entity per row. Text that a spreadsheet would run as a formula gets a quote in front."""
    text = TextIOWrapper(out, encoding="utf-8-sig", newline="")  # Excel recognises UTF-8 only by a byte order mark.
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for sentence in sentences:
        where = {"file": sentence.file, "page": sentence.page, "sentence": sentence.id}
        for entity in sentence.entities:
            row = {**asdict(entity), **where}
            writer.writerow({name: harmless(value) for name, value in row.items()})
    text.detach()
