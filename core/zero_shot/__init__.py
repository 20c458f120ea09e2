"""Ready models: how well a token classifier of others tags the user's test sets, without the user's labels."""
