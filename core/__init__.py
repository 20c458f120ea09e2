"""Winnow's engine: what to pre-train a named-entity tagger on, and whether it was worth it."""

__version__ = "0.2.0"
