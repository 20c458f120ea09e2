"""Start, list, follow, cancel and resume the runs of the current project."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from core import project_list as projects
from core.audit_log import account, note, noted, ready
from core.config import Config, fields_with, refuse_download
from core.corpora.checks import Check
from core.errors import ConfigError, CorpusError, RunBusy
from core.importing.result import AddResult
from core.importing.view import roles
from core.kind import kind_of, plan, register, resolve, work_of
from core.kind import refuse_red as refuse
from core.kinds import KINDS
from core.llm.llm import ASKING
from core.paths import given_home, home
from core.projects.home import library, store, store_of
from core.projects.removals import runs_with_roles
from core.results import Role
from core.runs import launch, worker
from core.runs.events import Event, RunState, State
from core.runs.in_processes import processes_that_pay
from core.runs.result import read
from core.runs.run import Run
from core.runs.where import LOCAL, ON, PROCESSES, Where, checked, ray_installed
from core.selection import STRATEGIES, involved
from core.shown import brief


def listed(*kinds: str, state: State | None = None) -> list[Run]:
    """Return the runs of the given kinds and state, newest first. No kinds means all kinds; None means all states."""
    return store().list(*kinds, state=state)


def own(*kinds: str, state: State | None = None) -> list[Run]:
    """Return the runs that users started, without child runs; see `listed`."""
    return [run for run in listed(*kinds, state=state) if run.manifest.parent is None]


def of_corpora_in_use(candidates: Iterable[Run]) -> list[Run]:
    """Return the runs that used the project's current corpora in their current roles; see `runs_with_roles`."""
    return runs_with_roles(candidates, roles(), library(), _unread)


def _unread(run: Run) -> tuple[str, ...]:
    """Return the roles of a run's inputs that the run does not use. Most strategies do not use the training set."""
    if run.manifest.kind == "queue":  # a labelling queue uses the training set only to leave out its sentences
        return ("train",)
    config = run.manifest.config
    if run.manifest.kind != "select" or config["strategy"] not in STRATEGIES:
        return ()
    with suppress(ConfigError):  # the run may have options of an older version
        every = involved(config["strategy"], config["options"])
        return () if any(Role.LABELLED in strategy.needs for strategy in every) else ("train",)
    return ()


def at_work() -> list[Run]:
    """Return active runs that users started or resumed, newest first.

    A child run is included if its parent run does not run, because a user has then resumed the child run alone.
    """
    every = listed()
    held = {run.id for run in every if run.lock.held()}
    alone = held - {run.id for run in every if run.manifest.parent in held}
    return [run for run in every if (run.manifest.parent is None or run.id in alone) and run.state().active]


def importing() -> bool:
    """Return True while an import is running."""
    return any(run.manifest.kind in ("add", "intake") for run in at_work())


def get(run_id: str) -> Run:
    """Return a run by id. Errors: RunError."""
    return store().get(run_id)


def state(run_id: str) -> RunState:
    """Return a run's current state. Errors: RunError."""
    return store().get(run_id).state()


def held_by_another(run_id: str) -> str:
    """Describe the run's worker if it belongs to another account or machine; "" otherwise."""
    worker = store().get(run_id).worker()
    return worker.in_words if worker and (worker.elsewhere or worker.account not in ("", account())) else ""


def finished(kind: str, options: Mapping[str, object]) -> Run | None:
    """Return the finished run that `start(kind, options)` would reuse, or None."""
    known = KINDS[kind]
    return plan(known, known.config.parse(dict(options)), home()).finished_in(store())


def places(*, steps: bool = False) -> tuple[str, ...]:
    """Return the values of `--on` that a user can choose, the default first. steps: True for an experiment."""
    several = [f"{PROCESSES}{n}"] if steps and (n := processes_that_pay()) > 1 else []
    return tuple(dict.fromkeys((Where.asked().on, LOCAL, *several, *(["ray"] if ray_installed() else []))))


def place(run_id: str) -> Where:
    """Return the place where a run computes or last computed. Errors: RunError."""
    return Where.read(store().get(run_id).path)


def begun(kind: str, options: Mapping[str, object]) -> Run | None:
    """Return the run, finished or not, that `start(kind, options)` would reuse or resume, or None."""
    known = KINDS[kind]
    return plan(known, known.config.parse(dict(options)), home()).run_in(store())


