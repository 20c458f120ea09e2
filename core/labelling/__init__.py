"""Labelling: a queue of sentences to label next, the answers about them, and corpora of the labelled sentences."""
