"""Estimates `labels:+N`: test F1 of `none` with N more labels (SOURCES.md, Power laws).

To measure how F1 grows, taggers are trained on a quarter and on half of L_C, with the seeds of `none`. Each seed draws
its own parts of L_C; the quarter is part of the half. No tagger is trained on further labels, so an estimate is not a
row of the leaderboard.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from core.corpora.corpus import Corpus
from core.experiment.arms import NONE, find
from core.experiment.config import ExperimentConfig
from core.experiment.leaderboard import FinishedLine
from core.experiment.result import MoreLabels, evaluations_of_replicate
from core.labelling import answers
from core.runs import durations
from core.runs.store import Run, RunStore
from core.shown import count
from core.stats.more_labels import expected, lacking
from core.stats.pooled import Estimate
from core.stats.power_law import Forecast
from core.tagging.result import collapsed_seeds

# Assumed seconds to label a sentence. The median time on the page Label replaces this after ENOUGH labelled sentences.
SECONDS = 30.0
ENOUGH = 10
LEVEL = 0.95


def estimates(
    config: ExperimentConfig, lines: Sequence[FinishedLine], train: Corpus, store: RunStore
) -> list[MoreLabels]:
    """Return the estimates of an experiment's arms `labels:+N`. lines: all finished variants. train: L_C."""
    asked = [line for line in lines if line.cell.arm.more]
    if not asked:
        return []
    none = next(line for line in lines if line.cell.arm.name == NONE)
    measured = seconds_per_sentence(store)
    found = [_estimate(config, line, none, len(train), store) for line in asked]
    if measured is None:
        return found
    return [replace(one, person_seconds=one.more * measured, measured=True) for one in found]


def not_estimated(config: ExperimentConfig, sentences: int) -> list[str]:
    """Return a sentence for each arm `labels:+N` that cannot be estimated, with the reason. sentences: size of L_C."""
    asked = [arm for arm in map(find, config.arms) if arm.more]
    reasons = {arm.name: lacking(sentences, arm.more, len(config.seeds)) for arm in asked}
    return [f"{name} will not be estimated: {why}." for name, why in reasons.items() if why]


def seconds_per_sentence(store: RunStore) -> float | None:
    """Return the median seconds that users took to label a sentence on the page Label, including later corrections.

    Return None if fewer than ENOUGH sentences were labelled there. Imported labels do not count: they have no times.
    """
    times = defaultdict[tuple[str, str, int], float](float)
    for run in store.list("queue", "draw"):
        for answer in answers.read(run.path).history:
            if answer.action == "label" and answer.seconds:
                times[run.id, answer.annotator, answer.place] += answer.seconds
    return median(times.values()) if len(times) >= ENOUGH else None


def gain(line: MoreLabels, none: Sequence[Run], taggers: int, store: RunStore) -> Forecast | str:
    """Return random draws of the estimated F1 and its gain; if no estimate is possible, the reason in words.

    none: `finetune` runs of `none`. taggers: number of taggers per replicate.
    Errors: CorpusError; RunError if a run or its evaluation is missing.
    """
    runs = {size: [store.get(run) for run in ids] for size, ids in line.runs.items()}
    runs[line.sentences] = list(none)
    tables = {
        size: [one for run in each for one in evaluations_of_replicate(run, None, taggers)][: line.seeds]
        for size, each in runs.items()
    }
    return expected(tables, line.more)


def _estimate(
    config: ExperimentConfig, line: FinishedLine, none: FinishedLine, sentences: int, store: RunStore
) -> MoreLabels:
    """Return the estimate of one arm `labels:+N`. It assumes SECONDS to label a sentence. sentences: size of L_C."""
    runs: dict[int, list[Run]] = defaultdict(list)
    for chain in line.chains:
        for (size, _), run in chain.tuned.items():
            runs[size].append(run)
    more = line.cell.arm.more
    each = [run for of_size in runs.values() for run in of_size]
    found = MoreLabels(
        arm=line.cell.arm.name,
        more=more,
        sentences=sentences,
        runs={size: [run.id for run in of_size] for size, of_size in runs.items()},
        seeds=len(line.chains),
        hours=sum(durations.by_kind(each, store).values()) / 3600,
        person_seconds=more * SECONDS,
        measured=False,
    )
    why = lacking(sentences, more, len(config.seeds)) or _unlearnt(runs, none, found)
    if why:
        return replace(found, why=why)
    drawn = gain(found, none.finetunes, none.taggers, store)
    if isinstance(drawn, str):
        return replace(found, why=drawn)
    variance = float(drawn.gain.var())
    fixed = min(drawn.fixed, variance)
    return replace(
        found,
        f1=float(np.median(drawn.f1)),
        interval=drawn.interval(LEVEL),
        gain=float(np.median(drawn.gain)),
        gain_interval=drawn.gain_interval(LEVEL),
        estimate=Estimate(
            delta=float(np.median(drawn.gain)), falling=variance - fixed, fixed=fixed, dof=len(each) - len(runs)
        ),
    )


def _unlearnt(runs: Mapping[int, Sequence[Run]], none: FinishedLine, found: MoreLabels) -> str:
    """Describe how many taggers learnt nothing, for the smallest training set with such taggers.

    Return "" if all taggers learnt something.
    """
    for size, each in {**runs, found.sentences: none.finetunes}.items():
        if n := sum(len(collapsed_seeds(run)) for run in each):
            taggers = sum(len(run.manifest.config["seeds"]) for run in each)
            return f"{n} of {count(taggers, 'tagger')} on {size:,} sentences learnt nothing"
    return ""
