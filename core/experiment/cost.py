"""Cost of an experiment on this machine: seconds per step, from a `calibrate` run, and the time left while it runs.

`cost` looks for a finished run of every step; a step with a finished run costs nothing. If a run has not finished, the
steps that need its result have not finished either.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import cast

from core import cards
from core.bias.difficulty import DifficultyOptions
from core.config import Budget
from core.corpora.corpus import Corpus
from core.errors import ModelError
from core.experiment.arms import AUGMENT, CONTROL, DISTANT, GROWS, NONE, PSEUDO, WHOLE, Arm, Cell
from core.experiment.config import SPLITS, ExperimentConfig, Replicate, tokens_read
from core.experiment.more_labels import SECONDS, seconds_per_sentence
from core.experiment.reference import KINDS
from core.experiment.steps import CHECK, Line, Stages, Step, in_order, lines
from core.kind import Job, Kind, Options, plan
from core.models.networks import ON_ENCODER
from core.projects.machine import shortage
from core.reporter import Parted, Silent
from core.runs.context import RunContext
from core.runs.store import Run, RunStore
from core.runs.where import Where
from core.selection import involved, strategy_options
from core.selection.base import Strategy
from core.selection.choose import expected
from core.shown import duration, listed
from core.tagging import estimate
from core.tagging.calibrate import CalibrateResult
from core.tagging.estimate import START, Read, Speed, Speeds, Text
from core.training.mlm_settings import MlmSettings
from core.training.settings import TaggerSettings

# Bytes per gigabyte.
GB = 1e9
# Seconds per token to flag sentences (AUDIT), and to score embedded sentences (SCORE).
AUDIT, SCORE = 4e-6, 2e-6
# Seconds per token to learn word vectors in five epochs on two cores.
SKIPGRAM = 2e-5
# Encoding sentences one by one takes 8 times as long as encoding them in batches.
STATES = 8
# Planned seconds after which the ratio of elapsed to planned time corrects the estimates.
TRUSTED = 20.0
# Kinds of steps that read L_C or a part of it.
OF_LABELS = (CHECK, "skl", "difficulty", "rebuild", "finetune")
# Bounds of the correction, so that one unusual step does not distort all later estimates.
LIMITS = (0.25, 4.0)
_WORDS = {
    "halves": "splitting the labelled sentences",
    "select": "selecting",
    "skl": "scoring the assisting corpus",
    "difficulty": "measuring the information of names and contexts",
    "rebuild": "rebuilding the labels",
    "pretrain": "pre-training",
    "finetune": "fine-tuning",
    **{kind: reference.doing for kind, reference in KINDS.items()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A step with its cost.

    line: name of the variant. what: replicate and part of L_C, in words. seconds: 0 if the run has finished.
    finished: True if the run has finished, or if the experiment ended early and skips the step.
    """

    kind: str
    line: str
    what: str
    seconds: float
    finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of an experiment.

    steps: steps in the order in which they are run. memory_gb, disk_gb: upper bounds in GB (10^9 bytes).
    wall: seconds that the experiment takes with `at_once` steps in parallel, one per GPU of this machine.
    processes: number of processes that share this machine. How much faster they are is measured during the experiment.
    basis: sentences on how training times were estimated.
    person: {variant: seconds that a person must spend on labelling for it}.
    """

    steps: tuple[Priced, ...]
    device: str
    memory_gb: float
    disk_gb: float
    wall: float = 0.0
    at_once: int = 1
    processes: int = 1
    basis: str = ""
    person: Mapping[str, float] = field(default_factory=dict)

    @property
    def person_words(self) -> str:
        """Sentence that states how long a person must label for each variant."""
        if not self.person:
            return "No variant needs work by a person; the computer does everything."
        times = [f"{line} takes {duration(seconds)}" for line, seconds in self.person.items()]
        return f"For labelling, {listed(times)} of your time; the other variants take none."

    def ended(self) -> "Cost":
        """Return a copy with a cost of zero and all steps finished, for an experiment that has ended."""
        steps = tuple(replace(step, seconds=0.0, finished=True) for step in self.steps)
        return replace(self, steps=steps, disk_gb=0.0, wall=0.0)

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def shared_words(self) -> str:
        """Sentence on the time with several processes on one device; "" with one process."""
        if self.processes < 2:
            return ""
        return f"With {self.processes} steps at once it usually takes less; the first steps show how much."

    @property
    def shortage(self) -> str:
        """Sentence that says if several processes need more memory than is free; "" otherwise."""
        return shortage(self.memory_gb, self.processes) if self.processes > 1 else ""

    @property
    def lines(self) -> dict[str, float]:
        """{variant: seconds}. A step that several variants share is counted with the first of them."""
        names = dict.fromkeys(step.line for step in self.steps)
        return {name: sum(step.seconds for step in self.steps if step.line == name) for name in names}

    def as_json(self, what: str = "arms") -> dict[str, object]:
        """Return the fields that `--plan-only --json` prints.

        what: name of the field with the seconds per variant; "tasks" for a study.
        """
        lines = {name: seconds / 3600 for name, seconds in self.lines.items()}
        sizes = {"memory_gb": self.memory_gb, "disk_gb": self.disk_gb, "device": self.device, "shortage": self.shortage}
        times = {"hours": self.seconds / 3600, "wall_hours": self.wall / 3600, "at_once": self.at_once}
        person = {name: seconds / 60 for name, seconds in self.person.items()}
        return {**times, what: lines, "person_minutes": person, **sizes, "steps": [asdict(step) for step in self.steps]}


class Seconds:
    """Estimates the seconds of each step. Work that several variants share is counted with the first variant.

    measured: result of `calibrate`.
    corpora: {role, such as "domain": corpus}.
    firsts: {name in an arm such as `transfer:NAME`: corpus with this name}.
    others: {encoder of the option `axis`: its `calibrate` result}.
    speeds: speeds measured in finished runs; None: use the speeds in `measured`.
    dictionary: corpora of the option `dictionary`.

    The keys of the attribute `basis` are sentences that explain how training times were estimated.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        measured: CalibrateResult,
        corpora: Mapping[str, Corpus],
        sources: Sequence[Corpus] = (),
        also_test: Sequence[Corpus] = (),
        *,
        firsts: Mapping[str, Corpus] | None = None,
        others: Mapping[str, CalibrateResult] | None = None,
        speeds: Speeds | None = None,
        dictionary: Sequence[Corpus] = (),
    ) -> None:
        self.config, self.measured, self.corpora, self.dictionary = config, measured, corpora, dictionary
        self.sources, self.also_test, self.others, self.firsts = sources, also_test, others or {}, firsts or {}
        self.encoder, self.speeds, self.basis = config.encoder, speeds, dict[str, None]()
        self.embeds = 0  # number of times that the experiment embeds D_C
        self._counted: set[tuple[str, ...]] = set()

    def of(self, step: Step) -> float:
        """Return the estimated seconds of a step whose run has not finished; 0 if its work was already counted."""
        seconds = 0.0
        match step.kind:
            case "halves":
                seconds = self.halves()
            case "select":
                seconds = self.select(step.cell, step.replicate)
            case "skl":
                seconds = self.skl()
            case "difficulty":
                seconds = self.difficulty(step.part, step.replicate)
            case "rebuild":
                seconds = self.rebuild()
            case "pretrain":
                seconds = self.pretrain(step.cell)
            case "finetune":
                seconds = self.finetune(step.part[0], step.cell, step.replicate) if self._new(step) else 0.0
            case kind if kind in KINDS:
                seconds = START / 3 + KINDS[kind].seconds(step.cell.arm.value, self)
        return seconds

    @property
    def tested_tokens(self) -> int:
        """Number of tokens in all test sets together."""
        return sum(corpus.n_tokens for corpus in (self.corpora["test"], *self.also_test))

    def _new(self, step: Step) -> bool:
        """Return False if the step's taggers are those of `none` on a part of L_C and were already counted."""
        shared = step.part[0] and (step.cell.arm.more or step.cell.arm.name == NONE)
        return not shared or self._first("part", *map(str, (*step.part, step.replicate.seeds)))

    def select(self, cell: Cell, replicate: Replicate) -> float:
        """Return the estimated seconds of a selection.

        Test leaks and near duplicates are flagged once per experiment. Embeddings are computed once per encoder, and
        scores once per strategy and seed.
        """
        name, drawn = cell.arm.strategy, str(replicate.draw)
        own = self.config.strategies.get(name, {})
        seconds = START / 3 + (self.corpora["domain"].n_tokens * AUDIT if self._first("audit") else 0)
        for strategy in involved(name, own):
            options = strategy_options(strategy.name, own if strategy.name == name else {})
            options = strategy.sized(options, self._selected(cell))
            seconds += self._scores(strategy, options.model_dump(), drawn)
        return seconds

    def _scores(self, strategy: type[Strategy], own: Mapping[str, object], drawn: str) -> float:
        """Return the estimated seconds to score D_C by a strategy; 0 if this was counted before.

        own: options of the strategy. drawn: seed of the selection, as text.
        """
        domain = self.corpora["domain"]
        if not self._first("score", strategy.name, drawn):
            return 0.0
        models = sorted(strategy.models)
        folds = int(str(own.get("folds", 1))) if "ner" in models else 1
        seconds = domain.n_tokens * SCORE
        if models and self._first("B1", drawn):
            task = self.corpora["task"]
            seconds += self._mlm(len(task), task.n_tokens, [task])
        if "prior" in models and self._first("prior", drawn):
            task = self.corpora["task"]
            seconds += self._mlm(len(task), task.n_tokens, [domain])
        if "ner" in models and self._first("B2", str(folds), drawn):
            seconds += self.finetune(0) / len(self.config.tagger_seeds) * folds
        one_pass = self._pieces("domain") * self.measured.embed[1]
        if strategy.reads in ("vectors", "both"):
            encoders: list[tuple[str, str]] = [(encoder, drawn) for encoder in models]
            encoders = encoders or [("base", "")]
            new = [encoder for encoder in encoders if self._first("embed", *encoder)]
            self.embeds += len(new)
            seconds += one_pass * len(new)
        elif strategy.reads == "spans":
            seconds += one_pass * folds if self._first("tag", str(folds), drawn) else 0
        elif "prior" in models:  # Strategy `loss-drop`: `passes` passes of two models over the best `pool` sentences.
            share = min(int(str(own["pool"])) or len(domain), len(domain)) / len(domain)
            seconds += one_pass * 2 * int(str(own["passes"])) * share
        elif models:  # Pseudo-perplexity requires one pass per word piece of a sentence.
            seconds += one_pass * self._pieces("domain") / len(domain)
        return seconds

    def pretrain(self, cell: Cell) -> float:
        """Return the estimated seconds of a variant's MLM."""
        if other := self._of_its_encoder(cell):
            return other.pretrain(cell)
        sentences, tokens = self._reads(cell)
        if self.config.fixed != "none":
            # All variants train for as long as the variant with the most text.
            reads = [self._reads(c) for c in self.config.cells if c.arm.pretrains and c.arm.budget != WHOLE]
            sentences, tokens = max(reads, default=(sentences, tokens))
        roles = ["task"] * cell.arm.task + ["domain"] * bool(cell.arm.strategy)
        texts = self.sources if cell.arm.source else [self.corpora[role] for role in roles]
        return self._mlm(sentences, tokens, list(texts))

    def halves(self) -> float:
        """Return the estimated seconds to find near duplicates among the labelled sentences and to store the halves."""
        return START / 3 + 2 * self.corpora["test"].n_tokens * AUDIT

    def skl(self) -> float:
        """Return the estimated seconds to score the assisting corpus."""
        audit = AUDIT if self._first("audit assisting") else 0.0
        return START / 3 + self.corpora["assisting"].n_tokens * (SCORE + audit)

    def difficulty(self, part: tuple[int, int], replicate: Replicate | None = None) -> float:
        """Return the estimated seconds to measure PVI on a part of L_C; 0 if this part was counted before.

        Each fold trains one classifier on names and one on contexts. With swapped halves, each replicate has its own
        parts. part: (number of sentences, number of the draw); (0, 0) for all of L_C.
        """
        whose = (str(replicate.number),) if replicate and self.config.cross else ()
        if not self._first("difficulty", *map(str, part), *whose):
            return 0.0
        config, train = self.config, self.corpora["train"]
        chosen = DifficultyOptions.parse({"preset": config.preset, **config.difficulty})
        share = (part[0] or len(train)) / len(train)
        pieces = self._read(train).pieces / len(train)
        encoder = config.difficulty_encoder or config.encoder
        measured = self.speeds.of_classifiers(encoder, [train.fingerprint]) if self.speeds else None
        return estimate.difficulty(chosen, train, measured or self.measured, pieces=pieces, share=share)

    def rebuild(self) -> float:
        """Return the estimated seconds to rebuild a training set and store it."""
        return START / 3 + self.corpora["train"].n_tokens * SCORE

    def finetune(self, size: int, cell: Cell | None = None, replicate: Replicate | None = None) -> float:
        """Return the estimated seconds to train taggers on `size` sentences of L_C; 0: on all of L_C.

        cell: variant of the taggers; None: `none`. replicate: replicate whose taggers are trained; None: taggers of all
        seeds.
        """
        if cell and (other := self._of_its_encoder(cell)):
            return other.finetune(size, cell, replicate)
        seeds = len(replicate.seeds if replicate else self.config.tagger_seeds)
        config, train = self.config, self.corpora["train"]
        arm = cell.arm if cell else None
        n = size or len(train)
        # An arm with a CEIM bin has twice as many sentences: a random set, and as many sentences from the bin.
        n = min(n, arm.size * (1 if arm.bin in ("", "none") else 2)) if arm and arm.size else n
        read = self._labelled(arm, n)
        own = config.tagger_settings.model_copy(update={**config.tagger, **(arm.tagger if arm else {})})
        read = read.with_copies if own.beta or own.gamma else read
        speed, dev = self._tagger(own, states=bool(arm and arm.states)), self._read(self.corpora["dev"])
        time = estimate.tagger(
            speed,
            own.training(read.sentences).planned(read.sentences),
            seeds,
            train=read,
            dev=dev,
            tests=[self._read(each) for each in (self.corpora["test"], *self.also_test)],
            stages=2 if arm and arm.lpft else 1,
        )
        first = 0.0
        if arm and arm.first:
            begun = self._read(self.firsts[arm.first])
            settings = own.training(begun.sentences).brief(config.transfer_epochs)
            first = estimate.first(speed, settings, seeds, train=begun, dev=dev)
        if arm and arm.pseudo:
            first = self._pseudo(arm, speed, own, seeds, train=read, dev=dev)
        return first + time.expected + (self._borrowed(cell, seeds) if cell else 0.0)

    def _pseudo(self, arm: Arm, speed: Speed, own: TaggerSettings, seeds: int, *, train: Read, dev: Read) -> float:
        domain = self.corpora["domain"]
        n = min(int(PSEUDO), len(domain))
        text = Read(sentences=n, pieces=n * self._pieces("domain") / len(domain))
        distant = arm.pseudo == DISTANT
        settings = own.training(n) if distant else own.training(train.sentences).planned(train.sentences)
        whole = estimate.pseudo(speed, settings, seeds, train=train, unlabelled=text, dev=dev, distant=distant)
        return whole.expected

    def _of_its_encoder(self, cell: Cell) -> "Seconds | None":
        """Return a copy that estimates times with the variant's encoder; None if it is the experiment's own encoder."""
        measured = self.others.get(cell.arm.encoder)
        if measured is None:
            return None
        other = copy(self)
        other.encoder, other.measured, other.others = cell.arm.encoder, measured, {}
        return other

    def _tagger(self, settings: TaggerSettings, *, states: bool = False) -> Speed:
        """Return the speed of a tagger. states: True if the tagger reads an encoder's frozen states."""
        encoder = self.encoder if states or settings.network in ON_ENCODER else ""
        usual = Speed.measured(self.measured, "tagger", "train")
        return self._speed(usual, settings, encoder, [self.corpora["train"]]).of_network(settings.network)

    def _speed(
        self, usual: Speed, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[Corpus]
    ) -> Speed:
        """Return the speed measured in similar finished runs; `usual` if there are none."""
        known = self.speeds.of(settings, encoder, [text.fingerprint for text in texts]) if self.speeds else None
        self.basis |= {known.basis: None} if known else {}
        return known.speed if known else usual

    def _labelled(self, arm: Arm | None, n: int) -> Read:
        """Return the amount of text per epoch: `n` sentences of L_C, and the sentences that the arm adds."""
        train = self.corpora["train"]
        pieces = self._read(train).pieces / len(train)
        if arm and arm.assisting:
            other = self._read(self.corpora["assisting"])
            in_turn = self.config.tagger_settings.in_turn
            return Read(sentences=n, pieces=n * pieces).and_assisting(other, in_turn=in_turn)
        grown = n * (2 if arm and arm.rebuild == AUGMENT else 1 + arm.rate if arm and arm.rebuild in GROWS else 1)
        return Read(sentences=round(grown), pieces=grown * pieces)

    def _borrowed(self, cell: Cell, seeds: int) -> float:
        """Return the estimated seconds to learn word vectors, compute frozen states, or flag leaks in another corpus.

        seeds: number of taggers, each of which computes its own frozen states.
        """
        arm = cell.arm
        if arm.assisting:
            return self.corpora["assisting"].n_tokens * AUDIT if self._first("audit assisting") else 0.0
        if arm.first:
            return self.firsts[arm.first].n_tokens * AUDIT if self._first("audit transfer", arm.first) else 0.0
        if arm.states:
            splits = (self.corpora[name] for name in ("train", "dev", "test"))
            tokens = sum(corpus.n_tokens for corpus in splits) * self.measured.pieces["train"]
            return STATES * seeds * tokens * self.measured.embed[1]
        if not arm.source or arm.source in self.config.imported_vectors:
            return 0.0
        return self._cap(cell) * (SKIPGRAM + (AUDIT if self._first("audit source") else 0))

    def _cap(self, cell: Cell) -> int:
        """Return the number of tokens that a variant uses from its source corpus."""
        smallest = min((corpus.n_tokens for corpus in self.sources), default=0)
        return tokens_read(cell.budget, self.config.cap_tokens, smallest)

    def _mlm(self, sentences: int, tokens: float, texts: Collection[Corpus]) -> float:
        settings, held_out = self.config.mlm_settings, len(self.corpora["dev"])
        speed = self._speed(Speed.measured(self.measured, "mlm", "task"), settings, self.encoder, texts)
        return estimate.mlm(speed, settings, sentences=sentences, tokens=tokens, held_out=held_out).expected

    def _reads(self, cell: Cell) -> tuple[int, float]:
        """Return (number of sentences, number of tokens) of a variant's MLM text, including flagged sentences."""
        if cell.arm.source:
            per_token = sum(map(len, self.sources)) / sum(corpus.n_tokens for corpus in self.sources)
            return round(self._cap(cell) * per_token), float(self._cap(cell))
        task, others = self.corpora["task"], Text(sentences=0, tokens=0.0)
        if cell.arm.strategy:
            domain = self.corpora["domain"]
            n = self._selected(cell)
            others = Text(sentences=n, tokens=n * domain.n_tokens / len(domain))
        own = Text(sentences=len(task), tokens=task.n_tokens) if cell.arm.task else Text(sentences=0, tokens=0.0)
        read = estimate.balanced(self.config.mlm_settings, own, others)
        return read.sentences, read.tokens

    def _selected(self, cell: Cell) -> int:
        """Return the expected number of sentences that a variant selects; for a threshold as budget, all of D_C."""
        if cell.arm.plain_name == CONTROL:
            return len(self.corpora["task"])
        domain = self.corpora["domain"]
        return expected(Budget.parse(cell.budget), len(domain), domain.n_tokens) or len(domain)

    def _pieces(self, name: str) -> float:
        return self.corpora[name].n_tokens * self.measured.pieces[name]

    def _read(self, corpus: Corpus) -> Read:
        """Return the amount of text that a tagger reads in one pass over a labelled corpus.

        This includes the parts of neighbouring sentences that the tagger reads as context.
        """
        neighbours = 2 * self.config.tagger_settings.context * len(corpus)
        pieces = self._tagger(self.config.tagger_settings).pieces
        return Read(sentences=len(corpus), pieces=corpus.n_tokens * pieces + neighbours)

    def _first(self, *part: str) -> bool:
        """Return True on the first call with these arguments, which identify shared work; False on later calls."""
        new = part not in self._counted
        self._counted.add(part)
        return new