def recipients() -> list[str]:
    """Return the places to which active runs send sentences, sorted: clusters, and hosts of language models.

    The runs of all projects are included, because pages say what leaves this machine. A cluster is returned as the
    value of the option `--on`.
    """
    folders = [project.folder for project in projects.listed(given_home()) if (project.folder / "runs").is_dir()]
    sending = [(run, to) for folder in folders for run in store_of(folder).list() if (to := _sends_to(run))]
    return sorted({to for run, to in sending if run.state().active})


def _sends_to(run: Run) -> str:
    """Return the place to which a run sends sentences while it is active; "" for none."""
    if run.manifest.kind in ASKING and (host := run.manifest.config.get("allow_host")):
        return str(host)
    on = Where.read(run.path).on
    return on if on.startswith("ray:") else ""


def asked_hosts() -> list[str]:
    """Return the hosts of language models to which any run of this project was allowed to send sentences, sorted."""
    return sorted({host for run in listed(*ASKING) if (host := run.manifest.config.get("allow_host"))})


def start(kind: str, options: Mapping[str, object], on: str = "", *, run_anyway: bool = False) -> str:
    """Start a run in a new process and return its id. A finished run with the same key is reused.

    on: place to compute, a value of `--on`; "" for the place where this process computes. run_anyway: True to start
    the run although the data check has red items; the run notes them.
    Errors: ConfigError or CorpusError for invalid options; ConfigError for a red item of the data check.
    """
    ready()
    where = replace(Where.asked(), on=checked(on))
    run = _registered(kind, options, run_anyway=run_anyway)
    if run.state().state != "succeeded":
        with suppress(RunBusy):  # another process is already working on it
            _send(run, where)
            _launch(run)
            _note_start(run)
    return run.id


def execute(
    kind: str,
    options: Mapping[str, object],
    listener: Callable[[Event], None] | None = None,
    *,
    run_anyway: bool = False,
) -> Run:
    """Execute a run in this process and return it. A finished run with the same key is reused.

    listener: function that is called with each event. run_anyway, errors: see `start`.
    """
    ready()
    run = _registered(kind, options, run_anyway=run_anyway)
    if run.state().state != "succeeded" and not run.lock.held():  # otherwise `worker.execute` refuses
        _note_start(run)
        _send(run, Where.asked())
    worker.execute(run, work_of(run, KINDS), listener=listener)
    return run


def refuse_red(kind: str, options: Mapping[str, object], *, run_anyway: bool = False) -> Sequence[Check]:
    """Return the red items of the data check for these options, which are reasons not to start the run.

    Errors: ConfigError if the run may not start. With `run_anyway`, it may start unless an item has `final` set. A run
    that has already finished is always accepted.
    """
    known = KINDS[kind]
    return refuse(known, known.config.parse(dict(options)), store(), run_anyway=run_anyway)


def _registered(kind: str, options: Mapping[str, object], *, run_anyway: bool) -> Run:
    """Return the run with these options; create it if it does not exist. Errors: see `start`."""
    known = KINDS[kind]
    return register(known, known.config.parse(dict(options)), store(), run_anyway=run_anyway)


def _note_start(run: Run) -> None:
    """Write the start of a run in the audit log, except for imports.

    An import writes its own line as soon as it knows the corpus's fingerprint.
    """
    if run.manifest.kind != "add":
        note("start", runs=[run.id], corpora=dict.fromkeys(run.manifest.inputs.values()))


def cancel(run_id: str) -> None:
    """Cancel a run and return at once. If it does not stop, this process kills it within 15 seconds."""
    ready()
    if launch.cancel(store().get(run_id)):
        note("cancel", runs=[run_id])


def resume(run_id: str, on: str = "", *, agreed: bool = False) -> None:
    """Resume a cancelled, interrupted or failed run.

    on: place to compute, a value of `--on`; "" keeps the run's place. agreed: True if the user has agreed to the result
    of `brought_options`.
    Errors: CorpusError if one of the run's corpora is missing; ConfigError for an unknown place, a download on an
    offline machine, or an imported run without agreement.
    """
    run = store().get(run_id)
    with noted("resume", runs=[run_id]):
        _settle_consent(run, agreed)
        if on:
            _send(run, replace(Where.read(run.path), on=checked(on)))
        _launch(run)


