"""The commands `pretrain`, `finetune`, `evaluate` and `predict`."""

from collections.abc import Mapping
from pathlib import Path

import click

from core.cli.options import CORPUS, config_options, given
from core.cli.terminal import artifact, finish, json_option, progress
from core.facade import deliver, runs
from core.facade.errors import ConfigError
from core.facade.runs import Run


@click.command()
@config_options(runs.RECIPES["pretrain"].config)
@click.option("--output", type=click.Path(file_okay=False), help="Copy the encoder there: a Hugging Face folder.")
@json_option
def pretrain(output: str | None, as_json: bool, **values: object) -> None:
    """Go on with an encoder's masked language modelling on T_C, D_C or S_C; repeat --corpus, T_C first.

    \b
    On several GPUs: torchrun --nproc-per-node 4 -m core pretrain --corpus ...
    """
    if runs.rank():
        runs.train_along()
        return
    run = _done("pretrain", values)
    runs.announce("")
    finish(run, as_json, output, artifact(deliver.model_folder))


@click.command()
@config_options(runs.RECIPES["finetune"].config)
@click.option("--output", type=click.Path(file_okay=False), help="Copy the tagger there: a Hugging Face folder.")
@click.option(
    "--without-rare-words",
    is_flag=True,
    help="In that copy, leave out the words that L_C has once: bilstm and charcnn list every word of it.",
)
@json_option
def finetune(output: str | None, without_rare_words: bool, as_json: bool, **values: object) -> None:
    """Train taggers on L_C, one a seed; the best epoch is chosen on dev and tested once."""

    def write(run: Run, output: str) -> Mapping[str, str]:
        deliver.copy_model(run.id, Path(output), rare=not without_rare_words)
        return {"output": output}

    finish(_done("finetune", values), as_json, output, write)


@click.command()
@config_options(runs.RECIPES["evaluate"].config)
@json_option
def evaluate(as_json: bool, **values: object) -> None:
    """Test a saved tagger on labelled sentences."""
    finish(_done("evaluate", values), as_json)


@click.command()
@click.argument("input", type=CORPUS)
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="A .jsonl or .conll file.")
@config_options(runs.RECIPES["predict"].config, leave_out=("corpus",))
@json_option
def predict(input: str, output: str, as_json: bool, **values: object) -> None:
    """Tag the sentences of INPUT, a corpus or a file, with a saved tagger."""
    suffix = Path(output).suffix
    if suffix not in (".jsonl", ".conll"):
        raise ConfigError(f"output: {Path(output).name!r} ends in neither .jsonl nor .conll; choose one of them.")
    write = artifact(lambda run_id: deliver.predictions_file(run_id, suffix))
    finish(_done("predict", {**values, "corpus": input}), as_json, output, write)


def _done(kind: str, values: dict[str, object]) -> Run:
    return runs.execute(kind, given(values, runs.RECIPES[kind].config), progress)
