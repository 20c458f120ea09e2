"""Check all rules about the text of source files and documents: `python -m tests.lint`.

It prints `file:line: rule: what to do` for each finding, and exits with 1 if there is one.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.lint import code, documents, escapes, imports
from tests.lint.repository import Finding, Repository

RULES: Mapping[str, Callable[[Repository], Iterator[Finding]]] = {
    "layers": imports.layers,
    "circles": imports.circles,
    "third-party": imports.third_party,
    "light-pages": imports.light_pages,
    "regular-expressions": imports.regular_expressions,
    "grid": code.grid,
    "raw-html": code.raw_html,
    "links": code.links,
    "downloads": code.downloads,
    "copies": code.copies,
    "commands": code.commands,
    "printing": code.printing,
    "artifacts": code.artifacts,
    "buttons": code.buttons,
    "presses": code.presses,
    "escapes": escapes.escapes,
    "private-names": documents.private_names,
    "citations": documents.citations,
    "named-tests": documents.named_tests,
    "promises": documents.promises,
    "rooms": documents.rooms,
    "named-files": documents.named_files,
    "named-commands": documents.named_commands,
    "document-links": documents.document_links,
    "lock": documents.lock,
}
ROOT = Path(__file__).resolve().parents[2]


def broken(root: Path, rules: Mapping[str, Callable[[Repository], Iterator[Finding]]] = RULES) -> list[str]:
    """Return one line per finding below `root`, in the order of the rules."""
    repository = Repository(root)
    return [
        f"{found.path}:{found.line}: {name}: {found.advice}"
        for name, rule in rules.items()
        for found in rule(repository)
    ]


if __name__ == "__main__":
    lines = broken(ROOT)
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(bool(lines))