def brought_options(run_id: str) -> Mapping[str, object] | None:
    """Return the options of an unfinished run that was imported with a project; None for any other run.

    Corpora, and options that have their default value, are left out.
    """
    run = store().get(run_id)
    if not run.brought_file.exists() or run.state().state == "succeeded":
        return None
    known = KINDS.get(run.manifest.kind)
    fields = known.config.model_fields if known else {}
    corpora = fields_with(known.config, "corpus") if known else ()
    usual = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    options = {name: value for name, value in run.manifest.config.items() if name not in corpora}
    return {name: value for name, value in options.items() if _as_tuple(value) != usual.get(name)}


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def options_in_words(options: Mapping[str, object]) -> str:
    """Format options that a user must agree to: `init: evil/model, allow_download: yes`."""
    return ", ".join(f"{name}: {_in_words(value)}" for name, value in options.items()) or "all defaults"


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return brief(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def _settle_consent(run: Run, agreed: bool) -> None:
    """Refuse to resume an imported run without agreement. With agreement, the run no longer counts as imported."""
    refuse_download(run.manifest.config)
    if (options := brought_options(run.id)) is None:
        return
    if not agreed:
        raise ConfigError(
            f"run {run.id}: was imported with a project, so another person chose its options ({run.manifest.kind}: "
            f"{options_in_words(options)}); check them, then resume it with `runs resume {run.id} --agree`."
        )
    run.brought_file.unlink(missing_ok=True)


def _send(run: Run, where: Where) -> None:
    """Store the place where a run will compute, unless a process already works on the run."""
    if not run.lock.held():
        where.keep(run.path)


def _launch(run: Run) -> None:
    """Start a run's worker. Meanwhile, a lock prevents the removal of the run's corpora."""
    config = kind_of(run, KINDS).config.parse(dict(run.manifest.config))
    with store().critical():
        resolve(config, library())
        launch.start(run)


def stop(run_id: str) -> RunState:
    """Cancel a run and wait until it ends, for at most 15 seconds."""
    ready()
    if store().get(run_id).state().active:
        note("cancel", runs=[run_id])
    return launch.stop(store().get(run_id))


def go_on(run_id: str, listener: Callable[[Event], None] | None = None, *, agreed: bool = False) -> dict[str, object]:
    """Resume a run in this process and return its result. listener: see `execute`. agreed, errors: see `resume`."""
    ready()
    run = store().get(run_id)
    unfinished = run.state().state != "succeeded"
    if unfinished:
        refuse_download(run.manifest.config)
    work = work_of(run, KINDS)
    if unfinished:
        _settle_consent(run, agreed)
        if not run.lock.held():  # otherwise `worker.execute` refuses
            note("resume", runs=[run_id])
    if not os.environ.get(ON):
        before = Where.read(run.path)
        os.environ |= replace(before, mixed=before.mixed or Where.asked().mixed).environment
    _send(run, Where.asked())
    return worker.execute(run, work, listener=listener)


def with_corpora(
    config: type[Config], options: Mapping[str, object], listener: Callable[[Event], None] | None = None
) -> dict[str, object]:
    """Return the options with fingerprints instead of corpora's names and paths. Import corpora that are given by path.

    Errors: ConfigError, before any import, for a download on an offline machine; errors of `fingerprint_of`.
    """
    refuse_download(options)
    resolved = dict(options)
    for name in fields_with(config, "corpus"):
        value = resolved.get(name)
        if isinstance(value, str):
            resolved[name] = fingerprint_of(value, listener)
        elif isinstance(value, list | tuple):
            resolved[name] = tuple(fingerprint_of(item, listener) for item in value)
    return resolved


def fingerprint_of(text: str, listener: Callable[[Event], None] | None = None) -> str:
    """Return the fingerprint of a corpus. text: its name, fingerprint or path. A corpus given by its path is imported.

    Errors: CorpusError; errors of the import.
    """
    try:
        return library().find(text).fingerprint
    except CorpusError:
        if not text or not os.path.exists(text):
            raise
    return read(execute("add", {"path": str(Path(text).absolute())}, listener), AddResult).corpus
