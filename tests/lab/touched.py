"""Map packages to the tests that cover them, for `make quick` and tests.lab.faults."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Further tests of a package of `core`, besides the test folder of the same name.
ALSO: dict[str, tuple[str, ...]] = {
    "bias": ("tests/pages",),
    "cli": ("tests/test_papers.py", "tests/test_audit_log.py"),
    "corpora": ("tests/imports", "tests/fuzz"),
    "experiment": ("tests/pages",),
    "explore": ("tests/pages",),
    "importing": ("tests/imports", "tests/corpora", "tests/pages"),
    "models": ("tests/training",),
    "pretraining": ("tests/training",),
    "projects": ("tests/test_*.py", "tests/pages"),
    "runs": ("tests/torture",),
    "selection": ("tests/pages",),
    "tagging": ("tests/training", "tests/experiment", "tests/pages"),
    "text": ("tests/corpora",),
    "training": ("tests/tagging",),
}

# Each package, and the folders and files with the tests of its behaviour, closest first. "core" are the files at its top.
TESTS: dict[str, tuple[str, ...]] = {
    "core": ("tests/test_*.py",),
    **{
        f"core/{file.parent.name}": (f"tests/{file.parent.name}", *ALSO.get(file.parent.name, ()))
        for file in sorted(ROOT.glob("core/*/__init__.py"))
    },
    "pages": ("tests/pages", "tests/test_regex_time.py", "tests/browser"),
}


def package(file: str) -> str:
    """Return the package that a path relative to the root belongs to; "" outside of `core` and `pages`."""
    parts = Path(file).parts
    if parts[0] in ("app.py", "home.py", "pages"):
        return "pages"
    if parts[0] != "core":
        return ""
    return f"core/{parts[1]}" if len(parts) > 2 else "core"


def existing(patterns: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the folders and files that the patterns of `TESTS` match."""
    return [str(path.relative_to(root)) for pattern in patterns for path in sorted(root.glob(pattern))]


def importing(file: str, root: Path = ROOT) -> list[str]:
    """Return the test files that import the module of `file`, and for a page also those named after it."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    words = {word for word in Path(file).with_suffix("").parts[2:] if file.startswith("pages/ui/")}
    words |= {Path(file).stem.split("_")[-1].lower()} if file.startswith("pages/") else set()
    found = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = str(path.relative_to(root))
        if name.startswith("tests/lab/"):
            continue
        named = name.startswith("tests/pages/") and words & set(path.stem.split("_"))
        if named or module in imported(path):
            found.append(name)
    return found


def imported(path: Path) -> set[str]:
    """Return the modules, and the names taken from them, that a file imports anywhere: `core.text`, `core.text.words`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def changed(root: Path = ROOT) -> list[str]:
    """Return the files that differ from the last commit, including files that git does not know yet."""
    commands = (["git", "diff", "--name-only", "HEAD"], ["git", "ls-files", "--others", "--exclude-standard"])
    said = [subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout for words in commands]
    return sorted({line for text in said for line in text.splitlines()})


# Folders of unit tests, which need neither a page nor a training run. `make quick` runs those of the packages that differ
# from the last commit; the smaller half of them, under a minute on two cores, if nothing differs.
SMALL = ("selection", "text")
UNIT = (*SMALL, "corpora", "models", "similarity", "stats")


def quick(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the tests that `make quick` runs for changed files."""
    chosen: set[str] = set()
    for file in files:
        if file.startswith("tests/") and Path(file).name.startswith("test_") and (root / file).exists():
            chosen.add(file)
        closest = TESTS.get(package(file), ("",))[0]
        if closest.removeprefix("tests/") in UNIT:
            chosen.add(closest)
    return sorted(chosen) or existing((f"tests/{name}" for name in SMALL), root)


if __name__ == "__main__":
    sys.stdout.write(" ".join(quick(changed())) + "\n")
