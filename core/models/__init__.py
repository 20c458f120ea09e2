"""Encoders and language models.

Threads that wait for work sleep instead of spinning: with the cores shared, spinning took half of all CPU time.
Read when torch loads its OpenMP runtime, so it stands here, before any of these modules does.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
