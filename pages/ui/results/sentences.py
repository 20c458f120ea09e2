"""Sentences of the test set with the labels of two taggers."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from html import escape

import streamlit as st

from core import charts
from core.experiment import plot, results
from core.projects import runs
from core.stats.mistakes import KINDS, Kind, Mistake, TypeMistakes, by_type
from core.tagging.result import TwoReadings
from core.text.sentence import Entity, Sentence
from pages.ui.frame import looked
from pages.ui.results.pair import pair
from pages.ui.widgets import place_html, plain, table

PAGE = 20  # sentences per page
SHOWN = {
    "differ": "where A and B differ",
    "a": "A right, B wrong",
    "b": "B right, A wrong",
    "all": "all",
}
SHOWN_ALONE = {"wrong": "with a mistake", "all": "all"}
MEANING: Mapping[Kind, str] = {
    "missed": "labelled, but nothing was predicted there",
    "invented": "predicted where nothing is labelled",
    "wrong type": "an entity is there, but of another type",
    "wrong border": "the right type, but too many or too few words",
}


def sentences(run_labels: Mapping[str, str]) -> None:
    """Show test sentences with gold labels and the entities found by taggers A and B, and mark their mistakes.

    run_labels: {`finetune` run: name}.
    """
    a, b = pair(run_labels, "results.beside")
    left, right = st.columns(2)
    with left:
        seed_a = _seed("A", a)
    with right:
        seed_b = _seed("B", b)
    readings = results.side_by_side(a, seed_a, b, seed_b)
    looked(runs.get(a).manifest.config["test"][0])
    alone = (a, seed_a) == (b, seed_b)
    which, kinds, types = _filters(readings, SHOWN_ALONE if alone else SHOWN)
    if not alone:
        st.caption(f"A: {plain(run_labels[a])}. B: {plain(run_labels[b])}.")
    _counts(readings, types, alone=alone)
    rows = [row for row in readings if _wanted(row, which) and _has(row, kinds, types)]
    st.caption(f"{len(rows):,} of {len(readings):,} test sentences.")
    pages = max(-(-len(rows) // PAGE), 1)
    key = f"results.beside.page.{a}.{b}.{which}.{'.'.join([*kinds, *types])}"
    number = st.number_input("Page", 1, pages, 1, key=key) if pages > 1 else 1
    reading_list(rows[(number - 1) * PAGE : number * PAGE], alone=alone)


def _seed(side: str, run_id: str) -> int:
    """Ask for a seed of a `finetune` run, and return it. If the run has a single seed, do not ask. side: "A" or "B"."""
    seeds = [int(seed) for seed in runs.get(run_id).manifest.config["seeds"]]
    if len(seeds) == 1:
        return seeds[0]
    return st.selectbox(f"Seed of {side}", seeds, key=f"results.beside.seed.{side.lower()}.{run_id}")


def _filters(readings: Sequence[TwoReadings], shown: Mapping[str, str]) -> tuple[str, list[Kind], list[str]]:
    """Ask which sentences to show. Return a key of `shown`, the kinds of mistake, and the entity types."""
    known = sorted({e.type for row in readings for e in (*(row.sentence.entities or ()), *row.a, *row.b)})
    left, middle, right = st.columns(3)
    key = f"results.beside.show{'.alone' * (shown is SHOWN_ALONE)}"
    which = left.selectbox("Show", list(shown), format_func=shown.__getitem__, key=key)
    kinds = middle.multiselect("With a mistake of", KINDS, key="results.beside.kinds", placeholder="any or none")
    types = right.multiselect("Of the type", known, key="results.beside.types", placeholder="any")
    return which, kinds, types


def _wanted(row: TwoReadings, which: str) -> bool:
    right_a, right_b = not row.wrong_a, not row.wrong_b
    kept: bool = {
        "differ": row.differs,
        "a": right_a and not right_b,
        "b": right_b and not right_a,
        "wrong": not right_a,
        "all": True,
    }[which]
    return kept


def _has(row: TwoReadings, kinds: Collection[str], types: Collection[str]) -> bool:
    """Return True if A or B made a mistake of these kinds and types. Empty `kinds` or `types` allow all."""
    if not kinds and not types:
        return True
    wrong = (*row.wrong_a, *row.wrong_b)
    return any((not kinds or one.kind in kinds) and (not types or one.types & set(types)) for one in wrong)


def _counts(readings: Sequence[TwoReadings], types: Collection[str], *, alone: bool) -> None:
    """Show the number of mistakes in the test set by kind, only on `types` if given. alone: True to leave out B."""

    def counted(wrong: Sequence[Mistake]) -> Counter[str]:
        return Counter(one.kind for one in wrong if not types or one.types & set(types))

    a = sum((counted(row.wrong_a) for row in readings), Counter[str]())
    b = sum((counted(row.wrong_b) for row in readings), Counter[str]())
    rows = [{"kind": kind, "means": MEANING[kind], "a": a[kind], "b": b[kind]} for kind in KINDS]
    columns = {"kind": "Mistake", "means": "What it is", **({"a": "Times"} if alone else {"a": "A", "b": "B"})}
    whose = "Mistakes" if alone else "Mistakes of A and B"
    name = f"{whose} in {len(readings):,} test sentences" + (f", {', '.join(types)}" if types else "")
    table(rows, columns, name, wrapped=("means",))
    _by_type(readings, types, alone=alone)
    shapes = " ".join(f'<mark class="{_shape(kind)}" style="--c:#8F8F8F">{kind}</mark>' for kind in KINDS)
    st.html(f'<p>How mistakes are marked: <mark class="w-entity" style="--c:#8F8F8F">right</mark> {shapes}</p>')


def _by_type(readings: Sequence[TwoReadings], types: Collection[str], *, alone: bool) -> None:
    """Show a table with the mistakes on each entity type, and the types with which it was confused."""
    gold = [row.sentence.entities or () for row in readings]
    a = by_type(zip(gold, (row.wrong_a for row in readings), strict=True))
    b = a if alone else by_type(zip(gold, (row.wrong_b for row in readings), strict=True))
    of_b = {row.type: row for row in b}
    nothing = {row.type: TypeMistakes(type=row.type, mentions=0, kinds=Counter(), read_as={}) for row in (*a, *b)}
    pairs = [(row, of_b.get(name, nothing[name])) for name, row in (nothing | {row.type: row for row in a}).items()]
    rows = [_type_line(*pair, alone=alone) for pair in pairs if not types or pair[0].type in types]
    heads = {kind: kind.capitalize() for kind in ("right", *KINDS)}
    columns = {"type": "Type", "mentions": "Labelled", **heads, "read_as": "Taken for"}
    with st.expander("Mistakes by type", icon=":material/table:"):
        table(rows, columns, "Mistakes of each type" + ("" if alone else ", A / B"), wrapped=("type", "read_as"))
        st.caption("A wrong type is counted under the gold type; a spurious entity under the predicted type.")


def _type_line(a: TypeMistakes, b: TypeMistakes, *, alone: bool) -> dict[str, object]:
    """Return the row of one entity type. With two taggers, each cell has the numbers of A and of B."""
    counts = {"right": (a.right, b.right)} | {kind: (a.kinds[kind], b.kinds[kind]) for kind in KINDS}
    cells = {name: both[0] if alone else f"{both[0]:,} / {both[1]:,}" for name, both in counts.items()}
    taken = [
        ", ".join(f"{name} {n:,}" for name, n in row.read_as.items()) or "-" for row in ((a,) if alone else (a, b))
    ]
    return {"type": a.type, "mentions": max(a.mentions, b.mentions), **cells, "read_as": " / ".join(taken)}


def reading_list(rows: Sequence[TwoReadings], *, alone: bool = False) -> None:
    """Show each sentence with gold labels, below it with the entities of A and of B. alone: True to leave out B."""
    items = []
    for row in rows:
        gold = _marked(row.sentence.tokens, [(e, e.type, "") for e in row.sentence.entities or ()], plot.GOLD)
        a = _read(row.sentence, row.a, row.wrong_a, charts.css_colour(plot.ARM_A))
        b = _read(row.sentence, row.b, row.wrong_b, charts.css_colour(plot.ARM_B))
        lines = (("labelled", gold), ("read", a)) if alone else (("labelled", gold), ("A", a), ("B", b))
        read = "".join(f"<div><strong>{name}</strong> {line}</div>" for name, line in lines)
        items.append(read + place_html(row.sentence.place))
    if items:
        name = f"Test sentences with gold labels and the entities of {'the tagger' if alone else 'two taggers'}"
        listed = "".join(f"<li>{item}</li>" for item in items)
        st.html(f'<ol class="w-sentences" aria-label="{name}">{listed}</ol>')


Mark = tuple[Entity, str, str]  # entity, text shown after it, kind of mistake ("" for a correct entity)


def _read(sentence: Sentence, read: Sequence[Entity], wrong: Sequence[Mistake], colour: str) -> str:
    """Return a sentence with one tagger's entities as HTML.

    Missed entities are marked too, or listed after the sentence if they overlap an entity of the tagger.
    """
    of = {one.guess: one for one in wrong if one.guess}
    taken = {at for entity in read for at in range(entity.start, entity.end)}
    missed = [one.gold for one in wrong if one.gold and one.guess is None]
    free = [gold for gold in missed if taken.isdisjoint(range(gold.start, gold.end))]
    marks = [_mark(entity, of.get(entity)) for entity in read]
    marks += [(gold, f"missed {gold.type}", "missed") for gold in free]
    behind = [
        f" · <small>missed {escape(gold.type)}: {escape(' '.join(sentence.tokens[gold.start : gold.end]))}</small>"
        for gold in missed
        if gold not in free
    ]
    return _marked(sentence.tokens, marks, colour) + "".join(behind)


def _mark(entity: Entity, mistake: Mistake | None) -> Mark:
    if mistake is None:
        return entity, entity.type, ""
    if mistake.kind == "wrong type" and mistake.gold:
        return entity, f"wrong type {entity.type}, not {mistake.gold.type}", mistake.kind
    return entity, f"{mistake.kind} {entity.type}", mistake.kind


def _shape(kind: str) -> str:
    """Return the CSS class of a marked entity. kind: kind of mistake, "" for none."""
    return f"w-entity w-{kind.replace(' ', '-')}" if kind else "w-entity"


def _marked(tokens: Sequence[str], marks: Sequence[Mark], colour: str) -> str:
    words = [escape(token) for token in tokens]
    for entity, written, kind in marks:
        words[entity.start] = f'<mark class="{_shape(kind)}" style="--c:{colour}">' + words[entity.start]
        words[entity.end - 1] += f" <small>{escape(written)}</small></mark>"
    return " ".join(words)
