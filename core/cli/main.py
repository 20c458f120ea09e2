"""The command `python -m core` and its exit codes.

    python -m core select --task T --domain D --strategy classifier --budget 20% --output S_C.txt --json

Results go to stdout (with `--json`, one JSON object and nothing else), progress to stderr.
Exit codes: 0 done, 1 a bug, 2 wrong input or arguments, or a red item of `check`, 130 cancelled, also if the program
that reads the output has ended.
"""

import os
from collections.abc import Mapping, Sequence
from io import StringIO

import click

from core import __version__, cards, errors
from core import shown_command as commands
from core.assisting.cli import assist, skl
from core.audit_log import asked_by
from core.bias.cli import difficulty, frontier, rebuild, robustness
from core.cli.examples import with_examples
from core.cli.terminal import OutputClosed, echo, mute
from core.dictionary.cli import dictionary
from core.encoders.cli import encoders_group
from core.errors import Cancelled, ConfigError, OptionsError, ProjectError, WinnowError
from core.experiment.cli import demo, experiment, study, write_report
from core.explore.cli import write_atlas
from core.files import on_disk
from core.importing.cli import check, corpus, samples
from core.labelling.cli import label_group
from core.llm.cli import llm
from core.paths import given_home, private, within
from core.projects import machine
from core.projects import view as projects
from core.projects.cli import audit_list, doctor, key, project_group, run_group
from core.selection.cli import choice_group, compare_strategies, count_alike, export, map_selection, select
from core.similarity.cli import measure, predictiveness, survey
from core.tagging.cli import evaluate, finetune, list_errors, predict, pretrain, vectors_group
from core.zero_shot.cli import zero_shot

SHARED = ("pretrain", "finetune")  # commands that torchrun can run in several processes
_CANCELLED = 130  # the code that shells use after Ctrl-C: 128 + SIGINT
COMMANDS = (
    samples,
    corpus,
    check,
    measure,
    predictiveness,
    survey,
    count_alike,
    compare_strategies,
    select,
    map_selection,
    write_atlas,
    export,
    choice_group,
    pretrain,
    label_group,
    finetune,
    evaluate,
    dictionary,
    llm,
    zero_shot,
    predict,
    list_errors,
    experiment,
    study,
    write_report,
    demo,
    skl,
    assist,
    difficulty,
    rebuild,
    robustness,
    frontier,
    project_group,
    run_group,
    encoders_group,
    vectors_group,
    audit_list,
    doctor,
    key,
)


class Main(click.Group):
    """The command `python -m core`. Its own options may come before or after a subcommand."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse `args` after moving the command's own options to the front."""
        return super().parse_args(context, _own_first(self, args))


def _own_first(main: click.Group, args: Sequence[str]) -> list[str]:
    """Move the options of `main` to the front of `args`, except options that the subcommand also has."""
    own, front, rest, left = _takes_value(main), list[str](), list[str](), list(args)
    command: click.Command = main
    theirs: Mapping[str, bool] = {}
    while left:
        word = left.pop(0)
        name, sign, _ = word.partition("=")
        if word == "--":
            return [*front, *rest, word, *left]
        if name in own and name not in theirs:
            front += [word, *([left.pop(0)] if own[name] and not sign and left else [])]
            continue
        rest.append(word)
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            theirs = _takes_value(command)
        elif theirs.get(name) and not sign and left:
            rest.append(left.pop(0))  # This is the option's value, even if it looks like an option.
    return [*front, *rest]


def _takes_value(command: click.Command) -> dict[str, bool]:
    """Return {flag: True if a value follows the flag} for all options of a command."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    return {flag: not option.is_flag for option in options for flag in (*option.opts, *option.secondary_opts)}


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="Winnow", message="%(prog)s %(version)s")
@click.option(
    "--home",
    envvar="WINNOW_HOME",
    type=click.Path(file_okay=False, readable=False),
    help="Folder of the projects, with their corpora and runs.",
)
@click.option("--project", envvar="WINNOW_PROJECT", help="Name of the project. Default: the oldest project.")
@click.option(
    "--device",
    envvar="WINNOW_DEVICE",
    help="Device that computes: auto (a free GPU, else the CPU), cpu, cuda or cuda:1.",
)
@click.option(
    "--on",
    envvar="WINNOW_ON",
    expose_value=False,
    callback=lambda context, option, value: machine.compute_on(value),
    help="Where to compute: local (one process), processes:4 (four steps of an experiment at once), ray (all cores and "
    "GPUs of this machine) or ray:HOST:PORT (a cluster that this machine has joined).",
)
@click.option(
    "--mixed",
    is_flag=True,
    expose_value=False,
    callback=lambda context, option, value: machine.allow_mixed(value),
    help="Accept workers with other processors or versions. Results are then equal to about 4 digits, not exactly.",
)
@click.pass_context
def main(context: click.Context, home: str | None, project: str | None, device: str | None) -> None:
    """Winnow: select text to pre-train a named-entity tagger on, and measure if that improves the tagger."""
    if home:
        os.environ["WINNOW_HOME"] = home
    if device:
        os.environ["WINNOW_DEVICE"] = device
        cards.check()
    private()
    projects.settle()
    if project:
        _choose(project, context)
    context.with_resource(asked_by("command line"))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and context.invoked_subcommand not in SHARED:
        raise ConfigError(
            f"{context.invoked_subcommand}: runs in one process, but torchrun started several. Start it without "
            f"torchrun, which can only be used for {' and '.join(SHARED)}."
        )


def _choose(project: str, context: click.Context) -> None:
    try:
        context.with_resource(within(projects.find(project).slug))
    except ProjectError:
        # For `project`, ignore the error, because `project new` names a project that does not exist yet.
        if context.invoked_subcommand != "project":
            raise


for _command in COMMANDS:
    main.add_command(_command)
with_examples(main)


def _by_flag(error: WinnowError) -> str:
    """Return the message of an error. An option's name at the beginning becomes its flag (`--seed: ...`)."""
    text, option = str(error), error.option if isinstance(error, ConfigError) else ""
    name = option.partition(".")[0]
    return commands.flag(name) + text.removeprefix(name) if option and text.startswith(name) else text


def run_main() -> int:
    """Run `main`, print its error if it fails, and return Winnow's exit code."""
    try:
        return _status()
    except OutputClosed:
        mute()
        return _CANCELLED


def _status() -> int:
    """Run `main`, print its error if it fails, and return Winnow's exit code. Errors: OutputClosed."""
    try:
        with on_disk(given_home()):
            status = main.main(standalone_mode=False)
    except click.ClickException as error:
        whole = StringIO()
        error.show(whole)
        echo(*whole.getvalue().splitlines(), err=True)
        return 2
    except OutputClosed:
        raise
    except (Cancelled, KeyboardInterrupt, click.Abort):
        echo("cancelled", err=True)
        return _CANCELLED
    except WinnowError as error:
        echo(_by_flag(error), err=True)
        if isinstance(error, OptionsError) and error.examples:
            echo("The first sentences:", *(f"  {example}" for example in error.examples), err=True)
        return 2
    except Exception as error:  # noqa: BLE001  a bug has another exit code than wrong input
        echo(*errors.for_the_log(error).splitlines(), err=True)
        return 1
    return status if type(status) is int else 0  # click returns the status of `context.exit`
