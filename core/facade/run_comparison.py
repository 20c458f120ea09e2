"""Runs side by side: the options in which they differ, and their curves as a table."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.facade import results, training
from core.facade.audit import exporting
from core.facade.home import store


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An option in which some runs differ. values: one a run, as people read it; "" where a run does not have it."""

    option: str
    values: tuple[str, ...]


def differences(run_ids: Sequence[str]) -> list[Difference]:
    """Every option, also of options, in which some runs of any kind differ. Errors: RunError."""
    runs = [store().get(run_id) for run_id in run_ids]
    by_run = [dict(_flat(run.manifest.config)) for run in runs]
    names = dict.fromkeys(name for options in by_run for name in options if name != "weights")
    differing = [name for name in names if any(options.get(name) != by_run[0].get(name) for options in by_run)]
    return [
        Difference(
            option=name.replace("_", " ").replace(".", ": "),
            values=tuple(
                results.value_in_words(run, name, options[name]) if name in options else ""
                for run, options in zip(runs, by_run, strict=True)
            ),
        )
        for name in differing
    ]


def _flat(options: Mapping[str, object], begin: str = "") -> Iterator[tuple[str, object]]:
    """{finetune: {epochs: 3}} as `finetune.epochs`, 3."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{begin}{name}.")
        else:
            yield begin + name, value


@exporting
def curves_csv(run_ids: Sequence[str]) -> str:
    """Every point of every curve of the trainings in some runs: run, metric, type, seed, step, value.

    Errors: RunError.
    """
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("run", "metric", "type", "seed", "step", "value"))
    for run in dict.fromkeys(run.id for run_id in run_ids for run in training.trainings(store().get(run_id).id)):
        for metric in training.curves(run):
            for step, value in zip(metric.steps.tolist(), metric.values.tolist(), strict=True):
                rows.writerow((run, metric.name, metric.type, metric.seed, step, f"{value:.6g}"))
    return out.getvalue()
