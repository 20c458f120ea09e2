"""A survey: people say on a scale of five which of two sources is closer, the numbers out of sight."""

import streamlit as st

from core.similarity import survey_view as survey
from core.similarity import view as similarity
from pages.ui.presses import pressed, submitted
from pages.ui.widgets import plain, table

WORDS = dict(enumerate(survey.SCALE, 1))


def asking(run_id: str, target: str) -> bool:
    """True while people answer, the numbers out of sight."""
    if not st.session_state.get(_key(run_id, target)):
        return False
    _ask(run_id, target, list(similarity.result(run_id).sources))
    if pressed("Show the numbers", "similarity.survey.show", icon=":material/visibility:"):
        _turn(run_id, target, False)
        st.rerun()
    return True


def survey_button(run_id: str, target: str) -> None:
    """The offer, beside the result, where there are two sources."""
    if len(similarity.result(run_id).sources) > 1:
        st.button(
            "Ask people first",
            key="similarity.survey",
            icon=":material/how_to_vote:",
            on_click=_turn,
            args=(run_id, target, True),
            help="Hides the numbers; one person after another says how far one source is closer than another.",
        )


def _ask(run_id: str, target: str, sources: list[str]) -> None:
    # Cleared: nobody is to begin from what the person before answered.
    with st.form(f"{_key(run_id, target)}.form", clear_on_submit=True):
        st.subheader("What do people think?", anchor=False)
        st.markdown(f"About **{plain(target)}**:")  # not in a label, whose escaped letters a screen reader would spell
        left, middle, right = st.columns(3)
        key = _key(run_id, target)
        first = left.selectbox("This source", sources, 0, key=f"{key}.first")
        second = middle.selectbox("is closer to it than", sources, 1, key=f"{key}.second")
        person = right.text_input("Who answers (initials will do)", key=f"{key}.person")
        rating = st.radio("Do you agree?", list(WORDS), 2, WORDS.__getitem__, horizontal=True, key=f"{key}.rating")
        kept = submitted("Keep the answer", "similarity.survey.keep", type="primary", icon=":material/check:")
    if kept and first == second:
        st.warning("An answer is about two sources; pick another one on one side.")
    elif kept:
        answer = survey.Answer(person=person, target=target, first=first, second=second, rating=rating)
        survey.keep_answer(run_id, answer)
        st.success("Kept. The next person can answer.", icon=":material/check:")


def survey_outcome(run_id: str, target: str) -> None:
    """Show what people think, where somebody answered (Dai et al. 2019, Fig. 1)."""
    opinions = survey.opinions_of(run_id, target)
    if not opinions:
        return
    st.subheader("What people think", anchor=False)
    for opinion in opinions:
        st.markdown(f":material/how_to_vote: {plain(opinion.sentence)}")
    rows = [
        {"pair": f"{one.first} rather than {one.second}", **dict(zip(survey.SCALE, one.counts, strict=True))}
        for one in opinions
    ]
    columns = {"pair": "Closer", **{point: point.capitalize() for point in survey.SCALE}}
    table(rows, columns, f"Answers on which source is closer to {target}")


def _turn(run_id: str, target: str, on: bool) -> None:
    st.session_state[_key(run_id, target)] = on


def _key(run_id: str, target: str) -> str:
    return f"similarity.survey.{run_id}.{target}"
