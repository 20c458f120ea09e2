"""The offer to train on fewer labelled sentences, if all of them take hours."""

from collections.abc import Mapping

import streamlit as st

from core.experiment import view as experiments
from core.shown import duration


def fewer_labels(options: Mapping[str, object], key: str) -> dict[str, object]:
    """Options, with fewer labels if somebody chose that; nothing is drawn for a short plan."""
    offer, whole = experiments.shorter(options), experiments.cost_if_known(options)
    if offer is None or whole is None:
        return dict(options)
    times = {0: f"all of your labels: {duration(whole.seconds)}"}
    times[offer.labels] = f"with {offer.labels:,} of your labels: {duration(offer.seconds)}"
    chosen = st.segmented_control(
        "This takes hours. Train on",
        list(times),
        format_func=times.__getitem__,
        default=0,
        required=True,
        key=key,
        help="Fewer labels train faster. The sentences are drawn at random, the same ones for every variant.",
    )
    return experiments.on_fewer_labels(options, chosen) if chosen else dict(options)
