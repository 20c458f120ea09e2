"""Strategies, related ones in one file. Each scores sentences, stores its fitted arrays, and explains a score."""
