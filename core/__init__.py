"""Winnow's engine: select text to pre-train a named-entity tagger on, and measure whether that improved the tagger."""

import os

__version__ = "0.5.0"
# Part of every run's key. Increase it if the same options give different results than before.
RESULTS_VERSION = "0.4.0"

os.environ["USE_HUB_KERNELS"] = "0"  # never run native code from the hub; transformers reads this when it is imported
