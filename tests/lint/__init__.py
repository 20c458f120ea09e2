"""Rules about the text of source files and documents: `python -m tests.lint`."""
