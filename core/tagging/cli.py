"""The commands `pretrain`, `finetune`, `evaluate`, `errors`, `predict`, `vectors add` and `vectors list`."""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import cast

import click

from core.cli.options import CORPUS, FILE, FOLDER, config_options, given, several
from core.cli.terminal import Write, artifact, echo, echo_json, finish, json_option, progress, report
from core.corpora.readers import ReadReport
from core.corpora.writers import MODEL_CARD, spare_readme
from core.dictionary.cli import list_option, with_lists
from core.errors import ConfigError, CorpusError
from core.experiment import deliver, results
from core.importing import view as corpora
from core.importing.cli import run_anyway_option
from core.kinds import KINDS
from core.paths import home
from core.projects import runs
from core.projects.audit import note_look
from core.runs.result import read as read_result
from core.runs.run import Run
from core.selection import choices
from core.selection import view as selections
from core.shown import count
from core.stats import scoring
from core.stats.mistakes import KINDS as MISTAKES
from core.stats.mistakes import Mistake, TypeMistakes, by_type
from core.tagging import predictions
from core.tagging import view as taggers
from core.tagging.evaluations import EvaluateResult
from core.tagging.result import TwoReadings
from core.training import on_device
from core.training.on_device import announce, rank

NONE = "none"
_WIDTH = 12  # width of a column in the table that `errors` prints, in characters


@click.command()
@config_options(KINDS["pretrain"].config)
@click.option(
    "--choice", help="Also train on the sentences of this selection, given by id or name, with its hand edits."
)
@click.option("--output", type=FOLDER, help="Also write the trained encoder to this folder, as a Hugging Face model.")
@run_anyway_option
@json_option
def pretrain(choice: str | None, output: str | None, run_anyway: bool, as_json: bool, **values: object) -> None:
    """Run continued pre-training (MLM) of an encoder on a task corpus (T_C), domain corpus (D_C) or selection (S_C).

    Repeat --corpus, with the task corpus first.

    \b
    On several GPUs: torchrun --nproc-per-node 4 -m core pretrain --corpus ...
    """
    if rank():
        on_device.train_along(home(), KINDS)
        return
    if output:  # before hours of work
        spare_readme(Path(output), MODEL_CARD)
    if choice:
        sealed = selections.seal(choices.find(choice).id).fingerprint
        values |= {"corpora": (*cast("tuple[str, ...]", values["corpora"]), sealed)}
    run = _done("pretrain", values | {"holdout": _held_out(values["holdout"])}, run_anyway=run_anyway)
    announce("")
    finish(run, as_json, output, artifact(deliver.model_folder))


def _held_out(typed: object) -> object:
    """Return the corpora whose sentences are not used for training.

    These are the corpora that the user typed, or no corpus for `none`; by default the dev and test sets.
    """
    if typed == (NONE,):
        return ()
    if typed or not (split := corpora.judged_by()):
        return typed
    names = " and ".join(corpora.find(fingerprint).name for fingerprint in split)
    echo(
        f"Sentences of {names} (dev and test sets) are not used for training; --holdout {NONE} uses them too.",
        err=True,
    )
    return split


@click.command()
@config_options(KINDS["finetune"].config)
@click.option("--output", type=FOLDER, help="Also write the best tagger to this folder, as a Hugging Face model.")
@click.option(
    "--without-rare-words",
    is_flag=True,
    help="With --output: leave out words that occur once in the training set (bilstm and charcnn store all words).",
)
@list_option("--dictionary")
@run_anyway_option
@json_option
def finetune(
    output: str | None,
    without_rare_words: bool,
    lists: Sequence[str],
    run_anyway: bool,
    as_json: bool,
    **values: object,
) -> None:
    """Train taggers on labelled data (L_C), one per seed. The best epoch on dev is kept and tested once.

    \b
    On several GPUs, a seed on each: torchrun --nproc-per-node 3 -m core finetune --seeds 1,2,3 --train ...
    """
    if rank():
        on_device.train_along(home(), KINDS)
        return

    if output:  # before hours of work
        spare_readme(Path(output), MODEL_CARD)

    def write(run: Run, output: str) -> Mapping[str, str]:
        deliver.copy_model(run.id, Path(output), rare=not without_rare_words)
        return {"output": output}

    run = _done("finetune", with_lists(values, "dictionary", lists), run_anyway=run_anyway)
    announce("")
    finish(run, as_json, output, write)


@click.command()
@config_options(KINDS["evaluate"].config)
@json_option
def evaluate(as_json: bool, **values: object) -> None:
    """Test a saved tagger on labelled sentences."""
    run = _done("evaluate", values)
    finish(run, as_json, plain=lambda _: _scores(run))


