"""Figures: small arrays in, plotly figures out. Binning happens here, so that a page never sends a million values."""

from core.plots.assisting import f1_by_threshold, skl_histogram
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
from core.plots.report import Told, answer, one_page
from core.plots.results import (
    ARM_A,
    ARM_B,
    GOLD,
    VERDICT_MARKS,
    budget_curve,
    differences,
    interval_words,
    label_curve,
    line_name,
    seed_dots,
    type_differences,
)
from core.plots.selection import ScoreBins, lengths_compared, score_bins, score_histogram
from core.plots.similarity import similarity_bars, size_curve
from core.plots.theme import COLOURS, ENTITY_COLOURS
from core.plots.training import MOST, Line, curves

__all__ = [
    "ARM_A",
    "ARM_B",
    "CLASS_LOOKS",
    "COLOURS",
    "ENTITY_COLOURS",
    "GOLD",
    "MOST",
    "SIDE_LOOKS",
    "VERDICT_MARKS",
    "Drawn",
    "Line",
    "Look",
    "ScoreBins",
    "Told",
    "View",
    "answer",
    "budget_curve",
    "by_class",
    "by_name",
    "by_value",
    "curves",
    "differences",
    "f1_by_threshold",
    "hover_lines",
    "interval_words",
    "label_curve",
    "length_histogram",
    "lengths_compared",
    "line_name",
    "mark",
    "one_page",
    "overlap_lines",
    "score_bins",
    "score_histogram",
    "seed_dots",
    "similarity_bars",
    "size_curve",
    "skl_histogram",
    "type_bars",
    "type_differences",
]
