"""Training of masked language models, taggers and classifiers."""
