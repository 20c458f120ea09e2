"""Draw a selection as a map, pick points on it, and show which words distinguish a region."""
