"""`finetune`: train taggers on L_C, one per seed; choose the best epoch on dev and test it once.

Under torchrun, each process trains some of the seeds on a separate GPU.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from core.assisting.skl import parse_map, renamed
from core.corpora import hygiene
from core.corpora.corpus import Corpus
from core.dictionary.dictionary import resolved
from core.errors import Cancelled, ConfigError, CorpusError, ModelError, Unfinished
from core.files import sync_all
from core.importing.audit import learnable
from core.importing.data_checks import red_items
from core.kind import About, Job, Kind
from core.models.networks import ON_ENCODER
from core.models.vocabulary_fit import SAMPLE, note_fit
from core.reporter import Silent
from core.results import BoolArray
from core.runs.context import Parts, RunContext
from core.runs.lock import locked
from core.runs.run import Run
from core.runs.store import RunStore, is_run_id
from core.shown import count, listed
from core.tagging import evaluations, watched
from core.tagging.card import card
from core.tagging.config import FinetuneConfig, check_network
from core.tagging.estimate import preflight
from core.tagging.evaluations import (
    FinetuneResult,
    SeedOutcome,
    TooLong,
    TrainInTest,
    all_seeds,
    labelled,
    note_unlearnt,
    score_split,
    types_of,
    without_mix,
)
from core.tagging.network import (
    Borrowed,
    borrow,
    copies,
    count_with_vector,
    new_network,
    save_memory,
    sentence_weights,
)
from core.terms import DECIDING
from core.text.cut import Cut, learn
from core.text.names import Dictionary
from core.text.sentence import InContext, Sentence, in_context
from core.training import saved_models as models
from core.training.on_device import announce, on_device, rank
from core.training.settings import TaggerSettings

if TYPE_CHECKING:
    from torch import Tensor

    from core.models.tagger import Tagger
    from core.training.finetune import Epochs
    from core.training.first import First
    from core.training.pseudo import Stages

_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Seconds between two checks whether all seeds are finished.
_POLL = 0.5
# Seconds to wait for the lock of `Seeds.settling`; long enough for another process to write the largest tagger.
_PATIENCE = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlap:
    """Overlap of the training set with the dev and test sets.

    train: number of training sentences in the other sets. seen: for each other set a mask `(n,)`, True for sentences
    that are also in the training set.
    """

    train: TrainInTest
    seen: Sequence[BoolArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """Sentences of all corpora of a fine-tuning, in memory.

    types: entity types in the training set; a tagger can only learn these. all_types: entity types in any split, which
    are all scored. weights: weight of each training sentence in the loss. cut: rule by which the training set was
    tokenised. too_long: numbers of entities that a span tagger cannot find; None for other networks. first: sentences
    of another corpus to train on before the training set. unlabelled: sentences to train on with pseudo-labels.
    distant: names to find in the unlabelled sentences; None for self-training.
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
    first: Sequence[Sentence] = ()
    unlabelled: Sequence[Sentence] = ()
    distant: Dictionary | None = None


def run(config: FinetuneConfig, job: Job) -> FinetuneResult:
    """Train and test one tagger per seed, and keep the tagger that is best on dev.

    Artifacts: `model`, and the files of `evaluations`.
    """
    from core.models.devices import release_memory

    check_network(config)
    splits = _read(config, job)
    shares = count_with_vector(splits.borrowed.vectors, splits.train, splits.tests, job)
    with dealt(job.context.run, config.seeds) as seeds:
        if left := seeds.left():
            with on_device(job, config.precision):
                parts = Parts(job.context, [1.0] * len(seeds.own), expected=_expected(config, job, seeds))
                for seed in left:
                    parts.next(seeds.own.index(seed), f"seed {seed}")
                    _train_and_test(config, job, splits, seed, seeds)
                    release_memory()  # The GPU may not have room for the weights and Adam states of two seeds.
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


