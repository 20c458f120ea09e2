"""Finished runs without training: an experiment, its taggers and a study, with random predictions."""

import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.bias.result import RebuildResult
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.experiment import deliver, leaderboard
from core.experiment import study as questions
from core.experiment import tables as experiment_tables
from core.experiment.arms import Cell, find
from core.experiment.config import Replicate
from core.experiment.leaderboard import FinishedChain, FinishedLine
from core.experiment.result import ArmRow, CurvePoint, ExperimentResult, StudyResult, TaskRow
from core.experiment.study import StudyConfig, planned_test
from core.importing import view as facade_corpora
from core.importing.result import AddResult
from core.kind import as_json, register
from core.kinds import KINDS
from core.reporter import Silent
from core.results import Evaluation
from core.runs import worker
from core.runs.context import RunContext
from core.runs.events import EventLog
from core.runs.store import Run, RunStore
from core.selection.result import SelectResult
from core.selection.which_strategy import WhichStrategyResult
from core.stats.pooled import Estimate
from core.stats.recall import Compared, Mean
from core.stats.scoring import evaluate
from core.tagging import evaluations
from core.tagging.calibrate import CalibrateResult
from core.tagging.evaluations import FinetuneResult, OverSeeds, SeedOutcome, SplitScores, all_seeds
from core.text.sentence import Entity, Prediction, Sentence, sentence_id
from core.training.saved_models import Perplexity, PretrainResult

TYPES = ("PARTY", "DATE", "<b>COURT</b>")
NASTY = "<img src=x onerror=alert(1)>"
SKILL = {"none": 0.45, "random": 0.44, "classifier": 0.66}
SEEDS = (1, 2, 3)
TIMED = CalibrateResult(
    machine="A processor",
    busy=False,
    device="cpu",
    mlm=(0.1, 0.001),
    tagger=(0.2, 0.002),
    embed=(0.0, 0.0001),
    load=1.0,
    has_head=True,
    parameters=1000,
    dimension=64,
    memory_gb=1.0,
    pieces={"task": 1.5, "train": 1.5, "domain": 1.5},
)


