"""Part 3 of bench_gpu, a whole experiment with a large D_C, from its import to the verdict.

D_C is embedded, scored and selected from. Encoders are pre-trained on all of it, on a quarter selected by `classifier`
and on a random quarter, and taggers are trained on each. The experiment is one run, which a later call resumes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from core.importing.view import find
from core.projects import runs
from tests.lab.benchmarks.gpu_correct import Values
from tests.lab.benchmarks.gpu_scope import SPLITS, Scope, home, seconds

ARMS = ("none", "dapt", "random", "classifier")


def corpora(scope: Scope) -> dict[str, str]:
    return {"domain": runs.fingerprint_of(str(scope.unlabelled)), **_labelled(scope)}


def _labelled(scope: Scope) -> dict[str, str]:
    return {role: runs.fingerprint_of(str(scope.labelled[role])) for role in ("task", *SPLITS)}


def imported(scope: Scope) -> Values:
    """Time the import of D_C."""
    _ = scope.unlabelled  # write the file before the time is measured
    with home(scope, "worth"):
        taken = seconds(lambda: corpora(scope))
        return {"sentences": len(find(corpora(scope)["domain"])), "seconds": taken}


def embedded(scope: Scope) -> Values:
    """Time the embedding of D_C in this call. It resumes an earlier call, whose time is not included."""
    with home(scope, "worth"):
        domain = corpora(scope)["domain"]
        taken = seconds(lambda: runs.execute("embed", {"corpus": domain, "encoder": scope.encoder}))
        return {"sentences": len(find(domain)), "seconds": taken}


def chosen(scope: Scope) -> Values:
    """Time the scoring of D_C by `classifier`, the search for leaks and duplicates, and the selection of a quarter."""
    with home(scope, "worth"):
        here = corpora(scope)
        options = {"task": here["task"], "domain": here["domain"], "holdout": (here["dev"], here["test"])}
        more = {"strategy": "classifier", "budget": scope.budget, "encoder": scope.encoder}
        taken = seconds(lambda: runs.execute("select", {**options, **more}))
        return {"seconds": taken}


def worth(scope: Scope) -> Values:
    """Run the experiment and return its leaderboard."""
    with home(scope, "worth"):
        options = {
            **corpora(scope),
            "arms": ARMS,
            "budgets": (scope.budget,),
            "seeds": scope.seeds,
            "encoder": scope.encoder,
            "transductive": "dev",
            "pretrain": dict(scope.pretrain),
            "finetune": dict(scope.finetune),
        }
        result = runs.execute("experiment", options).result()
    names = ("sentences", "mean", "sd", "delta", "interval", "delta_random", "verdict", "gpu_hours")
    rows = {row["arm"]: {name: row[name] for name in names} for row in result["leaderboard"]}
    return {**rows, "hours": result["hours"]}


FIGURES: dict[str, Callable[[Scope], Mapping[str, Any]]] = {
    "worth imported": imported,
    "worth embedded": embedded,
    "worth chosen": chosen,
    "worth verdict": worth,
}