def _expected(config: FinetuneConfig, job: Job, seeds: "Seeds") -> float | None:
    """Estimate the seconds that this process needs to train its seeds; None without a measured speed.

    Also None in a child run, because the parent run has its own estimate.
    """
    whole = None if job.context.is_child else preflight(config, job.library, RunStore(job.home)).seconds
    return None if whole is None else whole * len(seeds.own) / len(seeds.numbers)


def _read(config: FinetuneConfig, job: Job) -> Splits:
    job.context.stage("reading the labelled sentences")
    corpora = [job.corpus(name) for name in (config.train, config.dev, *config.test)]
    train, dev, *tests = (in_context(labelled(corpus), config.context) for corpus in corpora)
    if config.context and not any(isinstance(sentence, InContext) for sentence in train):
        job.context.note("context: no training sentence names its document, so none has neighbouring sentences.")
    seen, rest = types_of(train), types_of(dev, *tests)
    if not seen:
        raise CorpusError(f"{corpora[0].name}: no sentence contains an entity, so there is nothing to learn.")
    if missing := sorted(rest - seen):
        job.context.note(
            f"{', '.join(missing)}: these types are not in the training set, so no tagger can find their entities, and "
            "all of them count as missed."
        )
    borrowed = borrow(config, job, sorted(seen), model_folder(config.states, job))
    overlap = find_overlap(corpora[0], corpora[1:], job)
    too_long = None
    if config.network == "span":
        names = ["train", "dev", *map(evaluations.name_of_test_set, range(len(tests)))]
        too_long = TooLong.count(dict(zip(names, (train, dev, *tests), strict=True)))
        if too_long.words:
            job.context.note(too_long.words)
    return Splits(
        train=train,
        weights=sentence_weights(config, train),
        borrowed=borrowed,
        dev=dev,
        tests=tests,
        types=tuple(sorted(seen)),
        all_types=tuple(sorted(seen | rest)),
        overlap=overlap,
        cut=learn(sentence.tokens for sentence in train),
        too_long=too_long,
        first=_first(config, job, seen) if config.first else (),
        unlabelled=_unlabelled(config, job) if config.unlabelled else (),
        distant=_distant(config, job, seen) if config.distant else None,
    )


def _unlabelled(config: FinetuneConfig, job: Job) -> Sequence[Sentence]:
    corpus = learnable(config.unlabelled, (config.dev, *config.test), job)
    return [sentence for batch in corpus.batches() for sentence in batch if sentence.tokens]


def _distant(config: FinetuneConfig, job: Job, types: Collection[str]) -> Dictionary:
    """Return the names for distant supervision whose type is in the training set.

    Errors: CorpusError if there is no such name.
    """
    lists = [job.corpus(mark) for mark in config.distant]
    names = {key: type for key, type in resolved(lists)[0].items() if type in types}
    if not names:
        raise CorpusError(
            f"{listed([each.name for each in lists])}: no name has a type of the training set "
            f"({listed(sorted(types))}); import the list with one of these types."
        )
    return Dictionary(names)


def _first(config: FinetuneConfig, job: Job, types: Collection[str]) -> Sequence[Sentence]:
    """Return the sentences of the corpus `first`, with renamed types and without sentences of the dev and test sets.

    types: types of the training set. Errors: CorpusError if these sentences have no entity.
    """
    corpus, names = learnable(config.first, (config.dev, *config.test), job), parse_map(config.type_map)
    sentences = [renamed(sentence, names) for sentence in in_context(labelled(corpus), config.context)]
    if not (own := types_of(sentences)):
        raise CorpusError(f"{corpus.name}: no sentence contains an entity, so no first training is possible.")
    both, rest = sorted(own & set(types)), sorted(own - set(types))
    with_scores = f"the output weights of {listed(both)} are reused" if both else "no output weights are reused"
    alone = f"; {listed(rest)} only {'trains' if len(rest) == 1 else 'train'} the encoder" if rest else ""
    job.context.note(f"The first training is on {corpus.name}: {with_scores}{alone}.")
    return sentences


