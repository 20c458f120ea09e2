"""Pages and commands load no slow package; a worker loads neither chart libraries nor commands."""

import ast
import subprocess
import sys
from pathlib import Path

from core.kind import register
from core.kinds import KINDS
from core.runs.store import RunStore
from tests.conftest import ROOT
from tests.lint.repository import Repository


def test_pages_and_commands_load_no_slow_package() -> None:
    sources = [source for source in Repository(ROOT).sources if not source.path.startswith("core/")]
    names = {name for source in sources for name, _ in source.loaded if name.startswith("core.")}
    modules = ", ".join(sorted(filter(_exists, {*names, "core.cli.main"})))
    code = f"import sys, {modules}; print(sorted({{'torch', 'ray', 'streamlit', 'transformers', 'sklearn', 'scipy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _exists(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_a_worker_loads_neither_figures_nor_commands(home: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("One sentence .\n", encoding="utf-8")
    recipe = KINDS["add"]
    run = register(recipe, recipe.config.parse({"path": str(tmp_path / "text.txt")}), RunStore(home))
    code = (
        "import sys; from core import work as process; status = process.main();"
        "rooms = {'.'.join(name.split('.')[:2]) for name in sys.modules};"
        "print(status, sorted(rooms & {'plotly', 'altair', 'streamlit', 'core.cli', 'core.charts'}))"
    )
    command = [sys.executable, "-c", code, "work", run.id, "--home", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"
    assert run.state().state == "succeeded"


def test_no_import_of_a_worker_leads_to_figures_or_commands() -> None:
    """Imports inside functions count too, because trainings import most of their modules late."""
    core = [source for source in Repository(ROOT).sources if source.path.startswith("core/")]
    imported = {source.path.removesuffix(".py").replace("/", "."): _imported(source.tree) for source in core}
    reached, ahead = {"core.work"}, ["core.work"]
    while ahead:
        new = imported.get(ahead.pop(), set()) - reached
        reached |= new
        ahead += new
    assert {"core.training.pseudo", "core.tagging.finetune", "core.experiment.kind", "torch"} <= reached
    assert not {name for name in reached if name.split(".")[0] in ("plotly", "altair", "streamlit")}
    assert not {name for name in reached if name == "core.charts" or name.startswith("core.cli")}


def _imported(tree: ast.AST) -> set[str]:
    found, ahead = set[str](), [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        ahead += ast.iter_child_nodes(node)
    return found
