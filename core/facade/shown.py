"""What text and times look like before people."""

from core.shown import LONGEST, duration, in_points, short, shown, shown_json

__all__ = ["LONGEST", "duration", "in_points", "short", "shown", "shown_json"]