def find_overlap(train: Corpus, splits: Sequence[Corpus], job: Job) -> Overlap:
    """Find exact and near duplicates of training sentences in `splits`, and note their number (SOURCES.md, Leaks).

    splits: the dev set, then the test sets. This takes about a second per 10,000 sentences of all corpora.
    """
    job.context.stage("looking for training sentences in the dev and test sets")
    # The verdicts of an experiment use the dev set and the first test set only.
    judged, further = hygiene.audit(train, splits[:2], Silent()), 0
    if splits[2:]:
        further = hygiene.audit(train, splits, Silent()).counts["leak"] - judged.counts["leak"]
    exact = judged.leak_rules["exact"]
    both = TrainInTest(exact=exact, near=judged.counts["leak"] - exact, further=further)
    seen = [hygiene.audit(split, [train], Silent()).has("leak") for split in splits]
    if both:
        job.context.note(f"{both.words} A tagger may have memorised them, so scores without them are reported too.")
    return Overlap(train=both, seen=seen)


def _train_and_test(config: FinetuneConfig, job: Job, splits: Splits, seed: int, seeds: "Seeds") -> None:
    """Train and test the tagger of one seed, store it if it is the best so far, and write the outcome."""
    from core.training.finetune import fit_names, fit_temperature

    job.context.stage(f"training, seed {seed}")
    settings = config.training(len(splits.train))
    if 0 < settings.dev_sentences < len(splits.dev):
        job.context.note(
            f"Each epoch is scored on {settings.dev_sentences:,} of the {len(splits.dev):,} dev sentences; the "
            "reported score uses all of them."
        )
    first = _begun(config, job, splits, seed, seeds)
    tagger = _network(config, job, splits, seed)
    if first:
        _begin_from(tagger, first)
        job.context.stage(f"training, seed {seed}")
    if not seeds.place and seed == config.seeds[0]:
        _warn(config, job, splits, tagger)
    epochs = _train(config, job, splits, tagger, first=first, seed=seed, seeds=seeds)
    if splits.unlabelled and not splits.distant:
        try:
            epochs = _self_train(config, job, splits, tagger, epochs, seed=seed)
        except Cancelled:
            _keep_stopped(job, tagger, f"of epoch {epochs.best}", seed=seed, seeds=seeds)
            raise
    seconds = epochs.seconds + (first.seconds if first else 0.0)
    job.context.stage(f"calibrating, seed {seed}")
    scale = fit_names(tagger, splits.dev, splits.all_types, job.context)
    if config.dictionary:
        job.context.note(f"seed {seed}: the dictionary's scores are multiplied by {scale:g}, the best factor on dev.")
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
        dev_epochs=[round(f1, 2) for f1 in epochs.dev_f1],
        seconds=round(seconds, 1),
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
    shutil.rmtree(job.context.run.checkpoints / f"seed-{seed}", ignore_errors=True)


def _network(config: FinetuneConfig, job: Job, splits: Splits, seed: int) -> "Tagger":
    from transformers import set_seed

    set_seed(seed)
    init = model_folder(config.init, job) if config.network in ON_ENCODER else ""
    tagger = new_network(config, init, splits.train, splits.types, splits.borrowed)
    if config.preset != "paper":
        tagger.level_chains()
    tagger.cut = splits.cut
    return tagger


def _begun(config: FinetuneConfig, job: Job, splits: Splits, seed: int, seeds: "Seeds") -> "First | None":
    """Train a first tagger on another corpus or on listed names; return None if the config asks for neither.

    The tagger of this seed then starts from the first tagger. If the user stops this training, the first tagger is
    kept.
    """
    from core.models.devices import release_memory

    if not (splits.first or splits.distant):
        return None
    stopped = partial(_keep_first, config, job, seed=seed, seeds=seeds)
    train = _train_first if splits.first else _train_distant
    first = train(config, job, splits, stopped, seed)
    release_memory()  # The GPU may not have room for the weights and Adam states of two taggers.
    return first


