"""Names say what they hold, in the field's words: results, rows, runs, not what somebody found, told or made."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TELLING = {"told", "found", "made", "said", "every", "lots", "mine", "theirs", "heard", "beside", "looking"}
OF_LIBRARIES = {"connection_made"}  # asyncio's
NOT_YET = {"artifacts", "measures", "models", "recipes", "runs", "training", "paths.py"}
FILES = [
    *(ROOT / name for name in ("app.py", "home.py")),
    *sorted((ROOT / "pages").rglob("*.py")),
    *(
        file
        for file in sorted((ROOT / "core").rglob("*.py"))
        if file.relative_to(ROOT / "core").parts[0] not in NOT_YET
    ),
]


def given(source: str) -> Iterator[tuple[int, str]]:
    """Every name that a module gives: variables, parameters, attributes, functions, classes, imports under another."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.alias(asname=str(name)):
                yield node.lineno, name


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = run(made)", ["found"]),
        ("def told(rows): pass", ["told", "rows"]),
        ("self.said = [mine for mine in rows]", ["said", "mine"]),
        ("from a import b as lots", ["lots"]),
        ('f"found {run.made}"', []),
    ],
)
def test_a_name_is_recognised_where_it_is_given(source: str, names: list[str]) -> None:
    assert sorted(name for _, name in given(source)) == sorted(names)


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_they_hold(file: Path) -> None:
    telling = [
        f"{file.name}:{line}: {name}"
        for line, name in given(file.read_text(encoding="utf-8"))
        if TELLING & set(name.lower().split("_")) and name not in OF_LIBRARIES
    ]
    assert not telling, "call it by what it holds: rows, mentions, result, options"
