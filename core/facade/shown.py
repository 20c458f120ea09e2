"""Text and times as a user sees them."""

from core.shown import LONGEST, count, distinct, duration, in_points, short, shown, shown_json, when

__all__ = ["LONGEST", "count", "distinct", "duration", "in_points", "short", "shown", "shown_json", "when"]