def at_once(where: Where | None = None) -> int:
    """Return the number of steps that run in parallel: with `--on ray` one per GPU, else 1. where: as in `cost`."""
    return max(len(cards.of_workers()), 1) if (where or Where.asked()).on == "ray" else 1


def wall(steps: Sequence[Step], seconds: Mapping[Step, float], at_once: int) -> float:
    """Return the seconds that `steps` take if `at_once` processes run them, each starting the next ready step."""
    free, ends, left = [0.0] * at_once, dict[Step, float](), list(steps)
    while left:
        at = min(range(at_once), key=free.__getitem__)
        ready = {
            step: max(map(ends.__getitem__, step.needs), default=0.0) for step in left if ends.keys() >= {*step.needs}
        }
        # If several steps could start at the same time, start the first of them in the order of `steps`.
        step = min(ready, key=lambda step: max(ready[step], free[at]))
        free[at] = ends[step] = max(ready[step], free[at]) + seconds.get(step, 0.0)
        left.remove(step)
    return max(ends.values(), default=0.0)


class NotYet(Exception):
    """Raised by `Lookup` for a run that has not finished."""


@dataclass(frozen=True, slots=True)
class Lookup(Job):
    """A `Job` that finds finished runs and starts none.

    stand_ins: {fingerprint of a corpus: corpus to return instead}.
    """

    stand_ins: Mapping[str, Corpus] = field(default_factory=dict)

    def corpus(self, reference: str) -> Corpus:
        """Return the corpus with this fingerprint or name, or its stand-in."""
        found = self.library.find(reference)
        return self.stand_ins.get(found.fingerprint, found)

    def child(self, kind: str, **options: object) -> Run:
        """Return the finished run of this kind with these options. Errors: NotYet if there is none."""
        known = self.kinds[kind]
        try:
            wanted = plan(known, known.config.parse(options), self.home)
        except ModelError as error:  # The encoder has not been downloaded yet.
            raise NotYet from error
        run = wanted.finished_in(RunStore(self.home))
        if run is None:
            raise NotYet
        return run


