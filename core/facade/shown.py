"""What text and times look like before people."""

from core.shown import duration, shown, shown_json

__all__ = ["duration", "shown", "shown_json"]
