"""Statistics of results: count spans, compare F1, judge a variant. Reads no file and loads no model."""
