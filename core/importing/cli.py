"""The commands `corpus ...` (add, list, show, audit, split, export, remove and others), `samples`, and `check`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from core.cli.options import CORPUS, Command, config_options, given, several, several_pairs
from core.cli.terminal import echo, echo_json, finish, json_option, note_spoilt, progress, remove_everything, report
from core.corpora import remote
from core.corpora.checks import LEVELS, Check, worst
from core.corpora.formats.ledger import LABELLED, NAMES
from core.corpora.proposal import FILE_ROLES
from core.errors import ConfigError
from core.importing import intake_view as intake
from core.importing import uploads
from core.importing import view as corpora
from core.importing.result import AddResult, AuditResult, IntakeResult, SplitResult, roles_in_words
from core.kinds import KINDS
from core.projects import runs
from core.runs.result import read as read_result
from core.runs.run import Run
from core.samples.sets import sample_sets
from core.shown import count

# Maximum number of rejected rows that are printed with the reason.
PROBLEMS = 5
# Exit status if an item of the data check is red. It is the same as for invalid input.
RED = 2
run_anyway_option = click.option(
    "--run-anyway", is_flag=True, help="Start the run even if the data check has red items. The run's notes list them."
)


def where_option(*, required: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds the option `--where` to a command. `pairs` parses the option's values."""
    return click.option(
        "--where",
        multiple=True,
        required=required,
        callback=several_pairs,
        metavar="COLUMN=VALUE,...",
        help="Keep sentences with one of the given values in each given column (doc, file, group or an imported one).",
    )


def pairs(where: Sequence[str]) -> dict[str, list[str]]:
    """Return {column: values} from values of the option `--where`, such as `year=2019`. Errors: ConfigError."""
    wanted: dict[str, list[str]] = {}
    for pair in where:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"where: {pair!r} is not COLUMN=VALUE; write for example year=2019.")
        wanted.setdefault(name.strip(), []).append(value.strip())
    return wanted


@click.group()
def corpus() -> None:
    """Add, propose, list, show, audit, split, filter, rename, export and remove corpora."""
    note_spoilt()


@corpus.command("add")
@click.argument("paths", metavar="FILES...", type=click.Path(), nargs=-1, required=True, callback=several)
@config_options(KINDS["add"].config, leave_out=("path", "others", "move"))
@json_option
def corpus_add(paths: tuple[str, ...], as_json: bool, **values: object) -> None:
    """Read files, folders or zip archives, and store them as one corpus.

    Winnow reads text, tables, annotations and documents: PDF, Word (.docx), OpenDocument, RTF, HTML, mail (.eml), Excel
    (.xlsx). A file or folder can also be an address (s3://, gs:// or hdfs://). Access keys are taken from your
    environment variables.
    """
    options = {name: value for name, value in values.items() if value not in (None, ())}
    if elsewhere := [path for path in paths if remote.is_address(path)]:
        if len(elsewhere) < len(paths):
            raise ConfigError("FILES: give addresses or files, not both in one corpus.")
        paths, options["move"] = (str(uploads.fetched(elsewhere, partial(echo, err=True))),), True
    first, *others = (str(Path(path).absolute()) for path in paths)
    run = runs.execute("add", {"path": first, "others": tuple(others), **options}, progress)
    finish(run, as_json, plain=lambda _: _added(run))
    if as_json:
        warn(_checked(read_result(run, AddResult)))


def _checked(added: AddResult) -> list[Check]:
    """Return the amber and red items of the imported corpus; a list of names has no sentences to check."""
    found = [] if added.format == NAMES else corpora.check_corpus(added.corpus)
    return [one for one in found if one.level != "green"]


