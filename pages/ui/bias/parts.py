"""Mentions in their sentences or in a table. Text of a corpus is escaped before it becomes HTML."""

from collections.abc import Collection, Sequence
from html import escape
from typing import Any

import streamlit as st

from core import charts
from core.bias import plot
from core.bias import view as bias
from core.bias.result import Diff
from core.bias.view import MentionRow
from core.results import IntArray
from core.text.sentence import Entity
from pages.ui.frame import guard, looked, where_text_is_here
from pages.ui.grid import grid
from pages.ui.orphaned import text_gone
from pages.ui.project import later
from pages.ui.widgets import place_html, plain

PAGE = 8  # sentences
ROWS = 300  # of a table
OLD, NEW = "#8F8F8F", "#009E73"
COLOURS = {kind: charts.css_colour(look[1]) for kind, look in plot.BIN_LOOKS.items()}


def bits(value: float) -> str:
    """Format bits with a sign and a real minus; 0 after rounding has no sign."""
    return f"{value:+.2f}".replace("-", "−") if round(value, 2) else "0.00"


def notes(run_id: str) -> None:
    """Draw the notes of a finished `difficulty` run, such as mentions that could not be judged."""
    if remarks := bias.difficulty_result(run_id).notes:
        st.info("\n\n".join(map(plain, remarks)), icon=":material/info:")


def marked(row: MentionRow) -> str:
    """Return the sentence as HTML with the mention highlighted, followed by file and page."""
    mention = Entity(start=row.start, end=row.end, type=row.type)
    return _painted(row.tokens, [mention], COLOURS[row.bin]) + place_html(row.place)


def mention_list(run_id: str, numbers: IntArray, key: str) -> None:
    """Draw mentions in their sentences, in pages; offer all of them as CSV."""
    if text_gone(run_id):
        return
    pages = max(-(-len(numbers) // PAGE), 1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        page = st.number_input("Page", 1, pages, 1, key=f"{key}.page", width=120) if pages > 1 else 1
        if pages > 1:
            st.caption(f"of {pages:,}", width="content")
        download(run_id, numbers, key)
    looked(bias.measured(run_id).corpus.fingerprint)
    rows = bias.mention_rows(run_id, numbers[(page - 1) * PAGE : page * PAGE])
    items = "".join(f"<li>{marked(row)}<br><small>{_pvi_words(row)}</small></li>" for row in rows)
    st.html(f'<ul class="w-sentences" aria-label="Sentences with the mention highlighted">{items}</ul>')


def _pvi_words(row: MentionRow) -> str:
    return f"name {bits(row.pvi_entity)}, context {bits(row.pvi_context)} bits"


def download(run_id: str, numbers: IntArray, key: str) -> None:
    """Offer mentions as CSV, which is written when the button is pressed."""
    st.download_button(
        f"These {len(numbers):,} as CSV",
        later(lambda: bias.mentions_csv(run_id, numbers)),
        f"mentions-{run_id[-4:]}.csv",
        on_click="ignore",
        key=f"{key}.csv",
        icon=":material/download:",
    )


def mention_table(rows: Sequence[MentionRow], key: str) -> MentionRow | None:
    """Draw one row per mention; return the ticked row."""
    heads = {
        "surface": "Mention",
        "type": "Type",
        "pvi_entity": "Name",
        "pvi_context": "Context",
        "ceim": "Name minus context",
        "text": "Sentence",
        **({"place": "File and page"} if any(row.place for row in rows) else {}),
    }
    number = st.column_config.NumberColumn
    event = grid(
        {name: [_unsigned(getattr(row, name)) for row in rows] for name in heads},
        key=key,
        hide_index=True,
        height=330,
        on_select="rerun",
        selection_mode="single-row",
        alt="Mentions with their type, the information of name and context in bits, and their sentence",
        column_config={
            **{name: st.column_config.TextColumn(head) for name, head in heads.items()},
            **{name: number(heads[name], format="%.2f", width=80) for name in ("pvi_entity", "pvi_context", "ceim")},
            "text": st.column_config.TextColumn("Sentence", width="large"),
        },
    )
    ticked = event.selection.rows
    return rows[ticked[0]] if ticked and ticked[0] < len(rows) else None


def _unsigned(value: Any) -> Any:
    """Return 0.0 for a number that rounds to 0, which drops its sign."""
    return 0.0 if isinstance(value, float) and not round(value, 2) else value


@st.fragment
def changes(run_id: str, key: str) -> None:
    """Draw changed sentences of a `rebuild` or `robustness` run, before and after, in pages."""
    with guard(), where_text_is_here():
        looked(bias.new_set(run_id))
        n = bias.changed_sentences(run_id)
        pages = max(-(-n // PAGE), 1)
        st.markdown(f"**{n:,} changed sentences**, before and after")
        page = st.number_input("Page", 1, pages, 1, key=f"{key}.page.{run_id}", width=120) if pages > 1 else 1
        items = "".join(f"<li>{_diff(diff)}</li>" for diff in bias.changed(run_id, (page - 1) * PAGE, PAGE))
        st.html(f'<ol class="w-sentences" start="{(page - 1) * PAGE + 1}" aria-label="Changes">{items}</ol>')


def _diff(diff: Diff) -> str:
    """Return a changed sentence as HTML. Old and new entities are matched by their index, which does not change."""
    old, new = (sorted(sentence.entities or ()) for sentence in (diff.before, diff.after))
    starts = {edit.start for edit in diff.edits}
    places = [place for place, entity in enumerate(new) if entity.start in starts]
    lines = [
        ("before", _painted(diff.before.tokens, [old[place] for place in places], OLD)),
        ("after", _painted(diff.after.tokens, [new[place] for place in places], NEW, diff.unsure)),
    ]
    if diff.gone is not None:
        lines.append(("deleted", escape(diff.gone.text)))
    shown = "".join(f"<div><strong>{name}</strong> {text}</div>" for name, text in lines)
    return shown + place_html(diff.before.place)


def _painted(tokens: Sequence[str], entities: Sequence[Entity], colour: str, unsure: Collection[int] = ()) -> str:
    """Return words as HTML with entities highlighted. unsure: start offsets of ambiguous ones."""
    words = [escape(token) for token in tokens]
    for entity in entities:
        words[entity.start] = f'<mark class="w-entity" style="--c:{colour}">{words[entity.start]}'
        label = escape(entity.type) + ", ambiguous" * (entity.start in unsure)
        words[entity.end - 1] += f" <small>{label}</small></mark>"
    return " ".join(words)
