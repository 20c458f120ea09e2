"""Rules about the text of the sources and of the documents: `python -m tests.lint`."""
