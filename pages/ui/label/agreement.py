"""Several annotators of one queue: the field for their names, their agreement, and their differences to settle."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations

import streamlit as st

from core import charts
from core.errors import ConfigError
from core.labelling import answers
from core.labelling import view as labelling
from core.shown import count
from core.text.sentence import Entity
from core.text.words import token_places
from pages.ui.label.editor import reported
from pages.ui.widgets import plain, table

BY = "by"  # URL parameter: name of the annotator, so that a reload keeps it

BY_SESSION = "label.by"  # session key: name of the annotator, kept while the user visits other pages
NAMELESS = "(no name)"


def annotator() -> str | None:
    """Ask for the name of the person who labels, and return it: "" if none is given, None if it is not allowed."""
    known = str(st.query_params.get(BY, st.session_state.get(BY_SESSION, "")))
    label = "Your name, if several people label"
    name = st.text_input(label, known, key="label.annotator", max_chars=answers.LONGEST).strip()
    try:
        answers.check_annotator(name)
    except ConfigError as error:
        st.error(plain(str(error)))
        return None
    st.session_state[BY_SESSION] = name
    if name:
        st.query_params[BY] = name
    elif BY in st.query_params:
        del st.query_params[BY]
    return name


def agreement(run_id: str) -> None:
    """Draw the agreement of two annotators and the next difference to settle. Draw nothing if only one has labelled."""
    found = labelling.answered(run_id)
    if len(found.by_annotator) < 2:
        return
    st.subheader("Agreement", anchor=False)
    pairs = {f"{_name(a)} and {_name(b)}": (a, b) for a, b in combinations(found.by_annotator, 2)}
    shown = next(iter(pairs))
    if len(pairs) > 1:
        shown = st.selectbox("Annotators", list(pairs), key="label.pair")
    a, b = pairs[shown]
    rows = [
        {
            "type": row.type or "all types",
            "a": f"{row.a:,}",
            "b": f"{row.b:,}",
            "f1": "" if row.f1 is None else f"{row.f1:.1f}",
            "kappa": "" if row.kappa is None else f"{row.kappa:.2f}",
        }
        for row in labelling.agreement(run_id, a, b)
    ]
    columns = {
        "type": "Type",
        "a": _name(a),
        "b": _name(b),
        "f1": "F1 of one annotator against the other",
        "kappa": "Cohen's kappa",
    }
    if not rows:
        st.caption(f"{plain(shown)} have not labelled the same sentences yet.")
        return
    table(rows, columns, f"Agreement of {shown} on the sentences that both labelled")
    if found.unsettled:
        _difference(run_id, found.unsettled)
    elif found.differing:
        st.success("All differences are settled.", icon=":material/check:")


def _difference(run_id: str, unsettled: Mapping[int, Mapping[str, Sequence[Entity]]]) -> None:
    place, labels = next(iter(unsettled.items()))
    sentence = labelling.to_label(run_id)[place].sentence
    places, types = token_places(sentence.text, sentence.tokens), labelling.types(run_id)
    st.markdown(
        f"**{count(len(unsettled), 'difference')} to settle.** Until they are settled, these sentences are left out of "
        "the corpora made here."
    )
    with st.container(border=True):
        for name, entities in labels.items():
            st.html(f"<p><b>{escape(_name(name))}</b> {_marked(sentence.text, places, entities, types)}</p>")
        with st.container(horizontal=True):
            for number, name in enumerate(labels):
                st.button(
                    f"{plain(_name(name))} is right",
                    key=f"label.settle.{place}.{number}",
                    icon=":material/gavel:",
                    on_click=reported,
                    args=(labelling.settle, run_id, place, name),
                )


def _marked(text: str, places: Sequence[tuple[int, int]], entities: Sequence[Entity], types: Sequence[str]) -> str:
    """Return a sentence as HTML with its entities highlighted. places: (start, end) of each token in the text."""
    parts, at, colours = list[str](), 0, charts.ENTITY_COLOURS
    for entity in sorted(entities):
        start, end = places[entity.start][0], places[entity.end - 1][1]
        colour = charts.css_colour(
            colours[types.index(entity.type) % len(colours)] if entity.type in types else "#8F8F8F"
        )
        parts += [
            escape(text[at:start]),
            f'<mark class="w-entity" style="--c:{colour}">{escape(text[start:end])} '
            f"<small>{escape(entity.type)}</small></mark>",
        ]
        at = end
    return "".join([*parts, escape(text[at:])])


def _name(annotator: str) -> str:
    return annotator or NAMELESS
