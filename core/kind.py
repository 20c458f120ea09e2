"""Define kinds of run. A kind computes a result from options; a `Job` gives it access to corpora and other runs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypedDict

from core import RESULTS_VERSION, cards
from core.config import Config, fields_with, refuse_download
from core.corpora.checks import Check
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, RunError
from core.files import write_atomic
from core.models import hub
from core.runs.context import RunContext
from core.runs.run import relative_to_home
from core.runs.shared import find_or_create, run_or_reuse
from core.runs.store import Run, RunStore, is_run_id, run_key
from core.runs.versions import versions
from core.runs.where import LOCAL, Where

Result = dict[str, object]  # a result as JSON; `runs.result.read` restores its type

OVERRULED, LONGEST_OVERRULED = "run-anyway.txt", 2_000  # file with the overruled checks; its maximum length

ENCODERS = ("encoder", "encoders", "init", "states", "difficulty_encoder")  # names of options whose values are encoders

Options = dict[str, object]  # options of a run, as keyword arguments


class About(Protocol):
    """Facts about a run for its title and outcome: the options, and names of the corpora and runs in the options."""

    @property
    def config(self) -> Mapping[str, Any]: ...

    def corpus(self, reference: str) -> str:
        """Return the name of a corpus."""
        ...

    def corpora(self, references: Sequence[str]) -> str:
        """Return the names of several corpora as one phrase."""
        ...

    def encoder(self, init: str) -> str:
        """Return a short name of an encoder. init: its name or folder, or the id of a `pretrain` run."""
        ...

    def begun_from(self, init: str) -> tuple[str, str]:
        """Return two phrases: the encoder before further pre-training, and the texts it was then pre-trained on."""
        ...

    def tagger(self, model: str) -> str:
        """Return the name of a tagger. model: id of a `finetune` run, or folder of a tagger."""
        ...

    def selection(self, run_id: str) -> str:
        """Return the title of a `select` run."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run. To register a kind, add it to the list in `core/kinds.py`.

    run: function that takes the config and a `Job`, and returns a `result`.
    title, outcome: functions that return the texts for a run and its result in a list of runs. Runs of a kind without
    `outcome` are listed only as parts of other runs.
    page: page that shows runs of this kind. opens: True if the page can show one run by its id.
    command: words of the command that starts a run of this kind; () for the kind's name; None if there is no such
    command.
    positional: options whose values are typed without the option's name.
    reuse: True if a finished run with the same key is reused.
    here: True if runs compute in their own process even if `--on` asks for other machines.
    red_items: function that takes the kind's name, the options and the library. It returns the red items of the data
    check, which are reasons not to start the run.
    """

    name: str
    config: type[Config]
    run: Callable[[Any, "Job"], object]
    result: type
    title: Callable[[About], str] | None = None
    outcome: Callable[[Any, About], str] | None = None
    page: str = ""
    opens: bool = False
    command: tuple[str, ...] | None = ()
    positional: tuple[str, ...] = ()
    reuse: bool = True
    here: bool = False
    red_items: Callable[[str, Mapping[str, object], Library], Sequence[Check]] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the command that starts this kind of run."""
        return self.command or (self.name,)


@dataclass(frozen=True, slots=True)
class Job:
    """A run that is being executed, as its kind sees it. home: folder of the project. kinds: {name: kind of run}."""

    home: Path
    context: RunContext
    kinds: Mapping[str, Kind]

    @property
    def library(self) -> Library:
        return Library(self.home)

    def corpus(self, reference: str) -> Corpus:
        """Return a corpus by fingerprint or name."""
        return self.library.find(reference)

    def child(self, kind: str, **options: object) -> Run:
        """Return a finished run of `kind` with these options. If there is none, do its work now."""
        known, wanted = self.kinds[kind], self._wanted(kind, options)

        def function(context: RunContext) -> Result:
            return _result(known, wanted.config, Job(self.home, context, self.kinds))

        return run_or_reuse(self.context, function=function, **wanted.manifest())

    def begun_child(self, kind: str, **options: object) -> Run:
        """Return the run that `child` would return, but do no work. If it is not finished, the caller must start it."""
        return find_or_create(self.context, **self._wanted(kind, options).manifest())

    def _wanted(self, kind: str, options: Options) -> "Plan":
        known = self.kinds[kind]
        wanted = plan(known, known.config.parse(options), self.home)
        # If runs of this kind are not reused, the key depends on the parent run. Then only the parent finds the child
        # run when it is resumed.
        return wanted if known.reuse else replace(wanted, key=_own_key(wanted.key, self.context.run.id))


