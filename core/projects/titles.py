"""Titles of runs: what a run does to which corpus, the same on pages and on the command line."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from core.config import Budget
from core.errors import WinnowError
from core.experiment import results
from core.importing import intake_view as intake
from core.projects import run_labels as labels
from core.projects import runs
from core.runs.store import Run
from core.selection import choices
from core.selection.choices import Choice
from core.shown import count, distinct, short
from core.tagging import training_view as training

_TITLES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "select": lambda config: f"Select {_selected(config)}",
    "prevalence": lambda config: f"Count what is like {corpus_name(config['task'])} in {corpus_name(config['domain'])}",
    "audit": lambda config: f"Check {corpus_name(config['corpus'])} for duplicates and leaks",
    "add": lambda config: f"Import {config['name'] or config['path'].rsplit('/', 1)[-1]}",
    "intake": lambda config: f"Import {count(sum(len(config[part]) for part in intake.PARTS), 'file')}",
    "similarity": lambda config: f"Compare {count(len(config['source']), 'source')} with {_names(config['target'])}",
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


def run_titles(listed: Iterable[Run], words: Callable[[Run], str] | None = None) -> dict[str, str]:
    """Return a distinct title per run, by run id. words: what names a run, unless its title does."""
    found = list(listed)
    names = {run.id: (words or title)(run) for run in found}
    return distinct(names, {run.id: run.began.timestamp() for run in found})


def selection_titles(listed: Iterable[Choice]) -> dict[str, str]:
    """Return a distinct title per selection, by its id."""
    found = list(listed)
    names = {choice.id: choices.title(choice) for choice in found}
    return distinct(names, {choice.id: choice.created for choice in found})


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


def corpus_name(reference: str) -> str:
    """A corpus as it is called, a long name cut, or that it is gone."""
    return short(results.corpus_name(reference))


def _selected(config: Mapping[str, Any]) -> str:
    return f"{Budget.parse(config['budget']).in_words} of {corpus_name(config['domain'])} by {config['strategy']}"


def _of_selection(run_id: str) -> str:
    try:
        return _selected(runs.get(run_id).manifest.config)
    except WinnowError:
        return "a removed selection"


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


def _names(references: Sequence[str]) -> str:
    return " and ".join(corpus_name(reference) for reference in references)


def encoder(init: str) -> str:
    """Encoder to start from, in few words: a finished pre-training by its corpora, a folder by its name."""
    run_id = init.removesuffix("/artifacts/model").rsplit("/", 1)[-1]
    with suppress(WinnowError):
        config = runs.get(run_id).manifest.config
        return f"{encoder(config['init'])} pre-trained on {_names(config['corpora'])}"
    return init.rstrip("/").rsplit("/", 1)[-1]
