"""The commands `experiment`, `demo`, `study` and `report`."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, get_origin

import click
import yaml

from core.cli.options import CORPUS, FILE, Command, config_options, several
from core.cli.terminal import echo, finish, json_option, progress, report
from core.config import Config, fields_with
from core.errors import InputError, PathError, ReadError
from core.experiment import deliver, results
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.cost import Cost
from core.experiment.find_out import MEASURED
from core.experiment.next_step import next_steps
from core.experiment.view import Shorter
from core.importing.cli import run_anyway_option
from core.kind import Options
from core.kinds import KINDS
from core.projects import removals, runs
from core.projects.runs import with_corpora
from core.runs.events import Event
from core.runs.run import Run
from core.shown import brief, duration

KIND = "experiment"
CONFIG = KINDS[KIND].config
_INPUTS = ("task", "train", "dev", "test")


def _inputs(command: Command) -> Command:
    """Add a command-line option per corpus. All are optional, because PLAN.yaml may give them instead."""
    for name in reversed(_INPUTS):
        command = click.option(f"--{name}", type=CORPUS, help=CONFIG.model_fields[name].description)(command)
    return command


@click.command()
@click.argument("plan", required=False, type=click.Path(dir_okay=False))
@_inputs
@config_options(CONFIG, leave_out=_INPUTS)
@click.option("--labels", type=click.IntRange(1), help="Train on this number of random labelled sentences.")
@click.option("--plan-only", is_flag=True, help="Print the cost and the gain that the plan can detect, then stop.")
@run_anyway_option
@json_option
def experiment(
    plan: str | None, labels: int | None, plan_only: bool, run_anyway: bool, as_json: bool, **values: object
) -> None:
    """Compare variants (arms) at several budgets and seeds, with a verdict on each variant.

    \b
    PLAN.yaml can give the same options; the command line overrides them.
    Separate the values of a list by commas: --arms none,random,knn.
    Give further options of a stage as NAME=VALUE: --pretrain epochs=4,
    --strategies knn.neighbours=10.
    """
    typed = typed_options(values)
    options = read_plan(Path(plan), typed, progress) if plan else with_corpora(CONFIG, typed, progress)
    if labels:
        options = experiments.on_fewer_labels(options, labels)
    run_experiment(options, plan_only=plan_only, run_anyway=run_anyway, as_json=as_json)


@click.command()
@json_option
def demo(as_json: bool) -> None:
    """Run an experiment on the bundled legal sample, up to its verdict. This takes 7 to 17 minutes."""
    echo("Does pre-training on selected sentences help to find parties and dates in invented contracts?", err=True)
    echo("Three variants are compared. Three replicates of each show how much the seed matters.", err=True)
    echo(
        "The demo takes 7 to 17 minutes on two cores. Each replicate has its own selection, pre-training and tagger.",
        err=True,
    )
    run = run_experiment(experiments.demo(), as_json=as_json)
    if run and not as_json:
        echo("To see the result, run `make app` and open the page Results. The whole table is in the run's folder.")


def run_experiment(
    options: Mapping[str, object], *, plan_only: bool = False, run_anyway: bool = False, as_json: bool = False
) -> Run | None:
    """Print the cost, run the experiment, print the leaderboard. Return the run, or None if it was only planned."""
    _prepare(KIND, options, plan_only=plan_only, run_anyway=run_anyway)
    planned, foresight = experiments.cost(options), experiments.foresight(options)
    shorter = experiments.shorter(options)
    claim = ExperimentConfig.parse(options).claimed
    elsewhere = (MEASURED,) if claim and claim.arm.chooses else ()
    words = (*in_figures(planned, shorter), *foresight.in_words().split("\n"), *elsewhere)
    if plan_only:
        fewer = {"labels": shorter.labels, "hours": shorter.seconds / 3600} if shorter else None
        report({**planned.as_json(), "smallest_difference": foresight.as_json(), "shorter": fewer}, as_json, words)
        return None
    return _run(KIND, options, words, run_anyway=run_anyway, as_json=as_json)


def run_study(
    options: Mapping[str, object], *, plan_only: bool = False, run_anyway: bool = False, as_json: bool = False
) -> Run | None:
    """Print the cost and the power, run the study, print the result. Return the run, or None if it was only planned."""
    _prepare("study", options, plan_only=plan_only, run_anyway=run_anyway)
    planned, foresight = experiments.study_cost(options), experiments.study_foresight(options)
    words = (*in_figures(planned), foresight.in_words())
    if plan_only:
        report({**planned.as_json("tasks"), "chances": foresight.as_json()}, as_json, words)
        return None
    return _run("study", options, words, run_anyway=run_anyway, as_json=as_json)


def _prepare(kind: str, options: Mapping[str, object], *, plan_only: bool, run_anyway: bool) -> None:
    """Check the data unless `plan_only` is set, then measure the speed of this machine.

    An earlier measurement is repeated if the machine was busy at that time.
    """
    if not plan_only:
        runs.refuse_red(kind, options, run_anyway=run_anyway)
    known = {run.id for run in runs.listed("calibrate")}
    for timing in experiments.calibrations(options, kind):
        measured = runs.execute("calibrate", timing, progress)
        if measured.id in known and experiments.calibrated(measured.id).busy:
            removals.remove_run(measured.id)
            runs.execute("calibrate", timing, progress)


def _run(kind: str, options: Mapping[str, object], words: Sequence[str], *, run_anyway: bool, as_json: bool) -> Run:
    """Print the forecast `words`, execute the run, and print its table and its verdict. Return the run."""
    echo(*words, err=True)
    run = runs.execute(kind, options, ExperimentProgress(), run_anyway=run_anyway)
    follows = [f"{step.words}: {step.command}" for step in next_steps(run.id) if step.command] if kind == KIND else []
    finish(run, as_json, plain=lambda _: [*deliver.board_lines(run.id), *follows], finding=results.finding(run.id))
    return run


def typed_options(values: Mapping[str, object]) -> dict[str, object]:
    """Convert the values from the command line to options of an experiment or study. Errors: ConfigError."""
    options = {name: value for name, value in values.items() if value not in (None, ())}
    typed = {stage: options.pop(stage, ()) for stage in experiments.STAGES}
    lines = [f"{stage}.{text}" for stage, texts in typed.items() if isinstance(texts, tuple) for text in texts]
    return options | experiments.stage_options(lines)


class ExperimentProgress:
    """Prints progress on stderr: a line with the number of each step and the total time left, then the share done."""

    def __init__(self) -> None:
        self._left: float | None = None
        self._since = time.monotonic()

    def __call__(self, event: Event) -> None:
        data = event.data
        if event.kind == "metric" and data["name"] == "seconds_left":
            self._left, self._since = data["value"], time.monotonic()
        elif event.kind == "stage" and data["name"].startswith("["):
            echo(f"{data['name']}{self._time_left()}", err=True, begin="\r")
        elif event.kind == "progress" and sys.stderr.isatty() and data["total"]:
            share = f"{data['done'] / data['total']:4.0%}"
            line = f"  {share} of {data['total']:,} {data['unit']}{self._time_left()}   "
            echo(line, err=True, begin="\r", end="")
        elif event.kind == "note" and not data["text"].startswith("waiting"):
            progress(event)

    def _time_left(self) -> str:
        if self._left is None:
            return ""
        return f", about {duration(max(self._left - (time.monotonic() - self._since), 1))} left in total"


def in_figures(planned: Cost, shorter: Shorter | None = None) -> list[str]:
    """Return the cost as lines of text: time per variant, total, memory, disk, a person's time, and a shorter plan."""
    wide = max(32, *map(len, planned.lines))
    lines = [f"{name:<{wide}} {duration(took) if took else 'finished':>9}" for name, took in planned.lines.items()]
    total = f"{'together':<{wide}} {duration(planned.seconds):>9} on this {planned.device.upper()}, "
    if planned.at_once > 1:
        lines.append(f"{f'with {planned.at_once} GPUs at once':<{wide}} {duration(planned.wall):>9}")
    if planned.shared_words:
        lines.append(planned.shared_words)
    fewer = f"with {shorter.labels:,} of your labels" if shorter else ""
    offer = [f"{fewer:<{wide}} {duration(shorter.seconds):>9}; add --labels {shorter.labels}"] if shorter else []
    sizes = f"{planned.memory_gb:.1f} GB of memory, {planned.disk_gb:.1f} GB of disk"
    short = [planned.shortage] if planned.shortage else []
    return [*lines, f"{total}{sizes}", *short, planned.person_words, *offer]


