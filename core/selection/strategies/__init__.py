"""All strategies. Each one scores sentences, stores its fitted arrays, and explains a score."""
