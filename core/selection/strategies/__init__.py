"""Strategies, related ones in one file: each scores sentences, stores what it learnt, and explains a score."""
