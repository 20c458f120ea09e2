"""Import corpora, check them, split them, and find duplicates and test leaks."""
