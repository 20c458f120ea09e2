"""Encoders and language models.

torch's OpenMP runtime reads OMP_WAIT_POLICY when it is loaded, so it is set here, before any module imports torch.
Waiting threads then sleep: on shared cores, spinning threads took half of all CPU time.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # number GPUs as the driver does, not by speed