def _train_distant(
    config: FinetuneConfig, job: Job, splits: Splits, stopped: "Callable[[Tagger], None]", seed: int
) -> "First":
    from core.training.pseudo import train_distant

    job.context.stage(f"training on the names in {job.corpus(config.unlabelled).name} first, seed {seed}")
    settings, names = config.training(len(splits.unlabelled)), splits.distant
    assert names
    stages = _stages(config, job, replace(splits, borrowed=Borrowed(assisting=[])), seed)
    return train_distant(stages, splits.types, names, splits.unlabelled, settings, stopped=stopped)


def _self_train(
    config: FinetuneConfig, job: Job, splits: Splits, tagger: "Tagger", epochs: "Epochs", *, seed: int
) -> "Epochs":
    from core.training.pseudo import self_train

    job.context.stage(f"learning from {job.corpus(config.unlabelled).name}, seed {seed}")
    return self_train(
        _stages(config, job, splits, seed),
        tagger,
        epochs,
        train=splits.train,
        unlabelled=splits.unlabelled,
        settings=config.training(len(splits.train)),
        weights=splits.weights,
    )


def _stages(config: FinetuneConfig, job: Job, splits: Splits, seed: int) -> "Stages":
    from core.training.pseudo import Stages

    def made(weights: "Mapping[str, Tensor] | None") -> "tuple[Tagger, Callable[[], None]]":
        tagger = _network(config, job, splits, seed)
        if weights:
            tagger.load_state_dict(weights)
        return tagger, save_memory(config, tagger, seed)

    return Stages(
        made=made,
        dev=splits.dev,
        types=splits.all_types,
        seed=seed,
        folder=job.context.run.checkpoints / f"seed-{seed}",
        report=job.context,
        options={"saved": job.context.checkpoint, "dev_every": config.dev_every},
    )


def _train_first(
    config: FinetuneConfig, job: Job, splits: Splits, stopped: "Callable[[Tagger], None]", seed: int
) -> "First":
    """Train a tagger on the corpus `first`, with the same network, `first_epochs` epochs and no dictionary."""
    from core.models.tagger import PieceTagger
    from core.training.first import train_first

    train, folder = list(splits.first), job.context.run.checkpoints / f"seed-{seed}"
    other = replace(splits, train=train, types=tuple(sorted(types_of(train))), borrowed=Borrowed(assisting=[]))

    def made() -> tuple[PieceTagger, Callable[[], None]]:
        tagger = _network(config, job, other, seed)
        assert isinstance(tagger, PieceTagger)  # `check_network` refuses networks without an encoder.
        return tagger, save_memory(config, tagger, seed)

    job.context.stage(f"training on {job.corpus(config.first).name} first, seed {seed}")
    return train_first(
        made,
        train,
        splits.dev,
        config.training(len(train)).brief(config.first_epochs),
        seed=seed,
        folder=folder,
        report=job.context,
        weights=sentence_weights(config, train),
        copies=copies(config, train),
        saved=job.context.checkpoint,
        stopped=stopped,
    )


def _tagger_of(config: FinetuneConfig, job: Job, splits: Splits, first: "First", seed: int) -> "Tagger":
    """Build the tagger of a finished first training from its stored weights."""
    train, types = list(splits.first) or splits.train, tuple(first.types)
    alone = replace(splits, train=train, types=types, borrowed=Borrowed(assisting=[]))
    tagger = _network(config, job, alone, seed)
    tagger.load_state_dict(first.weights)
    return tagger


def _begin_from(tagger: "Tagger", first: "First") -> None:
    from core.models.tagger import PieceTagger

    assert isinstance(tagger, PieceTagger)
    tagger.begin_from(first.weights, first.types)


