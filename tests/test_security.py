"""SECURITY.md: every test that it names exists, and the README leads to it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_promise_names_a_test_that_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_one() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = text.split("| promise | held by |")[1].split("\n\n")[0].splitlines()[2:]
    assert len(table) > 10
    assert [line for line in table if "`tests/" not in line] == []


def test_the_readme_leads_there() -> None:
    assert "](SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
