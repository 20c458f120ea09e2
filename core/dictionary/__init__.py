"""Dictionaries: lists of names with types, and what is found in a test set by looking names up."""
