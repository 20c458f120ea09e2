"""Texts about a run: its progress, duration and ending. This module draws nothing."""

import math
import re
import time
from math import floor, log10

from core import terms
from core.errors import WinnowError
from core.experiment import results
from core.importing.result import ROLES
from core.projects import runs
from core.projects.titles import title
from core.runs.events import RunState
from core.runs.run import Run
from core.shown import duration
from core.tagging import view as training
from pages.ui.widgets import plain

# matches the start of a stage's name that lists the kinds of child runs, such as "score: embed: "
_CHILD = re.compile(r"^(?:\[\d+ of \d+\] )?(?:[a-z][a-z0-9-]*: )*")

PARTS = {
    **{role: f"the {term.word}" for role, term in ROLES.items()},
    "holdout": f"the {terms.TEST.word}",
    "held_out": "the held-out sentences",
    "corpora": "the pre-training text",
    "corpus": "its corpus",
    "source": "a source",
    "target": "the target",
    "gazetteer": "its list of names",
    "primary": "the primary corpus",
    "assisting": "the assisting corpus",
    "unlabelled": "the sentences without labels",
    **dict.fromkeys(("dictionary", "distant"), "a list of names"),
    **dict.fromkeys(("first", "transfer"), "the corpus to train on first"),
}


# {kind of run: label of the button that stops it}; for other kinds the label is "Cancel". A stopped training keeps its
# best model so far. A stopped experiment keeps its finished parts, but has no verdict.
STOP = {
    **dict.fromkeys(("pretrain", "finetune"), "Stop and keep"),
    **dict.fromkeys(("experiment", "study"), "Stop"),
}
_ENDED = {"succeeded": "Finished", "failed": "Failed", "cancelled": "Cancelled", "interrupted": "Interrupted"}


def ending(run: Run, state: RunState) -> str:
    """Return the word for a run's final state. A cancelled training is "Stopped", because it keeps its model."""
    stopped = state.state == "cancelled" and run.manifest.kind in training.TRAININGS
    return "Stopped" if stopped else _ENDED[state.state]


def stopped(run: Run) -> str:
    """Return a text that says what a stopped run has kept and what Resume does.

    If corpora were removed, the run cannot be resumed (see `removed`), so the text only names a model that was kept.
    """
    kind, asked = run.manifest.kind, "Stopped at your request."
    if results.removed_inputs(run.id):
        return f"{asked}{_best(run)}"
    if kind == "add":
        return f"{asked} Nothing was added. Resume starts from the beginning."
    if kind == "intake":
        return f"{asked} Imported files are kept, and Resume continues with the next part."
    if kind not in training.TRAININGS:
        return f"{asked} Finished work is kept, and Resume continues from there."
    if kind in ("experiment", "study"):
        part = runs.state(run.id).part
        of = f"The {part.number - 1:,} finished of {part.of:,} parts are kept" if part else "Finished parts are kept"
        return f"{asked} {of}, and Resume continues from there. A verdict needs all parts."
    step, _ = training.left_behind(run.id)
    if step is None:
        kept = "No checkpoint was written yet, so Resume starts this training again. Earlier finished parts are kept."
    else:
        kept = f"The checkpoint of step {step:,} is kept. Resume continues from it, and the curve continues too."
    return f"{asked} {kept}{_best(run)}"


def _best(run: Run) -> str:
    """Return a sentence that names the model that a stopped training has kept; "" if there is none."""
    model = training.left_behind(run.id)[1] if run.manifest.kind in ("pretrain", "finetune") else None
    return "" if model is None else f" The best model so far is ready to use, in {plain(str(model))}."


def removed(run_id: str) -> str:
    """Return a text that names the corpora of a run that were removed; "" if none was."""
    gone = [PARTS.get(name, name) for name in results.removed_inputs(run_id)]
    if not gone:
        return ""
    names = f"No longer on this machine: {', '.join(dict.fromkeys(gone))}."
    if runs.state(run_id).state != "succeeded":
        return f"{names} The run cannot be resumed or repeated."
    return f"{names} The results are shown, but no sentences of removed corpora, and the run cannot be repeated."


def last_duration(kind: str) -> str:
    """Return a sentence that says how long the latest run of a kind took on this machine.

    Runs that were imported with a project are left out, because another machine may have computed them.
    """
    of_kind = (run for run in runs.listed(kind) if run.manifest.parent is None and not run.brought_file.exists())
    done = next((run for run in of_kind if runs.state(run.id).state == "succeeded"), None)
    if done is None:
        return (
            "The time is not known: no run of this kind has finished on this machine yet. An estimate appears after"
            " the first part."
        )
    return f"The latest such run here, {title(done)}, took {duration(runs.state(done.id).seconds)}."


def waited_for(run_id: str) -> str:
    """Return in Markdown the title of a run for which another run waits; a general phrase if it cannot be read."""
    try:
        return plain(title(runs.get(run_id)))
    except WinnowError:
        return "a run of another project"


def stage(state: RunState) -> str:
    """Return the name of a run's current stage, with a capital letter and without the kinds of child runs."""
    name = _CHILD.sub("", state.stage or "starting")
    return name[:1].upper() + name[1:]


def whole(state: RunState, *, named: bool = False) -> list[str]:
    """Return phrases on the whole run, such as "Part 2 of 9" and "3 of about 10 min", as far as they are known.

    named: True to add the name of the current part.
    """
    part, now = state.part, time.time()
    parts = [f"Part {part.number} of {part.of}" + (f", {part.name}" if named else "")] if part else []
    left = None if state.cancelling else state.left(now)
    return parts if left is None else [*parts, out_of(state.elapsed(now), state.elapsed(now) + left)]


def share(state: RunState) -> float:
    """Return the finished share of the run at present, 0 to 1 (see `RunState.share`)."""
    return state.share(time.time())


def brief(state: RunState) -> str:
    """Return the progress of a run as one short line of Markdown."""
    if state.waiting_for:
        return f"Waits for {waited_for(state.waiting_for)}"
    if state.cancelling or state.state == "queued":
        return "Stopping" if state.cancelling else "Starting"
    known = whole(state)
    if state.left(time.time()) is None:
        known = [*known, *(pace(state)[-1:] if state.eta is not None else [stage(state)])]
    return plain(" · ".join(known))


def out_of(elapsed: float, all_of_it: float) -> str:
    """Return a text such as "3 of about 10 min", in the unit of the longer time. elapsed, all_of_it: seconds."""
    # Use the larger unit only from 1.5 minutes or 1.5 hours on, because the smaller one is more precise.
    for most, unit, seconds, digits in ((90, "s", 1, 0), (5400, "min", 60, 0), (math.inf, "h", 3600, 1)):
        if all_of_it < most:
            return f"{elapsed / seconds:.{digits}f} of about {all_of_it / seconds:.{digits}f} {unit}"
    raise ValueError(all_of_it)


def pace(state: RunState) -> list[str]:
    """Return phrases for progress, speed and remaining time of the current stage, as far as each is known."""
    parts = []
    if state.done:
        parts.append(f"{state.done:,}{f' of {state.total:,}' if state.total else ''} {state.unit}")
    if state.rate:
        parts.append(f"{_digits(state.rate)} {state.unit} per second")
    if state.eta is not None and state.active and not state.cancelling:
        parts.append(f"about {duration(state.eta)} left in this stage")
    return parts


def _digits(value: float) -> str:
    """Format a rate with at least two digits: 0.43, 4.3, 43, 4,321."""
    return f"{value:,.{max(0, 1 - floor(log10(value)))}f}"