def _own_key(key: str, of: str) -> str:
    """Return a key with which only one parent run finds its child run. key: usual key. of: id of the parent run."""
    return run_key("own", {"key": key}, {"of": of}, seed=None, code_version=RESULTS_VERSION)


def kind_of(run: Run, kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind of a run. Errors: RunError for a kind that only another version of Winnow has."""
    if known := kinds.get(run.manifest.kind):
        return known
    raise RunError(
        f"run {run.id}: this version of Winnow has no runs of the kind {run.manifest.kind}; use the version that "
        f"started it ({run.manifest.versions.get('winnow', 'unknown')})."
    )


def work_of(run: Run, kinds: Mapping[str, Kind]) -> Callable[[RunContext], Result]:
    """Return the function that does the work of a run. Its argument is the context of the attempt.

    Errors: those of `kind_of` and `Config.parse`.
    """
    kind = kind_of(run, kinds)
    config = kind.config.parse(dict(run.manifest.config))
    return lambda context: _result(kind, config, Job(run.home, context, kinds))


def _result(kind: Kind, config: Config, job: Job) -> Result:
    """Do the work of a run and return its result as JSON.

    Before the work, add notes on converted encoders, overruled checks and an ignored `--on`.
    """
    if kind.here and not job.context.is_child and (on := Where.asked().on) != LOCAL:
        job.context.note(f"Runs of the kind {kind.name} compute in this process, not on {on}.", passing=True)
    if not job.context.is_child and (sentence := overruled(job.context.run)):
        job.context.note(sentence, passing=True)
    for name in _encoders(config):
        if sentence := hub.converted(name):
            job.context.note(sentence)
    return as_json(kind.run(config, job))


def _encoders(config: Config) -> list[str]:
    """Return the encoders that `config` gives by name or path, not by the id of a run."""
    values = (getattr(config, option, ()) for option in ENCODERS)
    names = chain.from_iterable([value] if isinstance(value, str) else value for value in values)
    return [name for name in names if name and not is_run_id(name)]


def as_json(result: object) -> Result:
    """Return a result (a dataclass or a dict) as JSON that `runs.result.read` can read."""
    if is_dataclass(result) and not isinstance(result, type):
        return asdict(result)
    assert isinstance(result, dict)
    return result


def resolve(config: Config, library: Library) -> tuple[Config, dict[str, str]]:
    """Return `config` with fingerprints instead of corpus names, and {option: fingerprint}.

    Errors: CorpusError for a missing corpus.
    """
    changed: dict[str, str | tuple[str, ...]] = {}
    inputs: dict[str, str] = {}
    for name in fields_with(type(config), "corpus"):
        value = getattr(config, name)
        if isinstance(value, str) and value:
            changed[name] = inputs[name] = library.find(value).fingerprint
        elif value:
            changed[name] = marks = tuple(library.find(reference).fingerprint for reference in value)
            inputs |= {f"{name}.{i}": fingerprint for i, fingerprint in enumerate(marks)}
    return config.model_copy(update=changed), inputs


class Fields(TypedDict):
    """Fields of a manifest that are known before the run exists; see `runs.run.Manifest`."""

    kind: str
    config: dict[str, object]
    inputs: Mapping[str, str]
    seed: int | None
    versions: Mapping[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it is created. config: options with fingerprints of corpora. inputs, key: see `Manifest`."""

    kind: str
    config: Config
    inputs: Mapping[str, str]
    key: str

    def manifest(self) -> Fields:
        """Return the fields of the manifest."""
        return Fields(
            kind=self.kind,
            config=self.config.model_dump(mode="json"),
            inputs=self.inputs,
            seed=getattr(self.config, "seed", None),
            versions=versions(),
            key=self.key,
        )

    def finished_in(self, store: RunStore) -> Run | None:
        """Return the finished run of this plan, or None."""
        return store.finished(self.key, self.config.model_dump(mode="json"))

    def run_in(self, store: RunStore) -> Run | None:
        """Return the run of this plan: a finished one, else an unfinished one, else None."""
        return self.finished_in(store) or store.unfinished(self.key, self.config.model_dump(mode="json"))


def plan(kind: Kind, config: Config, home: Path) -> Plan:
    """Return the plan of a run: its config with fingerprints of corpora, and its key.

    Options with their default value are not part of the key. A new option of the kind therefore does not change old
    keys.
    """
    config, inputs = resolve(_precise(config.settled()), Library(home))
    seed = getattr(config, "seed", None)
    key = run_key(
        kind.name,
        relative_to_home(config.model_dump(mode="json", exclude_defaults=True), home),
        inputs,
        seed=seed,
        code_version=RESULTS_VERSION,
    )
    return Plan(kind.name, config, inputs, key)


def _precise(config: Config) -> Config:
    """Replace the precision `auto` by bf16 or fp32 if no GPU is used.

    If the home folder is copied to another machine, runs there then do not mix vectors of both precisions.
    """
    if getattr(config, "precision", "") != "auto":
        return config
    return config.model_copy(update={"precision": cards.precision()})


def refuse_red(kind: Kind, config: Config, store: RunStore, *, run_anyway: bool = False) -> Sequence[Check]:
    """Refuse a run whose data check has red items, which are reasons not to start it. Return the accepted red items.

    Red items are accepted if the run is finished already. With `run_anyway`, the user overrules all red items except
    those with `final` set. Errors: ConfigError for a red item that is not accepted.
    """
    if kind.red_items is None:
        return ()
    red = kind.red_items(kind.name, config.model_dump(), Library(store.home))
    final = [check for check in red if check.final]
    if not red or (run_anyway and not final) or (kind.reuse and plan(kind, config, store.home).finished_in(store)):
        return red
    items = " ".join(check.sentence for check in (final or red))
    cure = f"{(final or red)[0].cure[:1].lower()}{(final or red)[0].cure[1:]}"
    ways = f"{cure}." if final else f"{cure}, or run anyway (--run-anyway)."
    raise ConfigError(f"data check: {items} To continue, {ways}")


def register(kind: Kind, config: Config, store: RunStore, *, run_anyway: bool = False) -> Run:
    """Return the run with these options: a finished one, else an unfinished one, else a new one.

    If runs of this kind are not reused, always create one. Every run without a parent run is created here, so that the
    data check can refuse any run before it exists.
    run_anyway: True to overrule red items of the data check; a note of the run names them.
    Errors: CorpusError; ConfigError for a download on an offline machine, or for a red item of the data check.
    """
    refuse_download(config.model_dump())  # checked first, because an administrator's setting cannot be overruled
    red = refuse_red(kind, config, store, run_anyway=run_anyway)
    wanted = plan(kind, config, store.home)
    with store.critical():
        resolve(wanted.config, Library(store.home))  # raises an error if a corpus was removed meanwhile
        run = wanted.run_in(store) if kind.reuse else None
        run = run or store.create(**wanted.manifest())
    if red and run.state().state != "succeeded":
        text = " ".join(check.sentence for check in red)
        write_atomic(run.path / OVERRULED, f"Started although the data check says: {text}".encode())
    return run


def overruled(run: Run) -> str:
    """Return a sentence that names the failed data checks that the user overruled; "" if there are none."""
    with suppress(OSError, UnicodeDecodeError), (run.path / OVERRULED).open(encoding="utf-8") as file:
        return file.read(LONGEST_OVERRULED)
    return ""
