"""The commands `choice list`, `show`, `keep`, `take`, `set`, `rename`, `compare`, `remove`."""

from collections.abc import Mapping

import click

from core.cli.terminal import echo, echo_json, json_option, note_spoilt, report
from core.errors import ConfigError
from core.selection import choices, insights
from core.selection import view as selections
from core.selection.choices import Choice
from core.selection.insights import ScoredRow

_which = click.argument("choice", required=False)


@click.group("choice")
def choice_group() -> None:
    """List, keep, compare, change and remove selections: by id, by name, or the current one.

    \b
    A selection is a finished `select` run with a budget and hand edits; a run's own goes by the run's id.
    """
    note_spoilt()


@choice_group.command("list")
@json_option
def choice_list(as_json: bool) -> None:
    """Every selection, newest first; the current one is marked."""
    now, here = choices.current(), choices.listed()
    rows = [{**_as_dict(each), "current": now is not None and each.id == now.id} for each in here]
    if as_json:
        echo_json({"choices": rows})
    for row in [] if as_json else rows:
        echo(f"{'*' if row['current'] else ' '} {row['choice']:<42} {row['name']}")


@choice_group.command("show")
@_which
@json_option
def choice_show(choice: str | None, as_json: bool) -> None:
    """Show what a selection holds, and which trainings read it."""
    wanted = _find(choice)
    result = selections.kept(wanted.id)
    size = {"selected": result.selected, "of": result.of, "tokens": result.tokens}
    readers = [
        {"run": reader.run, "sentences": reader.sentences, "same": reader.same} for reader in choices.read_by(wanted.id)
    ]
    report({**_as_dict(wanted), **size, "read_by": readers}, as_json)


@choice_group.command("keep")
@_which
@click.option("--name", default="", help="What to call the new one; a name is proposed if left out.")
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
@click.option("--budget", required=True, help="1000 (sentences), 50000tokens, 20% of the whole, or threshold:0.75.")
@json_option
def choice_set(choice: str | None, budget: str, as_json: bool) -> None:
    """Give a selection another budget; nothing is scored, hand edits stay."""
    wanted = _find(choice)
    selections.keep_budget(wanted.id, budget)
    report(_as_dict(choices.at(wanted.id)), as_json, wanted.id)


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
@click.option("--most", type=click.IntRange(min=0), default=10, show_default=True, help="Sentences of each alone.")
@json_option
def choice_compare(choice: str, other: str, most: int, as_json: bool) -> None:
    """Show which sentences two selections of one domain corpus (D_C) share, and which only one has, best first."""
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
    """Delete a saved selection. Trainings keep what they have read."""
    choice_id = choice if "." in choice else _find(choice).id  # a spoilt one goes by its id alone
    choices.remove(choice_id)
    report({"removed": choice_id}, as_json, "")


def _find(choice: str | None) -> Choice:
    if choice:
        return choices.find(choice)
    if now := choices.current():
        return now
    raise ConfigError("selection: there is none of the corpora in use; make one with `select`, or name one.")


def _as_dict(choice: Choice) -> Mapping[str, object]:
    edits = selections.edits(choice.id)
    by_hand = {"added": len(edits.added), "removed": len(edits.removed)}
    title = choices.title(choice)
    return {"choice": choice.id, "name": title, "run": choice.run, "budget": choice.budget, "hand_edits": by_hand}


def _row(row: ScoredRow) -> Mapping[str, object]:
    return {"id": row["id"], "score": row["score"], "text": row["text"]}
