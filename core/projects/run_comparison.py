"""Compare runs: list the options that differ, and write their training curves as a table."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.corpora.writers import harmless
from core.experiment import results
from core.kinds import KINDS
from core.projects.audit import exporting
from core.projects.home import store
from core.runs.run import Run
from core.tagging import view as training


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An option that differs between runs.

    option: name in words, for example `finetune: epochs` for the key `finetune.epochs`. values: value per run, in
    words; "" if a run lacks the option.
    """

    option: str
    values: tuple[str, ...]


def differences(run_ids: Sequence[str]) -> list[Difference]:
    """Return all options, also nested ones, that differ between these runs of any kind. Errors: RunError.

    An option that a later version added has its default in earlier runs, as for the reuse of runs.
    """
    runs = [store().get(run_id) for run_id in run_ids]
    by_run = [dict(_flat({**_usual(run), **run.manifest.config})) for run in runs]
    # Ignore `weights`, the hash of the encoder's files. Runs add it for their key; users do not set it.
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


def chosen(run_id: str) -> dict[str, str]:
    """Return {option: value}, in words, for all options of a run that differ from their default. Errors: RunError."""
    run = store().get(run_id)
    usual = _usual(run)
    options = {name: value for name, value in run.manifest.config.items() if name != "weights"}
    own = {
        name: value for name, value in options.items() if value not in ("", None, [], {}) and usual.get(name) != value
    }
    return {
        name.replace("_", " ").replace(".", ": "): results.value_in_words(run, name, value)
        for name, value in _flat(own)
    }


def _usual(run: Run) -> dict[str, object]:
    """Return {option: default} of the kind of a run, as a manifest stores it: a tuple becomes a list."""
    kind = KINDS.get(run.manifest.kind)
    fields = kind.config.model_fields if kind else {}
    defaults = {name: field.default for name, field in fields.items() if not field.is_required()}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()}


def _flat(options: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Flatten nested options: {finetune: {epochs: 3}} yields ("finetune.epochs", 3)."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@exporting
def curves_csv(run_ids: Sequence[str]) -> str:
    """Return the training curves of some runs as CSV, with the columns run, metric, type, seed, step, value.

    Types that a spreadsheet would run as a formula are escaped. Errors: RunError.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("run", "metric", "type", "seed", "step", "value"))
    # Check the ids first, because `trainings` ignores missing runs.
    known = [store().get(run_id).id for run_id in run_ids]
    for run_id in dict.fromkeys(run.id for each in known for run in training.trainings(each)):
        for curve in training.curves(run_id):
            for step, value in zip(curve.steps.tolist(), curve.values.tolist(), strict=True):
                writer.writerow((run_id, curve.name, harmless(curve.type), curve.seed, step, f"{value:.6g}"))
    return out.getvalue()
