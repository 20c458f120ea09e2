"""Winnow's command line, whose second process of torchrun fails: python -m tests.tagging.failing_rank WORDS..."""

import os
import sys

from core.cli.main import run_main
from core.errors import ModelError
from core.tagging.finetune import Seeds


def fail(seeds: Seeds) -> list[int]:
    raise ModelError("tiny: has no such layer; name another.")


if __name__ == "__main__":
    if os.environ["RANK"] == "1":
        Seeds.left = fail  # type: ignore[method-assign,assignment]
    sys.exit(run_main())
