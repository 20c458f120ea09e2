"""No file and no function of the engine is longer than a reader takes in at once; pages: tests/pages/test_pages.py."""

import ast
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[1] / "core"


@pytest.mark.parametrize("file", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_files_and_functions_stay_small(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 300, "cut it where its subject changes"
    long = [
        f"{node.name}: {n} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (n := (node.end_lineno or 0) - node.lineno + 1) > 40
    ]
    assert not long, "cut it where a reader pauses"


def test_few_lines_say_any() -> None:
    """A quarter of what there was before results had types of their own (343)."""
    lines = {
        (file, node.lineno)
        for file in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "Any"
    }
    assert len(lines) <= 343 // 4, "give it a type"
