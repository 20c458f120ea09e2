"""Write all shapes with their right answers to a folder, to try other tools on them.

    python -m tests.imports FOLDER

Each shape becomes a folder with its files in `files/`, and `right.json`: the report that it represents, and the right
answer.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.imports.every import SHAPES
from tests.imports.run import write
from tests.imports.shape import Refused


def main(folder: Path) -> None:
    for shape in SHAPES:
        write(shape.files, folder / shape.name / "files")
        answer = "refused" if isinstance(shape.right, Refused) else "read"
        described = {"report": shape.report, "options": dict(shape.options), "answer": answer, **asdict(shape.right)}
        (folder / shape.name / "right.json").write_text(json.dumps(described, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
