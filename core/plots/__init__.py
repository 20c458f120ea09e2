"""Figures: small arrays in, plotly figures out. Binning happens here, so that a page never sends a million values."""

from core.plots.corpora import length_histogram, type_bars
from core.plots.explore import (
    CLASS_LOOKS,
    SIDE_LOOKS,
    Drawn,
    Look,
    View,
    by_class,
    by_name,
    by_value,
    hover_lines,
    mark,
    overlap_lines,
)
from core.plots.selection import ScoreBins, lengths_compared, score_bins, score_histogram
from core.plots.theme import COLOURS, ENTITY_COLOURS
from core.plots.training import Line, curves

__all__ = [
    "CLASS_LOOKS",
    "COLOURS",
    "ENTITY_COLOURS",
    "SIDE_LOOKS",
    "Drawn",
    "Line",
    "Look",
    "ScoreBins",
    "View",
    "by_class",
    "by_name",
    "by_value",
    "curves",
    "hover_lines",
    "length_histogram",
    "lengths_compared",
    "mark",
    "overlap_lines",
    "score_bins",
    "score_histogram",
    "type_bars",
]
