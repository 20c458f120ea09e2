"""List, fetch, rank, and apply encoders."""