STUDY = KINDS["study"].config
_SPLITS = ("train", "dev", "test")


def _splits(command: Command) -> Command:
    """Add a command-line option per corpus. All are optional, because PLAN.yaml may give them instead."""
    for name in reversed(_SPLITS):
        about = STUDY.model_fields[name].description
        command = click.option(
            f"--{name}", type=CORPUS, multiple=True, callback=several, metavar="CORPUS,...", help=about
        )(command)
    return command


@click.command()
@click.argument("plan", required=False, type=click.Path(dir_okay=False))
@_splits
@config_options(STUDY, leave_out=_SPLITS)
@click.option("--plan-only", is_flag=True, help="Print the cost and the plan's chance to detect a gain, then stop.")
@run_anyway_option
@json_option
def study(plan: str | None, plan_only: bool, run_anyway: bool, as_json: bool, **values: object) -> None:
    """Test one claim on several tasks: does the selection help on these tasks, and would it help on similar ones?

    \b
    PLAN.yaml can give the same options; the command line overrides them.
    Give the tasks in the same order in every option: --train A,B --dev A,B --test A,B.
    """
    typed = typed_options(values)
    options = read_plan(Path(plan), typed, progress, STUDY) if plan else with_corpora(STUDY, typed, progress)
    run_study(options, plan_only=plan_only, run_anyway=run_anyway, as_json=as_json)