def _warn(config: FinetuneConfig, job: Job, splits: Splits, tagger: "Tagger") -> None:
    """Note how much training text the encoder's vocabulary cannot represent, and if LoRA is not worthwhile.

    Do nothing for a recurrent tagger, because it reads letters and has no encoder.
    """
    from core.models.tagger import PieceTagger
    from core.training.memory import lora_note

    if isinstance(tagger, PieceTagger):
        if text := lora_note(tagger.model, config.lora):
            job.context.note(text)
        name, longest = job.corpus(config.train).name, tagger.pieces.max_length
        sample = splits.train[:: max(1, len(splits.train) // SAMPLE)]
        encoder = "the pre-trained encoder" if is_run_id(config.init) else config.init
        note_fit(job.context, tagger.tokenizer, sample, encoder=encoder, corpus=name, max_length=longest)


def _train(
    config: FinetuneConfig,
    job: Job,
    splits: Splits,
    tagger: "Tagger",
    *,
    first: "First | None",
    seed: int,
    seeds: "Seeds",
) -> "Epochs":
    """Train `tagger` in place, and return the record of its epochs.

    first: first tagger, which is kept if the user stops before the end of the first epoch; None if there is none.
    """
    from core.training.finetune import finetune, lpft

    merge, kept = save_memory(config, tagger, seed), False

    def stopped(epochs: "Epochs") -> None:
        nonlocal kept
        merge()
        _keep_stopped(job, tagger, f"of epoch {epochs.best}", seed=seed, seeds=seeds)
        kept = True

    train = lpft if config.stages == "lpft" else finetune
    try:
        epochs = train(
            tagger,
            splits.train,
            splits.dev,
            config.training(len(splits.train)),
            seed=seed,
            folder=job.context.run.checkpoints / f"seed-{seed}",
            report=job.context,
            types=splits.all_types,
            weights=splits.weights,
            assisting=splits.borrowed.assisting,
            assisting_weight=config.assisting_weight,
            copies=copies(config, splits.train),
            saved=job.context.checkpoint,
            watch=watched.writer(job.context.run.checkpoints / f"seed-{seed}"),
            dev_every=config.dev_every,
            stopped=stopped,
        )
    except Cancelled:
        if first and not kept:
            _keep_first(config, job, _tagger_of(config, job, splits, first, seed), seed=seed, seeds=seeds)
        raise
    merge()
    return epochs


def _keep_first(config: FinetuneConfig, job: Job, tagger: "Tagger", *, seed: int, seeds: "Seeds") -> None:
    """Store the tagger of the first training after the user stopped. Its types may differ from the training set's."""
    text = job.corpus(config.first or config.unlabelled).name
    which = f"of the first training, on {text}, with the types {listed(sorted(tagger.types))}"
    _keep_stopped(job, tagger, which, seed=seed, seeds=seeds)


def _keep_stopped(job: Job, tagger: "Tagger", which: str, *, seed: int, seeds: "Seeds") -> None:
    """Store a tagger after the user stopped the run, unless a finished seed has already stored one.

    which: where the tagger comes from, in words for the note, such as "of epoch 2".
    """
    with seeds.settling():
        if not seeds.finished() and not seeds.place:
            seeds.keep(tagger)
            model = models.folder(job.context.run)
            text = f"Stopped; the tagger {which}, seed {seed}, is kept in {model}."
            job.context.note(text, passing=True)


def model_folder(reference: str, job: Job) -> str:
    """Return the model folder of the run with this id; return a reference that is no run id unchanged.

    Errors: RunError; ConfigError if the run is of a kind without a model, or has not finished; ModelError if its model
    was deleted.
    """
    if not is_run_id(reference):
        return reference
    run = RunStore(job.home).get(reference)
    if run.manifest.kind not in ("pretrain", "finetune"):
        raise ConfigError(
            f"{reference}: is a run of the kind {run.manifest.kind}, which keeps no model; give the id of a pretrain "
            "or finetune run."
        )
    folder = models.folder(run)
    if run.state().state != "succeeded":
        raise Unfinished(f"{reference}: has no finished model; wait until the run ends, or resume it.")
    if not folder.is_dir():
        raise ModelError(f"{reference}: {models.MISSING}")
    return str(folder)


@dataclass(frozen=True, slots=True)
class Seeds:
    """Seeds of a run, divided among processes.

    numbers: all seeds. place: index of this process, from 0. of: number of processes.
    """

    run: Run
    numbers: Sequence[int]
    place: int
    of: int

    @property
    def own(self) -> Sequence[int]:
        """Seeds that this process trains."""
        return self.numbers[self.place :: self.of]

    def finished(self) -> dict[int, SeedOutcome]:
        """Return {seed: outcome} of the finished seeds of all processes."""
        outcomes = ((seed, evaluations.read_outcome(self.run, seed)) for seed in self.numbers)
        return {seed: outcome for seed, outcome in outcomes if outcome}

    def left(self) -> list[int]:
        """Return the seeds that this process still has to train."""
        finished = self.finished()
        return [seed for seed in self.own if seed not in finished]

    def leads(self, seed: int, dev_f1: float) -> bool:
        """Return True if this seed is the best on dev of all finished seeds. Of equal seeds, the first one wins."""
        score = dev_f1, -self.numbers.index(seed)
        others = self.finished().items()
        return all(score > (other.dev.micro_f1, -self.numbers.index(at)) for at, other in others)

    def settling(self) -> AbstractContextManager[None]:
        """Return a lock to hold while storing a tagger and its outcome, so that only one process stores at a time."""
        return locked(self.run.path / "claims" / "tagger", patience=_PATIENCE) if self.of > 1 else nullcontext()

    def keep(self, tagger: "Tagger") -> None:
        """Replace the run's model by `tagger`."""
        folder = models.folder(self.run)
        draft = folder.with_name(f".{folder.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        tagger.write(draft)
        sync_all(draft)
        # If the process is killed after this line, the seed has no outcome yet, so it is trained again.
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)

    def wait(self, context: RunContext) -> list[SeedOutcome]:
        """Wait until all seeds are finished, and return their outcomes in order."""
        finished = self.finished()
        if len(finished) < len(self.numbers):
            context.stage("waiting for the seeds of the other processes")
        while len(finished) < len(self.numbers):
            context.check()  # This loop needs no time limit: if another process fails, torchrun ends this one.
            time.sleep(_POLL)
            finished = self.finished()
        return [finished[seed] for seed in self.numbers]


@contextmanager
def dealt(run: Run, numbers: Sequence[int]) -> Iterator[Seeds]:
    """Divide seeds among the processes of torchrun. The first process announces the run to the others.

    Inside the context, torchrun's environment variables are hidden, so each process takes a free GPU and trains alone.
    Because of this, `rank` always returns 0 there; use `Seeds.place` instead.
    """
    announce(run.id)
    seeds = Seeds(run=run, numbers=numbers, place=rank(), of=int(os.environ.get("WORLD_SIZE", "1")))
    hidden = {name: os.environ.pop(name) for name in _TORCHRUN if name in os.environ}
    try:
        yield seeds
    finally:
        os.environ.update(hidden)


def _title(run: About) -> str:
    network = run.config.get("network", "encoder")
    before = f"{run.corpus(first)}, then " if (first := run.config.get("first")) else ""
    labels = f"{before}{run.corpus(run.config['train'])}"
    if network not in ON_ENCODER:
        return f"Train a {network} tagger on {labels}"
    spans = "" if network != "span" else " on spans"
    spans = " as MINER" if run.config.get("beta") or run.config.get("gamma") else spans
    encoder, pretraining = run.begun_from(run.config["init"])
    return f"Fine-tune {encoder}{spans} on {labels}, {pretraining}"


def _outcome(result: FinetuneResult, run: About) -> str:
    test, dev = result.test, result.dev.micro_f1
    if not test:
        return f"{DECIDING.named} {max(dev):.1f}, the best of {count(len(dev), 'seed')}"
    tested = run.corpus(run.config["test"][0])
    if test.sd is None:  # two single taggers differ by chance
        return f"Score (F1) {test.mean:.1f} on {tested}, one seed"
    return f"Score (F1) {test.mean:.1f} ± {test.sd:.1f} over {count(len(test.micro_f1), 'seed')} on {tested}"


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
