"""A study: one claim on several corpora."""
