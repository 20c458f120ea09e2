"""The commands of `label`: sentences to label or to review, the answers about them, and corpora of the answers."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import click

from core.cli.options import FILE, Command, config_options, given
from core.cli.terminal import echo, finish, json_option, progress, report
from core.corpora.corpus import Corpus
from core.kinds import KINDS
from core.labelling import view
from core.labelling.tasks import ENDINGS
from core.projects import runs
from core.projects.audit import note_look
from core.runs.run import Run
from core.shown import count, shown


def _tool_option(usual: str) -> Callable[[Command], Command]:
    """Return a click option for the labelling tool. usual: tool if the extension of `--output` belongs to none."""

    def chosen(context: click.Context, _: click.Parameter, tool: str | None) -> str:
        ending = Path(context.params.get("output") or "").suffix.lower()
        return tool or next((name for name, own in ENDINGS.items() if own == ending), usual)

    return click.option(
        "--tool",
        type=click.Choice(list(ENDINGS)),
        callback=chosen,
        help=f"Labelling tool. Default: the first one with the extension of --output, otherwise {usual}.",
    )


@click.group("label")
def label_group() -> None:
    """Find sentences to label next and labels to correct, and store the new labels as corpora."""


@label_group.command("next")
@config_options(KINDS["queue"].config)
@click.option("--output", type=FILE, is_eager=True, help="Write the sentences to this file, in the format of --tool.")
@_tool_option("doccano")
@click.option("--suggestions/--no-suggestions", default=True, help="Write the suggestions too.")
@json_option
def label_next(output: str | None, tool: str, suggestions: bool, as_json: bool, **values: object) -> None:
    """Queue the sentences of the domain corpus (D_C) whose labels are expected to help most.

    Use these sentences for training only. Dev and test sentences must be drawn at random (`label draw`) and labelled
    without suggestions. Otherwise the scores are biased.
    """
    _make("queue", values, output, tool, suggestions=suggestions, as_json=as_json)


@label_group.command("draw")
@config_options(KINDS["draw"].config)
# The option exists only for its error message: random sentences have no suggestions.
@click.option("--suggest", hidden=True)
@click.option("--output", type=FILE, is_eager=True, help="Write the sentences to this file, in the format of --tool.")
@_tool_option("doccano")
@json_option
def label_draw(suggest: str | None, output: str | None, tool: str, as_json: bool, **values: object) -> None:
    """Draw random sentences of the task corpus (T_C) to label as dev and test sets, without suggestions."""
    if suggest is not None:
        KINDS["draw"].config.parse({"suggest": suggest})
    _make("draw", values, output, tool, suggestions=False, as_json=as_json)


@label_group.command("review")
@config_options(KINDS["review"].config)
@click.option("--output", type=FILE, is_eager=True, help="Write the sentences to this file, in the format of --tool.")
@_tool_option("doccano")
@json_option
def label_review(output: str | None, tool: str, as_json: bool, **values: object) -> None:
    """List the sentences of a labelled corpus whose labels may be wrong, worst first, with the reasons."""
    _make("review", values, output, tool, suggestions=True, as_json=as_json)


def _make(
    kind: str, values: Mapping[str, object], output: str | None, tool: str, *, suggestions: bool, as_json: bool
) -> None:
    """Run a queue, a draw or a review. Print its sentences, or write them to `output` for a labelling tool."""
    run = runs.execute(kind, given(values, KINDS[kind].config), progress)

    def write(run: Run, output: str) -> Mapping[str, str]:
        view.export(run.id, Path(output), tool, suggestions=suggestions)
        return {"output": output}

    finish(run, as_json, output, write, plain=lambda _: _lines(run.id))


@label_group.command("import")
@click.argument("run_id", metavar="RUN")
@click.argument("file", type=click.Path(exists=True))
@click.option(
    "--annotator",
    default="",
    help="Name of the person who labelled FILE, if several people label RUN. If FILE names several annotators, their "
    "names are used.",
)
@json_option
def label_import(run_id: str, file: str, annotator: str, as_json: bool) -> None:
    """Store the labels of FILE as answers about the sentences of RUN. FILE was written by a labelling tool."""
    found = view.import_labels(run_id, Path(file), annotator)
    if as_json:
        report(asdict(found), as_json)
        return
    echo(f"{count(found.labelled, 'sentence')} labelled, {found.changed:,} changed, {found.suggested:,} as suggested.")
    if found.annotators:
        echo(f"Labels of several annotators: {', '.join(found.annotators)}.")
    if found.unnamed:
        name = shlex.quote(shown(found.unnamed))
        echo(
            f"FILE is by {name}, but its labels are stored without a name and replace other labels without a name. If "
            f"several people label RUN, import FILE with --annotator {name}.",
            err=True,
        )
    if found.unknown:
        echo(f"{count(found.unknown, 'sentence')} left out: RUN has no sentence with that text.")
    for problem in found.unread:
        echo(f"not read: {problem}", err=True)


@label_group.command("export")
@click.argument("run_id", metavar="RUN")
@click.option("--output", type=FILE, required=True, is_eager=True, help="Write the labelled sentences to this file.")
@_tool_option("conll")
@json_option
def label_export(run_id: str, output: str, tool: str, as_json: bool) -> None:
    """Write the labelled sentences of RUN for a labelling tool, or as CoNLL."""
    n = view.export_labelled(run_id, Path(output), tool)
    report({"output": output, "sentences": n}, as_json, f"{output}: {count(n, 'sentence')}")


@label_group.command("agreement")
@click.argument("run_id", metavar="RUN")
@json_option
def label_agreement(run_id: str, as_json: bool) -> None:
    """Show how well the annotators of RUN agree: F1 and Cohen's kappa by type, for each pair of annotators."""
    view.purpose(run_id)  # refuses a run without sentences to label
    found = view.answered(run_id)
    pairs = [
        {"a": a, "b": b, "types": [asdict(row) for row in view.agreement(run_id, a, b)]}
        for a, b in combinations(found.by_annotator, 2)
    ]
    if as_json:
        report({"pairs": pairs, "unsettled": len(found.unsettled)}, as_json)
        return
    if not pairs:
        n = len(found.by_annotator)
        echo(f"{'Only one annotator has' if n else 'No annotator has'} labelled sentences of this run.")
    for a, b in combinations(found.by_annotator, 2):
        echo(f"{a or '(no name)'} and {b or '(no name)'}:")
        for row in view.agreement(run_id, a, b):
            f1, kappa = ("-" if value is None else f"{value:.{n}f}" for value, n in ((row.f1, 1), (row.kappa, 2)))
            echo(f"  {row.type or 'all types':<20} {row.a:>5} {row.b:>5}  F1 {f1:>5}  kappa {kappa}")
    if found.unsettled:
        n = len(found.unsettled)
        echo(f"Annotators differ on {count(n, 'sentence')} that {'is' if n == 1 else 'are'} not settled yet.")


