"""Statistics of results: spans counted, F1 compared, an arm judged. Numbers in, numbers out: no file and no model."""
