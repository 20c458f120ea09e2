"""Thousands of spoilt inputs for all that reads a file; see `python -m tests.lab.fuzz --help`."""
