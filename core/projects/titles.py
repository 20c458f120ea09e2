"""Titles and outcomes of runs in words, for pages and the command line."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from core.config import Budget
from core.errors import WinnowError
from core.experiment import results
from core.experiment.arms import RANDOM
from core.importing.audit import LEARNABLE
from core.kinds import KINDS
from core.models.hub import BUNDLED
from core.models.networks import ON_ENCODER
from core.projects import labels, runs
from core.projects.home import library
from core.runs.result import read
from core.runs.store import Run, is_run_id
from core.selection import choices
from core.selection import view as selections
from core.selection.choice import Choice
from core.shown import distinct, short

NO_PRETRAINING = "no further pre-training"


def run_titles(listed: Iterable[Run], words: Callable[[Run], str] | None = None) -> dict[str, str]:
    """Return {run id: title}; all titles differ. words: function that returns a run's title; None for `title`."""
    found = list(listed)
    names = {run.id: (words or title)(run) for run in found}
    return distinct(names, {run.id: run.began.timestamp() for run in found})


def selection_titles(listed: Iterable[Choice]) -> dict[str, str]:
    """Return {id of a selection: title}; all titles differ."""
    found = list(listed)
    names = {choice.id: choices.title(choice) for choice in found}
    return distinct(names, {choice.id: choice.created for choice in found})


def title(run: Run) -> str:
    """Return the name that a user gave to a run, else a title made from its kind and corpora."""
    with suppress(WinnowError):  # the run may have been removed since
        if name := labels.read(run).name:
            return name
    kind, config = run.manifest.kind, run.manifest.config
    known = KINDS.get(kind)
    with suppress(
        KeyError, TypeError, AttributeError, WinnowError
    ):  # a run with an invalid manifest still needs a title
        if kind == "select":
            return choice_title(run.id)
        if known and known.title:
            return known.title(Named(config))
    corpus = config.get("corpus") or config.get("domain")
    return f"{kind} {corpus_name(str(corpus))}" if corpus else kind


def outcome(run: Run) -> str:
    """Describe the result of a finished run in one line; "" if its kind has no outcome or the result cannot be read."""
    known = KINDS.get(run.manifest.kind)
    if known is None or known.outcome is None:
        return ""
    with suppress(WinnowError):
        found = _AS_OF_NOW[known.name](run.id) if known.name in _AS_OF_NOW else read(run, known.result)
        return known.outcome(found, Named(run.manifest.config))
    return ""


# Kinds whose outcome is computed at each call. Users may change a selection after its run, and the verdict of an
# experiment is not stored in its result.
_AS_OF_NOW: Mapping[str, Callable[[str], object]] = {
    "select": selections.kept,
    "experiment": results.finding,
    "study": results.finding,
}


def choice_title(choice_id: str) -> str:
    """Return a selection's title: its name, strategy and corpora. Errors: RunError; KeyError for a damaged manifest."""
    choice = selections.at(choice_id)
    what = _selected({**runs.get(choice.run).manifest.config, "budget": choice.budget})
    return f"{choice.name}: Select {what}" if choice.name else f"Select {what}"


def corpus_name(reference: str) -> str:
    """Return the shortened name of a corpus, or a phrase if the corpus was removed. reference: its fingerprint."""
    return short(results.corpus_name(reference))


def text_name(reference: str) -> str:
    """Return a name for a text to pre-train on: budget and strategy of a selection, else the name of the corpus.

    If the text is a copy of a corpus without its held-out sentences, return the name of that corpus.
    """
    with suppress(WinnowError, KeyError):
        corpus = library().find(reference)
        if corpus.name.endswith(LEARNABLE):
            return text_name(str(corpus.origin["from"]))
        if "choice" not in corpus.origin:  # not for a saved selection: its budget may differ from the budget of its run
            config = runs.get(str(corpus.origin["run"])).manifest.config
            return _sentences(config["strategy"], Budget.parse(config["budget"]))
    return corpus_name(reference)


def _sentences(strategy: str, budget: Budget) -> str:
    """Return a phrase for a selection, such as "1,000 selected sentences (classifier)"."""
    kind, by = ("random", "") if strategy == RANDOM else ("selected", f" ({strategy})")
    if budget.unit == "fraction":
        return f"{'a random' if kind == 'random' else 'the selected'} {budget}{by}"
    if budget.unit == "threshold":
        return f"{budget.in_words}{by}"
    amount = f"{int(budget.value):,}{' tokens of' if budget.unit == 'tokens' else ''}"
    return f"{amount} {kind} sentences{by}"


def encoder(init: str) -> str:
    """Return a short name of an encoder. init: its name or folder, or the id of a `pretrain` run.

    The name of a `pretrain` run's encoder also names the texts that it was further pre-trained on.
    """
    name, pretraining = begun_from(init)
    return name if pretraining == NO_PRETRAINING else f"{name} {pretraining}"


def begun_from(init: str) -> tuple[str, str]:
    """Return two phrases: the encoder before any further pre-training, and the texts it was then pre-trained on.

    init: name or folder of an encoder, or id or model folder of a `pretrain` run.
    """
    texts: list[str] = []
    seen = set[str]()  # a forged project may have a pre-training that starts from its own result
    while is_run_id(run_id := init.removesuffix("/artifacts/model").rpartition("/")[2]) and run_id not in seen:
        seen.add(run_id)
        try:
            config = runs.get(run_id).manifest.config
        except WinnowError:
            return "an encoder", f"pre-trained in {run_id}, which was removed"
        texts.insert(0, _names(config["corpora"]))
        init = str(config["init"])
    pretraining = f"pre-trained on {', then on '.join(texts)}" if texts else NO_PRETRAINING
    return init.rstrip("/").rpartition("/")[2], pretraining


def tagger_name(config: Mapping[str, Any]) -> str:
    """Return the name of a tagger, which contains its training set and the texts for further pre-training.

    config: options of the tagger's `finetune` run. The name contains the encoder too, unless it is the bundled one.
    """
    network, first = config.get("network", "encoder"), config.get("first")
    labels = f"{f'{corpus_name(first)}, then ' if first else ''}{corpus_name(config['train'])}"
    if network not in ON_ENCODER:
        return f"Tagger ({network}) on {labels}"
    name, pretraining = begun_from(config["init"])
    return f"Tagger{'' if name == BUNDLED else f' ({name})'} on {labels}, {pretraining}"


@dataclass(frozen=True, slots=True)
class Named:
    """Implementation of `core.kind.About` for runs of the current project."""

    config: Mapping[str, Any]

    def corpus(self, reference: str) -> str:
        return corpus_name(reference)

    def corpora(self, references: Sequence[str]) -> str:
        return _names(references)

    def encoder(self, init: str) -> str:
        return encoder(init)

    def begun_from(self, init: str) -> tuple[str, str]:
        return begun_from(init)

    def tagger(self, model: str) -> str:
        with suppress(WinnowError):
            return tagger_name(runs.get(model).manifest.config)
        return model.rstrip("/").rsplit("/", 1)[-1]

    def selection(self, run_id: str) -> str:
        try:
            return _selected(runs.get(run_id).manifest.config)
        except WinnowError:
            return "a removed selection"


def _selected(config: Mapping[str, Any]) -> str:
    worded = KINDS["select"].title
    assert worded
    return worded(Named(config)).removeprefix("Select ")


def _names(references: Sequence[str]) -> str:
    return " and ".join(map(text_name, references))
