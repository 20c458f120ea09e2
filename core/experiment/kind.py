"""The kinds of runs `experiment` and `halves`.

`experiment` runs all variants at all budgets with all seeds, and gives each variant a verdict. Variants share runs if
possible. Every variant differs from `none` in one respect (`arms`): the text on which its encoder or word vectors are
trained, the labels of another corpus, or the method that rebuilds L_C. All variants have the same seeds and settings.
They also have the same encoder and L_C, unless the variant changes these. With the preset `quick` the last epoch is
kept. Each fine-tuning is tested once. Reference variants train nothing: a run of another kind finds the entities in the
test sets. To estimate the gain from more labels, taggers are trained on parts of L_C.

`halves` splits a pool of labelled sentences into two halves. Each half is the test set of the other. A sentence and its
near duplicates (`corpora.hygiene`) are in the same half (SOURCES.md, Halves swapped).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from core import cards
from core.config import Budget
from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.experiment import leaderboard, tables
from core.experiment.arms import find
from core.experiment.cheapest import cheapest
from core.experiment.config import ExperimentConfig, HalvesConfig
from core.experiment.cost import Clock, at_once, calibration_options, cost
from core.experiment.foresight import foretold
from core.experiment.leaderboard import FinishedChain, FinishedLine, multipliers, planned_test
from core.experiment.ledger import earlier_analyses
from core.experiment.more_labels import estimates, not_estimated
from core.experiment.reference import KINDS
from core.experiment.result import ExperimentResult, Half, HalvesResult, PlannedTest, write_halves
from core.experiment.steps import CHECK, Chain, Stages, Step, in_order, lines
from core.importing.audit import Flagging
from core.importing.data_checks import red_items
from core.importing.result import read_audit
from core.kind import Job, Kind
from core.results import IntArray
from core.runs import result as results
from core.runs.in_processes import RunsInProcesses, processes_that_pay
from core.runs.on_ray import RunsOnRay
from core.runs.store import Run, RunStore
from core.runs.where import LOCAL, PROCESSES, Where, uses_ray
from core.selection.choose import check_budget
from core.stats.draws import dealt
from core.tagging.calibrate import CalibrateResult
from core.tagging.evaluations import labelled
from core.text.sentence import Sentence

LOOK = 1.0  # seconds between two checks whether steps in other processes have finished


def run(config: ExperimentConfig, job: Job) -> ExperimentResult:
    """Execute all runs of the experiment, reuse those that have finished, and compare the variants.

    Artifacts: `leaderboard.csv`, `leaderboard.md`.
    """
    cells = config.cells
    _check_budgets(config, job)
    _check_test(config, job)
    if added := [name for name in dict.fromkeys(cell.arm.plain_name for cell in cells) if name not in config.arms]:
        job.context.note(f"Added {' and '.join(added)}, because verdicts compare the other variants with them.")
    if unused := [name for name in config.strategies if name not in {cell.arm.strategy for cell in cells}]:
        job.context.note(f"strategies: no variant uses {' or '.join(unused)}, so the options given for it do nothing.")
    if words := idle_gpu():
        job.context.note(words, passing=True)
    for words in not_estimated(config, len(job.corpus(config.train))):
        job.context.note(words)
    forecast = foretold(config, job.context.run, job.home)
    stages, made, test = _make_runs(config, job)
    finished = [line for line in made if not line.cell.arm.more]
    if test:
        job.context.note(test.why)
    job.context.stage("comparing the variants")
    result = leaderboard.result(
        finished,
        claim=config.claimed,
        planned=test,
        effect=config.effect,
        seed=config.draw_seed,
        store=RunStore(job.home),
        report=job.context,
        others=[run for line in made if line.cell.arm.more for chain in line.chains for run in chain.tuned.values()],
    )
    sizes = stages.label_sizes if config.multipliers else ()
    result = replace(
        result,
        multipliers=multipliers(config, finished, result.leaderboard, sizes),
        foretold=forecast,
        earlier=earlier_analyses(job.context.run, RunStore(job.home)),
    )
    of_labels = estimates(config, made, job.corpus(config.train), RunStore(job.home))
    result = replace(result, more_labels=of_labels)
    result = replace(result, cheapest=cheapest(result, RunStore(job.home)))
    tables.write(job.context, result)
    return result


def idle_gpu() -> str:
    """Return a sentence that says how to use more of this machine's GPUs; "" without a GPU or with another place."""
    gpus, n = cards.of_workers(), processes_that_pay()
    if not gpus or n == 1 or Where.asked().on != LOCAL:
        return ""
    part = "its GPU" if len(gpus) == 1 else "one of its GPUs"
    return f"One step at a time on this machine uses a part of {part}; --on {PROCESSES}{n} executes {n} at once."


