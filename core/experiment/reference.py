"""Reference variants of an experiment: other ways to find the entities of its test sets, without training a tagger.

The evaluation of a reference variant comes from a run of one of the kinds in `KINDS`. An entry of `KINDS` contains
everything that is special about this kind of variant. `arms.py` creates its arm from the entry; `config.py`, `steps.py`
and `cost.py` use the entry for the run. The name of the arm is the kind's name or, with a value, NAME:VALUE. If a user
starts a run of one of these kinds outside an experiment, it is listed below the leaderboards with the same test set
(`results.py`).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.dictionary import dictionary
from core.dictionary.dictionary import DictionaryResult
from core.errors import ConfigError, ModelError, PathError
from core.kind import Job, Kind, Options
from core.llm import llm
from core.llm.addresses import parsed
from core.llm.llm import LlmOptions, LlmResult
from core.models import hub
from core.models.model_files import vocabulary_weights, weights
from core.paths import home
from core.runs import result
from core.runs.store import Run, RunStore
from core.shown import count, listed
from core.tagging.calibrate import CalibrateResult
from core.zero_shot import zero_shot
from core.zero_shot.folders import folder_of
from core.zero_shot.zero_shot import ZeroShotResult

# Seconds per token to read the entity names of a dictionary.
READ_NAMES = 3e-6
# Seconds per token to find these names in the test sets and to score the entities.
LOOK_UP = 1e-5
# Assumed seconds per sentence for a language model that no earlier run has used.
ANSWER = 2.0


class Asked(Protocol):
    """The options of an experiment that reference variants use."""

    encoder: str
    train: str
    dev: str
    test: str
    also_test: tuple[str, ...]
    dictionary: tuple[str, ...]
    type_map: tuple[str, ...]
    llm: dict[str, object]


class Timed(Protocol):
    """Data from which the seconds of a reference variant are estimated. `cost.Seconds` implements this protocol."""

    measured: CalibrateResult
    corpora: Mapping[str, Corpus]
    also_test: Sequence[Corpus]
    dictionary: Sequence[Corpus]
    basis: dict[str, None]

    @property
    def config(self) -> Asked: ...

    @property
    def tested_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceKind:
    """A kind of run that can be a reference variant.

    The functions `normal`, `summary`, `named`, `options` and `seconds` get the value in the arm's name, "" if the name
    has no value.

    kind: the kind of run. It has the option `test` and writes the same artifacts as the kind `dictionary`.
    value: word for the value, such as FOLDER; "" if the arm's name has no value.
    normal: function that returns the normal spelling of a value.
    summary: function that returns a description of the arm.
    named: function that returns words for the method, to use inside a sentence.
    noun: name of the tool that finds the entities, such as "a list of names".
    options: function that returns the options of the run, without test sets, for an experiment or one of its halves.
    seconds: function that estimates the time of the run, without reading and saving.
    doing: words for the running step, shown in the progress of an experiment.
    check: function that raises an error if a run with these options would fail now.
    about: function that describes a finished run.
    downloads: function that names the model of a finished run if it is not part of Winnow; else "".
    """

    kind: Kind
    value: str = ""
    normal: Callable[[str], str] = str
    summary: Callable[[str], str]
    named: Callable[[str], str]
    noun: str
    options: Callable[[str, Asked], Options]
    seconds: Callable[[str, Timed], float]
    doing: str
    check: Callable[[Any, Job], None] = lambda options, job: None
    about: Callable[[Run, Library], str]
    downloads: Callable[[Run], str] = lambda _: ""


def _dictionary_seconds(_: str, seconds: Timed) -> float:
    names = seconds.dictionary or [seconds.corpora["train"]]
    return READ_NAMES * sum(corpus.n_tokens for corpus in names) + LOOK_UP * seconds.tested_tokens


def _dictionary_about(run: Run, library: Library) -> str:
    found = result.read(run, DictionaryResult)
    lists = listed([library.recall(mark).name for mark in run.manifest.config["names"]])
    return f"{count(found.names - found.common, 'name')} of {lists}, looked up without training."


def _folder(value: str) -> str:
    return str(Path(os.path.expanduser(value)).absolute())


def _zero_shot_options(value: str, config: Asked) -> Options:
    return {"model": value, "dev": config.dev, "type_map": config.type_map, "skip_unknown": True}


def _zero_shot_seconds(value: str, seconds: Timed) -> float:
    """Return the estimated seconds to tag dev and test sets with the token classifier in the folder `value`.

    The estimate is the time of the experiment's encoder, scaled by the sizes of both models. The sizes do not include
    the embeddings of the vocabulary, because each word piece uses only one row of them.
    """
    measured, folder, encoder = seconds.measured, folder_of(value), seconds.config.encoder
    own, usual = sum(file.stat().st_size for file in weights(folder)) / 4, float(measured.parameters)
    # Use the full sizes if an encoder has no folder, or if a configuration does not state the size of the vocabulary.
    with suppress(ModelError, PathError):
        words = vocabulary_weights(value, folder), vocabulary_weights(encoder, hub.folder_of(encoder))
        own, usual = max(own - words[0], 0.0), max(usual - words[1], 1.0)
    pieces = measured.pieces["train"] * (seconds.corpora["dev"].n_tokens + seconds.tested_tokens)
    return (measured.load + pieces * measured.embed[1]) * own / usual


def _zero_shot_about(run: Run, _: Library) -> str:
    found, config = result.read(run, ZeroShotResult), run.manifest.config
    other = f", not {listed(list(found.unknown))}" if found.unknown else ""
    sure = "chosen on the dev set" if config["dev"] else f"of {config['threshold']:g}"
    return (
        f"The ready model {Path(config['model']).name}, without training, for {listed(sorted({*found.types.values()}))}"
        f"{other}; minimum confidence {sure}."
    )


def _asked(value: str) -> tuple[str, str]:
    """Split a value MODEL@ADDRESS and return (model, address)."""
    model, _, address = value.rpartition("@")
    return model, address


def _model_at(value: str) -> str:
    model, address = _asked(value)
    if not model.strip():  # The message does not quote the value, because an address may contain a password.
        raise ConfigError(
            "arms: llm needs a model and the address of its server; write for example "
            "llm:qwen3:8b@http://127.0.0.1:11434/v1."
        )
    try:
        return f"{model.strip()}@{parsed(address).address}"
    except ConfigError as error:
        raise ConfigError(f"arms: llm: {error}") from error


def _llm_options(value: str, config: Asked) -> Options:
    model, address = _asked(value)
    here = parsed(address).here
    allowed = {name: option for name, option in config.llm.items() if not here or name != "allow_host"}
    return {"model": model, "address": address, "train": config.train, **allowed}


def seconds_per_answer(model: str) -> tuple[float, str]:
    """Return (seconds in which a language model answers for one sentence, basis of this number in words).

    The seconds are those of the last run with this model; if there is none, ANSWER.
    """
    for run in RunStore(home()).list("llm", state="succeeded"):
        found = result.read(run, LlmResult) if run.manifest.config["model"] == model else None
        if found and found.seconds:
            each, basis = found.seconds / found.sentences, f"From your last run with {model}"
            break
    else:
        each, basis = ANSWER, f"No run here has used {model} yet, so this is assumed"
    return each, f"{basis}: {each:.1f} seconds per sentence."


def _llm_seconds(value: str, seconds: Timed) -> float:
    """Return the estimated seconds in which a language model answers for all test sentences."""
    model, _ = _asked(value)
    sentences = sum(len(corpus) for corpus in (seconds.corpora["test"], *seconds.also_test))
    each, basis = seconds_per_answer(model)
    seconds.basis |= {basis: None}
    return sentences * each / LlmOptions.parse(seconds.config.llm).at_once


def _llm_about(run: Run, _: Library) -> str:
    found, config = result.read(run, LlmResult), run.manifest.config
    at = f" at {config['allow_host']}" if config["allow_host"] else ""
    missing = sum(found.unanswered.values())
    without = f"; {missing:,} of {count(found.sentences, 'sentence')} got no answer" if missing else ""
    shown = f"after {count(config['examples'], 'example')}" if config["examples"] else "without examples"
    return f"The language model {config['model']}{at}, asked about each sentence {shown}, without training{without}."


KINDS: Mapping[str, ReferenceKind] = {
    line.kind.name: line
    for line in (
        ReferenceKind(
            kind=dictionary.KIND,
            summary=lambda _: (
                "Looks up the names of the dictionary (or of the training set, if there is none) without training."
            ),
            named=lambda _: "looking names up",
            noun="a list of names",
            options=lambda _, config: {"names": config.dictionary or (config.train,)},
            seconds=_dictionary_seconds,
            doing="looking names up",
            about=_dictionary_about,
        ),
        ReferenceKind(
            kind=zero_shot.KIND,
            value="FOLDER",
            normal=_folder,
            summary=lambda value: f"The ready token classifier in {value}, without training.",
            named=lambda value: f"the ready model {Path(value).name}",
            noun="a ready model",
            options=_zero_shot_options,
            seconds=_zero_shot_seconds,
            doing="tagging with the ready model",
            check=zero_shot.check,
            about=_zero_shot_about,
            downloads=lambda run: f"the model {Path(run.manifest.config['model']).name}",
        ),
        ReferenceKind(
            kind=llm.KIND,
            value="MODEL@ADDRESS",
            normal=_model_at,
            summary=lambda value: "The language model {} at {}, asked without training.".format(*_asked(value)),
            named=lambda value: f"the language model {_asked(value)[0]}",
            noun="a language model",
            options=_llm_options,
            seconds=_llm_seconds,
            doing="asking the language model",
            check=llm.check,
            about=_llm_about,
            downloads=lambda run: f"the language model {run.manifest.config['model']}",
        ),
    )
}


def options_of(kind: str, value: str, config: Asked) -> Options:
    """Return the options of a reference variant's run.

    kind, value: kind of the run, and value in the arm's name. config: options of an experiment or of one of its halves.
    """
    return {"test": (config.test, *config.also_test), **KINDS[kind].options(value, config)}
