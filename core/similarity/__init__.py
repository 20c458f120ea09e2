"""Measure how close source corpora are to a target corpus, and what the measures predict."""
