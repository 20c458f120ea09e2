"""Ready models: test how well a token classifier that others trained tags the user's test sets."""