@label_group.command("seal")
@click.argument("run_id", metavar="RUN")
@json_option
def label_seal(run_id: str, as_json: bool) -> None:
    """Make corpora of the labelled sentences of RUN.

    From `label next` comes a training set, from `label draw` a dev and a test set, and from `label review` the corpus
    with corrected labels.
    """
    make: Mapping[str, Callable[[], Sequence[Corpus]]] = {
        "queue": lambda: [view.training_set(run_id)],
        "draw": lambda: view.measuring_sets(run_id),
        "review": lambda: [view.corrected(run_id)],
    }
    made = make[view.purpose(run_id)]()
    if as_json:
        report(
            {"corpora": [{"corpus": each.fingerprint, "name": each.name, "sentences": len(each)} for each in made]},
            as_json,
        )
        return
    for each in made:
        echo(f"{each.name}: {count(len(each), 'sentence')}")


def _lines(run_id: str) -> list[str]:
    """Return the lines to print: for each sentence its text, the reasons to review it, and its entities."""
    found = view.to_label(run_id)
    note_look([view.corpus_of_run(run_id)])
    lines = []
    for number, task in enumerate(found, 1):
        tokens = task.sentence.tokens
        names = [f"{' '.join(tokens[e.start : e.end])} ({e.type})" for e in task.sentence.entities or ()]
        unsure = f"uncertainty {task.queued.uncertainty:.2f}: " if task.queued.uncertainty else ""
        lines.append(f"{number:>4}  {task.sentence.text}")
        lines += [f"      {why}" for why in task.queued.why]
        lines += [f"      {unsure}{', '.join(names) or 'no entity found'}"] if unsure or names else []
    return lines
