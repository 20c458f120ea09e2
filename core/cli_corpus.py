"""The commands `corpus add`, `list`, `show`, `audit`, `remove`."""

import json
from pathlib import Path
from typing import Any

import click

from core import facade
from core.cli import config_options, json_option, progress, report


@click.group()
def corpus() -> None:
    """Add, list, show, audit and remove corpora."""


@corpus.command("add")
@click.argument("path", type=click.Path())
@config_options(facade.RECIPES["add"].config, leave_out=("path", "move"))
@json_option
def corpus_add(path: str, as_json: bool, **values: Any) -> None:
    """Read a file or folder and seal it as a corpus."""
    options = {name: value for name, value in values.items() if value not in (None, ())}
    run = facade.execute("add", {"path": str(Path(path).absolute()), **options}, progress)
    report({"run": run.id, **run.result()}, as_json)


@corpus.command("list")
@json_option
def corpus_list(as_json: bool) -> None:
    """Every corpus, newest first."""
    rows = [facade.describe(corpus) for corpus in facade.corpora()]
    if as_json:
        click.echo(json.dumps({"corpora": rows}, ensure_ascii=False))
    for row in [] if as_json else rows:
        click.echo(f"{row['corpus']}  {row['name']:<32} {row['sentences']:>10,} sentences {row['tokens']:>12,} tokens")


@corpus.command("show")
@click.argument("reference")
@json_option
def corpus_show(reference: str, as_json: bool) -> None:
    """One corpus, by name or fingerprint."""
    report(facade.describe(facade.corpus(reference)), as_json)


@corpus.command("audit")
@click.option("--task", required=True, help="T_C.")
@click.option("--domain", required=True, help="D_C.")
@click.option("--labelled", multiple=True, help="Held-out labelled splits; repeat for several.")
@json_option
def corpus_audit(task: str, domain: str, labelled: tuple[str, ...], as_json: bool) -> None:
    """Flag duplicates, leaks of held-out sentences, too short and too long ones. Deletes nothing."""
    config = facade.RECIPES["audit"].config
    found = {}
    for key, reference in (("flags", domain), ("task_flags", task)):
        options = facade.with_corpora(config, {"corpus": reference, "held_out": labelled}, progress)
        run = facade.execute("audit", options, progress)
        found[key] = run.result()["flags"]
    report({"run": run.id, **found}, as_json)


@corpus.command("remove")
@click.argument("reference")
def corpus_remove(reference: str) -> None:
    """Delete a corpus."""
    facade.remove_corpus(reference)
