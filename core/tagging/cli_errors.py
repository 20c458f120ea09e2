"""The command `errors`: what a tagger has wrong in its test sentences, by type and by kind of mistake."""

from collections.abc import Sequence

import click

from core.cli.options import several
from core.cli.terminal import json_option, report
from core.errors import ConfigError
from core.experiment import results
from core.projects.audit import note_look
from core.stats.mistakes import KINDS, Mistake, TypeMistakes, by_type
from core.tagging.result import TwoReadings

WIDTH = 12


@click.command("errors")
@click.argument("run_id")
@click.option("--seed", type=int, help="Whose tagger of a `finetune` run; the first if left out.")
@click.option("--kind", "kinds", multiple=True, callback=several, help=f"Only mistakes of {', '.join(KINDS)}.")
@click.option("--type", "types", multiple=True, callback=several, help="Only mistakes of this type, labelled or read.")
@click.option("--show", type=click.IntRange(min=0), default=10, show_default=True, help="Sentences to show.")
@json_option
def list_errors(
    run_id: str, *, seed: int | None, kinds: Sequence[str], types: Sequence[str], show: int, as_json: bool
) -> None:
    """List what a tagger missed, invented, or read with a wrong type or border: a `finetune` or an `evaluate` run's."""
    if unknown := set(kinds) - set(KINDS):
        raise ConfigError(f"kind: {', '.join(sorted(unknown))} is none; choose of {', '.join(KINDS)}.")
    readings = results.own_readings(run_id, seed)
    counts = by_type((row.sentence.entities or (), row.wrong_a) for row in readings)
    wrong = [(row, some) for row in readings if (some := [one for one in row.wrong_a if _asked(one, kinds, types)])]
    if show:
        note_look(results.tested_on(run_id))
    rows = [_row(row) for row in counts if not types or row.type in types]
    shown = [_sentence(row, some) for row, some in wrong[:show]]
    result = {"run": run_id, "sentences": len(readings), "wrong": len(wrong), "types": rows, "shown": shown}
    report(result, as_json, [*_table(rows), *_lines(readings, wrong, show)])


def _asked(mistake: Mistake, kinds: Sequence[str], types: Sequence[str]) -> bool:
    return (not kinds or mistake.kind in kinds) and (not types or not mistake.types.isdisjoint(types))


def _row(row: TypeMistakes) -> dict[str, object]:
    kinds: dict[str, object] = {kind: row.kinds[kind] for kind in KINDS}
    return {"type": row.type, "labelled": row.mentions, "right": row.right, **kinds, "read as": dict(row.read_as)}


def _sentence(row: TwoReadings, mistakes: Sequence[Mistake]) -> dict[str, object]:
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
    heads = ["labelled", "right", *KINDS]
    widest = max((len(str(row["type"])) for row in rows), default=4)
    lines = ["type".ljust(widest) + "".join(f"{head:>{WIDTH + 2}}" for head in heads) + "  read as"]
    for row in rows:
        read_as = row["read as"]
        others = ", ".join(f"{name} {n}" for name, n in read_as.items()) if isinstance(read_as, dict) else ""
        numbers = "".join(f"{row[head]:>{WIDTH + 2}}" for head in heads)
        lines.append(f"{row['type']!s:<{widest}}{numbers}  {others}".rstrip())
    return lines


def _lines(
    readings: Sequence[TwoReadings], wrong: Sequence[tuple[TwoReadings, Sequence[Mistake]]], show: int
) -> list[str]:
    """Number of sentences with such a mistake, and the first of them."""
    lines = [f"{len(wrong):,} of {len(readings):,} test sentences have such a mistake."]
    for row, mistakes in wrong[:show]:
        lines += ["", " ".join(row.sentence.tokens), *(f"  {_in_words(row, one)}" for one in mistakes)]
    return lines


def _in_words(row: TwoReadings, mistake: Mistake) -> str:
    gold, guess = (f"{_text(row, e.start, e.end)} ({e.type})" if e else "" for e in (mistake.gold, mistake.guess))
    if gold and guess:
        return f"{mistake.kind}: {guess} instead of {gold}"
    return f"{mistake.kind}: {gold or guess}"
