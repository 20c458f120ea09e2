"""Was it worth it? Arms compared on shared stages: what they are, what they cost, what came of each."""