@click.command()
@click.argument("input", type=CORPUS)
@config_options(KINDS["predict"].config, leave_out=("corpus",))
@click.option(
    "--output",
    type=FILE,
    help="A .jsonl file (a sentence per line), a .csv file (an entity per line) or a .conll file. If left out, the"
    " sentences are written to standard output as JSON lines.",
)
@json_option
def predict(input: str, output: str | None, as_json: bool, **values: object) -> None:
    """Tag the sentences of INPUT, a corpus or a file, with a saved tagger.

    Each entity has a start and an end in characters, so that text[start:end] is the entity. In the output, `text` is a
    line, a cell or a field of the file, or the tokens of a CoNLL sentence joined by blanks. `line` is the line of the
    file in which the text or the entity begins. For plain text, file_start and file_end count characters from the start
    of the file.

    \b
    python -m core predict contracts.txt --model my-tagger --output entities.csv
    """
    if output and Path(output).suffix not in taggers.FOUND_ENDINGS:
        endings = ", ".join(taggers.FOUND_ENDINGS)
        raise ConfigError(f"output: {Path(output).name!r} must end in one of {endings}.")
    given, read = _path(input), ReadReport()
    run = _done("predict", {**values, "corpus": input})
    if output:
        finish(run, as_json, output, _predictions(given, read))
    elif as_json:
        sentences = [asdict(sentence) for sentence in taggers.export_found(run.id, given, read)]
        report({"run": run.id, **run.result(), "rejected": read.rejected, "predictions": sentences}, as_json)
    else:
        for sentence in taggers.export_found(run.id, given, read):
            echo_json(asdict(sentence))
    if read.rejected:
        name = Path(input).name
        words = f"{count(read.rejected, 'row')} of {name} could not be read, so no entities were predicted there"
        echo(f"note: {words}; to list these rows, run python -m core corpus add {name}.", err=True)


def _path(input: str) -> str:
    """Return `input` if it is the path of a file to tag; "" if it is a corpus, also if a file has the same name."""
    with suppress(CorpusError):
        corpora.find(input)
        return ""
    return input if os.path.exists(input) else ""


def _predictions(given: str, read: ReadReport) -> Write:
    """Return a function that writes the predictions of a run to a path.

    given: path of the tagged file, or "". read: report in which the rows of this file are counted.
    """

    def write(run: Run, output: str) -> Mapping[str, str]:
        if Path(output).suffix == ".conll":
            deliver.take(run.id, {predictions.file(run, ".conll"): output})
            deque(taggers.found_sentences(run.id, given, read), maxlen=0)  # only counts the rows that cannot be read
        else:
            taggers.write_found(run.id, Path(output), given, read)
        return {"output": output}

    return write


def _done(kind: str, values: dict[str, object], *, run_anyway: bool = False) -> Run:
    return runs.execute(kind, given(values, KINDS[kind].config), progress, run_anyway=run_anyway)


def _scores(run: Run) -> list[str]:
    """Format the result of an `evaluate` run: F1 by decoding and by type, and scores by minimum confidence."""
    result = read_result(run, EvaluateResult)
    test = result.test
    lines = [
        f"run          {run.id}",
        f"score (F1)   {test.mean:.2f}; macro, the mean over types, {test.macro_f1[0]:.2f}",
    ]
    lines += [f"  {name:<14} {f1s[0]:6.2f}" for name, f1s in test.decodings.items()]
    width = max(14, *(len(line.type) for line in test.report))
    lines += ["by type, strict (seqeval)"]
    lines += [f"  {'':<{width}} precision  recall      F1  entities  95% interval of F1"]
    for line in sorted(test.report, key=lambda line: (line.type == scoring.MICRO, -line.f1)):
        low, high = test.intervals.get(line.type, (0.0, 0.0))
        interval = f"[{low:.1f}, {high:.1f}]" if line.type in test.intervals else ""
        scores = f"{line.precision:9.2f} {line.recall:7.2f} {line.f1:7.2f} {line.support:9,}"
        lines.append(f"  {line.type:<{width}} {scores}  {interval}".rstrip())
    (sure,) = test.calibration
    fitted = "; no temperature was fitted"
    if sure.fitted:
        fitted = f" before and {sure.after:.3f} after the temperature {sure.temperature:.2f}"
    lines += [
        f"confidence   mean {sure.confidence:.2f}, share of correct entities {sure.right:.2f}; calibration error "
        f"{sure.before:.3f}{fitted}",
        "at least     entities precision recall  score",
    ]
    return lines + [
        f"  {row.least:<10.2f} {row.entities:8,} {row.precision:9.2f} {row.recall:6.2f} {row.f1:6.2f}"
        for row in result.abstaining
    ]


