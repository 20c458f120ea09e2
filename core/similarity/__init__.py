"""Measure how close source corpora are to a target corpus, and test how well the measures predict F1."""
