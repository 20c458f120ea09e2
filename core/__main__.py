"""`python -m core`: the command line."""

import sys

from core.cli.main import run_main

if __name__ == "__main__":
    sys.exit(run_main())
