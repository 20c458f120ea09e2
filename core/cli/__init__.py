"""The command line: a file a subject; `main.py` puts the commands together."""
