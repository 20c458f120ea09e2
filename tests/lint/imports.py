"""Which module may import which (core/README.md, Layers)."""

import sys
from collections.abc import Iterator, Mapping

from tests.lint.repository import TOP_FILES, Finding, Repository

FILES = {
    "errors",
    "config",
    "reporter",
    "files",
    "door",
    "isolated",
    "paths",
    "processes",
    "shown",
    "audit_log",
    "cards",
    "heap",
    "project_list",
    "terms",
}
CAPABILITIES = {
    "selection",
    "explore",
    "similarity",
    "pretraining",
    "tagging",
    "experiment",
    "bias",
    "dictionary",
    "llm",
    "assisting",
    "encoders",
    "importing",
    "labelling",
    "projects",
    "zero_shot",
}
BELOW_TRAINING = FILES | {"text", "results", "stats", "corpora", "models"}
FOUNDATIONS = {  # modules that each foundation may import: never a capability
    **dict.fromkeys(FILES, FILES),
    "text": FILES | {"text"},
    "results": FILES,
    "charts": FILES | {"results"},
    "samples": FILES | {"text", "samples"},
    "stats": FILES | {"text", "results", "stats"},
    "corpora": FILES | {"text", "results", "runs", "corpora"},
    "models": FILES | {"text", "results", "models"},
    "runs": FILES | {"results", "runs"},
    "kind": FILES | {"corpora", "models", "runs"},
    "training": BELOW_TRAINING | {"runs", "kind", "training"},
}
MAY_IMPORT = {
    **FOUNDATIONS,
    **{name: {*FOUNDATIONS, *CAPABILITIES, "kinds", "shown_command", "cli"} for name in CAPABILITIES},
    "kinds": {*FOUNDATIONS, *CAPABILITIES},
    "shown_command": {*FOUNDATIONS, *CAPABILITIES, "kinds"},
    "papers": FILES,
    "work": {*FOUNDATIONS, *CAPABILITIES, "kinds"},
    "cli": {*FOUNDATIONS, *CAPABILITIES, "kinds", "shown_command", "cli"},
    "__main__": {"cli"},
}
SLOW = {"torch", "transformers", "accelerate", "sklearn", "umap", "ray", "gensim"}  # seconds to import
LIGHT = {"numpy", "core", "__future__", *sys.stdlib_module_names}  # allowed in core/samples


def layers(repository: Repository) -> Iterator[Finding]:
    """Foundations import only foundations below them, and no capability."""
    for source in repository.under("core"):
        room = source.path.split("/")[1].removesuffix(".py")
        if room == "__init__":
            continue
        if room not in MAY_IMPORT:
            yield Finding(source.path, 1, f"add {room} to MAY_IMPORT of tests/lint/imports.py")
            continue
        for name, line in source.imports:
            if (
                name.startswith("core.")
                and name not in ("core.__version__", "core.RESULTS_VERSION")
                and name.split(".")[1] not in MAY_IMPORT[room]
            ):
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


def circles(repository: Repository) -> Iterator[Finding]:
    """Imports form no circle. Imports in functions count; imports only for types do not."""
    sources = {_module(source.path): source for source in repository.under("core", "pages")}
    graph = {name: source.modules(sources) - {name} for name, source in sources.items()}
    left = dict(graph)
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    for name in sorted(left):
        if _reaches(left, name):
            yield Finding(sources[name].path, 1, "break the circle of imports")


def _reaches(graph: Mapping[str, set[str]], name: str) -> bool:
    """Return True if `name` is reached from itself."""
    seen, ahead = set[str](), [name]
    while ahead:
        for other in graph.get(ahead.pop(), ()):
            if other == name:
                return True
            if other not in seen:
                seen.add(other)
                ahead.append(other)
    return False


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def light_pages(repository: Repository) -> Iterator[Finding]:
    """Pages and commands import no module that loads torch or another slow package at import time."""
    sources = {_module(source.path): source for source in repository.sources}
    begin = [source for source in repository.sources if source.path.startswith(("pages/", "core/cli/", *TOP_FILES))]
    via = {_module(source.path): source.path for source in begin}
    ahead = [*via]
    while ahead:
        name = ahead.pop()
        for other, line in sources[name].loaded:
            if other.split(".")[0] in SLOW:
                yield Finding(sources[name].path, line, f"{via[name]} may not load {other}: import it in a function")
            elif other in sources and other not in via:
                via[other] = via[name]
                ahead.append(other)


def regular_expressions(repository: Repository) -> Iterator[Finding]:
    """`re` is imported under its own name, so that tests/test_regex_time.py finds every regular expression."""
    for source in repository.sources:
        for name, line in source.imports:
            if name == "regex" or (name == "re" and "\nimport re\n" not in f"\n{source.text}"):
                yield Finding(source.path, line, "write `import re` at the top of the module")
