"""Kinds of run tortured: killed, torn, starved of disk, and begun by two at once; what they end with must be the same.

python -m tests.lab.torture --minutes 5 [--kinds finetune,select] [--ways kill,torn] [--seed 1] [--out FOLDER] [--log FILE]
"""
