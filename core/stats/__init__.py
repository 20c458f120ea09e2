"""Statistics of results: count spans, compare F1, judge variants. This package reads no file and loads no model."""
