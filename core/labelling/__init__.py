"""A queue of the sentences of the domain corpus to label next."""