@click.command("errors")
@click.argument("run_id")
@click.option("--seed", type=int, help="For a `finetune` run: seed of the tagger to show. Default: the first seed.")
@click.option(
    "--kind", "kinds", multiple=True, callback=several, help=f"Only mistakes of these kinds: {', '.join(MISTAKES)}."
)
@click.option(
    "--type", "types", multiple=True, callback=several, help="Only mistakes of this entity type, gold or predicted."
)
@click.option("--show", type=click.IntRange(min=0), default=10, show_default=True, help="Sentences to show.")
@json_option
def list_errors(
    run_id: str, *, seed: int | None, kinds: Sequence[str], types: Sequence[str], show: int, as_json: bool
) -> None:
    """List what the tagger of a `finetune` or `evaluate` run missed, invented, or found with a wrong type or border."""
    if unknown := set(kinds) - set(MISTAKES):
        raise ConfigError(f"kind: {', '.join(sorted(unknown))} is unknown; choose from {', '.join(MISTAKES)}.")
    readings = results.own_readings(run_id, seed)
    counts = by_type((row.sentence.entities or (), row.wrong_a) for row in readings)
    known = [row.type for row in counts]
    if strange := sorted(set(types).difference(known)):
        raise ConfigError(
            f"type: no entity is labelled or read as {', '.join(strange)}; choose from {', '.join(known)}."
        )
    wrong = [(row, some) for row in readings if (some := [one for one in row.wrong_a if _asked(one, kinds, types)])]
    if show:
        note_look(results.tested_on(run_id))
    rows = [_row(row) for row in counts if not types or row.type in types]
    shown = [_shown(row, some) for row, some in wrong[:show]]
    result = {"run": run_id, "sentences": len(readings), "wrong": len(wrong), "types": rows, "shown": shown}
    report(result, as_json, [*_table(rows), *_lines(readings, wrong, show)])


def _asked(mistake: Mistake, kinds: Sequence[str], types: Sequence[str]) -> bool:
    return (not kinds or mistake.kind in kinds) and (not types or not mistake.types.isdisjoint(types))


def _row(row: TypeMistakes) -> dict[str, object]:
    kinds: dict[str, object] = {kind: row.kinds[kind] for kind in MISTAKES}
    return {"type": row.type, "labelled": row.mentions, "right": row.right, **kinds, "read as": dict(row.read_as)}


def _shown(row: TwoReadings, mistakes: Sequence[Mistake]) -> dict[str, object]:
    def words(mistake: Mistake) -> dict[str, object]:
        sides = {"labelled": mistake.gold, "read": mistake.guess}
        spans = {name: side for name, side in sides.items() if side}
        return {"kind": mistake.kind} | {
            name: {"type": span.type, "start": span.start, "end": span.end, "text": _text(row, span.start, span.end)}
            for name, span in spans.items()
        }

    return {"text": " ".join(row.sentence.tokens), "mistakes": [words(one) for one in mistakes]}


def _text(row: TwoReadings, start: int, end: int) -> str:
    return " ".join(row.sentence.tokens[max(start, 0) : end])


def _table(rows: Sequence[dict[str, object]]) -> list[str]:
    heads = ["labelled", "right", *MISTAKES]
    widest = max((len(str(row["type"])) for row in rows), default=4)
    lines = ["type".ljust(widest) + "".join(f"{head:>{_WIDTH + 2}}" for head in heads) + "  read as"]
    for row in rows:
        read_as = row["read as"]
        others = ", ".join(f"{name} {n}" for name, n in read_as.items()) if isinstance(read_as, dict) else ""
        numbers = "".join(f"{row[head]:>{_WIDTH + 2}}" for head in heads)
        lines.append(f"{row['type']!s:<{widest}}{numbers}  {others}".rstrip())
    return lines


def _lines(
    readings: Sequence[TwoReadings], wrong: Sequence[tuple[TwoReadings, Sequence[Mistake]]], show: int
) -> list[str]:
    """Return output lines: the number of sentences with mistakes, then the first `show` of these sentences.

    readings: all test sentences. wrong: sentences with mistakes.
    """
    lines = [f"{len(wrong):,} of {len(readings):,} test sentences have such a mistake."]
    for row, mistakes in wrong[:show]:
        lines += ["", " ".join(row.sentence.tokens), *(f"  {_in_words(row, one)}" for one in mistakes)]
    return lines


def _in_words(row: TwoReadings, mistake: Mistake) -> str:
    gold, guess = (f"{_text(row, e.start, e.end)} ({e.type})" if e else "" for e in (mistake.gold, mistake.guess))
    if gold and guess:
        return f"{mistake.kind}: {guess} instead of {gold}"
    return f"{mistake.kind}: {gold or guess}"


@click.group("vectors")
def vectors_group() -> None:
    """External word vectors (word2vec, GloVe, fastText) that taggers start from."""


@vectors_group.command("add")
@click.argument("path", type=click.Path())
@config_options(KINDS["vectors-import"].config, leave_out=("path",))
@json_option
def vectors_add(path: str, as_json: bool, **values: object) -> None:
    """Import a text file of word vectors, for the option --imported-vectors of finetune, assist and experiment."""
    options = {name: value for name, value in values.items() if value is not None}
    finish(runs.execute("vectors-import", {"path": str(Path(path).absolute()), **options}, progress), as_json)


@vectors_group.command("list")
@json_option
def vectors_list(as_json: bool) -> None:
    """List imported word vectors, newest first."""
    here = taggers.imported_vectors()
    if as_json:
        echo_json({"vectors": [{"run": run_id, **asdict(one)} for run_id, one in here.items()]})
        return
    for run_id, one in here.items():
        echo(f"{one.name}: {one.says} ({run_id})")
