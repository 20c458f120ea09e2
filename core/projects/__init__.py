"""Projects and their runs: list, pack, unpack, label, remove; this machine and its privacy."""
