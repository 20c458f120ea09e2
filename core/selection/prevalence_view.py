"""Find stored estimates of how many sentences of D_C resemble T_C, and describe them for pages and commands."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from core.config import Budget
from core.errors import ConfigError, CorpusError
from core.kind import Options
from core.projects.home import library, store
from core.runs.result import read
from core.runs.store import Run
from core.selection.prevalence import LEAST, PrevalenceConfig, PrevalenceResult


def options(run_id: str) -> Options:
    """Return options for a `prevalence` run: the corpora and the encoder of the `select` run `run_id`."""
    config, inputs = store().get(run_id).manifest.config, store().get(run_id).manifest.inputs
    names = set(PrevalenceConfig.model_fields) - {"seed", "weights"}
    return {name: inputs.get(name, config[name]) for name in names}


def countable(task: str) -> bool:
    """Return True if T_C is in the project and has at least `LEAST` sentences. task: fingerprint of T_C."""
    try:
        return len(library().find(task)) >= LEAST
    except CorpusError:
        return False


def counted(task: str, domain: str) -> PrevalenceResult | None:
    """Return the newest finished estimate for T_C and D_C, both given by fingerprint, or None."""
    done = (run for run in _runs_for(task, domain) if run.state().state == "succeeded")
    return next((read(run, PrevalenceResult) for run in done), None)


def counting(task: str, domain: str) -> str | None:
    """Return the id of the newest run for T_C and D_C if that run has not finished, else None."""
    newest = next(_runs_for(task, domain), None)
    return newest.id if newest and newest.state().state != "succeeded" else None


def _runs_for(task: str, domain: str) -> Iterator[Run]:
    """Yield the `prevalence` runs for T_C and D_C, both given by fingerprint, newest first."""
    for run in store().list("prevalence"):
        if (run.manifest.inputs.get("task"), run.manifest.inputs.get("domain")) == (task, domain):
            yield run


def in_words(count: PrevalenceResult, asked: int | None = None) -> str:
    """Return the estimate as a sentence. asked: number of sentences that the budget selects."""
    of = f"of the domain corpus's {count.domain:,} distinct sentences"
    if not count.about:
        words = f"At most {count.high:,} {of} are like the task corpus (estimate: 0)"
    else:
        words = f"About {count.about:,} {of} are like the task corpus ({count.low:,} to {count.high:,})"
    return words + ("." if asked is None else f"; your budget selects {asked:,}.")


def before(options: Mapping[str, object]) -> str:
    """Return the estimate for an experiment's corpora as a sentence, or "". options: those of the experiment."""
    task, domain, budgets = (options.get(name) or "" for name in ("task", "domain", "budgets"))
    count = counted(str(task), str(domain))
    return in_words(count, _asked(budgets, str(domain))) if count and isinstance(budgets, Sequence) else ""


def _asked(budgets: Sequence[str], domain: str) -> int | None:
    """Return the number of sentences that the only budget of `budgets` selects. domain: fingerprint of D_C.

    None if there are several budgets, if the budget is in tokens or cannot be parsed, or if D_C was removed.
    """
    with suppress(ConfigError, CorpusError):
        asked = [Budget.parse(each) for each in budgets]
        if [each.unit for each in asked] == ["sentences"]:
            return int(asked[0].value)
        if [each.unit for each in asked] == ["fraction"]:
            return round(asked[0].value * len(library().find(domain)))
    return None


def budget(count: PrevalenceResult) -> str | None:
    """Return the budget that selects the estimated number of sentences, or None if the estimate is 0."""
    return str(Budget.parse(str(count.about))) if count.about else None
