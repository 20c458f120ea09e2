"""Figures: small arrays in, plotly's or Vega-Lite's out; all of `core.plots`, and what the arrays are."""

from core.plots import *  # noqa: F403
from core.results import BoolArray as BoolArray
from core.results import FloatArray as FloatArray
from core.results import IntArray as IntArray
