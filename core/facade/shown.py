"""Text and times as a user sees them."""

from core.shown import LONGEST, distinct, duration, in_points, short, shown, shown_json, when

__all__ = ["LONGEST", "distinct", "duration", "in_points", "short", "shown", "shown_json", "when"]