@click.command("report")
@click.argument("run_id")
@click.option("--output", required=True, type=FILE, help="A .pdf, .docx or .html file.")
@click.option("--firm", help="Firm on the cover; by default the same as in the last report.")
@click.option("--project", help="Project on the cover; by default the same as in the last report.")
@click.option("--author", help="Author on the cover; by default the same as in the last report.")
@click.option("--date", default=deliver.today, help="Date on the cover; by default today.")
@click.option("--examples/--no-examples", default=False, help="Include three sentences of the test set.")
@json_option
def write_report(run_id: str, output: str, examples: bool, as_json: bool, **cover: str | None) -> None:
    """Write a two-page report on a finished experiment or study: PDF, DOCX or HTML."""
    given = {name: text for name, text in cover.items() if text is not None}
    deliver.write_report(run_id, Path(output), replace(deliver.last_cover(), **given), examples=examples)
    report({"output": output}, as_json)


# The rest of this file reads PLAN.yaml. Its errors name the file, the line and the key.

# Size limit of a plan. The longest plan in this repository has 4 KB.
MAX_BYTES = 1 << 20
# Limit of YAML tokens in a plan. The scanner reads about 50,000 tokens per second.
_MAX_TOKENS = 50_000
# Limit of nested levels. The time of YAML's scanner grows with the square of the depth.
_MAX_DEPTH = 20
_OPENING = (
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)


def read_plan(
    path: Path,
    typed: Mapping[str, object],
    listener: Callable[[Event], None] | None = None,
    config: type[Config] = CONFIG,
) -> Options:
    """Return the options of a PLAN.yaml, overridden by those of the command line. Import corpora given as paths.

    typed: options of the command line. config: `ExperimentConfig` or `StudyConfig`.
    Errors: PathError; ReadError with file, line and key.
    """
    file = PlanFile.read(path, config)
    options = _overridden(file.options, typed)
    try:
        config.parse(options)
        for name in fields_with(config, "corpus"):
            if name in options:
                options |= _named(config, name, options[name], listener)
    except InputError as error:
        raise file.blame(error) from error
    return options


