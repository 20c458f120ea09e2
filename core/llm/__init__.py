"""Ask a language model that the user runs to tag sentences, with a few labelled examples in the prompt."""
