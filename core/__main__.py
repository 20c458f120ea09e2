"""The command line: one command a recipe, its options made from the recipe's config.

    python -m core select --task T --domain D --strategy classifier --budget 20% --output S_C.txt --json

Results go to stdout (`--json`: one object and nothing else), progress to stderr.
Exit 0 done, 2 the input or the arguments were wrong, 1 a bug, 130 cancelled.
"""

import json
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from core import facade
from core.cli import config_options, given, json_option, progress, report
from core.cli_assisting import assist, skl
from core.cli_bias import difficulty
from core.cli_corpus import corpus
from core.cli_experiment import demo, experiment
from core.cli_rebuild import frontier, rebuild, robustness
from core.cli_similarity import predictiveness, similarity
from core.cli_training import evaluate, finetune, predict, pretrain
from core.facade import Cancelled, ConfigError, WinnowError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--home", envvar="WINNOW_HOME", type=click.Path(file_okay=False), help="Where corpora and runs live.")
@click.pass_context
def main(context: click.Context, home: str | None) -> None:
    """Winnow: what to pre-train a named-entity tagger on, and whether it was worth it."""
    if home:
        os.environ["WINNOW_HOME"] = home
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and context.invoked_subcommand != "pretrain":
        raise ConfigError(
            f"{context.invoked_subcommand}: is one process's work, and torchrun started several; start it without "
            "torchrun (on several GPUs: a command a seed, each with CUDA_VISIBLE_DEVICES of its own)."
        )


for _command in (
    corpus,
    similarity,
    predictiveness,
    pretrain,
    finetune,
    evaluate,
    predict,
    experiment,
    demo,
    skl,
    assist,
    difficulty,
    rebuild,
    robustness,
    frontier,
):
    main.add_command(_command)


@main.command()
@config_options(facade.RECIPES["select"].config)
@click.option("--output", type=click.Path(), help="Write S_C: a .txt, .jsonl, .parquet or .csv file, or a folder.")
@json_option
def select(output: str | None, as_json: bool, **values: Any) -> None:
    """Score D_C and select the sentences worth pre-training on.

    \b
    --option NAME=VALUE sets a strategy's own option (`--option query=k-means`).
    """
    if output:
        facade.check_output(Path(output))
    options = given(values, facade.RECIPES["select"].config)
    run = facade.execute("select", options, progress)
    result = {"run": run.id, **run.result()}
    if output:
        config = run.manifest.config
        result["output"] = str(facade.export(run.id, config["budget"], config["keep"], Path(output)))
    report(result, as_json)


@main.command("map")
@config_options(facade.RECIPES["map"].config)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the map: a .parquet file.")
@json_option
def map_selection(output: str | None, as_json: bool, **values: Any) -> None:
    """Lay out T_C, selected and filtered sentences of a `select` run, for 4_Explore, Embedding Atlas or a notebook."""
    options = given(values, facade.RECIPES["map"].config)
    run = facade.execute("map", facade.map_options(**options), progress)
    result = {"run": run.id, **run.result()}
    if output:
        shutil.copyfile(run.artifacts / "map.parquet", output)
        result["output"] = output
    report(result, as_json)


@main.group()
def runs() -> None:
    """List, show, cancel, resume and remove runs."""


@runs.command("list")
@json_option
def runs_list(as_json: bool) -> None:
    """Every run, newest first."""
    rows = [{"run": run.id, "kind": run.manifest.kind, "state": facade.state(run.id).state} for run in facade.runs()]
    if as_json:
        click.echo(json.dumps({"runs": rows}))
    for row in [] if as_json else rows:
        click.echo(f"{row['run']:<36} {row['state']}")


@runs.command("show")
@click.argument("run_id")
@json_option
def runs_show(run_id: str, as_json: bool) -> None:
    """A run's state, options and result."""
    run, state = facade.run(run_id), facade.state(run_id)
    shown = {"run": run.id, "kind": run.manifest.kind, "state": state.state, "stage": state.stage, "error": state.error}
    result = run.result() if state.state == "succeeded" else {}
    report({**shown, "config": dict(run.manifest.config), "result": result, "notes": list(state.notes)}, as_json)


@runs.command("cancel")
@click.argument("run_id")
def runs_cancel(run_id: str) -> None:
    """Ask a run to stop and wait until it has."""
    click.echo(facade.stop(run_id).state)


@runs.command("resume")
@click.argument("run_id")
@json_option
def runs_resume(run_id: str, as_json: bool) -> None:
    """Go on with a run where it was, in the foreground."""
    report({"run": run_id, **facade.go_on(run_id, progress)}, as_json)


@runs.command("remove")
@click.argument("run_id")
def runs_remove(run_id: str) -> None:
    """Delete a run and what it made."""
    facade.remove_run(run_id)


@main.command()
@click.argument("run_id")
@click.option("--output", type=click.Path(), required=True, help="A file (.txt .jsonl .parquet .csv) or a folder.")
@click.option("--budget", help="Another budget than the run's own; nothing is scored again.")
def export(run_id: str, output: str, budget: str | None) -> None:
    """Write a selection."""
    config = facade.run(run_id).manifest.config
    click.echo(facade.export(run_id, budget or config["budget"], config["keep"], Path(output)))


@main.command()
def samples() -> None:
    """Add the sample corpora that ship with Winnow, to a home that has none yet."""
    if facade.corpora():
        return  # what is here, and which parts it plays, is the user's choice
    for sample in reversed(facade.samples()):  # the first one keeps the roles
        facade.open_sample(sample.name)
        click.echo(f"{sample.name}: {sample.title}")


@main.command()
@json_option
def doctor(as_json: bool) -> None:
    """What this machine has: versions, device, disk, the bundled encoder."""
    report(facade.doctor(), as_json)


@main.command(hidden=True)
@click.argument("run_id")
@click.option("--home", required=True)
def work(run_id: str, home: str) -> None:
    """What a worker process runs."""
    os.environ["WINNOW_HOME"] = home
    sys.exit(facade.work(run_id))


def run_main() -> int:
    """`main` with Winnow's exit codes."""
    try:
        main.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return 2
    except (Cancelled, KeyboardInterrupt, click.Abort):
        click.echo("cancelled", err=True)
        return 130
    except WinnowError as error:
        click.echo(str(error), err=True)
        return 2
    except Exception:  # noqa: BLE001  the last door: a bug, told apart from wrong input by its exit code
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_main())
