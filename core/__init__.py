"""Winnow's engine: select text to pre-train a named-entity tagger on, and measure whether that improved the tagger."""

import os

__version__ = "0.5.0"
# Part of the hash by which a run with the same options is found and reused. Increase this version if the same options
# now give different results. In 0.5 some results changed, but runs of 0.4 are not reused anyway, because their hash
# includes options at their default. A new version would only start the runs of the finished samples again.
RESULTS_VERSION = "0.4.0"

# Never run native code from the Hugging Face hub. Set this here, because transformers reads it on import.
os.environ["USE_HUB_KERNELS"] = "0"
