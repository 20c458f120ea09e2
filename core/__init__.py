"""Winnow's engine: what to pre-train a named-entity tagger on, and whether it was worth it."""

import os

__version__ = "0.4.0"  # in the key of every run: higher where the same options come to other numbers

os.environ["USE_HUB_KERNELS"] = "0"  # read when transformers is imported: no native code from the hub, whoever asks
