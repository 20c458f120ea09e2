"""Imports go down only (the table of core/README.md), and the app's door loads neither torch nor streamlit."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import core.facade
from core.recipes import RECIPES
from core.recipes.base import register
from core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "core"

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
    "facade": FLOOR_1
    | {
        "samples",
        "stats",
        "corpora",
        "measures",
        "selection",
        "maps",
        "difficulty",
        "artifacts",
        "recipes",
        "runs",
        "portable",
        "plots",
        "reports",
        "facade",
    },
    "cli": {"facade", "cli"},
    "__main__": {"cli"},
}


def rooms(file: Path) -> set[str]:
    """The parts of core that a file imports, `core.text.words` -> `text`; `core` itself (its version) is free."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "core" else [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("core.") and name != "core.__version__"}
    return found


def third_party(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("file", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_imports_go_down(file: Path) -> None:
    room = file.relative_to(CORE).parts[0].removesuffix(".py")
    if room != "__init__":
        assert rooms(file) <= MAY_IMPORT[room], f"{file.name} imports upwards"
    assert "streamlit" not in third_party(file)


@pytest.mark.parametrize(
    "file",
    [ROOT / "app.py", ROOT / "home.py", *sorted((ROOT / "pages").rglob("*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_pages_know_the_facade_alone(file: Path) -> None:
    assert rooms(file) <= {"facade"}


def test_the_facade_lists_all_its_modules() -> None:
    listed = re.findall(r"`(\w+)`", core.facade.__doc__ or "")
    assert sorted(listed) == sorted(path.stem for path in (CORE / "facade").glob("[a-z]*.py"))


def test_the_facade_loads_nothing_slow() -> None:
    modules = ", ".join(f"core.facade.{path.stem}" for path in sorted((CORE / "facade").glob("[a-z]*.py")))
    code = f"import sys, {modules}; print(sorted({{'torch', 'ray', 'streamlit', 'transformers', 'sklearn', 'scipy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_loads_neither_the_facade_nor_plotting(home: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("One sentence .\n", encoding="utf-8")
    recipe = RECIPES["add"]
    run = register(recipe, recipe.config.parse({"path": str(tmp_path / "text.txt")}), RunStore(home))
    code = (
        "import sys; from core.recipes import __main__ as process; status = process.main();"
        "rooms = {'.'.join(name.split('.')[:2]) for name in sys.modules};"
        "print(status, sorted(rooms & {'plotly', 'altair', 'streamlit', 'core.facade', 'core.cli', 'core.plots'}))"
    )
    command = [sys.executable, "-c", code, "work", run.id, "--home", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"
    assert run.state().state == "succeeded"
