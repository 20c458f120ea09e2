"""Corrupted inputs for all code that reads a file; see `python -m tests.lab.fuzz --help`."""
