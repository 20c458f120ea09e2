"""The commands `prevalence`, `which-strategy`, `select`, `map` and `export`, and the group `choice`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from core.cli.options import FILE, config_options, given
from core.cli.terminal import artifact, echo, echo_json, finish, json_option, note_spoilt, progress, report
from core.corpora import remote
from core.corpora.writers import Format, format_of, spare_readme
from core.errors import ConfigError
from core.explore import regions
from core.explore import view as maps
from core.importing import view as corpora
from core.importing.cli import pairs, run_anyway_option, where_option
from core.kinds import KINDS
from core.projects import runs
from core.runs.result import read
from core.runs.run import Run
from core.runs.store import is_run_id
from core.selection import choices, groups, insights
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection import which_view as which
from core.selection.choice import Choice, run_of
from core.selection.prevalence import PrevalenceResult
from core.selection.result import NotServed, ScoredRow
from core.selection.which_strategy import WhichStrategyResult
from core.shown_command import command

_format = click.option(
    "--format",
    type=click.Choice(selections.FORMATS),
    help="Output format. Default: the format of the output's extension; without an extension, a folder is written.",
)


@click.command("prevalence")
@config_options(KINDS["prevalence"].config)
@json_option
def count_alike(as_json: bool, **values: object) -> None:
    """Estimate how many sentences of the domain corpus (D_C) are like the task corpus (T_C), as a range.

    A budget above this range also selects sentences that are not like the task corpus.
    """
    run = runs.execute("prevalence", given(values, KINDS["prevalence"].config), progress)
    finish(run, as_json, plain=lambda _: [prevalence.in_words(read(run, PrevalenceResult))])


@click.command("which-strategy")
@config_options(KINDS["which-strategy"].config)
@json_option
def compare_strategies(as_json: bool, **values: object) -> None:
    """Show which strategy suits your text: hide parts of the task corpus (T_C) in the domain corpus (D_C), and count
    how many of these sentences each strategy finds. No model is trained.
    """
    run = runs.execute("which-strategy", given(values, KINDS["which-strategy"].config), progress)
    finish(run, as_json, plain=lambda _: which.lines(read(run, WhichStrategyResult)))


@click.command()
@config_options(KINDS["select"].config)
@click.option(
    "--output",
    type=click.Path(),
    help="Write the selection (S_C) to a .txt, .jsonl, .parquet or .csv file or a folder. Also s3://, gs://, hdfs://.",
)
@_format
@where_option()
@run_anyway_option
@json_option
def select(
    output: str | None,
    *,
    format: Format | None,
    where: tuple[str, ...],
    run_anyway: bool,
    as_json: bool,
    **values: object,
) -> None:
    """Score the domain corpus (D_C) and select the sentences worth pre-training on.

    \b
    --option NAME=VALUE sets a strategy's own option (`--option query=k-means`).
    --where year=2019 scores only the domain corpus's sentences of that year, stored as a separate corpus.
    """
    # Refuse an unwritable format, and a folder with another README.md, before hours of work.
    if output and (format or format_of(Path(remote.named(output)))) == "folder" and not remote.is_address(output):
        spare_readme(Path(output))
    if output and remote.is_address(output):
        remote.reach(output)
    options = given(values, KINDS["select"].config)
    if where and "domain" in options:
        options["domain"] = corpora.filtered(corpora.find(str(options["domain"])), pairs(where)).fingerprint

    def write(run: Run, output: str) -> Mapping[str, str]:
        config = run.manifest.config
        with remote.outgoing(output) as path:
            # Without hand edits, so that the file has the sentences that the printed result counts.
            selections.export(run.id, config["budget"], config["keep"], path, format, edited=False)
        if changes := selections.edits(run.id):
            echo(f"note: the file is without hand edits ({changes}); `export {run.id}` writes them", err=True)
        return {"output": remote.named(output)}

    finish(runs.execute("select", options, progress, run_anyway=run_anyway), as_json, output, write)


@click.command("map")
@config_options(KINDS["map"].config)
@click.option("--output", type=FILE, help="Write the map: a .parquet file.")
@json_option
def map_selection(output: str | None, as_json: bool, **values: object) -> None:
    """Compute the map of a `select` run: the sentences of the task corpus (T_C) and the domain corpus (D_C) as points.

    The Explore page, Embedding Atlas and notebooks can open the map.
    """
    if output and Path(output).suffix != ".parquet":
        raise ConfigError(f"output: {Path(output).name!r} must end in .parquet, because the map is written as Parquet.")
    options = given(values, KINDS["map"].config)
    KINDS["map"].config.parse(options)  # fails if no selection is given
    run = runs.execute("map", maps.options(str(options["selection"])) | options, progress)
    finish(run, as_json, output, artifact(maps.table_file))


@click.command()
@click.argument("choice")
@click.option(
    "--output",
    type=click.Path(),
    required=True,
    help="File (.txt .jsonl .parquet .csv) or folder to write. Also s3://.",
)
@_format
@click.option("--budget", help="Budget to use instead of the selection's own. Nothing is scored again.")
@click.option(
    "--region",
    help="Write only a region of the selection's map, such as lasso:5e0c91ab. Explore's address contains it.",
)
@json_option
def export(
    choice: str, *, output: str, format: Format | None, budget: str | None, region: str | None, as_json: bool
) -> None:
    """Write a selection with its hand edits to a file. CHOICE is its id, its name, or the id of its `select` run."""
    wanted, written = choices.find(choice), remote.named(output)
    keep, budget = runs.get(wanted.run).manifest.config["keep"], budget or wanted.budget
    with _saying_how(wanted, budget), remote.outgoing(output) as path:
        if region:
            regions.write_region(wanted.id, region, path, format, budget)
        else:
            selections.export(wanted.id, budget, keep, path, format)
    report({"run": wanted.run, "choice": wanted.id, "output": written}, as_json, written)


@contextmanager
def _saying_how(wanted: Choice, budget: str) -> Iterator[None]:
    """If the scores are not enough for a budget, add to the error the command that selects again."""
    try:
        yield
    except NotServed as error:
        raise NotServed(f"{error} The command is: {command('select', selections.again(wanted.id, budget))}") from error


_which = click.argument("choice", required=False)


@click.group("choice")
def choice_group() -> None:
    """List, save, compare, change and remove selections, given by id or name. Default: the current one.

    \b
    A selection is a finished `select` run with a budget and hand edits. The first one of a run has the run's id.
    """
    note_spoilt()


@choice_group.command("list")
@json_option
def choice_list(as_json: bool) -> None:
    """List all selections, newest first. The current one is marked."""
    now, here = choices.current(), choices.listed()
    rows = [{**_as_dict(each), "current": now is not None and each.id == now.id} for each in here]
    if as_json:
        echo_json({"choices": rows})
    for row in [] if as_json else rows:
        echo(f"{'*' if row['current'] else ' '} {row['choice']:<42} {row['name']}")


@choice_group.command("show")
@_which
@click.option("--by", default="", help="Also count the sentences by this column: doc, file, group or another.")
@json_option
def choice_show(choice: str | None, by: str, as_json: bool) -> None:
    """Show the size of a selection and the `pretrain` runs that trained on it."""
    wanted = _find(choice)
    counted = groups.groups(wanted.id, selections.chosen(wanted.id), by) if by else []
    result = selections.kept(wanted.id)
    size = {"selected": result.selected, "of": result.of, "tokens": result.tokens}
    readers = [
        {"run": reader.run, "sentences": reader.sentences, "same": reader.same} for reader in choices.read_by(wanted.id)
    ]
    report({**_as_dict(wanted), **size, "read_by": readers, **({"groups": counted} if by else {})}, as_json)
    for row in [] if as_json else counted:
        echo(f"{row['value'] or '(none)':<24} {row['selected']:>9,} of {row['sentences']:,}")


@choice_group.command("keep")
@_which
@click.option("--name", default="", help="Name of the copy. Default: a name made from budget and strategy.")
@json_option
def choice_keep(choice: str | None, name: str, as_json: bool) -> None:
    """Save a copy of a selection: same run, budget and hand edits."""
    kept = choices.keep(_find(choice).id, name)
    report(_as_dict(kept), as_json, kept.id)


@choice_group.command("take")
@click.argument("choice")
@json_option
def choice_take(choice: str, as_json: bool) -> None:
    """Make a selection the current one."""
    wanted = _find(choice)
    choices.take_up(wanted.id)
    report(_as_dict(wanted), as_json, wanted.id)


@choice_group.command("set")
@_which
@click.option(
    "--budget", required=True, help="1000 (sentences), 50000tokens, 20% of the domain corpus, or threshold:0.75."
)
@json_option
def choice_set(choice: str | None, budget: str, as_json: bool) -> None:
    """Change the budget of a selection. The scores are reused, and hand edits stay."""
    wanted = _find(choice)
    with _saying_how(wanted, budget):
        selections.keep_budget(wanted.id, budget)
    report(_as_dict(selections.at(wanted.id)), as_json, wanted.id)


@choice_group.command("rename")
@click.argument("choice")
@click.argument("name")
@json_option
def choice_rename(choice: str, name: str, as_json: bool) -> None:
    """Rename a selection; its id stays the same."""
    renamed = choices.rename(_find(choice).id, name)
    report(_as_dict(renamed), as_json, renamed.id)


@choice_group.command("compare")
@click.argument("choice")
@click.argument("other")
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of sentences to show, per selection, that the other selection does not contain.",
)
@json_option
def choice_compare(choice: str, other: str, most: int, as_json: bool) -> None:
    """Count the sentences that two selections of one domain corpus (D_C) share, and show some that only one has."""
    shared = insights.overlap(_find(choice).id, _find(other).id, most)
    counts = {"both": shared.both, "only_a": shared.only_a, "only_b": shared.only_b}
    rows = {"only_in_a": list(map(_row, shared.only_in_a)), "only_in_b": list(map(_row, shared.only_in_b))}
    lines = [f"{name:<12} {n:,}" for name, n in counts.items()]
    lines += [f"{'AB'[side]} {row['id']} {row['text']}" for side, part in enumerate(rows.values()) for row in part]
    report({**counts, **rows}, as_json, lines)


@choice_group.command("remove")
@click.argument("choice")
@json_option
def choice_remove(choice: str, as_json: bool) -> None:
    """Delete a saved selection. `pretrain` runs keep the sentences that they trained on."""
    # An unreadable selection can only be found by its id. A name, such as "20.2% by classifier", may have a dot too.
    choice_id = choice if is_run_id(run_of(choice)) else _find(choice).id
    choices.remove(choice_id)
    report({"removed": choice_id}, as_json, "")


def _find(choice: str | None) -> Choice:
    if choice:
        return choices.find(choice)
    if now := choices.current():
        return now
    raise ConfigError("selection: there is none from the corpora in use; make one with `select`, or give an id.")


def _as_dict(choice: Choice) -> Mapping[str, object]:
    edits = selections.edits(choice.id)
    by_hand = {"added": len(edits.added), "removed": len(edits.removed)}
    title = choices.title(choice)
    return {"choice": choice.id, "name": title, "run": choice.run, "budget": choice.budget, "hand_edits": by_hand}


def _row(row: ScoredRow) -> Mapping[str, object]:
    return {"id": row["id"], "score": row["score"], "text": row["text"]}
