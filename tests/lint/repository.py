"""Files that the rules read. Each source file is parsed once for all rules."""

import ast
from collections.abc import Container, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

TOP_FILES = ("app.py", "home.py")
APP = (*TOP_FILES, "pages")  # modules that draw


class Finding(NamedTuple):
    """A broken rule: `path` from the root, and what to do about it."""

    path: str
    line: int
    advice: str


class Source:
    """A Python file: its path from the root, its text, all nodes of its tree."""

    def __init__(self, root: Path, path: str) -> None:
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def imports(self) -> list[tuple[str, int]]:
        """Return (dotted name, line) per import. `from core import cards` gives `core.cards`."""
        found = list[tuple[str, int]]()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module == "core":
                found += [(f"core.{alias.name}", node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.append((node.module, node.lineno))
        return found

    def modules(self, known: Container[str]) -> set[str]:
        """Return the modules of `known` that this file imports at run time.

        A package counts only if one of its own names is imported.
        """
        found = set[str]()
        types = {
            id(inner)
            for node in self.nodes
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in (node for node in self.nodes if id(node) not in types):
            for name in _names(node)[isinstance(node, ast.ImportFrom) :]:
                found |= {name if name in known else name.rpartition(".")[0]} if name.startswith("core.") else set()
        return {name for name in found if name in known}

    @cached_property
    def loaded(self) -> list[tuple[str, int]]:
        """Return (dotted name, line) per import that runs at import time: outside functions and type checks."""
        found, ahead = list[tuple[str, int]](), list[ast.stmt](self.tree.body)
        while ahead:
            node = ahead.pop()
            found += [(name, node.lineno) for name in _names(node)]
            if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
                ahead += [*node.body, *node.orelse]
            elif isinstance(node, ast.Try | ast.With):
                ahead += node.body
        return found


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


class Repository:
    """The sources and documents below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def sources(self) -> list[Source]:
        """Python files of `core`, `pages` and the root, sorted by path."""
        files = [path for top in ("core", "pages") for path in self._below(top, "py")]
        return [Source(self.root, path) for path in (*files, *TOP_FILES) if (self.root / path).exists()]

    def under(self, *tops: str) -> Iterator[Source]:
        """Yield the sources in these folders or with these paths."""
        for source in self.sources:
            if any(source.path == top or source.path.startswith(f"{top}/") for top in tops):
                yield source

    @cached_property
    def documents(self) -> list[str]:
        """Paths of the Markdown files in the root, `core` and `tests`."""
        tops = sorted(path.name for path in self.root.glob("*.md"))
        return [*tops, *self._below("core", "md"), *self._below("tests", "md")]

    @cached_property
    def texts(self) -> dict[str, str]:
        """{path: text} of every source, test and document, and of the Makefile."""
        tests = [
            path for path in self._below("tests", "py") if path not in ("tests/lint/documents.py", "tests/test_lint.py")
        ]
        known = {source.path: source.text for source in self.sources}
        others = (*tests, *self.documents, "Makefile")
        return known | {path: self.text(path) for path in others if (self.root / path).exists()}

    def text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def _below(self, top: str, ending: str) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in (self.root / top).rglob(f"*.{ending}"))


def line_of(text: str, position: int) -> int:
    """Return the line number of a position in `text`, from 1."""
    return text.count("\n", 0, position) + 1
