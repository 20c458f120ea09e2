"""Reference variants of an experiment: other ways to find the entities of its test sets, without training a tagger.

The evaluation of a reference variant comes from a run of one of `KINDS`. An entry of
`KINDS` holds everything that is special about such a variant. `arms.py` makes its arm from the entry; `config.py`,
`steps.py` and `cost.py` use it for the run. The name of the arm is the kind's name or, with a value, NAME:VALUE. If a
user starts a run of these kinds outside an experiment, it is listed below the leaderboards on the same test set
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

READ_NAMES = 3e-6  # seconds per token to read the lists of names
LOOK_UP = 1e-5  # seconds per token to look names up in the test sets and score them
ANSWER = 2.0  # assumed seconds per sentence for a language model that no earlier run has asked


class Asked(Protocol):
    """Options of an experiment that reference variants read."""

    encoder: str
    train: str
    dev: str
    test: str
    also_test: tuple[str, ...]
    dictionary: tuple[str, ...]
    type_map: tuple[str, ...]
    llm: dict[str, object]


class Timed(Protocol):
    """Data for estimating the seconds of a reference variant. `cost.Seconds` implements it."""

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

    Its functions get the value in the arm's name, "" if the name has none.

    kind: the kind of run, with the option `test` and the artifacts of `dictionary`.
    value: word for the value, such as FOLDER; "" if the arm's name has no value.
    normal: returns the normal spelling of a value.
    summary: describes the arm.
    named: names the method in a sentence.
    noun: name of the tool that finds the entities, such as "a list of names".
    options: returns the options of the run, without the test sets, for an experiment or one of its halves.
    seconds: estimates the run's time, without reading and saving.
    doing: describes the running step, for the progress of an experiment.
    check: raises an error if a run with these options would fail now.
    about: describes a finished run.
    downloads: names the model that a finished run needed and that is not part of Winnow; "" for none.
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
    """Return the seconds to tag dev and test sets: the time of the experiment's encoder, scaled by the models' sizes.

    Vocabularies do not count towards the sizes, because each word uses only one of their rows.
    """
    measured, folder, encoder = seconds.measured, folder_of(value), seconds.config.encoder
    own, usual = sum(file.stat().st_size for file in weights(folder)) / 4, float(measured.parameters)
    with suppress(ModelError, PathError):  # an encoder may have no folder, and a configuration may lack these numbers
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
    """Return the model and the address of a value MODEL@ADDRESS."""
    model, _, address = value.rpartition("@")
    return model, address


def _model_at(value: str) -> str:
    model, address = _asked(value)
    if not model.strip():  # do not quote the value, because its address may contain a password
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
    """Return (seconds per sentence of the last run that asked this language model, else ANSWER; basis in words)."""
    for run in RunStore(home()).list("llm", state="succeeded"):
        found = result.read(run, LlmResult) if run.manifest.config["model"] == model else None
        if found and found.seconds:
            each, basis = found.seconds / found.sentences, f"From your last run that asked {model}"
            break
    else:
        each, basis = ANSWER, f"{model} was not asked here yet, so this is assumed"
    return each, f"{basis}: {each:.1f} seconds per sentence."


def _llm_seconds(value: str, seconds: Timed) -> float:
    """Return the seconds to ask about all test sentences, at the pace of the last run that asked the same model."""
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
    """Return the options of a reference variant's run. config: options of an experiment, or of a half."""
    return {"test": (config.test, *config.also_test), **KINDS[kind].options(value, config)}
