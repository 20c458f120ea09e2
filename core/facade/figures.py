"""Figures: small arrays in, plotly figures out; all of `core.plots`."""

from core.plots import *  # noqa: F403