def _overridden(options: Mapping[str, object], typed: Mapping[str, object]) -> Options:
    """Return `options`, overridden by those of `typed`. Options of a stage or strategy are overridden one by one."""
    values: Options = {**options}
    for name, value in typed.items():
        before = values.get(name)
        values[name] = _overridden(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return values


def _named(config: type[Config], name: str, value: object, listener: Callable[[Event], None] | None) -> Options:
    try:
        return with_corpora(config, {name: value}, listener)
    except InputError as error:
        raise type(error)(f"{name}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """Contents of a PLAN.yaml.

    options: {option: its value as text}, because YAML would change values such as `no`.
    lines: {key with the keys above it, such as `pretrain.epochs`: line number}.
    """

    path: Path
    options: Mapping[str, object]
    lines: Mapping[str, int]

    @classmethod
    def read(cls, path: Path, config: type[Config]) -> Self:
        """Read a plan. config: class whose options are the allowed keys.

        The value of an option that takes a list may be a single value. Paths of corpora may be relative to the plan's
        folder. Errors: PathError; ReadError, also if the YAML has anchors or aliases.
        """
        node = _composed(path, _text(path))
        if not isinstance(node, yaml.MappingNode):
            raise ReadError(path.name, 1, "is not a list of options; write lines like `task: my-corpus`.")
        lines = dict(_keys(node, path.name))
        options: dict[str, object] = yaml.BaseLoader("").construct_document(node)
        plan = cls(path=path, options=options, lines=lines)
        for key in options:
            if key not in config.model_fields or key == "weights":
                known = ", ".join(name for name in config.model_fields if name != "weights")
                raise plan.blame(InputError(f"{key}: is not an option; choose among {known}."))
        lists = {name for name in options if get_origin(config.model_fields[name].annotation) is tuple}
        options |= {name: [options[name]] for name in lists if isinstance(options[name], str)}
        named = [name for name in fields_with(config, "corpus") if name in options]
        options |= {name: _absolute(options[name], path.parent) for name in named}
        return plan

    def blame(self, error: InputError) -> ReadError:
        """Return the error with the file, and with the line of the option that its message names first."""
        key = str(error).partition(" ")[0].rstrip(":")
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return ReadError(self.path.name, self.lines.get(key), str(error))


def _text(path: Path) -> str:
    """Read the file's text. Errors: PathError; ReadError if it is too long or not UTF-8."""
    try:
        if not path.is_file():
            raise PathError(f"{path}: there is no such file; give an experiment's PLAN.yaml.")
        with path.open("rb") as file:
            written = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PathError(f"{brief(path.name)}: cannot be read ({error.strerror}); check the path.") from error
    if len(written) > MAX_BYTES:
        raise ReadError(
            path.name, None, f"is larger than {MAX_BYTES >> 20} MB, too large for a plan; give a PLAN.yaml."
        )
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError(path.name, None, "is not UTF-8 text; save it as UTF-8.") from error


def _composed(path: Path, text: str) -> yaml.Node | None:
    """Parse the file's YAML. Errors: ReadError with the line."""
    try:
        _refuse_unbounded(path, text)
        return yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ReadError(path.name, line, "contains a control character; remove it.") from error
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark.line + 1 if error.problem_mark else None
        raise ReadError(path.name, where, f"is not YAML ({error.problem}); check quotes and indentation.") from error


def _refuse_unbounded(path: Path, text: str) -> None:
    """Refuse text that YAML would take long to read: aliases, deep nesting, or many tokens. Errors: ReadError."""
    depth = 0
    for n_tokens, token in enumerate(yaml.scan(text, Loader=yaml.BaseLoader)):
        line = token.start_mark.line + 1
        # Nine lines of aliases can expand to a billion options.
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
            raise ReadError(path.name, line, "uses an alias or an anchor of YAML; write the value out.")
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if n_tokens > _MAX_TOKENS:
            raise ReadError(path.name, line, f"has more than {_MAX_TOKENS:,} YAML tokens; shorten the plan.")
        if depth > _MAX_DEPTH:
            raise ReadError(path.name, line, "has too many nested levels; write one option per line.")


def _keys(node: yaml.MappingNode, file: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield (key, line number). A nested key includes the keys above it: `pretrain.epochs`.

    Errors: ReadError if a key is repeated, because YAML would ignore the first value without a warning.
    """
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ReadError(file, line, "a key must be a word; write lines like `task: my-corpus`.")
        if key.value in seen:
            raise ReadError(file, line, f"{prefix}{key.value}: is given twice; keep one of them.")
        seen.add(key.value)
        yield prefix + key.value, line
        if isinstance(value, yaml.MappingNode):
            yield from _keys(value, file, f"{prefix}{key.value}.")


def _absolute(value: object, folder: Path) -> object:
    """Resolve a corpus path relative to the folder of the plan; return corpus names unchanged."""
    if isinstance(value, list):
        return [_absolute(item, folder) for item in value]
    path = folder / str(value)
    try:
        return str(path.absolute()) if value and path.exists() else value
    except OSError:  # The value is too long for a path.
        return value
