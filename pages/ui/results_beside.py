"""Two arms side by side: F1 by type, seen and unseen names, and what each makes of the test sentences."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import streamlit as st

from core import facade
from pages.ui.widgets import chart, plain, table

PAGE = 20  # sentences
SHOWN = {
    "differ": "where A and B differ",
    "a": "A right, B wrong",
    "b": "B right, A wrong",
    "all": "all",
}


def pair(arms: Mapping[str, str], key: str) -> tuple[str, str]:
    """Two taggers, by run; the arm without pre-training, where there is one, is B at first."""
    names = list(arms)
    base = next((i for i, name in enumerate(names) if arms[name] == "none"), len(names) - 1)
    first = next((i for i in range(len(names)) if i != base), base)
    left, right = st.columns(2)
    a = left.selectbox("A", names, first, arms.__getitem__, key=f"{key}.a.{names[0]}")
    b = right.selectbox("B", names, base, arms.__getitem__, key=f"{key}.b.{names[0]}")
    return a, b


def types(arms: Mapping[str, str]) -> None:
    """Table 4 of S0, and F1 on names that the training sentences hold and on those they do not."""
    a, b = pair(arms, "results.types")
    rows = facade.type_scores(a, b)
    name = f"Test F1 of every entity type under A, {arms[a]}, and B, {arms[b]}; the table below has the numbers"
    chart(facade.figures.type_differences(rows, f"A: {arms[a]}", f"B: {arms[b]}"), "results.types.chart", name)
    said = [
        {**row, "a": f"{row['a']:.2f}", "b": f"{row['b']:.2f}", "difference": f"{row['difference']:+.2f}"}
        for row in rows
    ]
    columns = {"type": "Type", "mentions": "In the test set", "a": "F1 of A", "b": "F1 of B", "difference": "A less B"}
    table(said, columns, "F1 by entity type, mean of the seeds")
    st.subheader("Names seen in training, and new ones", anchor=False)
    novel = [
        {"surfaces": SEEN[ours["surfaces"]], "mentions": ours["mentions"], "a": f"{ours['f1']:.2f}",
         "b": f"{theirs['f1']:.2f}"}
        for ours, theirs in zip(facade.novelty_scores(a), facade.novelty_scores(b), strict=True)
    ]  # fmt: skip
    columns = {"surfaces": "Entities", "mentions": "In the test set", "a": "F1 of A", "b": "F1 of B"}
    table(novel, columns, "F1 on entities seen and not seen in the training sentences", wrapped=("surfaces",))


SEEN = {"seen": "whose words are an entity of the training sentences", "unseen": "whose words are not"}


def sentences(arms: Mapping[str, str]) -> None:
    """S0's figure 3b: gold, A and B in three colours."""
    a, b = pair(arms, "results.beside")
    left, middle, right = st.columns((2, 2, 3))
    seed_a = left.selectbox("Seed of A", _seeds(a), key=f"results.beside.seed.a.{a}")
    seed_b = middle.selectbox("Seed of B", _seeds(b), key=f"results.beside.seed.b.{b}")
    which = right.selectbox("Show", list(SHOWN), format_func=SHOWN.__getitem__, key="results.beside.show")
    every = facade.beside(a, seed_a, b, seed_b)
    rows = [row for row in every if _wanted(row, which)]
    st.caption(f"{len(rows):,} of {len(every):,} test sentences. A: {plain(arms[a])}. B: {plain(arms[b])}.")
    pages = max(-(-len(rows) // PAGE), 1)
    number = st.number_input("Page", 1, pages, 1, key=f"results.beside.page.{a}.{b}.{which}") if pages > 1 else 1
    beside_list(rows[(number - 1) * PAGE : number * PAGE])


def _seeds(run_id: str) -> list[int]:
    return list(facade.run(run_id).manifest.config["seeds"])


def _wanted(row: facade.Beside, which: str) -> bool:
    gold = set(row.sentence.entities or ())
    right_a, right_b = set(row.a) == gold, set(row.b) == gold
    kept: bool = {
        "differ": row.differs, "a": right_a and not right_b, "b": right_b and not right_a, "all": True,
    }[which]  # fmt: skip
    return kept


def beside_list(rows: Sequence[facade.Beside]) -> None:
    """Each sentence three times: as labelled, as A reads it, as B does."""
    colours = facade.figures
    items = []
    for row in rows:
        lines = (
            ("gold", row.sentence.entities or (), colours.GOLD),
            ("A", row.a, colours.ARM_A),
            ("B", row.b, colours.ARM_B),
        )
        told = "".join(
            f"<div><strong>{name}</strong> {_marked(row.sentence, es, colour)}</div>" for name, es, colour in lines
        )
        items.append(f"<li>{told}</li>")
    if items:
        name = "Test sentences as labelled and as two taggers read them"
        st.html(f'<ol class="w-sentences" aria-label="{name}">{"".join(items)}</ol>')


def _marked(sentence: facade.Sentence, entities: Sequence[Any], colour: str) -> str:
    words = [escape(token) for token in sentence.tokens]
    for entity in entities:
        words[entity.start] = f'<mark class="w-entity" style="--c:{colour}">' + words[entity.start]
        words[entity.end - 1] += f" <small>{escape(entity.type)}</small></mark>"
    return " ".join(words)