def _check_budgets(config: ExperimentConfig, job: Job) -> None:
    """Refuse a budget larger than D_C before any run starts. Errors: ConfigError."""
    if not any(cell.arm.chooses for cell in config.cells):
        return
    domain = job.corpus(config.domain)
    for budget in map(Budget.parse, config.budgets):
        check_budget(budget, domain.n_sentences, domain.n_tokens)


def _check_test(config: ExperimentConfig, job: Job) -> None:
    """Refuse a test set without entities, because every F1 on it would be 0. Errors: ConfigError."""
    test = job.corpus(config.test)
    if not config.cross and not test.types:  # `cross` tests on halves of all labelled data
        raise ConfigError(
            f"test: {test.name} has no entities, so no F1 can be measured on it; label entities in it, or choose "
            "another test set."
        )


def _make_runs(config: ExperimentConfig, job: Job) -> tuple[Stages, list[FinishedLine], PlannedTest | None]:
    """Execute the runs, up to each interim analysis in turn, until the planned test ends the experiment.

    Finished runs are reused. Return (options of the runs, variants with their runs, result of the planned test).
    Errors: those of `ReferenceKind.check`, before any other step, if a reference variant cannot run now.
    """
    measured = results.read(job.child("calibrate", **calibration_options(config)), CalibrateResult)
    others = {
        encoder: results.read(job.child("calibrate", **calibration_options(config, encoder)), CalibrateResult)
        for encoder in config.encoders
    }
    priced = cost(config, measured, job.home, job.kinds, others)
    if words := priced.shortage:
        job.context.note(words, passing=True)
    left = {step.line for step in priced.steps if not step.finished}
    for name, options in config.references.items():
        if name in left:  # A finished reference variant no longer needs its server or folder.
            KINDS[find(name).reference].check(options, job)
    stages, clock = Stages(config, job), Clock(priced.steps, job.context, shared=Where.asked().processes > 1)
    sources = {cell: stages.named[cell.arm.source].fingerprint for cell in config.cells if stages.source(cell)}
    planned = lines(stages, measured.pieces["task"])
    runs: dict[Step, Run] = {}
    blocks = in_order(planned, config.stops)
    places = {step: i for i, step in enumerate(step for block in blocks for step in block if step.kind != CHECK)}

    def begins(step: Step, at_once: int) -> None:
        clock.next(places[step], {places[each] for each in runs}, at_once)

    for number, block in enumerate(blocks):
        make_steps(block, runs, job, begins)
        finished = [
            FinishedLine(
                cell=line.cell,
                chains=tuple(_chain(chain, runs) for chain in line.chains if runs.keys() >= {*chain.tuned.values()}),
                source=sources.get(line.cell),
                taggers=config.taggers,
            )
            for line in planned
        ]
        if test := planned_test(config, [line for line in finished if not line.cell.arm.more], number):
            break
    return stages, finished, test


Begins = Callable[[Step, int], None]  # function called when a step starts, with the number of steps run in parallel


def make_steps(steps: Sequence[Step], runs: dict[Step, Run], job: Job, begins: Begins) -> None:
    """Execute the runs of `steps`, which are in order, reuse those that have finished, and add all to `runs`.

    Normally this process executes the runs one by one. With `--on processes:N`, `--on` a cluster, or `--on ray` on
    several GPUs, it executes only three kinds of steps: splits into halves, selections (Ray computes their chunks), and
    reference variants, because their folders and servers may exist on this machine only. Every other step then has a
    process of its own.
    """
    where = Where.asked()
    on, n = where.on, where.processes
    alone = n == 1 and (not uses_ray(on) or (on == "ray" and at_once() == 1))
    here = [step for step in steps if alone or step.kind in ("halves", "select", *KINDS)]
    for step in here:
        options = step.options(runs)
        if step.kind != CHECK:
            begins(step, 1)
            runs[step] = job.child(step.kind, **options)
    if len(here) < len(steps):
        with RunsInProcesses(job.context, n) if n > 1 else RunsOnRay(job.context, on) as engine:
            _make_elsewhere([step for step in steps if step not in here], runs, job, begins, engine)


