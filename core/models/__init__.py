"""Encoders and language models.

Threads that wait for work sleep instead of spinning: with the cores shared, spinning took half of all CPU time.
Read when torch loads its OpenMP runtime, so it stands here, before any of these modules does.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # a card's number is the driver's, not of the fastest first
