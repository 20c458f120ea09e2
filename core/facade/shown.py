"""What text and times look like before people."""

from core.shown import duration, in_points, shown, shown_json

__all__ = ["duration", "in_points", "shown", "shown_json"]
