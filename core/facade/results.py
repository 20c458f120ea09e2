"""Results: what experiments and taggers came to, arm by arm and side by side."""

import json
from collections.abc import Sequence
from contextlib import suppress
from statistics import mean, stdev
from typing import Any

from core import plots as figures
from core.artifacts import taggers as tagger_tables
from core.artifacts.taggers import Beside as Beside
from core.config import fields_with
from core.errors import CorpusError, RunError, WinnowError
from core.facade.home import kept_per_home, library, store
from core.recipes import RECIPES
from core.recipes.experiment.advice import labels_spared, next_budget
from core.runs.store import Run, is_run_id

Row = dict[str, Any]


def board(run_id: str) -> dict[str, Any]:
    """A finished experiment's `leaderboard`, `curve` and `hours`. Errors: RunError."""
    return store().get(run_id).result()


def tagger_rows(limit: int = 100) -> list[Row]:
    """The newest `finetune` runs, those within experiments too: `run, state, init, train, seeds, dev_f1, dev_sd,
    best_epoch, f1, sd, gain`; None where a run has not come so far.

    gain: mean test F1 over that of the same training from an encoder that was not pre-trained, where there is one.
    """
    runs = store().list("finetune")
    rows = [_tagger_row(run) for run in runs]
    bare = {_but_init(run): row["f1"] for run, row in zip(runs, rows, strict=True) if not is_run_id(row["init"])}
    for run, row in zip(runs, rows, strict=True):
        base = bare.get(_but_init(run)) if is_run_id(row["init"]) else None
        row["gain"] = row["f1"] - base if None not in (row["f1"], base) else None
    return rows[:limit]


def _tagger_row(run: Run) -> Row:
    status, config = run.state(), run.manifest.config
    result = run.result() if status.state == "succeeded" else {}
    (dev_f1, dev_sd), (f1, sd) = (_over_seeds(result.get(split, {})) for split in ("dev", "test"))
    return {
        "run": run.id,
        "state": status.state,
        "init": config["init"],
        "train": corpus_name(config["train"]),
        "seeds": len(config["seeds"]),
        "dev_f1": dev_f1,
        "dev_sd": dev_sd,
        "best_epoch": result.get("best_epoch", ()),
        "f1": f1,
        "sd": sd,
    }


def _over_seeds(split: Row) -> tuple[float | None, float | None]:
    """Mean and sd of F1, of the seeds' own: older runs hold a mean that was rounded before it is shown."""
    f1 = split.get("micro_f1", ())
    return (mean(f1) if f1 else None), (stdev(f1) if len(f1) > 1 else None)


def _but_init(run: Run) -> str:
    """All that a training is told but where it starts from."""
    return json.dumps({k: v for k, v in run.manifest.config.items() if k not in ("init", "weights")}, sort_keys=True)


def corpus_name(reference: str) -> str:
    """A corpus's name, or that it is gone."""
    return library().recall(reference).name


def type_scores(a: str, b: str) -> list[Row]:
    """F1 of every entity type under two `finetune` runs: `type, mentions, a, b, difference`. Errors: CorpusError."""
    return tagger_tables.by_type(store().get(a), store().get(b))


def unfound_types(run_id: str) -> list[Row]:
    """Types with an F1 of 0 in every arm of a finished experiment; see `taggers.unfound`. None if files are gone."""
    with suppress(RunError, CorpusError):
        runs = [store().get(row["finetune_run"]) for row in board(run_id)["leaderboard"]]
        return tagger_tables.unfound(runs, library().find(store().get(run_id).manifest.config["train"]))
    return []


def settings_apart(a: str, b: str) -> list[Row]:
    """The settings that set two `finetune` runs apart beside what they start from: `option, a, b`, in words."""
    first, second = store().get(a), store().get(b)
    return _in_words(tagger_tables.settings_apart(first, second), first)


@kept_per_home(32)
def novelty_scores(run_id: str) -> list[Row]:
    """F1 on entities that the training sentences name and on those they do not: `surfaces, mentions, f1`."""
    return tagger_tables.by_novelty(store().get(run_id), library())


@kept_per_home(4)
def beside(a: str, seed_a: int, b: str, seed_b: int) -> list[Beside]:
    """The test sentences as labelled and as the taggers of two `finetune` runs read it. Errors: CorpusError."""
    return tagger_tables.side_by_side(store().get(a), seed_a, store().get(b), seed_b, library())


def failed_seeds(run_id: str) -> list[int]:
    """Seeds of a finished `finetune` run whose tagger did not learn."""
    return tagger_tables.failed_seeds(store().get(run_id))


def option_differences(a: str, b: str) -> list[Row]:
    """`option, a, b` for every option in which two runs differ, as people read them."""
    first, second = store().get(a), store().get(b)
    return _in_words(tagger_tables.config_differences(first, second), first)


def _in_words(rows: Sequence[Row], run: Run) -> list[Row]:
    """Options of a run's kind and their values under `a` and `b`, corpora by name."""
    corpora = set(fields_with(RECIPES[run.manifest.kind].config, "corpus"))

    def value_in_words(name: str, value: Any) -> str:
        values = value if isinstance(value, list | tuple) else [value]
        words = [corpus_name(str(one)) if name in corpora and one else str(one) for one in values if one != ""]
        return "as usual" if value is None else ", ".join(words) or "none"

    return [
        {
            "option": row["option"].replace("_", " "),
            "a": value_in_words(row["option"], row["a"]),
            "b": value_in_words(row["option"], row["b"]),
        }
        for row in rows
    ]


def removed_inputs(run_id: str) -> list[str]:
    """The parts whose corpora a run was made from and which are gone since: `domain`, `train`, ..."""
    here = {corpus.fingerprint for corpus in library().list()}
    inputs = store().get(run_id).manifest.inputs
    return list(dict.fromkeys(name.partition(".")[0] for name, mark in inputs.items() if mark not in here))


def missing(run_id: str) -> list[str]:
    """The inputs of a run that are gone, in words: it cannot be made again as it was."""
    run = store().get(run_id)
    gone = tagger_tables.missing(run, library())
    if run.manifest.kind != "experiment":
        return gone
    for row in board(run_id)["leaderboard"]:
        try:
            child = store().get(row["finetune_run"])
            own = [what for what in tagger_tables.missing(child, library()) if what not in gone]
            gone += [f"{what} of {figures.line_name(row)}" for what in own]
        except WinnowError:
            gone.append(f"the taggers of {figures.line_name(row)}")
    return list(dict.fromkeys(gone))


def budget_advice(run_id: str, worth: float) -> list[Row]:
    """For each arm with three budgets or more: whether doubling the largest is worth its hours."""
    return next_budget(board(run_id)["leaderboard"], worth)


def label_advice(run_id: str) -> list[Row]:
    """For each arm with three sizes of L_C or more: how many labels it spares over no pre-training."""
    curve = board(run_id).get("curve", [])
    return labels_spared(curve, max((row["train_sentences"] for row in curve), default=0))
