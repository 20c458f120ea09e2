"""The command line. `main.py` collects the commands of all packages."""