def calibration_options(config: ExperimentConfig, encoder: str = "") -> Options:
    """Return the options of the `calibrate` run that measures the speed of this machine for an experiment.

    If there is no T_C, the run measures MLM on L_C. encoder: an encoder of the option `axis`; "": the experiment's own.
    """
    given = {name: getattr(config, name) for name in ("train", "domain", "allow_download")}
    return {"encoder": encoder or config.encoder, **given, **config.tagger, "task": config.task or config.train}


def cost(
    config: ExperimentConfig,
    measured: CalibrateResult,
    home: Path,
    kinds: Mapping[str, Kind],
    others: Mapping[str, CalibrateResult] | None = None,
    *,
    labels: int = 0,
    where: Where | None = None,
) -> Cost:
    """Estimate the cost of an experiment.

    measured: result of `calibrate` on the corpora of the experiment.
    others: {encoder of the option `axis`: its `calibrate` result}.
    labels: number of training sentences, if only a part of L_C is to be used that is not stored yet; 0: all.
    where: where the experiment is to compute; None: where this process computes.
    """
    job = Lookup(home, cast(RunContext, Silent()), kinds)
    job, seconds, planned, steps = _planned(config, measured, job, others or {}, Speeds(RunStore(home)), labels=labels)
    # With fewer labels, finished runs that read all labels cannot be reused.
    runs = _look(job, [step for step in steps if not (labels and step.kind in OF_LABELS)])
    takes = {step: 0.0 if step in runs else seconds.of(step) for step in steps}
    priced = tuple(
        Priced(kind=step.kind, line=str(step.cell), what=step.what, finished=step in runs, seconds=takes[step])
        for step in steps
        if step.kind != CHECK
    )
    largest = max((measured, *seconds.others.values()), key=lambda result: result.parameters)
    disk_gb = _disk_gb(priced, seconds, largest)
    n = at_once(where)
    together = wall(steps, takes, n) if n > 1 else sum(takes.values())
    processes = (where or Where.asked()).processes
    sizes = {"memory_gb": largest.memory_gb * processes, "disk_gb": disk_gb}
    each = seconds_per_sentence(RunStore(home)) or SECONDS
    return Cost(
        steps=priced,
        device=measured.device,
        **sizes,
        wall=together,
        at_once=n,
        processes=processes,
        basis=" ".join(seconds.basis),
        person={str(line.cell): more * each for line in planned if (more := line.cell.arm.more)},
    )


