"""Suggestions of a reference variant: entities that a finished `dictionary`, `zero-shot` or `llm` run finds in a queue.

The suggestions use all options of that run: lists, types, thresholds, examples and guidelines. The text is protected as
in that run. A ready model is loaded without a connection. A language model on another computer is used only if the user
allows its host again.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.dictionary.dictionary import DictionaryConfig, dictionary_of
from core.errors import ConfigError
from core.kind import Job
from core.llm import llm
from core.llm.addresses import Server, server_at
from core.runs.result import read
from core.runs.run import Run
from core.runs.store import RunStore
from core.text.sentence import Prediction, Sentence
from core.zero_shot import zero_shot


def _by_names(run: Run, sentences: Sequence[Sentence], job: Job) -> list[Prediction]:
    names = dictionary_of(DictionaryConfig.parse(run.manifest.config), job)[0]
    return [names.predict(sentence) for sentence in sentences]


def _by_ready_model(run: Run, sentences: Sequence[Sentence], job: Job) -> list[Prediction]:
    config = zero_shot.ZeroShotConfig.parse(run.manifest.config)
    return zero_shot.find(config, read(run, zero_shot.ZeroShotResult), sentences, job)


def _by_language_model(run: Run, sentences: Sequence[Sentence], job: Job) -> list[Prediction]:
    return llm.find(llm.LlmConfig.parse(run.manifest.config), sentences, job)


SOURCES: Mapping[str, Callable[[Run, Sequence[Sentence], Job], list[Prediction]]] = {
    "dictionary": _by_names,
    "zero-shot": _by_ready_model,
    "llm": _by_language_model,
}


def source(run_id: str, allow_host: str, home: Path) -> tuple[Run, str]:
    """Return the run whose predictions are suggested, and the host of its model ("" for this computer).

    allow_host: host to which the user allows sentences to be sent. Errors: RunError; ConfigError for a run that cannot
    make suggestions, and for a model on a host that is not allowed.
    """
    run = RunStore(home).get(run_id)
    if run.manifest.kind not in SOURCES or run.state().state != "succeeded":
        kinds = " or ".join(SOURCES)
        raise ConfigError(f"suggest: {run.id} is not a finished run of {kinds}; run one on your test set first.")
    if run.brought_file.exists():
        raise ConfigError(
            f"suggest: {run.id} came with an imported project, so its options were set elsewhere; check them, then run "
            f"{run.manifest.kind} here."
        )
    server = server_of(run, allow_host)
    if server is None and allow_host:
        raise ConfigError(f"allow_host: {run.id} uses no language model, so no text is sent; leave the option out.")
    return run, "" if server is None or server.here else server.host


def server_of(run: Run, allow_host: str) -> Server | None:
    """Return the language model's server of an `llm` run; None for a run of another kind.

    Errors: those of `server_at`.
    """
    return server_at(run.manifest.config["address"], allow_host) if run.manifest.kind == "llm" else None


def predictions(run_id: str, allow_host: str, sentences: Sequence[Sentence], job: Job) -> list[Prediction]:
    """Return the entities that the run `run_id` suggests for each sentence, as ranges of tokens.

    Errors: those of `source`, and those that runs of this kind raise.
    """
    run, _ = source(run_id, allow_host, job.home)
    return SOURCES[run.manifest.kind](run, sentences, job)
