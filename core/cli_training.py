"""The commands `pretrain`, `finetune`, `evaluate` and `predict`."""

import shutil
from pathlib import Path
from typing import Any

import click

from core import facade
from core.cli import config_options, given, json_option, progress, report
from core.facade import ConfigError, Run


@click.command()
@config_options(facade.RECIPES["pretrain"].config)
@click.option("--output", type=click.Path(file_okay=False), help="Copy the encoder there: a Hugging Face folder.")
@json_option
def pretrain(output: str | None, as_json: bool, **values: Any) -> None:
    """Go on with an encoder's masked language modelling on T_C, D_C or S_C; repeat --corpus, T_C first.

    \b
    On several GPUs: torchrun --nproc-per-node 4 -m core pretrain --corpus ...
    """
    if facade.rank():
        facade.train_along()
        return
    run = _done("pretrain", values)
    facade.announce("")
    result = {"run": run.id, **run.result()}
    if output:
        shutil.copytree(run.artifacts / "model", output, dirs_exist_ok=True)
        result["output"] = output
    report(result, as_json)


@click.command()
@config_options(facade.RECIPES["finetune"].config)
@click.option("--output", type=click.Path(file_okay=False), help="Copy the tagger there: a Hugging Face folder.")
@json_option
def finetune(output: str | None, as_json: bool, **values: Any) -> None:
    """Train taggers on L_C, one a seed; the best epoch is chosen on dev and tested once."""
    run = _done("finetune", values)
    result = {"run": run.id, **run.result()}
    if output:
        shutil.copytree(run.artifacts / "model", output, dirs_exist_ok=True)
        result["output"] = output
    report(result, as_json)


@click.command()
@config_options(facade.RECIPES["evaluate"].config)
@json_option
def evaluate(as_json: bool, **values: Any) -> None:
    """Test a saved tagger on labelled sentences."""
    run = _done("evaluate", values)
    report({"run": run.id, **run.result()}, as_json)


@click.command()
@click.argument("input")
@config_options(facade.RECIPES["predict"].config, leave_out=("corpus",))
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="A .jsonl or .conll file.")
@json_option
def predict(input: str, output: str, as_json: bool, **values: Any) -> None:
    """Tag the sentences of INPUT, a corpus or a file, with a saved tagger."""
    suffix = Path(output).suffix
    if suffix not in (".jsonl", ".conll"):
        raise ConfigError(f"output: {Path(output).name!r} ends in neither .jsonl nor .conll; choose one of them.")
    run = _done("predict", {**values, "corpus": input})
    shutil.copyfile(run.artifacts / f"predictions{suffix}", output)
    report({"run": run.id, **run.result(), "output": output}, as_json)


def _done(kind: str, values: dict[str, Any]) -> Run:
    return facade.execute(kind, given(values, facade.RECIPES[kind].config), progress)
