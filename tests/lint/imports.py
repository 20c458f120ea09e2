"""Who may import what. Imports go down only (the table of core/README.md)."""

import sys
from collections.abc import Iterator

from tests.lint.repository import APP, Finding, Repository

FLOOR_0 = {
    "errors",
    "config",
    "reporter",
    "files",
    "door",
    "isolated",
    "paths",
    "shown",
    "audit_log",
    "disks",
    "cards",
    "heap",
    "projects",
    "terms",
}
FLOOR_1 = FLOOR_0 | {"text", "results"}
PEERS = {"measures", "selection", "maps", "difficulty", "reconstruction"}
BELOW_ARTIFACTS = FLOOR_1 | PEERS | {"stats", "corpora", "models", "runs"}
FACADE = {"stats", "corpora", "measures", "selection", "maps", "difficulty", "artifacts", "recipes", "runs", "portable"}
MAY_IMPORT = {
    **dict.fromkeys(FLOOR_0, FLOOR_0),
    "text": FLOOR_0 | {"text"},
    "results": FLOOR_0,
    "samples": FLOOR_0 | {"text", "samples"},
    "stats": FLOOR_1 | {"stats"},
    **{name: FLOOR_1 | {name} for name in ("corpora", "models")},
    "plots": FLOOR_0 | {"results", "artifacts", "plots"},
    "reports": FLOOR_1 | {"artifacts", "plots", "reports"},
    **{name: FLOOR_1 | {"stats", "corpora", "models", name} for name in (*PEERS, "training")},
    "runs": FLOOR_0 | {"results", "runs"},
    "portable": FLOOR_1 | {"corpora", "runs", "portable"},
    "artifacts": BELOW_ARTIFACTS | {"artifacts"},
    "recipes": BELOW_ARTIFACTS | {"training", "artifacts", "recipes"},
    "facade": FLOOR_1 | FACADE | {"samples", "plots", "reports", "facade"},
    "cli": {"facade", "cli"},
    "__main__": {"cli"},
}
LIGHT = {"numpy", "core", "__future__", *sys.stdlib_module_names}  # enough for the generator of the samples


def floors(repository: Repository) -> Iterator[Finding]:
    """A room of `core` imports only rooms below it."""
    for source in repository.under("core"):
        room = source.path.split("/")[1].removesuffix(".py")
        if room == "__init__":
            continue
        if room not in MAY_IMPORT:
            yield Finding(source.path, 1, f"add {room} to MAY_IMPORT of tests/lint/imports.py")
            continue
        for name, line in source.imports:
            if name.startswith("core.") and name != "core.__version__" and name.split(".")[1] not in MAY_IMPORT[room]:
                yield Finding(source.path, line, f"{room} may not import {name}: move what you need down")


def third_party(repository: Repository) -> Iterator[Finding]:
    """`core` runs without streamlit, and the samples are generated without anything heavy."""
    for source in repository.under("core"):
        for name, line in source.imports:
            top = name.split(".")[0]
            if top == "streamlit":
                yield Finding(source.path, line, "core may not import streamlit: move this to pages")
            if source.path.startswith("core/samples/") and top not in LIGHT:
                yield Finding(source.path, line, f"core/samples needs only numpy: do without {top}")


def facade_alone(repository: Repository) -> Iterator[Finding]:
    """Pages import nothing of `core` but the facade."""
    for source in repository.under(*APP):
        for name, line in source.imports:
            if name.startswith("core.") and name != "core.__version__" and name.split(".")[1] != "facade":
                yield Finding(source.path, line, f"pages may not import {name}: offer it in core/facade")


def regular_expressions(repository: Repository) -> Iterator[Finding]:
    """`re` keeps its name, so that tests/test_spite.py finds every expression."""
    for source in repository.sources:
        for name, line in source.imports:
            if name == "regex" or (name == "re" and "\nimport re\n" not in f"\n{source.text}"):
                yield Finding(source.path, line, "write `import re` at the top of the module")
