"""A run in words: what it does, how far it is, how long it takes. Nothing here draws."""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import floor, log10
from typing import Any

from core.facade import choices, corpora, intake, labels, results, runs, terms, training
from core.facade.errors import WinnowError
from core.facade.runs import Run, RunState
from core.facade.shown import duration
from pages.ui.widgets import budget_words, plain, short

_CHILD = re.compile(r"^(?:\[\d+ of \d+\] )?(?:[a-z][a-z0-9-]*: )*")  # "score: embed: ": which run in the run

_TITLES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "select": lambda config: (
        f"Select {budget_words(config['budget'])} of {corpus_name(config['domain'])} by {config['strategy']}"
    ),
    "prevalence": lambda config: f"Count what is like {corpus_name(config['task'])} in {corpus_name(config['domain'])}",
    "audit": lambda config: f"Check {corpus_name(config['corpus'])} for duplicates and leaks",
    "add": lambda config: f"Import {config['name'] or config['path'].rsplit('/', 1)[-1]}",
    "intake": lambda config: f"Import {_count(sum(len(config[part]) for part in intake.PARTS))}",
    "similarity": lambda config: f"Compare {_sources(len(config['source']))} with {_names(config['target'])}",
    "map": lambda config: f"Map {_of_selection(config['selection'])}",
    "calibrate": lambda config: f"Time this machine with {encoder(config['encoder'])}",
    "vectors-import": lambda config: f"Read word vectors {config['name'] or config['path'].rsplit('/', 1)[-1]}",
    "fetch": lambda config: f"Fetch the encoder {config['encoder']}",
    "rank": lambda config: f"Rank {' and '.join(map(encoder, config['encoders']))} on {corpus_name(config['train'])}",
    "tag": lambda config: f"Find entities in {corpus_name(config['corpus'])}",
    "predict": lambda config: f"Find entities with {_tagger(config['model'])}",
    "evaluate": lambda config: f"Test {_tagger(config['model'])} on {corpus_name(config['test'])}",
    "pretrain": lambda config: f"Pre-train {encoder(config['init'])} on {_names(config['corpora'])}",
    "finetune": lambda config: f"{_trained(config)} on {corpus_name(config['train'])}",
    "skl": lambda config: f"Score {corpus_name(config['assisting'])} against {corpus_name(config['primary'])}",
    "assist": lambda config: f"{corpus_name(config['primary'])} with the help of {corpus_name(config['assisting'])}",
    "difficulty": lambda config: f"Measure names and contexts of {corpus_name(config['train'])}",
    "rebuild": lambda config: f"Rebuild {corpus_name(config['train'])} by {config['method']}",
    "robustness": lambda config: f"Make {config['kind']} of {corpus_name(config['test'])}",
    "split": lambda config: f"Divide {corpus_name(config['corpus'])} by {config['by']}",
    "halves": lambda config: f"Split {corpus_name(config['train'])} into halves",
    "experiment": lambda config: f"Experiment: {', '.join(config['arms'])}",
    "study": lambda config: (
        f"Study: {', '.join(config['arms'])} on {', '.join(config['names']) or _names(config['test'])}"
    ),
}


PARTS = {
    **{role: f"the {term.word}" for role, term in corpora.ROLES.items()},
    "holdout": f"the {terms.TEST.word}",
    "held_out": "what was held out",
    "corpora": "what was read",
    "corpus": "its corpus",
    "source": "a source",
    "target": "the target",
    "gazetteer": "its list of names",
    "primary": "the primary corpus",
    "assisting": "the assisting corpus",
}


_ENDED = {"succeeded": "Finished", "failed": "Failed", "cancelled": "Cancelled", "interrupted": "Interrupted"}


def ending(run: Run, state: RunState) -> str:
    """Ending of a run, in a word; a training is stopped and keeps what it learnt, anything else is cancelled."""
    stopped = state.state == "cancelled" and run.manifest.kind in training.TRAININGS
    return "Stopped" if stopped else _ENDED[state.state]


def removed(run_id: str) -> str:
    """Corpora of a run that are gone, and what that means for it; "" where all are here."""
    gone = [PARTS.get(name, name) for name in results.removed_inputs(run_id)]
    if not gone:
        return ""
    return (
        f"No longer on this machine: {', '.join(dict.fromkeys(gone))}. What the run kept is shown; sentences of"
        " removed corpora are not, and it cannot be run again as it was."
    )


def title(run: Run) -> str:
    """A run in words: as somebody named it, else what it does to which corpus."""
    with suppress(WinnowError):  # one that was removed since
        if name := labels.label_of(run.id).name:
            return name
    kind, config = run.manifest.kind, run.manifest.config
    with suppress(KeyError, TypeError, AttributeError, WinnowError):  # a manifest that lost an option still has a row
        if kind == "select":
            return choice_title(run.id)
        if kind in _TITLES:
            return _TITLES[kind](config)
    return f"{kind} {corpus_name(config.get('corpus') or config.get('domain') or '')}"


def choice_title(choice_id: str) -> str:
    """A choice in words: its name, what it takes of which corpus. Errors: RunError; KeyError for a spoilt manifest."""
    choice = choices.at(choice_id)
    what = _TITLES["select"]({**runs.get(choice.run).manifest.config, "budget": choice.budget})
    return f"{choice.name}: {what}" if choice.name else what


def name_of(run: Run) -> str:
    """A run in a list of many: what it does, and the end of its id, which no other of its title has."""
    return f"{title(run)} ({run.id[-4:]})"


