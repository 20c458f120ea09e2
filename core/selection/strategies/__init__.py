"""One strategy a file, or a family of them: how it scores, what it keeps of what it learnt, how it explains."""
