"""Training sets rebuilt so that names tell less and contexts more, and test sets in which names no longer help.

Ma et al. 2023, 4.
"""
