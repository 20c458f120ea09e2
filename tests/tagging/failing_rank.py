"""Winnow's command line with a failure in the second process of torchrun: python -m tests.tagging.failing_rank WORDS..."""

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
