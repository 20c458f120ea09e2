"""Encoders and language models.

torch's OpenMP runtime reads OMP_WAIT_POLICY when torch is loaded. This module therefore sets the variable before any
module imports torch. With PASSIVE, waiting threads sleep; on shared cores, spinning threads took half of all CPU time.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # number GPUs in the driver's order, not by speed