def _added(run: Run) -> list[str]:
    """Return the lines that describe an import: counts, format, rows left out with the reasons, and warnings."""
    added = read_result(run, AddResult)
    labelled = not LABELLED.isdisjoint(added.format.split("+"))
    kind = "labelled" if added.types else "labelled, but without entities" if labelled else "without labels"
    lines = [f"{added.name}: {_n(added.sentences, 'sentence')}, {_n(added.tokens, 'token')}, {kind}"]
    if added.types:
        lines.append(f"entities     {', '.join(f'{name} {n:,}' for name, n in added.types.items())}")
    scheme = f" with {added.scheme} tags" if added.scheme and added.types else ""
    lines.append(f"read as      {added.format}{scheme}, {_n(added.files, 'file')}")
    if added.cut and added.cut.rule != "own":
        words = "runs of letters and digits, and single punctuation marks"
        rule = words if added.cut.rule == "words" else "text between spaces"
        lines.append(f"tokens       {rule} ({added.cut.why})")
    counts = (
        (added.rejected, "row", " rejected"),
        (added.rejected_spans, "span", " rejected"),
        (added.lost, "sentence", " that lost an annotation"),
        (added.partial, "text", " with binary answers only"),
        (added.skipped, "row", " skipped"),
        (added.repaired_rows, "row", " repaired"),
        (added.empty, "empty row", ""),
        (added.left_out, "file", " left out"),
        (added.blank_pages, "page", " without text"),
    )
    left_out = ", ".join(f"{_n(n, what)}{how}" for n, what, how in counts if n)
    lines.append(f"left out     {left_out or 'nothing'}")
    for problem in added.problems[:PROBLEMS]:
        where = f"{problem.file} line {problem.line}" if problem.line else problem.file
        lines.append(f"  {where}: {problem.reason}")
    if len(added.problems) > PROBLEMS:
        lines.append(f"  and {len(added.problems) - PROBLEMS:,} more; --json shows them")
    lines += [f"check        {text}" for text in added.of_labels]
    return [*lines, *in_lines(_checked(added)), f"fingerprint  {added.corpus}"]