def _make_elsewhere(
    steps: Iterable[Step], runs: dict[Step, Run], job: Job, begins: Begins, engine: RunsOnRay | RunsInProcesses
) -> None:
    left, waits = list(steps), ""
    while left:
        busy = ""
        for step in [step for step in left if all(need in runs for need in step.needs)]:
            if step.kind == CHECK:
                step.options(runs)
                left.remove(step)
            elif engine.free:
                run = job.begun_child(step.kind, **step.options(runs))
                if run.state().state == "succeeded":
                    runs[step] = run
                    left.remove(step)
                elif engine.begin(run):
                    begins(step, engine.n)
                else:
                    busy = run.id
        if not engine.at_work and waits != busy:  # Another Winnow process runs every step that could start now.
            job.context.waiting(busy or None)
            waits = busy
        engine.wait(LOOK)
        job.context.check()


def _chain(chain: Chain, runs: Mapping[Step, Run]) -> FinishedChain:
    return FinishedChain(
        replicate=chain.replicate,
        select=runs[chain.select] if chain.select else None,
        pretrain=runs[chain.pretrain] if chain.pretrain else None,
        tuned={part: runs[step] for part, step in chain.tuned.items()},
        halves=runs[chain.halves] if chain.halves else None,
        labels=tuple(runs[step] for step in chain.labels.get((0, 0), ()) if step in runs),
    )


KIND = Kind(
    "experiment",
    ExperimentConfig,
    run,
    ExperimentResult,
    title=lambda run: f"Experiment: {', '.join(run.config['arms'])}",
    outcome=lambda finding, _: " ".join(finding.parts),
    page="Training",
    opens=True,
    red_items=red_items,
)


def split_halves(config: HalvesConfig, job: Job) -> HalvesResult:
    """Pool the labelled sentences, split the pool into halves, and store all parts as corpora. Artifacts: `halves.npz`.

    Errors: ConfigError if a half is too small, CorpusError if a corpus is not labelled.
    """
    corpora = [job.corpus(name) for name in dict.fromkeys((config.train, config.dev, config.test))]
    origin = {"from": corpora[0].fingerprint, "with": [other.fingerprint for other in corpora[1:]]}
    sentences = chain.from_iterable(map(labelled, corpora))
    pool = job.library.seal(sentences, name=f"{corpora[0].name} pool", origin=origin, labelled=True)
    job.context.part(1, 2, "copies")
    clusters = read_audit(job.child("audit", corpus=pool.fingerprint, **Flagging().model_dump())).cluster
    job.context.part(2, 2, "halves")
    job.context.stage("splitting")
    sides = dealt(clusters, (1, 1), config.seed)
    least, wanted = min(map(len, sides)), config.train_sentences + config.dev_sentences
    if wanted > least:
        raise ConfigError(
            f"cross_train: {config.train_sentences:,} training and {config.dev_sentences:,} dev sentences are too "
            f"many. The smaller half of the {len(pool):,} sentences has {least:,}, because near duplicates stay in one "
            "half. Ask for fewer."
        )
    swapped = ((sides[0], sides[1]), (sides[1], sides[0]))
    halves = [_half(config, job, pool, own, other) for own, other in swapped]
    write_halves(job.context, [np.sort(other) for _, other in swapped])
    return HalvesResult(pool=pool.fingerprint, sentences=len(pool), halves=halves)


def _half(config: HalvesConfig, job: Job, pool: Corpus, own: IntArray, test: IntArray) -> Half:
    """Store the corpora of one half. own: rows of the pool in this half, shuffled. test: rows in the other half."""
    train, dev = np.split(own[: config.train_sentences + config.dev_sentences], [config.train_sentences])
    origin, name = {"from": pool.fingerprint}, f"{pool.name} {config.seed}"

    def text() -> Iterator[Sentence]:
        return (replace(sentence, entities=None) for sentence in pool.take(np.sort(own)))

    parts = {
        part: job.library.subset(pool, np.sort(rows), name=f"{name} {part}", origin=origin)
        for part, rows in (("train", train), ("dev", dev), ("test", test))
    }
    parts["task"] = job.library.seal(text(), name=f"{name} text", origin=origin)
    return Half(
        **{part: corpus.fingerprint for part, corpus in parts.items()},
        sentences={part: len(corpus) for part, corpus in parts.items()},
    )


HALVES = Kind(
    "halves",
    HalvesConfig,
    split_halves,
    HalvesResult,
    title=lambda run: f"Split {run.corpus(run.config['train'])} into halves",
    command=None,
)
