"""The commands `skl` and `assist`: select sentences of an assisting corpus, and test if they help."""

import math
from pathlib import Path

import click

from core.assisting import view as assisting
from core.assisting.assist import AssistResult, in_words
from core.cli.options import FILE, config_options, given
from core.cli.terminal import finish, json_option, progress, report
from core.errors import ConfigError
from core.kinds import KINDS
from core.projects import runs
from core.runs.result import read

CONFIG, ASSIST = KINDS["skl"].config, KINDS["assist"].config
_MAP_FILE = "A file of OLD=NEW lines, instead of or in addition to --type-map."


@click.command()
@config_options(CONFIG)
@click.option("--type-map-file", type=click.Path(dir_okay=False), help=_MAP_FILE)
@click.option(
    "--threshold",
    type=float,
    default=1.0,
    show_default=True,
    help="Keep sentences with a lower SKL. Choose it on the dev set (as `assist` does), never on the test set.",
)
@click.option("--output", type=FILE, help="Write the kept sentences to this CoNLL file (IOB2).")
@click.option("--drift", type=FILE, help="Write the table of shared entities to this .csv file.")
@json_option
def skl(
    *,
    type_map: tuple[str, ...],
    type_map_file: str | None,
    threshold: float,
    output: str | None,
    drift: str | None,
    as_json: bool,
    **values: object,
) -> None:
    """Score each sentence of an assisting corpus, and keep the sentences with a score below a threshold.

    The score (SKL) shows how much the types of the sentence's entities differ from their types in the primary corpus.
    """
    if not 0 < threshold < math.inf:
        raise ConfigError(f"threshold: {threshold:g} must be a number above 0; give for example 1.")
    pairs = (*type_map, *(assisting.read_type_map(Path(type_map_file)) if type_map_file else ()))
    run = runs.execute("skl", given({**values, "type_map": pairs}, CONFIG), progress)
    kept = assisting.kept(run.id, threshold)
    counts = run.result()
    result = {"run": run.id, "kept": kept.kept, "of": kept.of, "overlapping": counts.pop("overlapping")}
    result |= {"threshold": threshold, "kept_sharing_nothing": kept.sharing_nothing, **counts}
    if output:
        assisting.export(run.id, threshold, Path(output))
        result["output"] = output
    if drift:
        assisting.export_drift(run.id, Path(drift))
        result["drift"] = drift
    report(result, as_json)


@click.command()
@config_options(ASSIST)
@click.option("--type-map-file", type=click.Path(dir_okay=False), help=_MAP_FILE)
@json_option
def assist(type_map: tuple[str, ...], type_map_file: str | None, as_json: bool, **values: object) -> None:
    """Test if adding sentences of an assisting corpus to the primary corpus improves a tagger.

    The variants (arms) add no sentence, all sentences, the sentences below an SKL threshold, or as many random
    sentences. The threshold with the best dev F1 is chosen. All variants train for the same number of steps, except
    with --preset paper.
    """
    pairs = (*type_map, *(assisting.read_type_map(Path(type_map_file)) if type_map_file else ()))
    run = runs.execute("assist", given({**values, "type_map": pairs}, ASSIST), progress)
    finish(run, as_json, plain=lambda _: _table(read(run, AssistResult)))


def _table(result: AssistResult) -> list[str]:
    lines = [f"{'arm':<14}{'share':<10}{'kept':>8}{'dev F1':>9}{'test F1':>9}{'sd':>7}"]
    for row in result.rows:
        spread = "" if row.sd is None else f"{row.sd:.2f}"
        lines.append(f"{row.arm:<14}{row.share:<10}{row.kept:>8,}{row.dev_mean:>9.2f}{row.mean:>9.2f}{spread:>7}")
    return [*lines, *map(in_words, result.tables)]