def by_arm(
    config: ExperimentConfig,
    measured: CalibrateResult,
    home: Path,
    kinds: Mapping[str, Kind],
    others: Mapping[str, CalibrateResult],
    *,
    speeds: Speeds,
) -> dict[str, float]:
    """Return {arm: estimated seconds} of an experiment, as if none of its runs had finished.

    The seconds include all budgets and encoders of the arm. Work that several arms share is counted with the first of
    them. Arguments: as in `cost` and `Seconds`.
    """
    job = Lookup(home, cast(RunContext, Silent()), kinds)
    _, seconds, planned, steps = _planned(config, measured, job, others, speeds)
    found = {line.cell.arm.plain_name: 0.0 for line in planned}
    for step in steps:
        if step.kind != CHECK:
            found[step.cell.arm.plain_name] += seconds.of(step)
    return found


def _planned(
    config: ExperimentConfig,
    measured: CalibrateResult,
    job: Lookup,
    others: Mapping[str, CalibrateResult],
    speeds: Speeds,
    *,
    labels: int = 0,
) -> tuple[Lookup, Seconds, list[Line], list[Step]]:
    """Return (the job that looks for finished runs, the estimator, the variants, their steps in order).

    labels: as in `cost`.
    """
    names = {role: getattr(config, role) for role in ("task", "domain", "train", "dev", "test", "assisting")}
    corpora = {role: job.corpus(name) for role, name in names.items() if name}
    corpora = _halved(config, corpora) if config.cross else corpora
    if labels:
        train = corpora["train"]
        fewer = replace(train, n_sentences=labels, n_tokens=round(labels * train.n_tokens / len(train)))
        corpora["train"] = fewer
        job = replace(job, stand_ins={train.fingerprint: fewer})
    lists = ("sources", "also_test", "dictionary")
    further = {role: [job.corpus(name) for name in getattr(config, role)] for role in lists}
    stages = Stages(config, job)
    seconds = Seconds(config, measured, corpora, **further, firsts=stages.firsts, others=others, speeds=speeds)
    planned = lines(stages, measured.pieces["task"])
    return job, seconds, planned, [step for block in in_order(planned, config.stops) for step in block]


