"""How many sentences of a D_C are like a T_C's: counted by a run, told beside budgets."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from core.config import Budget
from core.errors import ConfigError, CorpusError
from core.kind import Options
from core.projects.home import library, store
from core.runs.result import read
from core.runs.store import Run
from core.selection.prevalence import LEAST, PrevalenceConfig
from core.selection.prevalence_result import PrevalenceResult as PrevalenceResult


def options(run_id: str) -> Options:
    """Options of a count for the T_C and D_C of a `select` run, with its encoder."""
    config, inputs = store().get(run_id).manifest.config, store().get(run_id).manifest.inputs
    names = set(PrevalenceConfig.model_fields) - {"seed", "weights"}
    return {name: inputs.get(name, config[name]) for name in names}


def countable(task: str) -> bool:
    """Whether a T_C, by fingerprint, is here and has enough sentences to count what is like them."""
    try:
        return len(library().find(task)) >= LEAST
    except CorpusError:
        return False


def result(run_id: str) -> PrevalenceResult:
    """A finished `prevalence` run's result. Errors: RunError."""
    return read(store().get(run_id), PrevalenceResult)


def counted(task: str, domain: str) -> PrevalenceResult | None:
    """The newest count of a T_C's kind in a D_C, by fingerprints; None where nobody has counted."""
    return next((result(run.id) for run in _of(task, domain) if run.state().state == "succeeded"), None)


def counting(task: str, domain: str) -> str | None:
    """The newest run that counts them and is not finished, by id; None where there is none."""
    newest = next(_of(task, domain), None)
    return newest.id if newest and newest.state().state != "succeeded" else None


def _of(task: str, domain: str) -> Iterator[Run]:
    for run in store().list("prevalence"):
        if (run.manifest.inputs.get("task"), run.manifest.inputs.get("domain")) == (task, domain):
            yield run


def in_words(count: PrevalenceResult, asked: int | None = None) -> str:
    """A sentence. asked: sentences that a budget takes."""
    of = f"of the domain corpus's {count.domain:,} distinct sentences"
    if not count.about:
        words = f"Next to none {of}, {count.high:,} at most, are like your task's"
    else:
        words = f"About {count.about:,} {of} are like your task's ({count.low:,} to {count.high:,})"
    return words + ("." if asked is None else f"; you ask for {asked:,}.")


def before(options: Mapping[str, object]) -> str:
    """Sentence on how much an experiment has to choose from; "" where nobody counted. options: its own."""
    task, domain, budgets = (options.get(name) or "" for name in ("task", "domain", "budgets"))
    count = counted(str(task), str(domain))
    return in_words(count, _asked(budgets, str(domain))) if count and isinstance(budgets, Sequence) else ""


def _asked(budgets: Sequence[str], domain: str) -> int | None:
    """Sentences that a single budget takes; None of several, of tokens, and of one that is not understood."""
    with suppress(ConfigError, CorpusError):
        asked = [Budget.parse(each) for each in budgets]
        if [each.unit for each in asked] == ["sentences"]:
            return int(asked[0].value)
        if [each.unit for each in asked] == ["fraction"]:
            return round(asked[0].value * len(library().find(domain)))
    return None


def budget(count: PrevalenceResult) -> str | None:
    """The budget that takes as many as there are; None where there are none."""
    return str(Budget.parse(str(count.about))) if count.about else None


__all__ = ["PrevalenceResult", "before", "budget", "countable", "counted", "counting", "in_words", "options", "result"]
