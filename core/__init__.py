"""Winnow's engine: what to pre-train a named-entity tagger on, and whether it was worth it."""

import os

__version__ = "0.5.0"
RESULTS_VERSION = "0.4.0"  # part of every run's key: raise it if the same options give other numbers than before

os.environ["USE_HUB_KERNELS"] = "0"  # transformers reads it at its import: never run native code from the hub