def _look(job: Job, steps: Iterable[Step]) -> dict[Step, Run]:
    """Return {step: its finished run}. A step is left out if its run, or a run that it needs, has not finished."""
    runs: dict[Step, Run] = {}
    for step in steps:
        if all(need in runs for need in step.needs):
            with suppress(NotYet):
                options = step.options(runs)
                runs |= {step: job.child(step.kind, **options)} if step.kind != CHECK else {}
    return runs


def _disk_gb(steps: Sequence[Priced], seconds: Seconds, measured: CalibrateResult) -> float:
    """Return the disk space in GB: unfinished models in float32, checkpoints of one training, embeddings of D_C."""
    weights = 4 * measured.parameters / GB
    models = sum(not step.finished and step.kind in ("pretrain", "finetune") for step in steps)
    rows = len(seconds.corpora["domain"]) * seconds.embeds if seconds.embeds else 0
    return weights * (models + (3 if models else 0)) + rows * 2 * measured.dimension / GB


def _halved(config: ExperimentConfig, corpora: Mapping[str, Corpus]) -> dict[str, Corpus]:
    """Return `corpora` with T_C and the labelled corpora replaced by stand-ins that have the size of swapped halves.

    The halves themselves do not exist yet. corpora: {role: corpus}.
    """
    each = {corpora[split].fingerprint: corpora[split] for split in SPLITS}
    pool = sum(map(len, each.values()))
    tokens = sum(corpus.n_tokens for corpus in each.values()) / pool
    sizes = {"train": len(each.pop(corpora["train"].fingerprint)), **{name: len(other) for name, other in each.items()}}
    parts = {"task": pool // 2, "test": pool // 2, **config.half_sizes(sizes)}
    sized = {name: replace(corpora["train"], n_sentences=n, n_tokens=round(n * tokens)) for name, n in parts.items()}
    return {**corpora, **sized}


class Clock:
    """Reports each step as it starts: its name, the number of finished steps, and the total seconds left."""

    def __init__(self, steps: Sequence[Priced], report: Parted, *, shared: bool = False) -> None:
        """Start before the first step. shared: True if steps that run in parallel share a device."""
        self.steps, self.report, self._at_once, self._shared = steps, report, 1, shared
        self._done: Collection[int] = ()
        # Time at which steps began to run in parallel, and planned seconds of the steps that had finished then.
        self._parallel: tuple[float, float] | None = None
        # {kind of step: (planned seconds, elapsed seconds) of its finished steps}
        self._times = dict[str, tuple[float, float]]()

        self._begun: tuple[float, Priced] | None = None  # the running step and its start time

    def next(self, at: int, done: Collection[int] | None = None, at_once: int = 1) -> None:
        """Report that a step starts. Call it when the previous step has ended.

        at: number of the step, from 0. done: numbers of the finished steps; None: all before `at`.
        at_once: number of steps that run in parallel.
        """
        self._end()
        self._done = range(at) if done is None else done
        self._at_once = at_once
        step = self.steps[at]
        name = f"{step.line}: {_WORDS[step.kind]}{f' on {step.what}' if step.what else ''}"
        if at_once > 1 and self._parallel is None:
            self._parallel = time.monotonic(), self._planned()
        left = self.left()
        self.report.metric("seconds_left", left, at)
        number = len(self._done) + 1
        after = max(left - self._ratio(step.kind) * step.seconds, 0.0)
        self.report.part(number, len(self.steps), name, left=left, after=after)
        self.report.stage(f"[{number} of {len(self.steps)}] {name}")
        self._begun = None if at_once > 1 else (time.monotonic(), step)

    def left(self) -> float:
        """Return the estimated seconds until all steps are finished."""
        return sum(self._ratio(step.kind) * step.seconds for i, step in enumerate(self.steps) if i not in self._done)

    def _planned(self) -> float:
        """Return the planned seconds of the finished steps."""
        return sum(self.steps[i].seconds for i in self._done)

    def _ratio(self, kind: str) -> float:
        """Return elapsed seconds per planned second: of this kind of step, or of all steps if they run in parallel."""
        if self._at_once == 1 or self._parallel is None:
            return self._pace(kind)
        began, before = self._parallel
        planned = self._planned() - before
        if planned < TRUSTED:  # steps that share a device may be no faster together than one after the other
            return 1.0 if self._shared else 1 / self._at_once
        low, high = LIMITS
        return min(max((time.monotonic() - began) / planned, low / self._at_once), high)

    def _pace(self, kind: str) -> float:
        """Return elapsed seconds per planned second, for steps of this kind or, if these are too few, for all steps."""
        planned, passed = self._times.get(kind, (0.0, 0.0))
        if planned < TRUSTED:
            planned, passed = (sum(seconds) for seconds in zip((0.0, 0.0), *self._times.values(), strict=True))
        low, high = LIMITS
        return 1.0 if planned < TRUSTED else min(max(passed / planned, low), high)

    def _end(self) -> None:
        # Leave out steps with a planned time of zero: their elapsed time would make all other steps look too slow.
        if self._begun and self._begun[1].seconds:
            when, step = self._begun
            planned, passed = self._times.get(step.kind, (0.0, 0.0))
            self._times[step.kind] = (planned + step.seconds, passed + time.monotonic() - when)
        self._begun = None