def when(moment: float) -> str:
    """A time as this machine's clock shows it, the year left out. moment: seconds since 1970."""
    return time.strftime("%-d %B, %H:%M", time.localtime(moment))


def last_duration(kind: str) -> str:
    """Time that the latest of a kind took here, for who is to begin one; why nothing is known before the first."""
    of_kind = (run for run in runs.listed(kind) if run.manifest.parent is None)
    done = next((run for run in of_kind if runs.state(run.id).state == "succeeded"), None)
    if done is None:
        return (
            "How long it takes is not known: nothing like it was finished on this machine yet. It says so itself as"
            " soon as its first part is over."
        )
    return f"The latest one here, {title(done)}, took {duration(runs.state(done.id).seconds)}."


def corpus_name(reference: str) -> str:
    """A corpus as it is called, a long name cut, or that it is gone."""
    return short(results.corpus_name(reference))


def _of_selection(run_id: str) -> str:
    try:
        return f"{corpus_name(runs.get(run_id).manifest.config['domain'])} for selection {run_id[-4:]}"
    except WinnowError:
        return f"a removed selection ({run_id[-4:]})"


def _trained(config: Mapping[str, Any]) -> str:
    network = config.get("network", "encoder")
    if not training.begins_from_encoder(network):
        return f"Train a {network} tagger"
    spans = " as MINER" if config.get("beta") or config.get("gamma") else " on spans" if network == "span" else ""
    return f"Fine-tune {encoder(config['init'])}{spans}"


def _tagger(model: str) -> str:
    """A finished fine-tuning by its start and corpus, a folder by its name."""
    with suppress(WinnowError):
        config = runs.get(model).manifest.config
        network = config.get("network", "encoder")
        begun = encoder(config["init"]) if training.begins_from_encoder(network) else network
        return f"{begun} on {corpus_name(config['train'])}"
    return model.rstrip("/").rsplit("/", 1)[-1]


def _count(files: int) -> str:
    return f"{files:,} file{'s' * (files > 1)}"


def _names(references: Sequence[str]) -> str:
    return " and ".join(corpus_name(reference) for reference in references)


def encoder(init: str) -> str:
    """Encoder to start from, in few words: a finished pre-training by its corpora, a folder by its name."""
    run_id = init.removesuffix("/artifacts/model").rsplit("/", 1)[-1]
    with suppress(WinnowError):
        return f"the encoder of {run_id[-4:]} ({_names(runs.get(run_id).manifest.config['corpora'])})"
    return init.rstrip("/").rsplit("/", 1)[-1]


def waited_for(run_id: str) -> str:
    """The run that another waits for, for a place that reads Markdown."""
    try:
        return f"{plain(title(runs.get(run_id)))} ({run_id[-4:]})"
    except WinnowError:
        return plain(run_id)


def stage(state: RunState) -> str:
    """Stage that the run is in right now."""
    name = _CHILD.sub("", state.stage or "starting")
    return name[:1].upper() + name[1:]


def whole(state: RunState, *, named: bool = False) -> list[str]:
    """Place of a run in its whole, as far as that is known: which part, and how long all of it takes."""
    part, now = state.part, time.time()
    parts = [f"Part {part.number} of {part.of}" + (f", {part.name}" if named else "")] if part else []
    left = None if state.cancelling else state.left(now)
    return parts if left is None else [*parts, out_of(state.elapsed(now), state.elapsed(now) + left)]


def share(state: RunState) -> float:
    """Share that is done, 0 to 1: of all where its time is known, else of the stage."""
    now = time.time()
    left = state.left(now)
    if left is not None:
        # In the first moment both may be 0.
        return min(state.elapsed(now) / max(state.elapsed(now) + left, 1.0), 1.0)
    return min(state.done / state.total, 1.0) if state.total else 0.0


def brief(state: RunState) -> str:
    """Progress of a run, in a line, for a place that reads Markdown."""
    if state.waiting_for:
        return f"Waits for {waited_for(state.waiting_for)}"
    if state.cancelling or state.state == "queued":
        return "Stopping" if state.cancelling else "Starting"
    known = whole(state)
    if state.left(time.time()) is None:
        known = [*known, *(pace(state)[-1:] if state.eta is not None else [stage(state)])]
    return plain(" · ".join(known))


def out_of(elapsed: float, all_of_it: float) -> str:
    """Seconds of seconds, in the unit of the longer time."""
    # Up to one and a half of the next unit the smaller one says more.
    for most, unit, seconds, digits in ((90, "s", 1, 0), (5400, "min", 60, 0), (math.inf, "h", 3600, 1)):
        if all_of_it < most:
            return f"{elapsed / seconds:.{digits}f} of about {all_of_it / seconds:.{digits}f} {unit}"
    raise ValueError(all_of_it)


def pace(state: RunState) -> list[str]:
    """Progress of the stage, its speed, and how long it will still take, as far as each is known."""
    parts = []
    if state.done:
        parts.append(f"{state.done:,}{f' of {state.total:,}' if state.total else ''} {state.unit}")
    if state.rate:
        parts.append(f"{_digits(state.rate)} {state.unit} a second")
    if state.eta is not None and state.active and not state.cancelling:
        parts.append(f"about {duration(state.eta)} left in this stage")
    return parts


def _digits(value: float) -> str:
    """Two digits at least: 0.43, 4.3, 43, 4,321."""
    return f"{value:,.{max(0, 1 - floor(log10(value)))}f}"


def _sources(n: int) -> str:
    return "1 source" if n == 1 else f"{n} sources"
