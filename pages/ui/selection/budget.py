"""The budget of a selection, and the number of sentences of the domain corpus that are like the task."""

from collections.abc import Callable

import streamlit as st

from core.config import Budget
from core.errors import WinnowError
from core.projects import runs
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.choice import run_of
from core.selection.prevalence import PrevalenceResult
from pages.ui.choice import REFUSED, say_refused
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import pressed

UNITS = {"fraction": "share", "sentences": "sentences", "tokens": "tokens", "threshold": "score"}


def controls(choice_id: str) -> None:
    """Return the stored budget in its unit, or show why a budget that selects nothing is refused."""
    kept, key = Budget.parse(selections.kept_budget(choice_id)), f"selection.unit.{choice_id}"
    _show(key, kept.unit)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Budget by",
            list(UNITS),
            format_func=UNITS.__getitem__,
            required=True,
            key=key,
            on_change=lambda: _keep(choice_id, lambda: selections.budget_in(choice_id, st.session_state[key])),
        )
        {"fraction": _share, "threshold": _threshold}.get(kept.unit, _count)(choice_id, kept)
    say_refused()


def _share(choice_id: str, kept: Budget) -> None:
    # Round, because 0.29 * 100 is 28.999999999999996.
    share = float(f"{100 * kept.value:.12g}")
    key = _amount(choice_id, kept, share)
    st.slider(
        "Share of the domain corpus",
        # A typed share may be below the slider's first step.
        min(0.1, share),
        100.0,
        step=0.1,
        format="%.6g%%",
        key=key,
        width=420,
        on_change=lambda: _keep(choice_id, lambda: f"{st.session_state[key]:.6g}%"),
    )


def _threshold(choice_id: str, kept: Budget) -> None:
    """Draw a slider whose steps have few digits, so that the shown command has exactly the same value."""
    low, high, decimals = selections.score_range(choice_id)
    key = _amount(choice_id, kept, kept.value)
    way = "at least" if selections.scored(choice_id).scores.prefer == "high" else "at most"
    st.slider(
        f"Take sentences that score {way}",
        # A typed threshold may lie outside the range of scores.
        min(low, kept.value),
        max(high, kept.value),
        step=10.0**-decimals,
        format="%.6g",
        key=key,
        width=420,
        on_change=lambda: _keep(choice_id, lambda: f"threshold:{round(st.session_state[key], decimals)}"),
    )


def _count(choice_id: str, kept: Budget) -> None:
    domain = selections.scored(choice_id).domain
    most = len(domain) if kept.unit == "sentences" else domain.n_tokens
    key = _amount(choice_id, kept, int(kept.value))
    st.number_input(
        f"At most, in {kept.unit}",
        1,
        most,
        step=max(most // 100, 1),
        key=key,
        width=420,
        on_change=lambda: _keep(choice_id, lambda: f"{st.session_state[key]}{kept.unit}"),
    )


def _amount(choice_id: str, kept: Budget, value: float) -> str:
    """Return the key of the unit's widget, which shows `value`."""
    key = f"selection.amount.{choice_id}.{kept.unit}"
    _show(key, value)
    return key


def _show(key: str, value: object) -> None:
    """Set a widget if its value differs. Setting it while the user drags it would move it back."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _keep(choice_id: str, budget: Callable[[], str]) -> None:
    try:
        selections.keep_budget(choice_id, budget())
    except WinnowError as error:
        st.session_state[REFUSED] = str(error)


ABOUT = (
    "Separates the task corpus from the domain corpus as the default strategy does, and counts the domain sentences"
    " that score like the task corpus's own. Sentences beyond this number are less like your task; a larger budget "
    "includes them."
)


def meter(choice_id: str, asked: int) -> None:
    """Compare the estimated number of relevant sentences with `asked`, the number of selected ones.

    Draw the button that starts the estimate if there is none.
    """
    run_id = run_of(choice_id)
    inputs = runs.get(run_id).manifest.inputs
    task, domain = inputs["task"], inputs["domain"]
    count = prevalence.counted(task, domain)
    if count is not None:
        _counted(choice_id, count, asked)
    elif counting := prevalence.counting(task, domain):
        run_panel(counting, "selection.counting")
    elif prevalence.countable(task):
        label = "Estimate how many sentences are relevant"
        if pressed(label, "selection.count", icon=":material/speed:", help=ABOUT):
            runs.start("prevalence", prevalence.options(run_id))
            st.rerun()


def _counted(choice_id: str, count: PrevalenceResult, asked: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(prevalence.in_words(count, asked), width="content", help=ABOUT)
        budget = prevalence.budget(count)
        if budget is None or budget == selections.kept_budget(choice_id):
            return
        if pressed(f"Ask for {count.about:,}", "selection.counted", icon=":material/check:"):
            selections.keep_budget(choice_id, budget)
            st.rerun()
