"""Torture runs: kill them, tear their files, fill the disk, start two at once. The result must stay the same.

python -m tests.lab.torture --minutes 5 [--kinds finetune,select] [--ways kill,torn] [--seed 1] [--out FOLDER] [--log FILE]
"""
