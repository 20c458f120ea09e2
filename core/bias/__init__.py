"""Measure whether labels teach names or contexts, and rebuild training and test sets accordingly."""
