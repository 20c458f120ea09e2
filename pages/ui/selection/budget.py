"""How much of D_C is selected, as controls: what is set is kept with the run, in this session's address too."""

from collections.abc import Callable

import streamlit as st

from core.facade import runs, selections
from core.facade.errors import WinnowError
from core.facade.selections import Budget
from pages.ui.runs.links import attach
from pages.ui.widgets import plain

UNITS = {"fraction": "share", "sentences": "sentences", "tokens": "tokens", "threshold": "score"}
ADDRESS, REFUSED = "selection.address", "selection.refused"


def follow_address(run_id: str, key: str) -> None:
    """Keep the budget that the address came with, then let the address name the kept one. key: see `attach`."""
    named = st.query_params.get("budget")
    if named not in (None, st.session_state.get(ADDRESS)) and st.query_params.get("run") == run_id:
        _keep(run_id, lambda: str(named))
    kept = selections.kept_budget(run_id)
    moved = kept != runs.get(run_id).manifest.config["budget"]
    st.session_state[ADDRESS] = kept if moved else None
    if moved and (named != kept or st.query_params.get("run") != run_id):
        attach(run_id, key)
        st.query_params["budget"] = kept
    elif named and not moved:
        del st.query_params["budget"]


def controls(run_id: str) -> None:
    """The kept budget, in its unit; a budget that chooses nothing is refused in words."""
    kept, key = Budget.parse(selections.kept_budget(run_id)), f"selection.unit.{run_id}"
    _show(key, kept.unit)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Budget by",
            list(UNITS),
            format_func=UNITS.__getitem__,
            required=True,
            key=key,
            on_change=lambda: _keep(run_id, lambda: selections.budget_in(run_id, st.session_state[key])),
        )
        {"fraction": _share, "threshold": _threshold}.get(kept.unit, _count)(run_id, kept)
    say_refused()


def say_refused() -> None:
    """Why a budget was not taken."""
    if refused := st.session_state.pop(REFUSED, None):
        st.error(plain(refused), icon=":material/error:")


def _share(run_id: str, kept: Budget) -> None:
    share = float(f"{100 * kept.value:.12g}")
    key = _amount(run_id, kept, share)
    st.slider(
        "Share of D_C",
        min(0.1, share),
        100.0,
        step=0.1,
        format="%.6g%%",
        key=key,
        width=420,
        on_change=lambda: _keep(run_id, lambda: f"{st.session_state[key]:.6g}%"),
    )


def _threshold(run_id: str, kept: Budget) -> None:
    """A slider in steps that can be written down exactly: what is shown is what the command says."""
    low, high, decimals = selections.score_range(run_id)
    key = _amount(run_id, kept, kept.value)
    way = "at least" if selections.scored(run_id).scores.prefer == "high" else "at most"
    st.slider(
        f"Take sentences that score {way}",
        min(low, kept.value),
        max(high, kept.value),
        step=10.0**-decimals,
        format="%.6g",
        key=key,
        width=420,
        on_change=lambda: _keep(run_id, lambda: f"threshold:{round(st.session_state[key], decimals)}"),
    )


def _count(run_id: str, kept: Budget) -> None:
    domain = selections.scored(run_id).domain
    most = len(domain) if kept.unit == "sentences" else domain.n_tokens
    key = _amount(run_id, kept, int(kept.value))
    st.number_input(
        f"At most, in {kept.unit}",
        1,
        most,
        step=max(most // 100, 1),
        key=key,
        width=420,
        on_change=lambda: _keep(run_id, lambda: f"{st.session_state[key]}{kept.unit}"),
    )


def _amount(run_id: str, kept: Budget, value: float) -> str:
    """The key of the unit's widget, which shows `value`."""
    key = f"selection.amount.{run_id}.{kept.unit}"
    _show(key, value)
    return key


def _show(key: str, value: object) -> None:
    """Only what differs is set: setting what is being moved would pull it from under the hand."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _keep(run_id: str, budget: Callable[[], str]) -> None:
    try:
        selections.keep_budget(run_id, budget())
    except WinnowError as error:
        st.session_state[REFUSED] = str(error)