def _n(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


@corpus.command("propose")
@click.argument("paths", metavar="FILES...", type=click.Path(), nargs=-1, required=True, callback=several)
@click.option(
    "--like",
    multiple=True,
    type=click.Path(),
    callback=several,
    metavar="FILE,...",
    help="Files with text like the task corpus, by their name in the proposal or by path.",
)
@click.option("--use", is_flag=True, help="Import the files as proposed: one corpus per role.")
@config_options(KINDS["intake"].config, leave_out=("path", "others", "move"))
@json_option
def corpus_propose(paths: tuple[str, ...], like: tuple[str, ...], use: bool, as_json: bool, **values: object) -> None:
    """Propose a role for each of several files, folders or archives. Labels, names, sizes and similarity decide.

    With --task, --domain and similar options you give the roles yourself; then only the files that you name are
    imported.
    """
    places = [Path(path).absolute() for path in paths]
    encoding = str(values["encoding"] or "utf-8")
    proposed = intake.proposal(places, intake.marked(places, like), encoding)
    options = intake.options(proposed, places)
    typed = {name: value for name, value in values.items() if value not in (None, ())}
    if typed.keys() & FILE_ROLES:
        options = {"path": options["path"], "others": options["others"]}
    options |= typed
    if (later := [name for name in typed if name != "encoding"]) and not use:
        raise ConfigError(f"{later[0]}: is only used for the import; add --use.")
    if use:
        for row in [] if typed.keys() & FILE_ROLES else proposed.rows:
            if not row.part:
                echo(f"note: not used: {row.name}: {row.seen}", err=True)
        finish(runs.execute("intake", options, progress), as_json, plain=_taken)
        warn(corpora.check_project())
        return
    rows = [asdict(row) for row in proposed.rows]
    lines = [
        f"{row.part or 'not used':<9} {row.name:<32} "
        + (f"{'' if row.exact else 'about '}{count(row.sentences, 'sentence')}; " if row.sentences else "")
        + row.seen
        for row in proposed.rows
    ]
    asks = ["Which of these files are similar to your task? Name them: --like FILE,..."] if proposed.ask else []
    report({"rows": rows, "ask": proposed.ask, "task_of_train": proposed.task_of_train}, as_json, [*lines, *asks])


def _taken(result: Mapping[str, object]) -> list[str]:
    """Return the lines that describe an `intake` run: one per imported role, then the roles in use."""
    taken = read_result(runs.get(str(result["run"])), IntakeResult)
    lines = []
    for each in taken.parts:
        if each.problem:
            lines.append(f"{each.part:<9} not imported: {each.problem}")
        else:
            one = read_result(runs.get(each.run), AddResult)
            lines.append(f"{each.part:<9} {one.name:<40} {one.sentences:>9,} sentences")
            lines += [f"note: {each.part}: {text}" for text in one.of_labels]
    more = "; the task corpus is the text of the training set" if taken.task_of_train else ""
    return [*lines, f"in use as {roles_in_words(taken.roles)}{more}"] if taken.roles else lines


@corpus.command("list")
@json_option
def corpus_list(as_json: bool) -> None:
    """List all corpora: first the imported ones, then those that Winnow made, each group with the newest first."""
    rows = [corpora.describe(corpus) for corpus in corpora.listed()]
    if as_json:
        echo_json({"corpora": rows})
    for row in [] if as_json else rows:
        echo(f"{row['corpus']}  {row['name']:<32} {row['sentences']:>10,} sentences {row['tokens']:>12,} tokens")


@corpus.command("show")
@click.argument("reference", type=CORPUS)
@json_option
def corpus_show(reference: str, as_json: bool) -> None:
    """Show a corpus: counts, density, and its size relative to the corpora in use.

    REFERENCE is a name, a fingerprint or a path.
    """
    corpus = corpora.find(runs.fingerprint_of(reference, progress))
    against = {f"{each.name} {each.of} of {each.to}": round(each.value, 4) for each in corpora.ratios(corpus)}
    report({**corpora.describe(corpus), **corpora.density(corpus), "ratios": against}, as_json)


@corpus.command("audit")
@click.option("--task", type=CORPUS, required=True, help="Task corpus (T_C).")
@click.option("--domain", type=CORPUS, required=True, help="Domain corpus (D_C).")
@click.option(
    "--labelled", type=CORPUS, multiple=True, callback=several, metavar="CORPUS,...", help="Dev and test sets."
)
@json_option
def corpus_audit(task: str, domain: str, labelled: tuple[str, ...], as_json: bool) -> None:
    """Flag duplicates, test leaks, and sentences that are too short or too long. Nothing is deleted."""
    config = KINDS["audit"].config
    flags: dict[str, object] = {}
    for part, reference in (("", domain), ("task_", task)):
        options = runs.with_corpora(config, {"corpus": reference, "held_out": labelled}, progress)
        run = runs.execute("audit", options, progress)
        result = read_result(run, AuditResult)
        flags |= {f"{part}run": run.id, f"{part}flags": result.flags, f"{part}near_rules": result.near_rules}
    report(flags, as_json)


@corpus.command("split")
@click.argument("corpus", type=CORPUS)
@config_options(KINDS["split"].config, leave_out=("corpus",))
@json_option
def corpus_split(as_json: bool, **values: object) -> None:
    """Divide a corpus into training, dev and test set, or into task corpus (T_C) and domain corpus (D_C).

    Each part is stored as a corpus. Duplicates of a sentence are in one part only.
    """
    options = given(values, KINDS["split"].config)
    finish(runs.execute("split", options, progress), as_json, plain=_parts)


def _parts(result: Mapping[str, object]) -> list[str]:
    """Return the lines that describe a split: one per part, and one about duplicates."""
    split = read_result(runs.get(str(result["run"])), SplitResult)
    lines = [
        f"{part.corpus}  {corpora.find(part.corpus).name:<32} {part.sentences:>10,} sentences {part.units:>8,} units"
        f" {sum(part.types.values()):>9,} entities {part.left_out:>7,} duplicates left out"
        for part in split.parts
    ]
    return [
        *lines,
        f"{count(split.units, 'unit')}; {count(split.copies, 'sentence')} with duplicates, "
        f"{count(split.divided, 'group')} of them divided",
    ]


@corpus.command("filter")
@click.argument("corpus", type=CORPUS)
@where_option(required=True)
@json_option
def corpus_filter(corpus: str, where: tuple[str, ...], as_json: bool) -> None:
    """Make a corpus of the sentences with given values in a column, for example the domain corpus of one year."""
    made = corpora.filtered(corpora.find(runs.fingerprint_of(corpus, progress)), pairs(where))
    report(corpora.describe(made), as_json)


@corpus.command("rename")
@click.argument("reference")
@click.argument("name")
@json_option
def corpus_rename(reference: str, name: str, as_json: bool) -> None:
    """Rename a corpus. Its old names still work. Fails if another corpus already has the new name."""
    report(corpora.describe(corpora.rename(reference, name)), as_json)


@corpus.command("export")
@click.argument("reference")
@click.option(
    "--output", type=click.Path(), required=True, help="A file (.txt .jsonl .csv .parquet .conll) or s3:// address."
)
@json_option
def corpus_export(reference: str, output: str, as_json: bool) -> None:
    """Write a corpus with labels, documents, groups and further columns.

    A .txt has only the text, a .conll only tokens and tags.
    """
    named, written = corpora.find(reference).fingerprint, remote.named(output)
    with remote.outgoing(output) as path:
        count = corpora.export(named, path)
    report({"corpus": named, "sentences": count, "output": written}, as_json, written)


@corpus.command("remove")
@click.argument("reference")
@click.option("--force", is_flag=True, help="Delete the corpus even if an active run needs it. The run then fails.")
@click.option("--with-runs", is_flag=True, help="Also delete everything made from it: corpora, runs, models, exports.")
@json_option
def corpus_remove(reference: str, force: bool, with_runs: bool, as_json: bool) -> None:
    """Delete a corpus, and list the runs that cannot be repeated without it. Fails if an active run needs it.

    Runs that used the corpus keep some of its text. --with-runs deletes these runs too; on a terminal, the command asks
    first.
    """
    if with_runs:
        remove_everything(reference, as_json)
        return
    used = corpora.needed_by(reference)
    for run in used.active if force else ():
        echo(f"note: {run.id} is running and will fail without {used.corpus.name}", err=True)
    if used.in_words and (force or not used.active):
        echo(f"note: {used.corpus.name} was used by {used.in_words}", err=True)
        echo("note: these runs keep some of its text; --with-runs removes the runs too", err=True)
    corpora.remove(used.corpus.fingerprint, force=force)
    report({"removed": used.corpus.fingerprint}, as_json, "")


@click.command()
@json_option
def samples(as_json: bool) -> None:
    """Add the sample corpora that ship with Winnow, if the project has no corpora yet."""
    # Adding samples would replace the user's corpora in their roles.
    if corpora.listed():
        note = "note: no sample was added, because this project has corpora; `project new NAME` makes a new project"
        echo(note, err=True)
        report({"samples": []}, as_json, "")
        return
    added = list(reversed(sample_sets()))
    for sample in added[:-1]:
        corpora.add_sample(sample.name)
    # Only one sample set gets roles. Roles then change once, so that "undo" does not bring back another sample set.
    corpora.open_sample(added[-1].name)
    rows = [{"name": sample.name, "title": sample.title} for sample in added]
    report({"samples": rows}, as_json, [f"{row['name']}: {row['title']}" for row in rows])


@click.command()
@config_options(corpora.CheckConfig)
@json_option
@click.pass_context
def check(context: click.Context, /, as_json: bool, **values: object) -> None:
    """Check the project's data before a run. Print one line per item: green, amber or red.

    The exit status is 2 if an item is red.

    \b
    python -m core check --task T.txt --domain D.txt --budget 20%
    """
    found = corpora.check_project(given(values, corpora.CheckConfig))
    level = worst(found)
    result = {"level": level, "checks": [asdict(one) for one in found]}
    report(result, as_json, in_lines(found) or ["Nothing to check: the project has no corpora in use."])
    if level == "red":
        context.exit(RED)


def in_lines(found: Sequence[Check]) -> list[str]:
    """Return one line per item of the data check, red items first. Below each amber or red item, add the remedy."""
    lines = []
    for one in sorted(found, key=lambda one: -LEVELS.index(one.level)):
        lines.append(f"{one.level:<6} {one.sentence}")
        if one.level != "green":
            lines.append(f"       {one.cure}: {one.command}")
    return lines


def warn(found: Sequence[Check]) -> None:
    """Print the amber and red items of a data check on stderr."""
    if lines := in_lines([one for one in found if one.level != "green"]):
        echo(*lines, err=True)
