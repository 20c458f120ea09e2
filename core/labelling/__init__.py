"""Labelling: queues of sentences to label next, the answers of annotators, and corpora of the labelled sentences."""
