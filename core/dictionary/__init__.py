"""Dictionaries: look lists of typed names up in test sets, and score the matches."""
