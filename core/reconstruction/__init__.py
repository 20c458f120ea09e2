"""Training sets rebuilt with less informative names or more informative contexts, and test sets with hostile names.

Ma et al. 2023, 4.
"""
