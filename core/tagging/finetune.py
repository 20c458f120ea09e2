"""`finetune`: taggers trained on L_C, one a seed; the best epoch is chosen on dev and tested once."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import field_validator

from core.config import option
from core.encoders.encoder_fit import note_fit
from core.errors import ConfigError, CorpusError, Unfinished
from core.importing.data_checks import red_items
from core.kind import About, Job, Kind
from core.models import unknown
from core.models.fingerprint import fingerprint
from core.models.networks import ON_ENCODER
from core.runs.parts import Parts
from core.runs.store import RunStore, is_run_id
from core.shown import count
from core.tagging import evaluations
from core.tagging.card import card
from core.tagging.evaluations import FinetuneResult, SeedOutcome
from core.tagging.network import (
    Borrowed,
    begins_from_encoder,
    borrow,
    check_network,
    copies,
    lighter,
    new_network,
    own_weights,
)
from core.tagging.overlap import Overlap, overlap
from core.tagging.pretrained_words import WordVectorOptions, with_vector
from core.tagging.scores import all_seeds, labelled, note_unlearnt, score_split, types_of, without_mix
from core.tagging.seeds import Seeds, dealt
from core.tagging.too_long import TooLong
from core.terms import DECIDING
from core.text.cut import Cut, learn
from core.text.neighbours import InContext, in_context
from core.text.sentence import Sentence
from core.training import saved_models as models
from core.training.on_device import on_device
from core.training.settings import TaggerSettings

if TYPE_CHECKING:
    from core.models.tagger import Tagger
    from core.training.epochs import Epochs


class FinetuneConfig(WordVectorOptions, TaggerSettings):
    """Options: from which encoder, on what, and how."""

    init: str = option(
        "minilm", "A Hugging Face name, a folder, minilm (bundled), or the id of a finished pretrain run."
    )
    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set: the best epoch is chosen on it.", corpus=True)
    test: tuple[str, ...] = option((), "Labelled test splits, each read once.", corpus=True)
    seeds: tuple[int, ...] = option((1, 2, 3), "One tagger a seed; 3 for a look, 5 for a claim.")
    stages: Literal["joint", "lpft"] = option(
        "joint",
        "lpft: first the last layer and the CRF under a frozen encoder, then all, both by these settings.",
    )
    states: str = option("", "bilstm: an encoder whose frozen layers, mixed, join at the second BiLSTM.")
    assisting: str = option("", "Another labelled corpus to learn from too, such as what skl keeps.", corpus=True)
    assisting_types: tuple[str, ...] = option(
        (),
        "bilstm, charcnn: all types of the corpus that the assisting sentences are a part of; with others than the "
        "training sentences' they get an output layer of their own, whatever the part holds.",
    )

    weights: str = option("", "Hash of the encoder.", hidden=True)

    def settled(self) -> Self:
        """Options with the encoder's hash; a run's id says as much. Errors: ModelError if the encoder is not here."""
        encoder, settled = self.init if self.network in ON_ENCODER else self.states, super().settled()
        if not encoder or is_run_id(encoder) or self.allow_download:
            return settled
        return settled.model_copy(update={"weights": fingerprint(encoder)})

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise ConfigError(f"seeds: {seeds} must be different whole numbers from 0 on, at least one.")
        return seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """L_C in memory. types: of train, which a tagger can learn. all_types: of all splits, which count.

    weights: what the loss of each training sentence counts for. overlap: of train with dev and tests. cut: of train.
    too_long: for a tagger of spans.
    """

    train: list[Sentence]
    weights: list[float]
    borrowed: Borrowed
    dev: list[Sentence]
    tests: list[list[Sentence]]
    types: tuple[str, ...]
    all_types: tuple[str, ...]
    overlap: Overlap
    cut: Cut | None = None
    too_long: TooLong | None = None


def run(config: FinetuneConfig, job: Job) -> FinetuneResult:
    """Artifacts: a model (of the seed that is best on dev), and what `artifacts.evaluations` lists."""
    from core.models.memory import release_memory

    check_network(config)
    splits = _read(config, job)
    shares = with_vector(splits.borrowed.vectors, splits.train, splits.tests, job)
    with dealt(job.context.run, config.seeds) as seeds:
        if left := seeds.left():
            with on_device(job, config.precision):
                parts = Parts(job.context, [1.0] * len(seeds.own))
                for seed in left:
                    parts.next(seeds.own.index(seed), f"seed {seed}")
                    _settle(config, job, splits, seed, seeds)
                    release_memory()  # else two seeds' weights and moments lie on the card
        outcomes = seeds.wait(job.context)
    for outcome in outcomes:
        if outcome.seed not in seeds.own:
            note_unlearnt(job, outcome)
    model = models.folder(job.context.run)
    if not seeds.place:
        models.write_card(model, card(config, job, outcomes, splits.overlap.train, splits.too_long))
        job.context.artifact(models.NAME, model)
    tables = [evaluations.read(job.context.run, number) for number in range(len(splits.tests))]
    return all_seeds(str(model), outcomes, tables, splits.overlap.train, splits.too_long, with_vector=shares)


def _read(config: FinetuneConfig, job: Job) -> Splits:
    job.context.stage("reading the labelled sentences")
    train, dev, *tests = (
        in_context(labelled(job.corpus(name)), config.context) for name in (config.train, config.dev, *config.test)
    )
    if config.context and not any(isinstance(sentence, InContext) for sentence in train):
        job.context.note("context: no training sentence says which document it is of, so none has neighbours.")
    seen, rest = types_of(train), types_of(dev, *tests)
    if not seen:
        raise CorpusError(
            f"{job.corpus(config.train).name}: no sentence holds an entity, so there is nothing to learn."
        )
    if missing := sorted(rest - seen):
        job.context.note(
            f"{', '.join(missing)}: not in the training set, so no tagger can find them; they count as missed."
        )
    borrowed = borrow(config, job, sorted(seen), model_folder(config.states, job))
    return Splits(
        train=train,
        weights=own_weights(config, train),
        borrowed=borrowed,
        dev=dev,
        tests=tests,
        types=tuple(sorted(seen)),
        all_types=tuple(sorted(seen | rest)),
        overlap=overlap(job.corpus(config.train), [job.corpus(name) for name in (config.dev, *config.test)], job),
        cut=learn(sentence.tokens for sentence in train),
        too_long=_too_long(job, train, dev, *tests) if config.network == "span" else None,
    )


def _too_long(job: Job, *splits: Sequence[Sentence]) -> TooLong:
    """Count what a tagger of spans cannot find, and note it. splits: train, dev, tests."""
    names = ["train", "dev", *map(evaluations.name_of_test_set, range(len(splits) - 2))]
    counted = TooLong.count(dict(zip(names, splits, strict=True)))
    if counted.words:
        job.context.note(counted.words)
    return counted


def _settle(config: FinetuneConfig, job: Job, splits: Splits, seed: int, seeds: Seeds) -> None:
    """Train and test one seed, keep its tagger if it is the best so far, and write what came of it."""
    from core.training.calibration import fit_temperature

    job.context.stage(f"training, seed {seed}")
    settings = config.training(len(splits.train))
    _note_sample(job, settings.dev_sentences, len(splits.dev))
    tagger = _network(config, job, splits, seed)
    if not seeds.place and seed == config.seeds[0]:
        _warn(config, job, splits, tagger)
    epochs = _train(config, job, splits, tagger, seed=seed, seeds=seeds)
    job.context.stage(f"calibrating, seed {seed}")
    fit_temperature(tagger, splits.dev, job.context)
    names = ["dev", *map(evaluations.name_of_test_set, range(len(splits.tests)))]
    results = [
        score_split(job, tagger, gold, splits.all_types, evaluations.file_suffix(name, seed), seen=seen)
        for name, gold, seen in zip(names, (splits.dev, *splits.tests), splits.overlap.seen, strict=True)
    ]
    planned = asdict(settings.planned(len(splits.train))).items()
    outcome = SeedOutcome(
        seed=seed,
        best_epoch=epochs.best,
        epochs=len(epochs.dev_f1),
        seconds=round(epochs.seconds, 1),
        dev=results[0],
        tests=results[1:],
        last_layer=without_mix(job, tagger, splits.dev, splits.all_types),
        settings={name: value for name, value in planned if name in TaggerSettings.model_fields and value is not None},
    )
    note_unlearnt(job, outcome)
    with seeds.settling():
        if seeds.leads(seed, outcome.dev.micro_f1) or not models.folder(job.context.run).is_dir():
            seeds.keep(tagger)
        evaluations.write_outcome(job.context.run, seed, outcome)
    shutil.rmtree(_checkpoints(job, seed), ignore_errors=True)


def _note_sample(job: Job, judged_by: int, dev: int) -> None:
    if 0 < judged_by < dev:
        job.context.note(
            f"An epoch is judged by {judged_by:,} of the {dev:,} dev sentences; the score that is "
            "reported is of all of them."
        )


def _warn(config: FinetuneConfig, job: Job, splits: Splits, tagger: "Tagger") -> None:
    """Note what the encoder loses of the training sentences; a recurrent tagger reads letters."""
    from core.models.piece_tagger import PieceTagger
    from core.training.lighter import lora_note

    if isinstance(tagger, PieceTagger):
        if text := lora_note(tagger.model, config.lora):
            job.context.note(text)
        name, longest = job.corpus(config.train).name, tagger.pieces.max_length
        sample = splits.train[:: max(1, len(splits.train) // unknown.SAMPLE)]
        note_fit(job, tagger.tokenizer, sample, encoder=config.init, corpus=name, max_length=longest)


def _train(config: FinetuneConfig, job: Job, splits: Splits, tagger: "Tagger", *, seed: int, seeds: Seeds) -> "Epochs":
    """Train `tagger` in place."""
    from core.training.finetune import finetune
    from core.training.lpft import lpft

    merge = lighter(config, tagger, seed)

    def stopped(epochs: "Epochs") -> None:
        """Stop, and keep the best so far, which is the best there is as long as no seed is finished."""
        with seeds.settling():
            if not seeds.finished() and not seeds.place:
                merge()
                seeds.keep(tagger)
                model = models.folder(job.context.run)
                text = f"Stopped; the tagger of epoch {epochs.best}, seed {seed}, is kept in {model}."
                job.context.note(text, passing=True)

    train = lpft if config.stages == "lpft" else finetune
    epochs = train(
        tagger,
        splits.train,
        splits.dev,
        config.training(len(splits.train)),
        seed=seed,
        folder=_checkpoints(job, seed),
        report=job.context,
        types=splits.all_types,
        weights=splits.weights,
        assisting=splits.borrowed.assisting,
        assisting_weight=config.assisting_weight,
        copies=copies(config, splits.train),
        saved=job.context.checkpoint,
        stopped=stopped,
    )
    merge()
    return epochs


def _checkpoints(job: Job, seed: int) -> Path:
    return job.context.run.checkpoints / f"seed-{seed}"


def _network(config: FinetuneConfig, job: Job, splits: Splits, seed: int) -> "Tagger":
    from transformers import set_seed

    set_seed(seed)
    init = model_folder(config.init, job) if config.network in ON_ENCODER else ""
    tagger = new_network(config, init, splits.train, splits.types, splits.borrowed)
    if config.preset != "paper":
        tagger.level_chains()
    tagger.cut = splits.cut
    return tagger


def model_folder(reference: str, job: Job) -> str:
    """A run's id as the folder of its model; anything else as it is. Errors: RunError, ConfigError."""
    if not is_run_id(reference):
        return reference
    run = RunStore(job.home).get(reference)
    folder = models.folder(run)
    if run.state().state != "succeeded" or not folder.is_dir():
        raise Unfinished(f"{reference}: has no finished model; wait for its end, or resume it.")
    return str(folder)


def _title(run: About) -> str:
    network = run.config.get("network", "encoder")
    if begins_from_encoder(network):
        spans = "" if network != "span" else " on spans"
        spans = " as MINER" if run.config.get("beta") or run.config.get("gamma") else spans
        trained = f"Fine-tune {run.encoder(run.config['init'])}{spans}"
    else:
        trained = f"Train a {network} tagger"
    return f"{trained} on {run.corpus(run.config['train'])}"


def _outcome(result: FinetuneResult, run: About) -> str:
    test, dev = result.test, result.dev.micro_f1
    if not test:
        return f"{DECIDING.named} {max(dev):.1f}, the best of {count(len(dev), 'seed')}"
    spread = "" if test.spread is None else f" ± {test.spread:.1f} over {count(len(test.micro_f1), 'seed')}"
    return f"Score (F1) {test.f1:.1f}{spread} on {run.corpus(run.config['test'][0])}"


KIND = Kind(
    "finetune",
    FinetuneConfig,
    run,
    FinetuneResult,
    title=_title,
    outcome=_outcome,
    page="Training",
    opens=True,
    here=True,
    red_items=red_items,
)
