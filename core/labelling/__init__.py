"""What to label next: a queue of sentences of the domain corpus."""
