"""What a recipe is: options in, a result out, with a `Job` to reach corpora, artifacts and other runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict

from core import __version__, cards
from core.config import Config, fields_with, refuse_download
from core.corpora.checks import Check
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.models import hub
from core.overruled import keep, overruled, refusal
from core.runs.context import RunContext
from core.runs.run import relative_to_home
from core.runs.shared import run_or_reuse
from core.runs.store import Run, RunStore, is_run_id, run_key
from core.runs.versions import versions
from core.runs.where import LOCAL, Where

Result = dict[str, object]  # as JSON keeps it; `artifacts.result.read` gives it its type again
ENCODERS = ("encoder", "encoders", "init", "states", "difficulty_encoder")  # options that name one, or several
Options = dict[str, object]  # of a run, as its config takes them


@dataclass(frozen=True, slots=True)
class Recipe:
    """One kind of run.

    reuse: a finished run with the same key is as good as a new one. helped: what other processes do that help with a
    run, which ends by `share.Over` when nothing is left for them; None: they wait. here: it computes in its own
    process, whatever `--on` says. red_items: the items of its data check that stop it, given its kind, its options and
    the corpora; None: it has no data check.
    """

    kind: str
    config: type[Config]
    run: Callable[[Any, "Job"], object]
    reuse: bool = True
    helped: Callable[[Any, "Job"], object] | None = None
    here: bool = False
    red_items: Callable[[str, Mapping[str, object], Library], Sequence[Check]] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """Home, context and recipes that a recipe may touch."""

    home: Path
    context: RunContext
    recipes: Mapping[str, Recipe]

    @property
    def library(self) -> Library:
        return Library(self.home)

    def corpus(self, reference: str) -> Corpus:
        """A sealed corpus by fingerprint or name."""
        return self.library.find(reference)

    def child(self, kind: str, **options: object) -> Run:
        """A finished run of another recipe with these options: found by its key, else made now, here."""
        return self._child(kind, options, waits=True)

    def child_if_free(self, kind: str, **options: object) -> Run:
        """The same. Errors: RunBusy where another process is at it."""
        return self._child(kind, options, waits=False)

    def at_work(self, kind: str, **options: object) -> Run | None:
        """That run while another process is at it; None: nobody is."""
        recipe, store = self.recipes[kind], RunStore(self.home)
        key = plan(recipe, recipe.config.parse(options), self.home).key
        run = None if store.finished(key) else store.unfinished(key)
        return run if run and run.lock.held() else None

    def _child(self, kind: str, options: Options, *, waits: bool) -> Run:
        recipe = self.recipes[kind]
        wanted = plan(recipe, recipe.config.parse(options), self.home)
        if not recipe.reuse:  # then it is this run's own, which finds it again when it resumes
            wanted = replace(wanted, key=_own_key(wanted.key, self.context.run.id))

        def function(context: RunContext) -> Result:
            return _result(recipe, wanted.config, Job(self.home, context, self.recipes))

        return run_or_reuse(self.context, function=function, **wanted.manifest(), waits=waits)


def _own_key(key: str, of: str) -> str:
    """The key of work that is made anew for each run that asks for it."""
    return run_key("own", {"key": key}, {"of": of}, seed=None, code_version=__version__)


def work_of(run: Run, recipes: Mapping[str, Recipe]) -> Callable[[RunContext], Result]:
    """Read what a run does from its manifest: a function of the context of an attempt."""
    recipe = recipes[run.manifest.kind]
    config = recipe.config.parse(dict(run.manifest.config))
    return lambda context: _result(recipe, config, Job(run.home, context, recipes))


def help_of(run: Run, recipes: Mapping[str, Recipe]) -> Callable[[RunContext], object] | None:
    """Work of a process that helps with a run, given its context (`share.Aside`); None: nothing."""
    recipe = recipes[run.manifest.kind]
    if (helped := recipe.helped) is None:
        return None
    config = recipe.config.parse(dict(run.manifest.config))
    return lambda context: helped(config, Job(run.home, context, recipes))


def _result(recipe: Recipe, config: Config, job: Job) -> Result:
    """The result of a recipe; what an encoder had to be converted from, and where it computes, is noted before."""
    if recipe.here and not job.context.is_child and (on := Where.asked().on) != LOCAL:
        job.context.note(f"A run of the kind {recipe.kind} computes in this process, not on {on}.", passing=True)
    if not job.context.is_child and (sentence := overruled(job.context.run)):
        job.context.note(sentence, passing=True)
    for name in _encoders(config):
        if sentence := hub.converted(name):
            job.context.note(sentence)
    return as_json(recipe.run(config, job))


def _encoders(config: Config) -> list[str]:
    """Encoders that `config` names, without those that are a run's."""
    values = (getattr(config, option, ()) for option in ENCODERS)
    names = chain.from_iterable([value] if isinstance(value, str) else value for value in values)
    return [name for name in names if name and not is_run_id(name)]


