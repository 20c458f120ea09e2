"""Draw a selection as a map, pick points on it, and show what sets a region apart."""
