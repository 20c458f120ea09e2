"""The gallery in `docs/gallery`: five tasks, each with commands, times, pictures and results."""
