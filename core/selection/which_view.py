"""Find results of `which-strategy` runs, and describe them for pages and commands."""

from collections.abc import Mapping, Sequence

from core.config import Budget
from core.errors import CorpusError
from core.kind import Options
from core.models.encoder import EncoderOptions
from core.projects.home import library, store
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY
from core.selection.which_strategy import LEAST, WhichStrategyResult, is_outdated
from core.shown import count
from core.stats.recall import Mean

LIMIT = (
    "This counts sentences of the task corpus itself. A strategy that finds more of them need not lead to a better "
    "tagger; only an experiment can show that."
)


def options(select: Mapping[str, object]) -> Options:
    """Return options for a `which-strategy` run from those of a `select` run."""
    dev, held_out = select.get("dev"), select.get("holdout", ())
    assert isinstance(held_out, Sequence)
    names = {"task", "domain", "train", "seed", *EncoderOptions.model_fields} - {"weights"}
    taken = {name: value for name, value in select.items() if name in names}
    budget = str(select.get("budget", ""))
    taken |= {} if budget.strip().startswith("threshold") else {"budget": budget}
    return {**taken, "holdout": (*held_out, *((dev,) if dev else ()))}


def comparable(task: str) -> bool:
    """Return True if T_C is in the project and has at least `LEAST` sentences. task: fingerprint of T_C."""
    try:
        return len(library().find(task)) >= LEAST
    except CorpusError:
        return False


def newest(task: str, domain: str, *, finished: bool = False) -> Run | None:
    """Return the newest run for T_C and D_C, both given by fingerprint, or None. finished: only finished runs.

    Runs of earlier versions that used L_C are left out: their lists of names contained the names of hidden sentences.
    """
    wanted = {"task": task, "domain": domain}
    listed = store().list("which-strategy", state="succeeded" if finished else None)
    own = (run for run in listed if wanted.items() <= run.manifest.inputs.items())
    return next((run for run in own if not is_outdated(run.manifest.config)), None)


def in_words(result: WhichStrategyResult) -> str:
    """Return one or two sentences: which strategy to use, and the recall that supports this."""
    usual, rivals = result.strategies[DEFAULT_STRATEGY].recall, _widths(result)
    found = f"{DEFAULT_STRATEGY}, the default, finds {usual.value:.0%} of the hidden sentences"
    if result.best != DEFAULT_STRATEGY:
        one = result.strategies[result.best]
        assert one.difference is not None
        return (
            f"Select by {result.best}: it finds {one.recall.value:.0%} of the hidden sentences, {DEFAULT_STRATEGY} "
            f"(the default) {usual.value:.0%}. The difference is {_points(one.difference)} points."
        )
    if usual.low <= result.chance:
        return (
            f"There is no evidence that any strategy finds more than chance: {found}, a random selection "
            f"{result.chance:.0%}. Either the task corpus has no distinctive topic or wording, or most of the domain "
            "corpus is like it."
        )
    if not rivals:
        return f"{found[:1].upper()}{found[1:]}. No other strategy was compared."
    return (
        f"Keep {DEFAULT_STRATEGY}: {found}, and there is no evidence that another strategy finds more. "
        f"Differences below about {max(rivals):.0f} points cannot be detected here."
    )


def basis(result: WhichStrategyResult) -> str:
    """Return sentences on how the recall was measured and what its intervals mean."""
    n = sum(one.difference is not None for one in result.strategies.values())
    return (
        f"{count(result.hidden, 'sentence')} of the task corpus were hidden, in {result.draws} random parts, among "
        f"{result.among:,} of the domain corpus. For each part, strategies learnt from the other parts and selected "
        f"{Budget.parse(result.budget).in_words}. Each 95% "
        "confidence interval includes the variation between sentences and between parts. The "
        f"intervals of the {count(n, 'difference')} hold jointly with 95% confidence."
    )


def rows(result: WhichStrategyResult) -> list[dict[str, str]]:
    """Return a row per strategy, the largest recall first: name, and recall and difference with their intervals."""
    ordered = sorted(result.strategies.items(), key=lambda item: -item[1].recall.value)
    return [
        {
            "strategy": name,
            "recall": f"{one.recall.value:.1%} ({one.recall.low:.1%} to {one.recall.high:.1%})",
            "difference": _points(one.difference) if one.difference else _role(name),
        }
        for name, one in ordered
    ]


def lines(result: WhichStrategyResult) -> list[str]:
    """Return the whole result as lines of text: table, recommendation, method and limits."""
    table = [("strategy", "hidden sentences found", f"points more than {DEFAULT_STRATEGY}")]
    table += [(row["strategy"], row["recall"], row["difference"]) for row in rows(result)]
    widths = [max(len(row[i]) for row in table) for i in range(2)]
    shown = [f"{name:<{widths[0]}}  {recall:<{widths[1]}}  {difference}" for name, recall, difference in table]
    return [*shown, "", in_words(result), basis(result), LIMIT]


def _role(name: str) -> str:
    return "the default" if name == DEFAULT_STRATEGY else "a control"


def _points(difference: Mean) -> str:
    return f"{100 * difference.value:+.1f} ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"


def _widths(result: WhichStrategyResult) -> list[float]:
    """Return half the width of each interval of a difference, in points."""
    differences = (one.difference for one in result.strategies.values())
    return [50 * (each.high - each.low) for each in differences if each]