def labelled(n: int, seed: int, prefix: str) -> list[Sentence]:
    """Make n sentences of ten words with two entities each; about half of the words have the prefix."""
    rng, found = np.random.default_rng(seed), []
    for i in range(n):
        tokens = [f"{prefix if rng.random() < 0.5 else 'both'}{rng.integers(30)}" for _ in range(9)] + [f"{prefix}{i}."]
        tokens[4] = NASTY if i == 0 else tokens[4]
        entities = tuple(Entity(start=at, end=at + 2, type=TYPES[rng.integers(3)]) for at in (1, 5))
        text = " ".join(tokens)
        made = Sentence(id=sentence_id(text), tokens=tuple(tokens), text=text, entities=entities)
        found.append(replace(made, file=f"{prefix}1.pdf", page=i // 10 + 1))
    return found


def random_predictions(gold: Sequence[Sentence], skill: float, seed: int) -> list[Prediction]:
    """Predict each entity with probability `skill`, otherwise a random type or none; nothing if `skill` is below 0."""
    rng = np.random.default_rng(seed)

    def one(sentence: Sentence) -> Prediction:
        found = []
        for entity in sentence.entities or ():
            draw = rng.random()
            kind = entity.type if draw < skill else TYPES[rng.integers(3)]
            found += [Entity(start=entity.start, end=entity.end, type=kind)] if draw < 0.9 and skill >= 0 else []
        return Prediction(entities=tuple(found), confidence=(1.0,) * len(found))

    return [one(sentence) for sentence in gold]


def without(read: Prediction, kind: str) -> Prediction:
    """Return a prediction without the entities of one type."""
    found = tuple(entity for entity in read.entities if entity.type != kind)
    return Prediction(entities=found, confidence=(1.0,) * len(found))


def corpora(home: Path) -> dict[str, Corpus]:
    """Seal T_C, D_C, training set, dev set and test set, and set their roles."""
    library, made = Library(home), dict[str, Corpus]()
    for role, n, seed in (("train", 60, 1), ("dev", 40, 2), ("test", 150, 3)):
        rows = labelled(n, seed, role)
        made[role] = library.seal(rows, name=f"my {role}", origin={}, labelled=True)
    for role, n in (("task", 50), ("domain", 90)):
        texts = [f"Plain sentence {i} of {role} ." for i in range(n)]
        file = f"{role}1.pdf"
        rows = [Sentence(id=sentence_id(each), tokens=tuple(each.split()), text=each, file=file) for each in texts]
        made[role] = library.seal(rows, name=f"my {role}", origin={})
    for role, corpus in made.items():
        facade_corpora.set_role(role, corpus.fingerprint)
    return made


SELECTED = SelectResult(
    strategy="random", selected=1, of=1, tokens=5, dropped={}, corpus="", score_run="", audit_run=""
)

COMPARED = WhichStrategyResult(
    hidden=100,
    among=9000,
    draws=10,
    budget="10%",
    chance=0.1,
    strategies={
        "classifier": Compared(recall=Mean(value=0.604, low=0.5, high=0.7), difference=None),
        "knn": Compared(recall=Mean(value=0.71, low=0.6, high=0.8), difference=Mean(value=0.106, low=0.02, high=0.19)),
        "random": Compared(recall=Mean(value=0.1, low=0.05, high=0.16), difference=None),
    },
    best="knn",
)


def imported(corpus: Corpus) -> AddResult:
    """Return the result of an import that kept every row."""
    n = len(corpus)
    return AddResult(
        corpus=corpus.fingerprint,
        name=corpus.name,
        sentences=n,
        tokens=corpus.n_tokens,
        types=dict(corpus.types),
        asked_name=corpus.name,
        was_here=False,
        unspaced=0,
        format="txt",
        scheme=None,
        text_column=None,
        encoding="utf-8",
        files=1,
        read=n,
        kept=n,
        repaired=0,
        repaired_rows=0,
        rejected=0,
        rejected_spans=0,
        skipped=0,
        empty=0,
        problems=(),
    )


def constant(result: object) -> Callable[[RunContext], object]:
    """Return work whose result is `result`."""
    return lambda context: result


def finish(home: Path, kind: str, options: Mapping[str, Any], work: Callable[[RunContext], object]) -> Run:
    """Finish a run of `kind`; `work` returns its result."""
    run = register(KINDS[kind], KINDS[kind].config.parse(dict(options)), RunStore(home), run_anyway=True)
    worker.execute(run, lambda context: as_json(work(context)))
    return run


def returned(run: Run, result: object) -> None:
    """Replace the result of a finished run by another JSON value, with a valid checksum."""
    run.result_file.write_text(json.dumps(result), encoding="utf-8")
    data = run.result_file.read_bytes()
    with EventLog(run.events_file) as log:
        log.append("succeeded", {"size": len(data), "crc": zlib.crc32(data)})


@contextmanager
def as_running(run: Run) -> Iterator[Run]:
    """Let this process hold a run during the block, so that the run counts as running."""
    assert run.lock.acquire(run.id)
    try:
        with EventLog(run.events_file) as log:
            log.append("started", {"pid": os.getpid(), "created": 0.0})
        yield run
    finally:
        run.lock.release()


def split_scores(table: Evaluation) -> SplitScores:
    """Return the scores of one seed, as in a `finetune` run."""
    return SplitScores(
        micro_f1=table.f1(), precision=table.precision(), recall=table.recall(), by_type={}, decodings={}
    )


def seed_outcome(seed: int, best_epoch: int, dev: SplitScores, *tests: SplitScores) -> SeedOutcome:
    """Return the outcome of one seed of a `finetune` run."""
    return SeedOutcome(seed=seed, best_epoch=best_epoch, epochs=5, seconds=9.0, dev=dev, tests=tests, settings={})


def over_seeds(f1s: Sequence[float], by_type: Mapping[str, float] | None = None) -> OverSeeds:
    """Return the scores of all seeds on one set. f1s: one per seed."""
    spread = float(np.std(f1s, ddof=1)) if len(f1s) > 1 else None
    return OverSeeds(micro_f1=f1s, mean=float(np.mean(f1s)), sd=spread, by_type=by_type or {}, decodings={})


def fine_tuned(
    *tests: Sequence[float], dev: Sequence[float] = (60.0,), model: str = "", by_type: Mapping[str, float] | None = None
) -> FinetuneResult:
    """Return the result of a `finetune` run. tests, dev: F1 of every seed. by_type: F1 on the first test set."""
    scores = [over_seeds(f1s, None if i else by_type) for i, f1s in enumerate(tests)]
    return FinetuneResult(
        model=model,
        dev=over_seeds(dev),
        test=scores[0] if scores else None,
        tests=scores,
        best_epoch=[3] * len(dev),
        epochs=[5] * len(dev),
        seconds=[9.0] * len(dev),
        settings={},
    )


def pretrained(
    sentences: int = 40, before: float = 90.5, after: float = 30.25, *, head_fitted: bool = False
) -> PretrainResult:
    """Return the result of a `pretrain` run. before, after: pseudo-perplexity."""
    return PretrainResult(
        model="/nowhere",
        sentences=sentences,
        epochs=1.0,
        steps=10,
        dev_loss=[3.9],
        dev_loss_general=[5.0],
        pseudo_perplexity=Perplexity(before=before, after=after),
        before={},
        head_fitted=head_fitted,
        tokens_per_second=900.0,
    )


def tuned(
    home: Path,
    made: Mapping[str, Corpus],
    init: str,
    skill: float,
    seed_effects: Sequence[float] = (0, 0.02, -0.02),
    never: str = "",
    **settings: Any,
) -> Run:
    """Finish a `finetune` run. seed_effects: added to `skill`, per seed. never: a type that is never found."""
    gold = {name: list(next(made[name].batches(0, 1000))) for name in ("dev", "test")}

    def work(context: RunContext) -> FinetuneResult:
        scores: dict[str, list[SplitScores]] = {"dev": [], "test": []}
        for seed, effect in zip(SEEDS, seed_effects, strict=True):
            for name, sentences in gold.items():
                read = [
                    without(one, never)
                    for one in random_predictions(sentences, skill + effect, seed * 100 + int(1000 * skill))
                ]
                table = evaluate(sentences, read, sorted(TYPES))
                for step in (1, 2) if name == "dev" else ():
                    context.metric(f"dev_f1@{seed}", table.f1() * step / 2, 10 * step)
                evaluations.write(context.run, evaluations.file_suffix(name, seed), table, read)
                scores[name].append(split_scores(table))
        model = context.run.artifacts / "model"
        model.mkdir(exist_ok=True)  # a cancelled experiment may have created it
        (model / "config.json").write_text(json.dumps({"skill": skill}))
        outcomes = zip(SEEDS, (3, 4, 3)[: len(SEEDS)], scores["dev"], scores["test"], strict=True)
        tables = [evaluations.read(context.run)]
        return all_seeds(str(model), [seed_outcome(*outcome) for outcome in outcomes], tables)

    options = {"init": init, "seeds": SEEDS, **settings, **{name: made[name].fingerprint for name in ("train", "dev")}}
    return finish(home, "finetune", {**options, "test": (made["test"].fingerprint,)}, work)


def rebuilt(home: Path, made: Mapping[str, Corpus], arm: str, changed: int, wanted: int, *, seed: int = 1) -> Run:
    """Finish a `rebuild` run of an arm that has only these numbers and no files."""
    result = RebuildResult(
        corpus=made["train"].fingerprint,
        sentences=len(made["train"]),
        mentions=wanted,
        changed=changed,
        wanted=wanted,
        of=wanted,
        pools={},
        output="",
        edits="",
    )
    options = {"train": made["train"].fingerprint, "method": find(arm).rebuild, "rate": find(arm).rate, "seed": seed}
    return finish(home, "rebuild", options, constant(result))


def experiment(
    home: Path,
    made: Mapping[str, Corpus],
    lines: Sequence[tuple[str, str, int]],
    never: str = "",
    seed_effects: Mapping[str, Sequence[float]] | None = None,
    changed: Mapping[str, tuple[int, int]] | None = None,
    claim: Cell | None = None,
) -> Run:
    """Finish an experiment. lines: (arm, budget, sentences of MLM). never: a type that no arm finds.

    seed_effects: {arm: effects added to its skill, per seed}. changed: {arm: (mentions changed in its L_C, mentions
    asked for)}.
    """
    store, finished = RunStore(home), []
    for number, (arm, budget, sentences) in enumerate(lines):
        pretrain = None
        if sentences:
            options = {"corpora": (made["task"].fingerprint,), "init": "tiny", "seed": number}
            pretrain = finish(home, "pretrain", options, constant(pretrained(sentences)))
        skill = SKILL.get(arm, 0.6) + sentences / 1e3
        effect = (seed_effects or {}).get(arm, (0, 0.02, -0.02))
        own = (
            {"epochs": number} if changed and arm in changed else {}
        )  # another option gives a separate run, as other labels would
        sizes = {(0, 0): tuned(home, made, pretrain.id if pretrain else "tiny", skill, effect, never=never, **own)}
        every = Replicate(draw=0, seeds=SEEDS, number=1)  # as if each seed had its own selection and pre-training
        labels = (rebuilt(home, made, arm, *changed[arm]),) if changed and arm in changed else ()
        chain = FinishedChain(replicate=every, select=None, pretrain=pretrain, tuned=sizes, labels=labels)
        finished.append(FinishedLine(cell=Cell(arm=find(arm), budget=budget), chains=(chain,)))

    def work(context: RunContext) -> ExperimentResult:
        found = leaderboard.result(finished, seed=0, store=store, report=Silent(), claim=claim)
        curve = [
            CurvePoint(
                arm=arm,
                budget=budget,
                train_sentences=n,
                draw=draw,
                finetune_run="",
                micro_f1=[100 * SKILL.get(arm, 0.6) - 100 * (n * (2 if sentences else 1)) ** -0.5 + draw / 5] * 2,
            )
            for arm, budget, sentences in lines[:3]
            for n in (10, 25, 50)
            for draw in (0, 1)
        ]
        return replace(found, curve=curve)

    options = {
        "arms": tuple(dict.fromkeys(arm for arm, _, _ in lines)),
        "encoder": "tiny",
        "seeds": SEEDS,
        "budgets": tuple(dict.fromkeys(budget for _, budget, _ in lines if budget)) or ("10%",),
        **{name: corpus.fingerprint for name, corpus in made.items()},
    }
    return finish(home, "experiment", options, work)


def html_report(run_id: str) -> str:
    """Return the report of a finished run as HTML."""
    return deliver.report(run_id).decode()


ARM_ROW = ArmRow(
    arm="knn",
    budget="",
    about="An arm.",
    sentences=0,
    micro_f1=[60.0],
    dev_f1=[60.0],
    mean=60.0,
    dev_mean=60.0,
    sd=0.5,
    source=None,
    select_run=None,
    pretrain_run=None,
    label_runs=(),
    finetune_run="",
    verdict="no evidence",
    why="Why.",
    delta=0.0,
    interval=(-1.0, 2.0),
    level=0.95,
    delta_random=None,
    interval_random=None,
    wins=0,
    ties=1,
    losses=0,
    seeds_needed="",
    hours={},
    gpu_hours=1.0,
    f1_per_hour=0.5,
)
LINES = (
    ("none", "", 0),
    ("classifier", "10", 60),
    ("classifier", "20", 70),
    ("classifier", "40", 90),
    ("random", "10", 60),
    ("random", "20", 70),
    ("random", "40", 90),
)


def study(
    home: Path, deltas: Sequence[float], *, choosing: bool = True, replicates: int = 6, idle: Sequence[int] = ()
) -> Run:
    """Finish a study without runs. deltas: difference between claim and control per task.

    idle: numbers of the tasks on which no tagger learnt anything.
    """
    library, splits = Library(home), dict[str, list[str]]()
    for split, n in (("train", 9), ("dev", 6), ("test", 40)):
        made = [labelled(n, 50 + number, f"{split}{number}") for number in range(len(deltas))]
        sealed = [
            library.seal(rows, name=f"{split} {number}", origin={}, labelled=True) for number, rows in enumerate(made)
        ]
        splits[split] = [corpus.fingerprint for corpus in sealed]
    names = (NASTY, *(f"task {number}" for number in range(1, len(deltas))))
    arms = ("none", "random", "classifier") if choosing else ("none", "lpft")
    seeds, looks = tuple(range(1, replicates + 1)), (2, 4, 6) if choosing and replicates == 6 else ()
    text = {name: tuple(splits["train"]) for name in ("task", "domain")} if choosing else {}
    options = {**splits, **text, "names": names, "arms": arms, "seeds": seeds, "looks": looks, "encoder": "tiny"}
    config = StudyConfig.parse(options)
    tasks = [
        replace(_task(name, delta, choosing=choosing), learnt=number not in idle)
        for number, (name, delta) in enumerate(zip(names, deltas, strict=True))
    ]
    planned = planned_test(config, tasks, len(config.stops) - 1)

    def work(context: RunContext) -> StudyResult:
        asked = (config, tasks, replicates, planned.bound if planned else None)
        result = StudyResult(
            arm=config.claimed.arm.name,
            budget=config.claimed.budget,
            control=str(config.control or ""),
            tasks=tasks,
            reading=questions.reading(*asked),
            choosing=questions.choosing(*asked),
            planned=planned,
            replicates=replicates,
            hours={"pretrain": 2.0},
        )
        experiment_tables.write(context, result)
        return result

    return finish(home, "study", options, work)


def _task(name: str, delta: float, *, choosing: bool) -> TaskRow:
    """Return a task of a study. delta: difference from the control, or from `none` without a control."""
    gap = Estimate(delta=delta, falling=0.12, fixed=0.05, dof=12.0)
    more = replace(gap, delta=delta + 4) if choosing else gap
    interval, wider = (delta - 0.9, delta + 0.9), (more.delta - 0.9, more.delta + 0.9)
    return TaskRow(
        name=name,
        run="",
        sentences=465,
        tokens=30_000 if choosing else 0,
        f1=60.0 + delta,
        none_f1=60.0 - 4 * choosing,
        control_f1=60.0 if choosing else None,
        reading=more,
        reading_interval=wider,
        choosing=gap if choosing else None,
        choosing_interval=interval if choosing else None,
    )