def as_json(result: object) -> Result:
    """JSON that a run keeps of a recipe's result, a dataclass, as `artifacts.result.read` reads it back."""
    if is_dataclass(result) and not isinstance(result, type):
        return asdict(result)
    assert isinstance(result, dict)
    return result


def resolve(config: Config, library: Library) -> tuple[Config, dict[str, str]]:
    """`config` with every corpus named by fingerprint, and those fingerprints by option.

    Errors: CorpusError for a corpus that is not there.
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
    """The fields of a manifest that are known before there is a run; see `runs.run.Manifest`."""

    kind: str
    config: dict[str, object]
    inputs: Mapping[str, str]
    seed: int | None
    versions: Mapping[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Work that is wanted: what a manifest says of it, before there is a run."""

    kind: str
    config: Config
    inputs: Mapping[str, str]
    key: str

    def manifest(self) -> Fields:
        """The manifest's fields."""
        return Fields(
            kind=self.kind,
            config=self.config.model_dump(mode="json"),
            inputs=self.inputs,
            seed=getattr(self.config, "seed", None),
            versions=versions(),
            key=self.key,
        )


def plan(recipe: Recipe, config: Config, home: Path) -> Plan:
    """Name the corpora of `config` by fingerprint and the work by its key."""
    config, inputs = resolve(_precise(config.settled()), Library(home))
    seed = getattr(config, "seed", None)
    key = run_key(
        recipe.kind, relative_to_home(config.model_dump(mode="json"), home), inputs, seed=seed, code_version=__version__
    )
    return Plan(recipe.kind, config, inputs, key)


def _precise(config: Config) -> Config:
    """`config` with what `auto` comes to here: a home that was copied to another machine mixes no vectors of both."""
    if getattr(config, "precision", "") != "auto":
        return config
    return config.model_copy(update={"precision": cards.precision()})


def refuse_red(recipe: Recipe, config: Config, store: RunStore, *, run_anyway: bool = False) -> Sequence[Check]:
    """Return the red items of a run's data check that its user overrules.

    Errors: ConfigError for a red item, unless `run_anyway` or the run is finished already.
    """
    if recipe.red_items is None:
        return ()
    red = recipe.red_items(recipe.kind, config.model_dump(), Library(store.home))
    error = refusal(red, run_anyway=run_anyway)
    if error and not (recipe.reuse and store.finished(plan(recipe, config, store.home).key)):
        raise error
    return red


def register(recipe: Recipe, config: Config, store: RunStore, *, run_anyway: bool = False) -> Run:
    """Return the run that does this work: a finished one, else one that was begun, else a new one.

    Every run without a parent run is made here, so the data check can refuse it before it exists.
    run_anyway: overrule its red items; the run notes them.
    Errors: CorpusError; ConfigError for a download on a machine kept offline and for a red item of the data check.
    """
    refuse_download(config.model_dump())  # no run anyway: an administrator's switch comes before the user's data
    red = refuse_red(recipe, config, store, run_anyway=run_anyway)
    wanted = plan(recipe, config, store.home)
    with store.critical():
        resolve(wanted.config, Library(store.home))  # no corpus was removed meanwhile
        run = (store.finished(wanted.key) or store.unfinished(wanted.key)) if recipe.reuse else None
        run = run or store.create(**wanted.manifest())
    if red and run.state().state != "succeeded":
        keep(run, red)
    return run
